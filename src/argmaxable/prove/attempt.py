"""One class in work: the rule of a verdict for the margin loop, stopped at the first proof. After each Newton
step the two claims themselves are tested: is the dual bound of λ below zero (a certificate), does x win
against every class (a witness)? Looks at all rows are made by the solver, for several attempts at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.check.checker import Bound
from argmaxable.core.verdict import Certificate, Strength
from argmaxable.prove.boundary import basis_certificate
from argmaxable.prove.feature_sets import FeatureSet, HullSet, Stalled
from argmaxable.prove.interior_point import Dual, InteriorPoint, Snapshot
from argmaxable.prove.margin_loop import MarginLoop, Next, Problem, ball_space, box_space, points_at
from argmaxable.prove.row_table import RowTable

if TYPE_CHECKING:
    from argmaxable.check.witnesses import Gaps
    from argmaxable.core.arrays import Ids, Vector, Vector32
    from argmaxable.core.verdict import FinePoint
    from argmaxable.prove.lazy import LazySolver

_MAX_STEPS = 150
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

    `fine` is a witness that float64 is too coarse for, in place of `point`.
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
    fine: FinePoint | None = None


class Attempt:
    """The rule of a verdict: stop at the first proof. After each step it tests the two claims themselves."""

    def __init__(self, solver: LazySolver, class_id: int, rows: Ids, *, is_fresh: bool = False) -> None:
        self.solver, self.coordinates, self.checker = solver, solver.coordinates, solver.checker
        self.class_id, self.first = class_id, rows
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
        self._stages = self.loop.stages(self)
        self._reason = ""
        # How far the class was ahead of each row at the last look.
        self._ahead = np.empty(0, np.float32)
        self.astray_limit = _ASTRAY_START
        self.found_point: Vector | None = None
        self.found_proof: Certificate | None = None
        self.gaps: Gaps | None = None
        self.bound: Bound | None = None

    def advance(self) -> bool:
        """Step until a look at all rows is due, or to the end: then False."""
        if not len(self.loop.ids):  # no rival but twins: every point will do
            space, x = self._space(None)
            alone = RowTable(np.zeros((1, len(x))))
            self.found_point = self._checked_point(InteriorPoint(alone, np.ones(1), space, x))
            self._reason = "no point of the domain checks"
            return False
        try:
            next(self._stages)
            return True
        except StopIteration:
            if self.found_point is None and self.found_proof is None:
                self.found_proof = self._last_proof(self.loop.point)
            self._reason = f"no decision after {self.loop.steps} Newton steps"
        except Stalled:
            self._reason = "the domain is too small or too large for float64"
        return False

    def answer(self) -> Answer:
        point, certificate, loop = self.found_point, self.found_proof, self.loop
        is_settled = point is not None or certificate is not None
        return Answer(
            self.class_id,
            point,
            certificate,
            loop.steps,
            len(loop.ids),
            loop.scans,
            "" if is_settled else self._reason,
            self.gaps if point is not None else None,
            self.bound if certificate is not None else None,
        )

    # ------------------------------------------------------------------ the problem

    def _limits(self, ids: Ids, table: RowTable) -> Vector:
        if self.coordinates.is_cone:
            return np.asarray(_CONE_LIMIT * table.lengths)
        return np.asarray(self.coordinates.biases[self.class_id] - self.coordinates.biases[ids])

    def _space(self, before: InteriorPoint | Snapshot | None) -> tuple[FeatureSet, Vector]:
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
        dual = point.dual()
        support = space.active_support(dual.u)
        if dual.upper < 0 or support + float(dual.weights @ point.limits) >= 0:
            return False
        values = space.corners @ dual.u
        values[space.active] = -np.inf
        above = np.flatnonzero(values > support)
        worst = above[np.argsort(-values[above])[: self.coordinates.size]]
        self.corners = np.union1d(self.corners, worst)
        return True

    def _wins_among_rows(self, point: InteriorPoint) -> bool:
        if self.coordinates.is_cone:
            return float((point.limits - point.slack).max()) < point.t
        return float(point.slack.min()) + point.t > 0

    def compare(self, scores: Vector32) -> bool:
        """Take the scores of all rows at x; whether the class may win there."""
        own = scores[self.class_id]
        scores[self.coordinates.ignored] = scores[self.class_id] = -np.inf
        self._ahead = own - scores
        return bool(self._ahead.min() > -1e-5 * max(1.0, abs(float(own))))

    def rounded_point(self) -> Vector:
        """The point of the domain to be tried first."""
        return points_at(self.coordinates, self.loop.point)[0]

    def try_point(self, gaps: Gaps) -> None:
        """Take what the checker said about the rounded point; where that loses, try others."""
        if self._settles(gaps):
            self.found_point, self.gaps = self.rounded_point(), gaps
        else:
            self.found_point = self._checked_point(self.loop.point)

    def look(self) -> None:
        """Nothing is missing if x wins against every class; else the rows that beat it worst."""
        coordinates, loop, ahead = self.coordinates, self.loop, self._ahead
        loop.missing = None
        if self.found_point is not None:
            return
        ahead[loop.ids] = np.inf
        loop.missing = np.empty(0, np.intp)
        threshold = 0.0 if coordinates.is_cone else loop.point.t
        if (ahead < threshold).any():
            # With many features a step costs more than a look, so fewer rows are taken in at a time: with
            # 512, half as many cost a twentieth more steps and a tenth less time.
            most = coordinates.size // 2 if coordinates.size >= _MANY_FEATURES else coordinates.size
            enough = min(most, int(np.isfinite(ahead).sum()))
            # Also those that x only just beats, if there are few others: they are in the way of the next x.
            loop.missing = np.argpartition(ahead, enough - 1)[:enough]
            self.solver.blockers.saw(loop.missing, 0.05)

    def _checked_point(self, point: InteriorPoint) -> Vector | None:
        ids = np.array([self.class_id])
        for z in points_at(self.coordinates, point):
            self.gaps = self.checker.gaps(ids, z[None])
            if self._settles(self.gaps):
                return z
        return None

    def _settles(self, gaps: Gaps) -> bool:
        return bool(gaps.settle(np.array([self.class_id in self.solver.tied]))[0])

    def _proof(self, point: InteriorPoint) -> Certificate | None:
        """A certificate from the current weights, if they prove anything about the domain itself."""
        dual = point.dual()
        if not self.coordinates.is_cone and dual.upper >= 0:
            return None
        astray = self._astray(point, dual)
        if astray == 0.0:
            # Weights of float32 precision make smaller bundles; they nearly always do.
            for chosen in (dual.weights.astype(np.float32).astype(np.float64), dual.weights):
                literal = Certificate(self.loop.ids, chosen)
                upper = float(self.checker.bounds(np.array([self.class_id]), literal)[0])
                if upper <= 0:
                    self.bound = Bound(upper, Strength.FLOAT64)
                    return literal
            return None
        if astray > self.astray_limit:
            return None
        self.astray_limit = astray / _ASTRAY_STEP
        return self._checked(self._basis_certificate(point, dual))

    def _astray(self, point: InteriorPoint, dual: Dual) -> float:
        """How far, in units of the rows, u points out of an unbounded domain or a cone: literal
        weights prove something only when it does not."""
        if self.coordinates.is_bounded:
            return 0.0
        u, up, down = dual.u, self.coordinates.opens_up, self.coordinates.opens_down
        out = np.where(up, np.maximum(u, 0), 0) + np.where(down, np.maximum(-u, 0), 0)
        return float(out.sum()) / max(float(dual.weights @ point.table.sizes), 1e-300)

    def _basis_certificate(self, point: InteriorPoint, dual: Dual) -> Certificate | None:
        """Exact weights with u = 0 where the domain asks for it; features held at a bound are spared."""
        u, weights = dual.u, dual.weights
        held = np.abs(u) > _HELD * float(weights @ point.table.sizes) / len(u)
        held &= ~(self.coordinates.opens_up & (u > 0)) & ~(self.coordinates.opens_down & (u < 0))
        free = np.flatnonzero(~held) if held.any() else None
        return basis_certificate(
            self.coordinates, self.class_id, self.loop.ids, weights, free, table=point.table
        )

    def _last_proof(self, point: InteriorPoint) -> Certificate | None:
        """At the end of the road: the margin may be zero, which only exact weights can show."""
        dual = point.dual()
        for certificate in (
            Certificate(self.loop.ids, dual.weights),
            self._simple_certificate(dual.weights),
            self._basis_certificate(point, dual),
            basis_certificate(
                self.coordinates, self.class_id, self.loop.ids, dual.weights, table=point.table
            ),
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
