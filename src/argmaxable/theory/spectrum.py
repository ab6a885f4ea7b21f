"""Singular values of matrices too large to hold: contexts × classes, read block by block.

A QR factorisation is carried along, never the Gram matrix: squares would bury everything below 1e-8 of the
largest singular value. Matrices with many columns are first projected on the span of a random sketch of their
rows (Halko, Martinsson & Tropp 2011).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import InputError

if TYPE_CHECKING:
    from argmaxable.core.arrays import Matrix, Vector

# Numbers in a block of rows: 32 MB in float64.
_BLOCK = 2**22
# Sums of squares of larger numbers may overflow.
_LARGEST = 1e140


@dataclass(frozen=True, eq=False)
class Rows:
    """A matrix (contexts × classes) that can be read in blocks of rows, as often as needed.

    `unit` is the relative rounding of its entries, the machine epsilon of what they were computed in.
    """

    columns: int
    unit: float
    read: Callable[[], Iterator[NDArray[Any]]]
    count: int | None = None  # None: not known before everything is read

    def blocks(self) -> Iterator[Matrix]:
        """The rows as float64. Raises InputError when one can't be used, or there are none."""
        seen = 0
        for block in self.read():
            values = np.asarray(block, dtype=np.float64)
            if not np.isfinite(values).all():
                row = int(np.argmin(np.isfinite(values).all(axis=1)))
                raise InputError(
                    f"row {seen + row} holds NaN or infinite values. The log of probability 0 has "
                    "no finite value: pass logits."
                )
            if np.abs(values).max(initial=0.0) > _LARGEST:
                raise InputError(f"a value beyond ±{_LARGEST:g} is not a logit: its square overflows.")
            seen += len(values)
            yield values
        if not seen:
            raise InputError("the matrix has no rows: there is no context to measure.")


def rows_of(matrix: NDArray[Any], *, unit: float | None = None) -> Rows:
    """An array in memory or in a mapped file (contexts × classes) as rows.

    Raises InputError unless it is a matrix of floats.
    """
    if matrix.ndim != 2 or not matrix.size or matrix.dtype.kind != "f":
        raise InputError(
            f"expected a matrix of floats (contexts × classes), found {matrix.dtype} of shape {matrix.shape}."
        )
    step = max(1, _BLOCK // matrix.shape[1])

    def read() -> Iterator[NDArray[Any]]:
        return (matrix[start : start + step] for start in range(0, len(matrix), step))

    eps = float(np.finfo(matrix.dtype).eps) if unit is None else unit
    return Rows(matrix.shape[1], eps, read, len(matrix))


def open_rows(path: str) -> Rows:
    """The rows of a .npy file, mapped into memory. Raises InputError when it is none."""
    try:
        matrix = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{path}: it is not an .npy file of numbers ({error}).") from error
    if not isinstance(matrix, np.ndarray):
        matrix.close()
        raise InputError(f"{path}: holds several arrays. Save the one of logits alone, with numpy.save.")
    return rows_of(matrix)


# ---------------------------------------------------------------------- what is left of many rows


@dataclass(frozen=True, eq=False)
class Triangle:
    """The R of a QR factorisation of [1 T]: T's rows with a column of ones in front, and their number.

    R without its first row belongs to T with the mean of each column removed.
    """

    factor: Matrix
    count: int


def triangle_of(blocks: Iterable[Matrix]) -> Triangle:
    """R of [1 T], from T's rows block by block."""
    factor: Matrix | None = None
    waiting: list[Matrix] = []
    count = 0
    for block in blocks:
        count += len(block)
        waiting.append(np.column_stack([np.ones(len(block)), block]))
        # Four times as many new rows as R has: fewer would spend the time on R again and again.
        if sum(map(len, waiting)) >= 4 * (block.shape[1] + 1):
            factor, waiting = _absorb(factor, waiting), []
    return Triangle(_absorb(factor, waiting), count)


def _absorb(factor: Matrix | None, waiting: list[Matrix]) -> Matrix:
    parts = waiting if factor is None else [factor, *waiting]
    return upper_triangle(np.vstack(parts))


def upper_triangle(matrix: Matrix) -> Matrix:
    """The R of a QR factorisation."""
    factor: Any = np.linalg.qr(matrix, mode="r")  # numpy's types tell of (Q, R), whatever the mode
    return np.asarray(factor, dtype=np.float64)


def sketch_rows(rows: Rows, size: int, generator: np.random.Generator) -> Matrix:
    """An orthonormal basis (classes × about `size`) that holds the span of `size` random mixtures of the
    rows, their mean and the vector of ones. A matrix of rank `size` or less is in it whole."""
    mixed = np.zeros((size, rows.columns))
    total = np.zeros(rows.columns)
    for block in rows.blocks():
        mixed += generator.standard_normal((size, len(block))) @ block
        total += block.sum(axis=0)
    # Lengths of one size: otherwise QR's rounding would drown the shorter vectors.
    columns = np.column_stack([mixed.T, total, np.ones(rows.columns)])
    basis: Matrix = np.linalg.qr(columns / np.linalg.norm(columns, axis=0).clip(np.finfo(float).tiny))[0]
    return basis


# ---------------------------------------------------------------------- the singular values


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Singular values of a matrix, the largest first. What is at most `threshold` counts as zero.

    `energy` is the sum of all their squares. It is more than that of `values` where these come from a sketch,
    and are then lower bounds.
    """

    values: Vector
    threshold: float
    energy: float

    @property
    def rank(self) -> int:
        """The numerical rank: how many singular values are above the threshold."""
        return int((self.values > self.threshold).sum())

    @property
    def gap(self) -> float:
        """How many times larger the last singular value that counts is than the first that does not.

        A large gap says that the rank does not depend on the threshold.
        """
        rank = self.rank
        if rank in (0, len(self.values)) or not self.values[rank]:
            return math.inf
        return float(self.values[rank - 1] / self.values[rank])

    @property
    def entropy(self) -> float:
        """Singular value entropy: that of the singular values above the threshold as shares of their sum."""
        kept = self.values[: self.rank]
        shares = kept / kept.sum() if len(kept) else kept
        return float(-(shares * np.log(shares)).sum())

    @property
    def effective_rank(self) -> float:
        """e^entropy (Roy & Vetterli 2007): the number of equal singular values with this entropy."""
        return math.exp(self.entropy) if self.rank else 0.0

    @property
    def shares(self) -> Vector:
        """Each singular value's share of the variance, σ_k² / Σ σ²."""
        return self.values**2 / self.energy if self.energy else np.zeros_like(self.values)

    def directions_for(self, share: float) -> int | None:
        """How many directions hold this share of the variance; None when those of a sketch don't."""
        held = np.cumsum(self.shares)
        reached = np.flatnonzero(held >= share * (1 - 1e-12))
        return int(reached[0]) + 1 if len(reached) else None
