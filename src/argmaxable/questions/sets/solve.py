"""Settles one set at a time: the margin loop over signed rows, stopped at the first proof. After each Newton
step the two claims themselves are tested: do the weights bound the margin by 0, does the set come out at x?
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from argmaxable.check.sets import SetChecker
from argmaxable.core.head import Head
from argmaxable.core.label_sets import Members, SetMethod, SetTest
from argmaxable.core.verdict import Certificate
from argmaxable.prove.boundary import basis_certificate
from argmaxable.prove.feature_sets import FeatureSet, HullSet, Stalled
from argmaxable.prove.margin_loop import MarginLoop, Next, Problem, ball_space, box_space, points_in
from argmaxable.questions.sets.answer import SetAnswer
from argmaxable.questions.sets.cut_set import CutSet, with_cut
from argmaxable.questions.sets.exact import settle_exactly, whole_certificate
from argmaxable.questions.sets.geometry import ORIGIN, SignedRows, Space

if TYPE_CHECKING:
    from argmaxable.core.arrays import Ids, Vector
    from argmaxable.prove.interior_point import InteriorPoint, Snapshot
    from argmaxable.prove.row_table import RowTable

_MAX_STEPS = 150
# Steps whose Gram matrix may be of float32.
_SINGLE_STEPS = 15
# Rows that a solve begins with, in units of the coordinates: fewer where there are many.
_FIRST_ROWS, _FEWER_ROWS, _MANY_FEATURES = 4, 2, 256
# Rows that exact simplex begins with, in units of the coordinates.
_NEAR_ROWS = 2
# A cone has no scale of its own: limits of 0.1 ‖row‖ make x of order one, in a box this wide.
_CONE_LIMIT, _CONE_REACHES = 0.1, (1e4, 1e8, 1e12)
# An unbounded domain is stood in for by a box; a set undecided there is tried in wider ones.
_REACHES = (1e4, 1e8)
# Powers of two that take a point far out, and from one to the next.
_FARTHEST, _FARTHER = 160, 8
# Exact weights are tried once u misses zero by less than this share of the rows, and again each time it has
# fallen by the second factor.
_ASTRAY_START, _ASTRAY_STEP = 1e-4, 30.0
# A multiplier above this share of the rows means that its feature is held at a bound.
_HELD = 1e-6
# Weights below this share of the largest are the interior point's dust.
_DUST = 1e-9
# Denominator of the fractions tried where floats can't tell a margin from zero.
_SIMPLE = 64


class SetSolver:
    """Settles sets of one question."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self._wider: list[Space] | None = None
        self._bare: SetSolver | None = None

    def solve(self, members: Members, start: Vector | None = None) -> SetAnswer:
        """`start` is a point x near which the set almost comes out, in coordinates."""
        with np.errstate(all="ignore"):  # extreme heads overflow; what comes of it is checked
            answer = SetAnswer()
            first: Ids | None = None
            near: Ids | None = None
            for space, reach in self._spaces():
                attempt = _SetAttempt(SignedRows(space, members), start, reach, first)
                answer = attempt.run()
                if answer.is_settled:
                    return answer
                first, near = attempt.first, attempt.near
            far = self._far_out(members)
            return far or settle_exactly(SignedRows(self.space, members), near) or answer

    def _far_out(self, members: Members) -> SetAnswer | None:
        """Where a domain has no end, a set that comes out without biases comes out far from 0 with them."""
        checker = self.space.checker
        if self.space.coordinates.is_cone or checker.domain.is_bounded or not checker.domain.has_origin:
            return None
        if self._bare is None:
            bare = SetChecker(Head(checker.head.weight), checker.domain, SetTest(checker.test.kind))
            self._bare = SetSolver(Space.of(bare))
        point = self._bare.solve(members).point
        if point is None:
            return None
        for power in range(0, _FARTHEST, _FARTHER):
            z = np.ldexp(point, power)
            lower = float(checker.margins([members], z[None])[0])
            if lower > 0:
                return SetAnswer(z, lower, method=SetMethod.INTERIOR_POINT)
        return None

    def _spaces(self) -> list[tuple[Space, float]]:
        """Where to look, one after the other, and how far a box stands for a cone there."""
        checker, coordinates = self.space.checker, self.space.coordinates
        if coordinates.is_cone:
            return [(self.space, reach) for reach in _CONE_REACHES]
        if checker.domain.is_bounded:
            return [(self.space, 1.0)]
        if self._wider is None:
            self._wider = [Space.of(checker, reach=reach) for reach in _REACHES]
        return [(space, 1.0) for space in (self.space, *self._wider)]


