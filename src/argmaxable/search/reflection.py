"""Braid reflection (Grivas, Bogoychev & Lopez 2022, Algorithm 2): while another class i wins at x,
reflect x across the hyperplane s_c = s_i. Batched: one product moves every open class a step.

It can only ever answer "argmaxable"; a class it does not settle may be either.

`reflect_among_winners` is faster than the paper in two ways. Few rows beat nearly all open classes: points
meet only those that have won somewhere, several times in a row, and all rows once none of those beats them.
And distances are measured in the metric of these rows' covariance, in which they point evenly in all
directions: a reflection undoes less of what those before it did.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from argmaxable.compute.compare import best_at
from argmaxable.compute.lapack import dpotrf, dpotrs
from argmaxable.core.arrays import Ids, Mask, Matrix32

if TYPE_CHECKING:
    from collections.abc import Iterator

    from argmaxable.compute.coordinates import Coordinates
    from argmaxable.core.arrays import Vector, Vector32

# How far a point moves, in units of its distance to the hyperplane: 2 is a reflection. Bounds take part of a
# step back, so it is longer there: behind BirdNET's ReLU (6,522 × 1,024) 4 settles all 236 open classes of a
# sample in 6 steps, 2 settles 144 in 20. On OCR heads 4 settles slightly fewer in 20 steps: 170 of 476
# against 178 (PP-OCRv4), 524 of 1,169 against 546 (PP-OCRv3), 109 of 549 against 106 (PP-OCRv5, a sample).
_REFLECTION, _BOUNDED_STEP = np.float32(2), np.float32(4)
# Reflections among the rows that have won, in each step.
_ROUNDS = 4
# Rows that have won are worth a table of their own if they are fewer than this share of all.
_FEW = 0.4
# Their covariance is taken once there are so many for each feature, anew after so many steps, and with this
# share of the mean variance added in every direction.
_ENOUGH, _RENEWED, _RIDGE = 2, 4, 1e-3


@dataclass(frozen=True, eq=False)
class Step:
    """After one step: classes whose point now wins, those points, and who beat the others."""

    classes: Ids
    points: NDArray[np.float32]
    winners: Ids


class _Points:
    """The open classes, each at its point x."""

    def __init__(
        self,
        coordinates: Coordinates,
        classes: Ids,
        start: Matrix32,
        within: tuple[Vector, Vector] | None,
    ) -> None:
        self._coordinates = coordinates
        with np.errstate(over="ignore"):  # beyond float32 there is no bound
            self._bounds = None if within is None else tuple(side.astype(np.float32) for side in within)
        self._reach = _REFLECTION if within is None else _BOUNDED_STEP
        self.ids, self.x, self.rows = classes, start.copy(), coordinates.rows32[classes]

    def beaten_by(self, some: Ids) -> tuple[Ids, Mask]:
        """The best of all other classes at some of the points, and whether the class itself beats it."""
        space = self._coordinates
        best = best_at(space.backend, space.rows32, space.biases32, self.x[some], self.ids[some])
        return best.rival, best.own > best.score

    @np.errstate(over="ignore", invalid="ignore")
    def reflect(self, some: Ids, winners: Ids, metric: Matrix32 | None) -> None:
        """Reflect some of the points, each across the hyperplane where its class ties with that winner."""
        lead, x = self.leads(some, winners), self.x[some]
        normal = self.rows[some] - self._coordinates.rows32[winners]
        direction = normal if metric is None else normal @ metric
        length = np.maximum((normal * direction).sum(axis=1), np.float32(1e-30))
        x -= (self._reach * lead / length)[:, None] * direction
        self.x[some] = x if self._bounds is None else np.clip(x, *self._bounds)

    def leave(self, some: Ids) -> None:
        """Some of the classes leave the search."""
        stay = np.ones(len(self.ids), bool)
        stay[some] = False
        self.ids, self.x, self.rows = self.ids[stay], self.x[stay], self.rows[stay]

    @np.errstate(over="ignore", invalid="ignore")
    def leads(self, some: Ids, winners: Ids) -> Vector32:
        """How far some of the classes are ahead of these winners at their points."""
        biases, normal = self._coordinates.biases32, self.rows[some] - self._coordinates.rows32[winners]
        return np.asarray((self.x[some] * normal).sum(axis=1) + (biases[self.ids[some]] - biases[winners]))


class _Winners:
    """The rows that have beaten a class, as a table of their own, and their metric."""

    def __init__(self, coordinates: Coordinates) -> None:
        self._coordinates = coordinates
        self._is_one = np.zeros(len(coordinates.biases), bool)
        self._ids = np.empty(0, np.intp)
        self._count, self._total = 0, np.zeros(coordinates.size)
        self._squares = np.zeros((coordinates.size, coordinates.size))

    @property
    def are_few(self) -> bool:
        return int(self._is_one.sum()) < _FEW * len(self._is_one)

    @np.errstate(over="ignore", invalid="ignore")  # of rows near the largest float there is no metric
    def saw(self, winners: Ids) -> None:
        self._is_one[winners] = True
        rows = self._coordinates.rows32[winners]
        self._count += len(rows)
        self._total += rows.sum(axis=0)
        self._squares += rows.T @ rows

    @np.errstate(over="ignore", invalid="ignore")
    def beaten_by(self, points: _Points, some: Ids) -> tuple[Ids, Mask]:
        """The best of the winners at some of the points, and whether the class itself beats it."""
        space = self._coordinates
        if len(self._ids) < self._is_one.sum():
            self._ids = np.flatnonzero(self._is_one)
            self._rows, self._biases = space.rows32[self._ids], space.biases32[self._ids]
        ids, x = points.ids[some], points.x[some]
        place = np.searchsorted(self._ids, ids)
        is_here = self._ids[np.minimum(place, len(self._ids) - 1)] == ids
        best = best_at(space.backend, self._rows, self._biases, x, np.where(is_here, place, -1))
        own = np.einsum("ij,ij->i", x, points.rows[some]) + space.biases32[ids]
        return self._ids[best.rival], own > best.score

    @np.errstate(all="ignore")  # of extreme rows there is no metric
    def metric(self) -> Matrix32 | None:
        """The inverse of their covariance; None if there is none, or too few rows for it."""
        size = len(self._total)
        if self._count < _ENOUGH * size:
            return None
        mean = self._total / self._count
        covariance = np.asfortranarray(self._squares / self._count - np.outer(mean, mean))
        variance = float(np.trace(covariance)) / size
        covariance.flat[:: size + 1] += _RIDGE * variance
        factor, failed = dpotrf(covariance, lower=1, overwrite_a=1)
        if failed or not np.isfinite(factor).all():
            return None
        return np.asarray(dpotrs(factor, variance * np.eye(size), lower=1)[0], np.float32)


def reflect(
    coordinates: Coordinates,
    classes: Ids,
    start: NDArray[np.float32],
    *,
    within: tuple[Vector, Vector] | None = None,
) -> Iterator[Step]:
    """Yield the paper's steps of a batched search from `start` (n × used features) until all have won.

    `within` are bounds into which points are moved after each step, which is longer then; the paper has none.
    A class whose point wins leaves the search; whether the point lies in the domain is for the caller to
    check.
    """
    points = _Points(coordinates, classes, start, within)
    while len(points.ids):
        winners, won = points.beaten_by(np.arange(len(points.ids)))
        step = Step(points.ids[won], points.x[won], winners[~won])
        points.leave(np.flatnonzero(won))
        yield step
        points.reflect(np.arange(len(points.ids)), step.winners, None)


# For classes at points (n × used features): which of them this settles, and who beats the others.
Look = Callable[[Ids, Matrix32], tuple[Mask, Ids]]


def reflect_among_winners(
    coordinates: Coordinates,
    classes: Ids,
    start: Matrix32,
    winners: Ids,
    look: Look,
    *,
    within: tuple[Vector, Vector] | None = None,
) -> Iterator[Step]:
    """The same, faster: a step is several reflections among the rows that have won, then a look at all rows
    where none of those wins. At `start` the classes are beaten by these winners."""
    points, known = _Points(coordinates, classes, start, within), _Winners(coordinates)
    known.saw(winners)
    points.reflect(np.arange(len(classes)), winners, None)
    metric: Matrix32 | None = None
    number = 0
    while len(points.ids):
        met, hopeful = _reflect_often(points, known, metric)
        settled, winners = look(points.ids[hopeful], points.x[hopeful])
        step = Step(
            points.ids[hopeful[settled]], points.x[hopeful[settled]], np.concatenate([met, winners[~settled]])
        )
        # A class that wins at its point, but not in the domain, leaves too.
        goes = settled | ~(points.leads(hopeful, winners) <= 0)
        known.saw(winners[~goes])
        if within is None and not number % _RENEWED:
            metric = known.metric()
        points.reflect(hopeful[~goes], winners[~goes], metric)
        points.leave(hopeful[goes])
        yield step
        number += 1


def _reflect_often(points: _Points, known: _Winners, metric: Matrix32 | None) -> tuple[Ids, Ids]:
    """Reflect among known winners: who was met, and the places of the points that none of them beats.

    If they are too many for a table of their own, nothing moves and all places are returned."""
    beaten = np.arange(len(points.ids))
    unbeaten: list[Ids] = []
    met: list[Ids] = []
    if not known.are_few:
        return np.empty(0, np.intp), beaten
    for _ in range(_ROUNDS):
        winners, won = known.beaten_by(points, beaten)
        unbeaten.append(beaten[won])
        beaten, winners = beaten[~won], winners[~won]
        met.append(winners)
        points.reflect(beaten, winners, metric)
    return np.concatenate(met), np.concatenate(unbeaten)
