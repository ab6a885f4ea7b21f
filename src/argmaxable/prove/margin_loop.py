"""One loop for the margin of a class: an interior point over few rows, which takes in more rows when the
point found is beaten by some it does not know. A rule says when to stop: at the first proof (verdicts), where
the bounds meet (explanations), at a margin reached (repairs).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Protocol

import numpy as np

from argmaxable.compute.threads import threads_for
from argmaxable.prove.feature_sets import BallSet, BoxSet, FeatureSet, HullSet, Stalled
from argmaxable.prove.interior_point import InteriorPoint, Snapshot
from argmaxable.prove.row_table import RowTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from argmaxable.compute.coordinates import Coordinates
    from argmaxable.core.arrays import Ids, Matrix, Vector

_MU_FLOOR = 1e-18
# From here on steps whose Gram matrix is of float32 pay.
_MANY_FEATURES = 64
# Shares of the largest below this are the interior point's dust.
_DUST = 1e-9


class Next(Enum):
    """What to do after a step."""

    STEP = auto()
    LOOK = auto()  # at all rows: some may be missing
    RESTART = auto()  # the feature set has changed
    STOP = auto()


class Judge(Protocol):
    """When to stop."""

    def judge(self, loop: MarginLoop) -> Next:
        """What to do after the step just made."""


class Rule(Judge, Protocol):
    """When to stop, and what was found until then."""

    def look(self, loop: MarginLoop) -> Ids | None:
        """The rows that are missing at the point reached, perhaps none; None to stop."""


@dataclass(frozen=True, eq=False)
class Problem:
    """maximise t with (w_i − w_c)·x + t ≤ limit_i over all rivals i of class c, x in a feature set.

    `rows` gives rows by their ids, `limits` the limits of some ids with the table of their rows, `space` the
    set and a point inside it, for a fresh start or after the point before.
    """

    class_id: int
    size: int
    rows: Callable[[Ids], Matrix]
    limits: Callable[[Ids, RowTable], Vector]
    space: Callable[[InteriorPoint | Snapshot | None], tuple[FeatureSet, Vector]]
    most_steps: int
    # Steps whose Gram matrix may be of float32.
    single_steps: int = 0
    # Whether a point over more rows takes over the weights of the one before, and whether these are floored
    # as in a fresh start or raised to average products with the slack.
    is_warm: bool = False
    is_floored: bool = False
    # Whether a point that takes in rows stays where it is instead, which does where rows are taken in early.
    is_in_place: bool = False
    # Weights of some ids to start from, positive and of sum 1.
    likely: Callable[[Ids], Vector] | None = None
    # Where a point over the first of the rows was, with other limits: the first start is from there.
    snapshot: Snapshot | None = None


class MarginLoop:
    """The state of one class's loop: the rows it knows, its interior point, what it cost so far."""

    table: RowTable
    point: InteriorPoint
    # What the last look found: the rows that are missing, perhaps none; None to stop.
    missing: Ids | None = None

    def __init__(self, problem: Problem, ids: Ids) -> None:
        self.problem, self.ids = problem, ids
        self.own = problem.rows(np.array([problem.class_id]))[0]
        self.steps = self.scans = 0
        self._single_left = problem.single_steps

    def run(self, rule: Rule) -> None:
        """Steps until the rule says stop, or floats can do no more. May raise Stalled at the start."""
        stages = self.stages(rule)
        with threads_for(self.problem.size):
            for _ in stages:
                self.missing = rule.look(self)

    def stages(self, judge: Judge) -> Iterator[None]:
        """The same, but stops wherever a look at all rows is due; `missing` is to hold what it found."""
        self.table = RowTable(self.problem.rows(self.ids) - self.own)
        self._start(self.problem.snapshot)
        while self.steps < self.problem.most_steps and self.point.mu > _MU_FLOOR and self._step():
            todo = judge.judge(self)
            if todo is Next.STOP:
                return
            if todo is Next.RESTART:
                self._start(None)
            if todo is Next.LOOK:
                self.scans += 1
                yield
                if self.missing is None:
                    return
                if len(self.missing):
                    self._grow(self.missing)

    def _start(self, before: InteriorPoint | Snapshot | None) -> None:
        """An interior point over all rows known, which starts from nothing or from the one before."""
        problem = self.problem
        limits = problem.limits(self.ids, self.table)
        space, x = problem.space(before)
        single = problem.single_steps > 0 and problem.size >= _MANY_FEATURES
        self.point = InteriorPoint(
            self.table, limits, space, x, single=single, before=before, is_floored=problem.is_floored,
            likely=None if problem.likely is None else problem.likely(self.ids),
        )  # fmt: skip

    def _grow(self, missing: Ids) -> None:
        self.ids = np.concatenate([self.ids, missing])
        self.table.append(self.problem.rows(missing) - self.own)
        if self.problem.is_in_place:
            self._start(self.point.snapshot())
        else:
            self._start(self.point if self.problem.is_warm else None)

    def use_double(self) -> None:
        """Take no more steps whose Gram matrix is of float32."""
        self._single_left = 0

    def _step(self) -> bool:
        """One step, in float64 where float32 does not do; False when there is none."""
        point = self.point
        point.single = self._single_left > 0
        try:
            point.step()
        except (Stalled, ZeroDivisionError):
            if not point.single:
                return False
            self._single_left = 0
            return self._step()
        self.steps += 1
        self._single_left -= 1
        return True


def domain_space(coordinates: Coordinates) -> tuple[FeatureSet, Vector]:
    """The domain itself and a point inside it: unlike a sign, a margin depends on the domain's size. Where it
    has no end, the coordinates' stand-in."""
    if coordinates.corners is not None:
        hull = HullSet(coordinates.corners, np.arange(len(coordinates.corners)))
        return hull, hull.x
    if coordinates.domain_radius is not None:
        return ball_space(coordinates.domain_radius, coordinates.size)
    lo, hi = (
        np.where(np.isfinite(bound), bound, side)
        for bound, side in zip(coordinates.domain_bounds(), (coordinates.lo, coordinates.hi), strict=True)
    )
    return box_space(lo, hi)


def ball_space(radius: float, size: int) -> tuple[FeatureSet, Vector]:
    """A ball, and its centre."""
    return BallSet(radius, np.zeros(size)), np.zeros(size)


def box_space(
    lo: Vector, hi: Vector, move: Callable[[Vector], Vector] = lambda x: x
) -> tuple[FeatureSet, Vector]:
    """A box, and the point nearest to 0 that is well inside it, or where `move` takes that."""
    inset = np.minimum(1.0, (hi - lo) / 4)
    x = move(np.clip(0.0, lo + inset, hi - inset))
    return BoxSet(lo, hi), x


def points_at(coordinates: Coordinates, point: InteriorPoint) -> list[Vector]:
    """Points z of the domain where an interior point is: rounded, which makes smaller proofs, and exact."""
    return points_in(coordinates, point.space, point.x)


def points_in(coordinates: Coordinates, space: FeatureSet, at: Vector) -> list[Vector]:
    """The same for a feature set and the point in it."""
    if isinstance(space, HullSet):
        weights = space.weights()
        rounded = (
            np.where(weights > _DUST * weights.max(), weights, 0.0).astype(np.float32).astype(np.float64)
        )
        return [rounded, weights]
    rounded = at.astype(np.float32).astype(np.float64)
    return [coordinates.to_point(x[None])[0] for x in (rounded, at)]
