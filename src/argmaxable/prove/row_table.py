"""The rows of one solve with a column of ones, in float64 and float32. They grow in place: a solve takes in
rows several times, and building its table anew each time took as long as its first steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from argmaxable.core.arrays import Matrix, Matrix32, Vector

# Room for this many times the rows that come in; memory that is not written to costs nothing.
_ROOM = 4


class RowTable:
    """[A 1] for the rows A that were appended so far."""

    def __init__(self, rows: Matrix) -> None:
        count, size = rows.shape
        self._double: NDArray[np.float64] = np.ones((count, size + 1))
        self._double[:, :-1] = rows
        self._single: NDArray[np.float32] = np.empty((0, size + 1), np.float32)
        self._scaled = self._single
        self._sizes: NDArray[np.float64] = np.empty(0)
        self._lengths: NDArray[np.float64] = np.empty(0)
        self.count = count
        self._converted = 0

    @property
    def double(self) -> Matrix:
        return self._double[: self.count]

    @property
    def single(self) -> Matrix32:
        """The same in float32; only rows that were not asked for before are converted."""
        if self._converted < self.count:
            if len(self._single) < self.count:
                self._single = _larger(self._single, self._converted, len(self._double))
                self._scaled = np.empty_like(self._single)
            self._single[self._converted : self.count] = self._double[self._converted : self.count]
            self._converted = self.count
        return self._single[: self.count]

    @property
    def sizes(self) -> Vector:
        """Σ_j |a_ij| of each row; only rows that were not asked for before are summed."""
        known = len(self._sizes)
        if known < self.count:
            more = np.abs(self._double[known : self.count, :-1]).sum(axis=1)
            self._sizes = np.concatenate([self._sizes, more])
        return self._sizes

    @property
    def lengths(self) -> Vector:
        """‖a_i‖ of each row, likewise."""
        known = len(self._lengths)
        if known < self.count:
            rows = self._double[known : self.count, :-1]
            self._lengths = np.concatenate([self._lengths, np.sqrt(np.einsum("ij,ij->i", rows, rows))])
        return self._lengths

    def append(self, rows: Matrix) -> None:
        count = self.count + len(rows)
        if count > len(self._double):
            self._double = _larger(self._double, self.count, self.count + _ROOM * len(rows))
        self._double[self.count : count, :-1] = rows
        self._double[self.count : count, -1] = 1.0
        self.count = count

    def gram(self, scale: Vector) -> Matrix:
        """[A 1]ᵀ diag(scale) [A 1]."""
        scaled = self.double * np.sqrt(scale)[:, None]
        return np.asarray(scaled.T @ scaled)

    def gram_by_float32(self, scale: Vector) -> Matrix:
        """The same by float32, but for the last column: with that in float32 too, a seventh more steps are
        needed. The last row is left as it is: half of a symmetric matrix is all that is ever read."""
        top = float(scale.max())
        table = self.single
        scaled = np.multiply(
            table, np.sqrt(scale / top).astype(np.float32)[:, None], out=self._scaled[: len(table)]
        )
        normal = np.multiply(scaled.T @ scaled, top, dtype=np.float64)
        np.matmul(scale, self.double, out=normal[:, -1])
        return np.asarray(normal)


def _larger(held: NDArray[Any], count: int, room: int) -> NDArray[Any]:
    """A copy of the first rows with room for more."""
    larger = np.empty((room, held.shape[1]), held.dtype)
    larger[:count] = held[:count]
    return larger