class _SetAttempt:
    """The rule of a set: stop at the first proof."""

    def __init__(
        self, rows: SignedRows, start: Vector | None, reach: float, first: Ids | None = None
    ) -> None:
        # The rows to begin with; those that were known at the end, for another attempt.
        self.first, self.is_again, self.reach = first, first is not None, reach
        self.rows, self.space, self.coordinates = rows, rows.space, rows.space.coordinates
        self.checker, self.members = rows.space.checker, rows.members
        self.start = np.zeros(self.coordinates.size) if start is None else start
        self.astray_limit = _ASTRAY_START
        self.answer = SetAnswer()
        # Where exact simplex begins, if nothing else decides.
        self.near: Ids | None = None

    def run(self) -> SetAnswer:
        if not self.coordinates.size:
            return self._at_the_only_point()
        problem = Problem(
            class_id=ORIGIN, size=self.rows.size, rows=self.rows.rows, limits=self._limits, space=self._space,
            most_steps=_MAX_STEPS, single_steps=_SINGLE_STEPS, is_warm=False,
        )  # fmt: skip
        loop = MarginLoop(problem, self._first_rows() if self.first is None else self.first)
        try:
            loop.run(self)
            self.first, self.near = loop.ids, self._nearest(loop)
        except Stalled:
            return SetAnswer(reason="the domain is too small or too large for float64")
        if not self.answer.is_settled:
            self._last_proof(loop)
        if self.answer.is_settled:
            return self.answer
        return SetAnswer(reason=f"no decision after {loop.steps} Newton steps")

    def _nearest(self, loop: MarginLoop) -> Ids:
        """The members, and the rows that are tightest at the point reached."""
        tight = loop.ids[np.argsort(loop.point.slack)[: _NEAR_ROWS * self.rows.size]]
        members = np.array(self.members[: self.rows.size], np.intp)
        return np.unique(np.concatenate([tight, members]))

    def _at_the_only_point(self) -> SetAnswer:
        """No coordinate makes a difference: the scores are the same at every point."""
        point = self.coordinates.some_point()
        lower = float(self.checker.margins([self.members], point)[0])
        if lower > 0:
            return SetAnswer(point[0], lower, method=SetMethod.MEAN_DIRECTION)
        self._try(self._broken_at_the_only_point())
        return self.answer if self.answer.is_settled else SetAnswer(reason="the domain is a single point")

    def _broken_at_the_only_point(self) -> Certificate:
        """The condition that is broken the most; for the top k, one of a member and one of another label."""
        gaps = self.rows.precise_gaps(np.zeros(0))
        sides = [self.rows.asked] if self.space.has_cut else [self.rows.inside, ~self.rows.inside]
        worst = [np.arange(len(gaps))[side][gaps[side].argmin()] for side in sides]
        return Certificate(np.array(worst, np.intp), np.ones(len(worst)))

    # ------------------------------------------------------------------ the problem

    def _first_rows(self) -> Ids:
        asked, size = self.rows.asked, self.rows.size
        count = (_FIRST_ROWS if size < _MANY_FEATURES else _FEWER_ROWS) * size
        if len(asked) <= count:
            return asked
        lowest = np.argpartition(self.rows.gaps(self.start), count)[:count]
        # Both sides of the cut have to be there from the start.
        first = np.array(self.members[:count], np.intp)
        outside = asked[~self.rows.inside[asked]][:1]
        return np.unique(np.concatenate([lowest, first, outside]))

    def _limits(self, ids: Ids, table: RowTable) -> Vector:
        if self.coordinates.is_cone:
            return np.asarray(_CONE_LIMIT * table.lengths)
        return self.rows.limits(ids)

    def _space(self, before: InteriorPoint | Snapshot | None) -> tuple[FeatureSet, Vector]:
        space, x = self._feature_set()
        if self.space.has_cut:
            return space, x
        some = self._first_rows()
        rows = self.coordinates.rows(some)
        return with_cut(space, x, rows, rows @ x + self.space.offsets[some])

    def _feature_set(self) -> tuple[FeatureSet, Vector]:
        coordinates = self.coordinates
        if coordinates.corners is not None:
            hull = HullSet(coordinates.corners, np.arange(len(coordinates.corners)))
            return hull, hull.x
        if coordinates.radius is not None:
            return ball_space(coordinates.radius, coordinates.size)
        return box_space(coordinates.lo * self.reach, coordinates.hi * self.reach)

    # ------------------------------------------------------------------ the two claims

    def judge(self, loop: MarginLoop) -> Next:
        self._proof(loop)
        if self.answer.is_settled:
            return Next.STOP
        point = loop.point
        if self.coordinates.is_cone:
            comes_out = float((point.rows @ point.x).max()) < 0
        else:
            comes_out = float(point.slack.min()) + point.t > 0
        return Next.LOOK if comes_out else Next.STEP

    def look(self, loop: MarginLoop) -> Ids | None:
        """Nothing if the set comes out at x; else the rows that are most in the way."""
        # What the first attempt could not decide may be too thin for float32.
        gaps = (self.rows.precise_gaps if self.is_again else self.rows.gaps)(loop.point.x)
        if gaps.min() > -1e-5 * max(1.0, float(np.abs(gaps[np.isfinite(gaps)]).max(initial=0.0))):
            self._try_point(loop.point)
            if self.answer.is_settled:
                return None
        gaps[loop.ids] = np.inf
        threshold = 0.0 if self.coordinates.is_cone else loop.point.t
        if not (gaps < threshold).any():
            return np.empty(0, np.intp)
        enough = min(self.rows.size, int(np.isfinite(gaps).sum()))
        return np.asarray(np.argpartition(gaps, enough - 1)[:enough])

    def _try_point(self, point: InteriorPoint) -> None:
        space: FeatureSet = point.space.inner if isinstance(point.space, CutSet) else point.space
        for z in points_in(self.coordinates, space, point.x[: self.coordinates.size]):
            lower = float(self.checker.margins([self.members], z[None])[0])
            if lower > 0:
                self.answer = SetAnswer(z, lower, method=SetMethod.INTERIOR_POINT)
                return

    def _proof(self, loop: MarginLoop) -> None:
        """A certificate from the current weights, if they prove anything about the domain itself."""
        weights, u, bound = self._weights(loop)
        if not self.coordinates.is_cone and bound >= 0:
            return
        size = float(weights @ np.abs(loop.point.rows[:, : len(u)]).sum(axis=1))
        astray = self._astray(u) / max(size, 1e-300)
        if astray == 0.0:
            self._try_literal(loop.ids, weights)
        elif astray <= self.astray_limit:
            self.astray_limit = astray / _ASTRAY_STEP
            self._try_basis(loop.ids, weights, self._free(u, size))

    def _weights(self, loop: MarginLoop) -> tuple[Vector, Vector, float]:
        """Weights, those of both sides of the top k with a sum of 1; u without the cut; the bound on t."""
        point = loop.point
        weights = point.weights / point.weights.sum()
        if not self.space.has_cut:
            inside = self.rows.inside[loop.ids]
            weights = weights / np.where(inside, weights[inside].sum(), weights[~inside].sum())
        u = -(weights @ point.rows[:, : self.coordinates.size])
        space: FeatureSet = point.space.inner if isinstance(point.space, CutSet) else point.space
        if not self.space.has_cut and space is point.space:  # a box with the cut as its last side
            u = np.append(u, 0.0)
        bound = space.support(u) + float(weights @ point.limits)
        return weights, u[: self.coordinates.size], bound

    def _astray(self, u: Vector) -> float:
        """How far u points out of an unbounded domain or a cone."""
        if self.coordinates.is_bounded:
            return 0.0
        up, down = self.coordinates.opens_up, self.coordinates.opens_down
        out = np.where(up, np.maximum(u, 0), 0) + np.where(down, np.maximum(-u, 0), 0)
        return float(out.sum())

    def _free(self, u: Vector, size: float) -> Ids:
        """The coordinates in which u has to vanish; the cut is always one."""
        held = np.abs(u) > _HELD * size / len(u)
        held &= ~(self.coordinates.opens_up & (u > 0)) & ~(self.coordinates.opens_down & (u < 0))
        return np.flatnonzero(~held if self.space.has_cut else np.append(~held, True))

    def _try_literal(self, ids: Ids, weights: Vector) -> None:
        used = weights > _DUST * weights.max()
        short = weights[used].astype(np.float32).astype(np.float64)
        for certificate in (Certificate(ids[used], short), Certificate(ids, weights)):
            self._try(certificate)
            if self.answer.is_settled:
                return

    def _try_basis(self, ids: Ids, weights: Vector, free: Ids) -> None:
        found = basis_certificate(self.rows, ORIGIN, ids, weights / weights.sum(), free)
        if found is not None:
            self._try(whole_certificate(self.rows, found))

    def _last_proof(self, loop: MarginLoop) -> None:
        """At the end of the road: the margin may be zero, which only exact weights can show."""
        weights, u, _ = self._weights(loop)
        if not np.isfinite(weights).all():
            return
        self._try(Certificate(loop.ids, weights))
        simple = np.round(weights * _SIMPLE)
        if not self.answer.is_settled and simple.any():
            self._try(Certificate(loop.ids[simple > 0], simple[simple > 0] / _SIMPLE))
        size = float(weights @ np.abs(loop.point.rows).sum(axis=1))
        for free in (self._free(u, size), np.arange(self.rows.size)):
            if not self.answer.is_settled:
                self._try_basis(loop.ids, weights, free)

    def _try(self, certificate: Certificate | None) -> None:
        if certificate is None:
            return
        upper = self.checker.bound(self.members, certificate).upper
        if upper <= 0:
            self.answer = SetAnswer(certificate=certificate, upper=upper, method=SetMethod.INTERIOR_POINT)
