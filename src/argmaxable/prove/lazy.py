"""Settles one class at a time: the margin loop, stopped at the first proof. After each Newton step the two
claims themselves are tested: is the dual bound of λ below zero (a certificate), does x win against every
class (a witness)?
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.check.checker import Bound
from argmaxable.compute.blocks import row_blocks
from argmaxable.compute.rows import scores_at
from argmaxable.core.verdict import Certificate, Strength
from argmaxable.prove.boundary import basis_certificate
from argmaxable.prove.feature_sets import FeatureSet, HullSet, Stalled
from argmaxable.prove.interior_point import InteriorPoint
from argmaxable.prove.margin_loop import MarginLoop, Next, Problem, ball_space, box_space, points_at
from argmaxable.prove.row_table import RowTable

if TYPE_CHECKING:
    from argmaxable.check.checker import Checker
    from argmaxable.check.witnesses import Gaps
    from argmaxable.compute.coordinates import Coordinates
    from argmaxable.core.arrays import Ids, Matrix, Vector

_MAX_STEPS = 150
# What the last proof counts for in the average of proofs' weights, and how much must be known of it.
_NEWS, _KNOWN = 0.1, 0.01
# Steps whose Gram matrix may be of float32; twice as many where there are many features.
_SINGLE_STEPS, _MANY_FEATURES = 15, 256
# Corners of a hull that a solve starts with, in units of the dimension.
_FIRST_CORNERS = 4
# A cone has no scale of its own: limits of 0.1 ‖row‖ make x of order one, in a box this wide.
_CONE_LIMIT, _CONE_REACH = 0.1, 1e4
# A warm start in a cone begins at this share of the way from the centre to the last x. With 512 features 0.4
# takes a fifth more steps, 0 twice as many where the class is argmaxable; with a bias 0 takes the fewest.
_WARM_SHARE = 0.2

# Exact weights are tried once u misses zero by less than this share of the rows, and again each
# time it has fallen by the second factor: an attempt costs as much as several steps.
_ASTRAY_START, _ASTRAY_STEP = 1e-4, 30.0
# A multiplier above this share of the rows means that its feature is held at a bound.
_HELD = 1e-6
# Denominator of the fractions tried where floats can't tell a margin from zero.
_SIMPLE = 64


@dataclass(frozen=True, eq=False)
class Answer:
    """A checked witness (domain point z) or certificate for one class, or neither, and its cost.

    `gaps` or `bound` is what the checker of the process that found it said. Elsewhere it is hearsay.
    """

    class_id: int
    point: Vector | None
    certificate: Certificate | None
    steps: int
    rows: int
    scans: int
    reason: str = ""
    gaps: Gaps | None = None
    bound: Bound | None = None


@dataclass(eq=False)
class Blockers:
    """How often each class stood in others' way: the rows a solve should know from the start."""

    score: Vector = field(repr=False)
    # A moving average of the weights of proofs.
    weights: Vector = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.weights = np.zeros(len(self.score))

    @staticmethod
    def of(coordinates: Coordinates) -> Blockers:
        # Far rows first until experience says otherwise; far below any real count.
        score = 1e-9 * coordinates.lengths()
        score[coordinates.ignored] = -np.inf
        return Blockers(score)

    def saw(self, winners: Ids, credit: float) -> None:
        np.add.at(self.score, winners, credit)

    def proved(self, rows: Ids, weights: Vector) -> None:
        self.score *= 0.98
        self.score[rows] += np.minimum(weights * len(weights), 3)
        self.weights *= 1 - _NEWS
        self.weights[rows] += _NEWS / weights.sum() * weights

    def likely_weights(self, rows: Ids) -> Vector:
        """Weights of sum 1 to start a solve over these rows from: half what proofs had, half even."""
        known = self.weights[rows]
        total = float(known.sum())
        even = 1 / len(rows)
        return np.asarray(known / (2 * total) + even / 2) if total > _KNOWN else np.full(len(rows), even)


def without(ids: Ids, class_id: int) -> Ids:
    return np.asarray(ids[ids != class_id])


