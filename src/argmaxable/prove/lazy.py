"""Settles one class at a time by an interior point over few rows, adding rows only when the point
found beats all rows it knows. After each Newton step the two claims themselves are tested: is the
dual bound of λ below zero (a proof), does x win against every class (a witness)?
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from argmaxable.check.checker import Checker
from argmaxable.compute.coordinates import Chart
from argmaxable.compute.rows import scores_at
from argmaxable.core.arrays import Ids, Matrix, Vector
from argmaxable.core.verdict import Certificate
from argmaxable.prove.boundary import basis_certificate
from argmaxable.prove.interior_point import BallSet, BoxSet, FeatureSet, InteriorPoint, Stalled

_MAX_STEPS = 150
_MU_FLOOR = 1e-18
# A cone has no scale of its own: limits of 0.1 ‖row‖ make x of order one, in a box this wide.
_CONE_LIMIT, _CONE_REACH = 0.1, 1e4
# A warm start begins at this share of the way from the centre to the last x.
_WARM_SHARE = 0.4

# Exact weights are tried once u misses zero by less than this share of the rows, and again each
# time it has fallen by the second factor: an attempt costs as much as several steps.
_ASTRAY_START, _ASTRAY_STEP = 1e-4, 30.0
# A multiplier above this share of the rows means that its feature is held at a bound.
_HELD = 1e-6
# Denominator of the fractions tried where floats can't tell a margin from zero.
_SIMPLE = 64


@dataclass(frozen=True, eq=False)
class Answer:
    """A checked witness (domain point z) or certificate for one class, or neither, and its cost."""

    class_id: int
    point: Vector | None
    certificate: Certificate | None
    steps: int
    rows: int
    scans: int
    reason: str = ""


@dataclass(eq=False)
class Blockers:
    """How often each class stood in others' way: the rows a solve should know from the start."""

    score: Vector = field(repr=False)

    @staticmethod
    def of(chart: Chart) -> Blockers:
        # Far rows first until experience says otherwise; far below any real count.
        score = 1e-9 * chart.lengths()
        score[chart.ignored] = -np.inf
        return Blockers(score)

    def saw(self, winners: Ids, credit: float) -> None:
        np.add.at(self.score, winners, credit)

    def proved(self, rows: Ids, weights: Vector) -> None:
        self.score *= 0.98
        self.score[rows] += np.minimum(weights * len(weights), 3)


def without(ids: Ids, class_id: int) -> Ids:
    return np.asarray(ids[ids != class_id])


@dataclass(eq=False)
class LazySolver:
    """Solves classes of one chart, learning from each who blocks whom."""

    chart: Chart
    checker: Checker
    blockers: Blockers
    tied: frozenset[int] = frozenset()

    def first_rows(self, class_id: int) -> Ids:
        """About 4k rows: 3k known blockers and the k that score best in the class's own direction."""
        chart = self.chart
        size = chart.size
        popular, near = (3 if size < 256 else 1) * size, size
        if popular + near >= len(chart.usable) - 1:
            return without(chart.usable, class_id)
        scores = scores_at(chart.rows32, chart.rows32[np.array([class_id])][0])
        scores[chart.ignored] = -np.inf
        known = np.argpartition(-self.blockers.score, popular)[:popular]
        best = np.argpartition(-scores, near)[:near]
        return without(np.union1d(known, best), class_id)

    def solve(self, class_id: int, *, extra: Ids | None = None) -> Answer:
        """Witness or certificate for a class, checked; or the reason why neither was found.

        `extra` rows join the first ones: a second attempt should not repeat the first.
        """
        rows = self.first_rows(class_id)
        # Extreme heads overflow here and there; what comes of it is checked like everything else.
        with np.errstate(all="ignore"):
            return _Attempt(self, class_id, rows if extra is None else np.union1d(rows, extra)).run()


