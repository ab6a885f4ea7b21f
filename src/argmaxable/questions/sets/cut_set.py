"""A feature set with one more coordinate, the cut between the top k and the rest, which may be any number.

Nothing here has to be trusted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from argmaxable.prove.feature_sets import BoxSet, CurvedSet, FeatureSet

if TYPE_CHECKING:
    from argmaxable.core.arrays import Matrix, Vector

# Half-width of the cut's range beside a box, in units of the largest score there: wide enough to be free.
_ROOM = 4.0


def with_cut(space: FeatureSet, x: Vector, rows: Matrix, scores: Vector) -> tuple[FeatureSet, Vector]:
    """The set and the point with a cut beside them, which starts in the middle of these scores at x."""
    middle = (float(scores.max()) + float(scores.min())) / 2
    start = np.append(x, middle)
    if not isinstance(space, BoxSet):
        return CutSet(space), start
    largest = float((np.abs(rows) @ np.maximum(np.abs(space.lo), np.abs(space.hi))).max())
    far = _ROOM * (largest + abs(middle) + 1.0)
    return BoxSet(np.append(space.lo, -far), np.append(space.hi, far)), start


class CutSet:
    """A curved set, and a last coordinate without limits: it has no part in anything but the rows."""

    def __init__(self, inner: CurvedSet) -> None:
        self.inner = inner

    @property
    def count(self) -> int:
        return self.inner.count

    @count.setter
    def count(self, value: int) -> None:
        self.inner.count = value

    def start(self, mu: float) -> None:
        self.inner.start(mu)

    def complementarity(self) -> float:
        return self.inner.complementarity()

    def add_hessian(self, normal: Matrix) -> None:
        size = len(normal) - 2  # besides the cut and t
        part = np.zeros((size + 1, size + 1), order="F")
        self.inner.add_hessian(part)
        normal[:size, :size] += part[:size, :size]

    def predict(self) -> None:
        self.inner.predict()

    def correct(self, target: float, dx: Vector) -> None:
        self.inner.correct(target, dx[:-1])

    def pull(self) -> Vector:
        return np.append(self.inner.pull(), 0.0)

    def steps(self, dx: Vector) -> tuple[float, float]:
        return self.inner.steps(dx[:-1])

    def complementarity_after(self, dx: Vector, primal: float, dual: float) -> float:
        return self.inner.complementarity_after(dx[:-1], primal, dual)

    def move(self, dx: Vector, primal: float, dual: float) -> None:
        self.inner.move(dx[:-1], primal, dual)

    def support(self, u: Vector) -> float:
        return self.inner.support(u[:-1])