@dataclass(eq=False)
class LazySolver:
    """Solves classes of one coordinates, learning from each who blocks whom."""

    coordinates: Coordinates
    checker: Checker
    blockers: Blockers
    tied: frozenset[int] = frozenset()
    _near: dict[int, Ids] = field(default_factory=dict, repr=False)

    @cached_property
    def best_at_corners(self) -> Vector:
        """The highest score at each corner of a hull, in units of the coordinates."""
        corners = self.coordinates.corners
        assert corners is not None
        best = np.full(len(corners), -np.inf)
        for block in row_blocks(len(self.coordinates.usable), len(corners)):
            ids = self.coordinates.usable[block]
            scores = self.coordinates.rows(ids) @ corners.T + self.coordinates.biases[ids, None]
            best = np.maximum(best, scores.max(axis=0))
        return best

    def first_rows(self, class_id: int) -> Ids:
        """About 4k rows: 3k known blockers and the k that score best in the class's own direction."""
        usable = self.coordinates.usable
        popular = self._popular
        if popular + self.coordinates.size >= len(usable) - 1:
            return without(usable, class_id)
        if class_id not in self._near:
            self.foresee([class_id])
        known = np.argpartition(-self.blockers.score, popular)[:popular]
        return without(np.union1d(known, self._near.pop(class_id)), class_id)

    @property
    def _popular(self) -> int:
        """How many known blockers a solve starts with."""
        return (3 if self.coordinates.size < 256 else 1) * self.coordinates.size

    def foresee(self, classes: list[int]) -> None:
        """Find the rows that score best in the own directions of classes that will be solved soon: for some
        classes together it takes a fraction of the time that it takes for one after the other."""
        coordinates = self.coordinates
        size, unknown = coordinates.size, [class_id for class_id in classes if class_id not in self._near]
        if self._popular + size >= len(coordinates.usable) - 1 or not unknown:
            return
        scores = scores_at(coordinates.rows32, coordinates.rows32[np.array(unknown)].T).T
        scores[:, coordinates.ignored] = -np.inf
        best = np.argpartition(-scores, size, axis=1)[:, :size]
        self._near.update(zip(unknown, best, strict=True))

    def solve(self, class_id: int, *, extra: Ids | None = None) -> Answer:
        """Witness or certificate for a class, checked; or the reason why neither was found.

        `extra` rows join the first ones: a second attempt should not repeat the first.
        """
        rows = self.first_rows(class_id)
        rows = rows if extra is None else np.union1d(rows, extra)
        # Extreme heads overflow here and there; what comes of it is checked like everything else.
        with np.errstate(all="ignore"):
            answer = _Attempt(self, class_id, rows).run()
            if not answer.reason or self.coordinates.is_cone:
                return answer
            # With enormous biases other proofs' weights lead astray.
            again = _Attempt(self, class_id, rows, is_fresh=True).run()
            return replace(again, steps=answer.steps + again.steps)