class _Attempt:
    """One class's solve: its rows, its interior point, and what it cost so far."""

    def __init__(self, solver: LazySolver, class_id: int, rows: Ids) -> None:
        self.solver, self.chart, self.checker = solver, solver.chart, solver.checker
        self.class_id = class_id
        self.own = self.chart.rows(np.array([class_id]))[0]
        self.rows = rows
        self.steps = self.scans = self.growths = 0
        self.astray_limit = _ASTRAY_START
        self.single_until = 30 if self.chart.size >= 256 else 15

    def run(self) -> Answer:
        if not len(self.rows):  # no rival but twins: every point will do
            return self._answer(
                point=self._checked_point(self._space()[1]), reason="no point of the domain checks"
            )
        try:
            point = self._start(self.chart.rows(self.rows) - self.own)
        except Stalled:
            return self._answer(reason="the domain is too small or too large for float64")
        while self.steps < _MAX_STEPS and point.mu > _MU_FLOOR:
            point.single = self.steps < self.single_until
            before = point.weights
            try:
                point.step()
            except (Stalled, ZeroDivisionError):
                if not point.single:
                    break
                self.single_until = 0
                continue
            self.steps += 1
            if not np.isfinite(point.x).all() or not np.isfinite(point.weights).all():
                point.weights = before
                break
            certificate = self._proof(point)
            if certificate is not None:
                return self._answer(certificate=certificate)
            if self._wins_among_rows(point):
                z, missing = self._look_at_all_rows(point)
                if z is not None:
                    return self._answer(point=z)
                if len(missing):
                    point = self._grow(point, missing)
        certificate = self._last_proof(point)
        if certificate is not None:
            return self._answer(certificate=certificate)
        return self._answer(reason=f"no decision after {self.steps} Newton steps")

    def _answer(
        self, *, point: Vector | None = None, certificate: Certificate | None = None, reason: str = ""
    ) -> Answer:
        return Answer(self.class_id, point, certificate, self.steps, len(self.rows), self.scans, reason)

    # ------------------------------------------------------------------ the restricted problem

    def _start(self, rows: Matrix, before: InteriorPoint | None = None) -> InteriorPoint:
        """An interior point over these differences w_i − w_c, one for each of `self.rows`: fresh, or going
        on from the one before."""
        if self.chart.is_cone:
            limits = _CONE_LIMIT * np.sqrt((rows * rows).sum(axis=1))
        else:
            limits = self.chart.biases[self.class_id] - self.chart.biases[self.rows]
        space, x = self._space(None if before is None else before.x)
        return InteriorPoint(rows, limits, space, x, single=self.chart.size >= 64, before=before)

    def _space(self, before: Vector | None = None) -> tuple[FeatureSet, Vector]:
        """The set x ranges over and where x starts: at its centre, or between there and the point before."""
        chart = self.chart
        if chart.radius is not None:
            x = np.zeros(chart.size)
            return BallSet(chart.radius, x), x
        reach = _CONE_REACH if chart.is_cone else 1.0
        lo, hi = chart.lo * reach, chart.hi * reach
        inset = np.minimum(1.0, (hi - lo) / 4)
        x = np.clip(0.0, lo + inset, hi - inset)
        if before is not None:
            x = x + _WARM_SHARE * (before - x)
        return BoxSet(lo, hi, x), x

    def _grow(self, point: InteriorPoint, missing: Ids) -> InteriorPoint:
        self.rows = np.concatenate([self.rows, missing])
        self.solver.blockers.saw(missing, 0.05)
        rows = np.vstack([point.rows, self.chart.rows(missing) - self.own])
        # With a bias a fresh start takes fewer steps than a warm one, 10 against 15 on ppocrv5. In a cone of
        # 512 features it takes more: 28 against 23 just inside the hull, 53 against 19 just outside.
        return self._start(rows, point if self.chart.is_cone else None)

    # ------------------------------------------------------------------ the two claims

    def _wins_among_rows(self, point: InteriorPoint) -> bool:
        if self.chart.is_cone:
            return float((point.rows @ point.x).max()) < 0
        return float(point.slack.min()) + point.t > 0

    def _look_at_all_rows(self, point: InteriorPoint) -> tuple[Vector | None, Ids]:
        """The witness if x wins against every class, else the rows that beat it worst."""
        self.scans += 1
        chart = self.chart
        x = point.x
        with np.errstate(over="ignore", invalid="ignore"):
            scores = scores_at(chart.rows32, x.astype(np.float32))
            if not chart.is_cone:
                scores += chart.biases32
        own = scores[self.class_id]
        scores[chart.ignored] = scores[self.class_id] = -np.inf
        behind = own - scores
        if behind.min() > -1e-5 * max(1.0, abs(float(own))):
            z = self._checked_point(x)
            if z is not None:
                return z, np.empty(0, np.intp)
        behind[self.rows] = np.inf
        threshold = 0.0 if chart.is_cone else point.t
        if not (behind < threshold).any():
            return None, np.empty(0, np.intp)
        enough = min(chart.size, int(np.isfinite(behind).sum()))
        worst = np.argpartition(behind, enough - 1)[:enough]
        # Without bias also those that x only just beats: they are in the way of the next x.
        return None, worst if chart.is_cone else worst[behind[worst] < threshold]

    def _checked_point(self, x: Vector) -> Vector | None:
        ids = np.array([self.class_id])
        exact = self.chart.to_point(x[None])
        rounded = self.chart.to_point(x[None].astype(np.float32).astype(np.float64))
        for z in (rounded, exact):
            if self.checker.gaps(ids, z).settle(np.array([self.class_id in self.solver.tied]))[0]:
                return np.asarray(z[0])
        return None

    def _proof(self, point: InteriorPoint) -> Certificate | None:
        """A certificate from the current weights, if they prove anything about the domain itself."""
        weights, bound = point.dual_bound()
        if not self.chart.is_cone and bound >= 0:
            return None
        astray = self._astray(point, weights)
        if astray == 0.0:
            # Weights of float32 precision make smaller bundles; they nearly always do.
            for chosen in (weights.astype(np.float32).astype(np.float64), weights):
                literal = Certificate(self.rows, chosen)
                if self._float_bound(literal) <= 0:
                    return literal
            return None
        if astray > self.astray_limit:
            return None
        self.astray_limit = astray / _ASTRAY_STEP
        return self._checked(self._basis_certificate(point, weights))

    def _astray(self, point: InteriorPoint, weights: Vector) -> float:
        """How far, in units of the rows, u points out of an unbounded domain or a cone: literal
        weights prove something only when it does not."""
        if self.chart.is_bounded:
            return 0.0
        u = -(weights @ point.rows)
        up, down = self.chart.opens_up, self.chart.opens_down
        out = np.where(up, np.maximum(u, 0), 0) + np.where(down, np.maximum(-u, 0), 0)
        return float(out.sum()) / max(float(weights @ np.abs(point.rows).sum(axis=1)), 1e-300)

    def _basis_certificate(self, point: InteriorPoint, weights: Vector) -> Certificate | None:
        """Exact weights with u = 0 where the domain asks for it; features held at a bound are spared."""
        u = -(weights @ point.rows)
        held = np.abs(u) > _HELD * float(weights @ np.abs(point.rows).sum(axis=1)) / len(u)
        held &= ~(self.chart.opens_up & (u > 0)) & ~(self.chart.opens_down & (u < 0))
        free = np.flatnonzero(~held) if held.any() else None
        return basis_certificate(self.chart, self.class_id, self.rows, weights, free)

    def _last_proof(self, point: InteriorPoint) -> Certificate | None:
        """At the end of the road: the margin may be zero, which only exact weights can show."""
        weights, _ = point.dual_bound()
        for certificate in (
            Certificate(self.rows, weights),
            self._simple_certificate(weights),
            self._basis_certificate(point, weights),
            basis_certificate(self.chart, self.class_id, self.rows, weights),
        ):
            if self._checked(certificate) is not None:
                return certificate
        return None

    def _simple_certificate(self, weights: Vector) -> Certificate | None:
        """Weights rounded to small fractions: ties in small heads are met by halves and quarters."""
        simple = np.round(weights * _SIMPLE)
        used = simple > 0
        return Certificate(self.rows[used], simple[used] / _SIMPLE) if used.any() else None

    def _float_bound(self, certificate: Certificate) -> float:
        return float(self.checker.bounds(np.array([self.class_id]), certificate)[0])

    def _checked(self, certificate: Certificate | None) -> Certificate | None:
        if certificate is None or self.checker.bound(self.class_id, certificate).upper > 0:
            return None
        return certificate
