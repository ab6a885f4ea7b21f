"""The hull of given feature vectors: all their mixtures.

A point is a vector of weights μ, one for each vector p_j, and stands for x = Σ μ_j p_j / Σ μ_j. So membership
is an exact test (μ ≥ 0, not all 0), and the support function is the largest u·p_j.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike

from argmaxable.core.arrays import Mask, Matrix, Vector
from argmaxable.core.domain import Domain, as_dyadic
from argmaxable.core.errors import DomainError
from argmaxable.core.matrices import finite_matrix, matrix_from_record, matrix_record, read_arrays
from argmaxable.exact.dyadic import Dyadic
from argmaxable.exact.rounding import TINY, gamma

# Products of directions with vectors held at a time: 64 MB of float64.
_BLOCK = 1 << 23
# Directions in which the vectors spread less than this share of the widest count as none, for search alone.
_FLAT = 1e-9


@final
@dataclass(frozen=True, eq=False)
class Hull(Domain):
    """All mixtures of the given vectors (n × features)."""

    points: Matrix

    kind: ClassVar[str] = "hull"
    is_identity: ClassVar[bool] = False
    has_features: ClassVar[bool] = False

    def __init__(self, points: ArrayLike) -> None:
        object.__setattr__(self, "points", finite_matrix(points, "a hull", "input"))

    @classmethod
    def read(cls, path: str) -> Self:
        """The hull of the rows of an .npy file; raises DomainError."""
        return cls(read_arrays(path, "an .npy file with a matrix"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hull) and np.array_equal(self.points, other.points)

    def __hash__(self) -> int:
        return hash((self.points.shape, self.points.tobytes()))

    def require_features(self, features: int) -> None:
        if self.points.shape[1] != features:
            raise DomainError(
                f"the hull's inputs have {self.points.shape[1]} features but the head has {features}."
            )

    def describe(self) -> str:
        count = len(self.points)
        return f"hull of {count:,} input{'' if count == 1 else 's'}"

    def in_words(self) -> str:
        count = len(self.points)
        return f"The inputs are all mixtures of {count:,} given feature vector{'s' * (count > 1)}."

    def scope(self) -> str:
        count = len(self.points)
        return "at this one input" if count == 1 else f"at mixtures of these {count:,} inputs"

    def denial(self) -> str:
        """Real inputs need not be mixtures of those seen, so "never" would say too much."""
        count = len(self.points)
        if count == 1:
            return super().denial()
        return f"can't be predicted at any mixture of these {count:,} inputs"

    def as_record(self) -> dict[str, Any]:
        return {"kind": self.kind} | matrix_record(self.points, "points")

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Self:
        return cls(matrix_from_record(record, "points"))

    # ------------------------------------------------------------------ points: weights on the vectors

    def point_size(self, features: int) -> int:
        return len(self.points)

    @property
    def has_origin(self) -> bool:
        return False  # as far as anyone needs to know: weights have no scale, and x can't be scaled

    def contains(self, points: Matrix) -> Mask:
        return np.asarray(np.isfinite(points).all(axis=1) & (points >= 0).all(axis=1) & points.any(axis=1))

    def contains_exactly(self, z: Dyadic) -> bool:
        return bool((z.sign() >= 0).all() and z.sign().any())

    def place(self, points: Matrix) -> tuple[Matrix, Matrix]:
        """x = μP / Σμ with bounds: sums of n terms round by γ_n of their sizes μ|P| and Σμ, the quotient
        once: γ_{2n+8} of μ|P| / Σμ. What underflows is at most TINY a term."""
        count = len(self.points)
        with np.errstate(all="ignore"):
            totals = points.sum(axis=1, keepdims=True)
            x = points @ self.points / totals
            sizes = points @ np.abs(self.points) / totals
            error = gamma(2 * count + 8) * sizes + (2 * count * TINY / totals + TINY)
        # An infinite total would make x = 0: such weights are left to integers.
        return x, np.where(np.isfinite(totals), error, np.inf)

    def place_exactly(self, point: Vector | Dyadic) -> tuple[Dyadic, int]:
        z = as_dyadic(point)
        used = np.flatnonzero(z.sign())
        weights = z[used]
        mixed = weights @ Dyadic.of(self.points[used])
        total = weights.sum()
        # Weights that add up to 0 stand for no x at all; whoever asks will see that they are outside.
        return Dyadic(mixed.integers, mixed.exponent - total.exponent), int(total.integers[()]) or 1

    # ------------------------------------------------------------------ the support function

    def support_bound(self, u: Matrix, error: Matrix) -> Vector:
        """max u·p_j: γ_{d+4} of |u|·|p_j| for each product, and error·|p_j|, itself rounded up."""
        features = u.shape[1]
        largest = np.empty(len(u))
        step = max(1, _BLOCK // len(self.points))
        sizes = np.abs(self.points).T
        with np.errstate(all="ignore"):
            for first in range(0, len(u), step):
                some = slice(first, first + step)
                slack = (gamma(features + 4) * np.abs(u[some]) + error[some]) @ sizes
                values = u[some] @ self.points.T + slack * (1 + gamma(features + 4)) + 2 * features * TINY
                # The last two sums round as well.
                largest[some] = (values + gamma(4) * (np.abs(values) + slack)).max(axis=1)
        return np.where(np.isnan(largest), np.inf, largest)

    def support_is_at_most(self, u: Dyadic, limit: Dyadic) -> bool:
        return bool((self.support_exactly(u) - limit).sign() <= 0)

    def support_exactly(self, u: Dyadic) -> Dyadic:
        values = Dyadic.of(self.points) @ u
        return values[int(np.argmax(values.integers))]

    # ------------------------------------------------------------------ for search: coordinates of the span

    @cached_property
    def _span(self) -> tuple[Vector, Matrix]:
        """The mean of the vectors, and directions (features × r) in which they spread."""
        scale = float(np.abs(self.points).max()) or 1.0  # so that nothing overflows
        unit = self.points / scale
        mean = unit.mean(axis=0)
        _, sizes, directions = np.linalg.svd(unit - mean, full_matrices=False)
        return mean * scale, np.ascontiguousarray(directions[sizes > _FLAT * sizes[0]].T)

    def fixed_part(self, features: int) -> Vector:
        """The mean of the vectors, from which coordinates are counted."""
        return self._span[0]

    def free_features(self, features: int) -> Mask:
        return np.ones(self._span[1].shape[1], bool)

    def rows_seen(self, rows: Matrix) -> Matrix:
        """Rows along the directions in which the vectors spread."""
        return np.asarray(rows @ self._span[1])

    def corners_seen(self) -> Matrix:
        """The given vectors along those directions (n × r), their mean taken off."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray((self.points - self._span[0]) @ self._span[1])

    def corner_inputs(self) -> Matrix:
        return self.points