class _Attempt:
    """The rule of a verdict: stop at the first proof. After each step it tests the two claims themselves."""

    def __init__(self, solver: LazySolver, class_id: int, rows: Ids, *, is_fresh: bool = False) -> None:
        self.solver, self.coordinates, self.checker = solver, solver.coordinates, solver.checker
        self.class_id = class_id
        coordinates = self.coordinates
        self.corners = self._first_corners()
        is_learned = not (is_fresh or coordinates.is_cone)
        problem = Problem(
            class_id=class_id, size=coordinates.size, rows=coordinates.rows, limits=self._limits,
            space=self._space, most_steps=_MAX_STEPS,
            single_steps=_SINGLE_STEPS * (2 if coordinates.size >= _MANY_FEATURES else 1),
            is_warm=not is_fresh, is_floored=True,
            likely=solver.blockers.likely_weights if is_learned else None,
        )  # fmt: skip
        self.loop = MarginLoop(problem, rows)
        self.astray_limit = _ASTRAY_START
        self.found_point: Vector | None = None
        self.found_proof: Certificate | None = None
        self.gaps: Gaps | None = None
        self.bound: Bound | None = None

    def run(self) -> Answer:
        if not len(self.loop.ids):  # no rival but twins: every point will do
            space, x = self._space(None)
            alone = RowTable(np.zeros((1, len(x))))
            self.found_point = self._checked_point(InteriorPoint(alone, np.ones(1), space, x))
            return self._answer("no point of the domain checks")
        try:
            self.loop.run(self)
        except Stalled:
            return self._answer("the domain is too small or too large for float64")
        if self.found_point is None and self.found_proof is None:
            self.found_proof = self._last_proof(self.loop.point)
        return self._answer(f"no decision after {self.loop.steps} Newton steps")

    def _answer(self, reason: str) -> Answer:
        point, certificate, loop = self.found_point, self.found_proof, self.loop
        is_settled = point is not None or certificate is not None
        return Answer(
            self.class_id,
            point,
            certificate,
            loop.steps,
            len(loop.ids),
            loop.scans,
            "" if is_settled else reason,
            self.gaps if point is not None else None,
            self.bound if certificate is not None else None,
        )

    # ------------------------------------------------------------------ the problem

    def _limits(self, ids: Ids, differences: Matrix) -> Vector:
        if self.coordinates.is_cone:
            return np.asarray(_CONE_LIMIT * np.sqrt((differences * differences).sum(axis=1)))
        return np.asarray(self.coordinates.biases[self.class_id] - self.coordinates.biases[ids])

    def _space(self, before: InteriorPoint | None) -> tuple[FeatureSet, Vector]:
        """The set x ranges over and where x starts: at its centre, or between there and the point before."""
        coordinates = self.coordinates
        if coordinates.corners is not None:
            hull = HullSet(coordinates.corners, self.corners)
            return hull, hull.x
        if coordinates.radius is not None:
            return ball_space(coordinates.radius, coordinates.size)
        reach = _CONE_REACH if coordinates.is_cone else 1.0
        if before is None or not coordinates.is_cone:
            return box_space(coordinates.lo * reach, coordinates.hi * reach)
        return box_space(
            coordinates.lo * reach, coordinates.hi * reach, lambda x: x + _WARM_SHARE * (before.x - x)
        )

    def _first_corners(self) -> Ids:
        """The corners at which the class does best, and a few others so that they span the space."""
        corners = self.coordinates.corners
        if corners is None or len(corners) <= _FIRST_CORNERS * (self.coordinates.size + 1):
            return np.arange(0 if corners is None else len(corners))
        count = _FIRST_CORNERS * (self.coordinates.size + 1)
        own = self.coordinates.rows(np.array([self.class_id]))[0]
        gaps = corners @ own - self.solver.best_at_corners
        best = np.argpartition(-gaps, count // 2)[: count // 2]
        others = np.random.default_rng(self.class_id).choice(len(corners), count // 2, replace=False)
        return np.union1d(best, others)

    # ------------------------------------------------------------------ the two claims

    def judge(self, loop: MarginLoop) -> Next:
        point = loop.point
        self.found_proof = self._proof(point)
        if self.found_proof is not None:
            return Next.STOP
        if isinstance(point.space, HullSet) and self._has_missing_corners(point, point.space):
            return Next.RESTART
        return Next.LOOK if self._wins_among_rows(point) else Next.STEP

    def _has_missing_corners(self, point: InteriorPoint, space: HullSet) -> bool:
        """Whether the weights would prove something but for corners left out, which are then taken in."""
        weights, bound = point.dual_bound()
        u = -(weights @ point.rows)
        if bound < 0 or space.active_support(u) + float(weights @ point.limits) >= 0:
            return False
        values = space.corners @ u
        values[space.active] = -np.inf
        above = np.flatnonzero(values > space.active_support(u))
        worst = above[np.argsort(-values[above])[: self.coordinates.size]]
        self.corners = np.union1d(self.corners, worst)
        return True

    def _wins_among_rows(self, point: InteriorPoint) -> bool:
        if self.coordinates.is_cone:
            return float((point.rows @ point.x).max()) < 0
        return float(point.slack.min()) + point.t > 0

    def look(self, loop: MarginLoop) -> Ids | None:
        """Nothing if x wins against every class, which is then found; else the rows that beat it worst."""
        coordinates, x = self.coordinates, loop.point.x
        with np.errstate(over="ignore", invalid="ignore"):
            scores = scores_at(coordinates.rows32, x.astype(np.float32))
            if not coordinates.is_cone:
                scores += coordinates.biases32
        own = scores[self.class_id]
        scores[coordinates.ignored] = scores[self.class_id] = -np.inf
        behind = own - scores
        if behind.min() > -1e-5 * max(1.0, abs(float(own))):
            self.found_point = self._checked_point(loop.point)
            if self.found_point is not None:
                return None
        behind[loop.ids] = np.inf
        threshold = 0.0 if coordinates.is_cone else loop.point.t
        if not (behind < threshold).any():
            return np.empty(0, np.intp)
        enough = min(coordinates.size, int(np.isfinite(behind).sum()))
        # Also those that x only just beats, if there are few others: they are in the way of the next x.
        missing = np.argpartition(behind, enough - 1)[:enough]
        self.solver.blockers.saw(missing, 0.05)
        return np.asarray(missing)

    def _checked_point(self, point: InteriorPoint) -> Vector | None:
        ids = np.array([self.class_id])
        for z in points_at(self.coordinates, point):
            self.gaps = self.checker.gaps(ids, z[None])
            if self.gaps.settle(np.array([self.class_id in self.solver.tied]))[0]:
                return z
        return None

    def _proof(self, point: InteriorPoint) -> Certificate | None:
        """A certificate from the current weights, if they prove anything about the domain itself."""
        weights, bound = point.dual_bound()
        if not self.coordinates.is_cone and bound >= 0:
            return None
        astray = self._astray(point, weights)
        if astray == 0.0:
            # Weights of float32 precision make smaller bundles; they nearly always do.
            for chosen in (weights.astype(np.float32).astype(np.float64), weights):
                literal = Certificate(self.loop.ids, chosen)
                upper = float(self.checker.bounds(np.array([self.class_id]), literal)[0])
                if upper <= 0:
                    self.bound = Bound(upper, Strength.FLOAT64)
                    return literal
            return None
        if astray > self.astray_limit:
            return None
        self.astray_limit = astray / _ASTRAY_STEP
        return self._checked(self._basis_certificate(point, weights))

    def _astray(self, point: InteriorPoint, weights: Vector) -> float:
        """How far, in units of the rows, u points out of an unbounded domain or a cone: literal
        weights prove something only when it does not."""
        if self.coordinates.is_bounded:
            return 0.0
        u = -(weights @ point.rows)
        up, down = self.coordinates.opens_up, self.coordinates.opens_down
        out = np.where(up, np.maximum(u, 0), 0) + np.where(down, np.maximum(-u, 0), 0)
        return float(out.sum()) / max(float(weights @ np.abs(point.rows).sum(axis=1)), 1e-300)

    def _basis_certificate(self, point: InteriorPoint, weights: Vector) -> Certificate | None:
        """Exact weights with u = 0 where the domain asks for it; features held at a bound are spared."""
        u = -(weights @ point.rows)
        held = np.abs(u) > _HELD * float(weights @ np.abs(point.rows).sum(axis=1)) / len(u)
        held &= ~(self.coordinates.opens_up & (u > 0)) & ~(self.coordinates.opens_down & (u < 0))
        free = np.flatnonzero(~held) if held.any() else None
        return basis_certificate(self.coordinates, self.class_id, self.loop.ids, weights, free)

    def _last_proof(self, point: InteriorPoint) -> Certificate | None:
        """At the end of the road: the margin may be zero, which only exact weights can show."""
        weights, _ = point.dual_bound()
        for certificate in (
            Certificate(self.loop.ids, weights),
            self._simple_certificate(weights),
            self._basis_certificate(point, weights),
            basis_certificate(self.coordinates, self.class_id, self.loop.ids, weights),
        ):
            if self._checked(certificate) is not None:
                return certificate
        return None

    def _simple_certificate(self, weights: Vector) -> Certificate | None:
        """Weights rounded to small fractions: ties in small heads are met by halves and quarters."""
        simple = np.round(weights * _SIMPLE)
        used = simple > 0
        return Certificate(self.loop.ids[used], simple[used] / _SIMPLE) if used.any() else None

    def _checked(self, certificate: Certificate | None) -> Certificate | None:
        if certificate is None:
            return None
        self.bound = self.checker.bound(self.class_id, certificate)
        return certificate if self.bound.upper <= 0 else None
