"""The margin of one class from both sides, nearly optimal: how far it is from being the argmax, or how far
ahead.

The same interior point that decides verdicts, run on until its two bounds meet: its x is the input at which
the class does best, its λ the mixture of classes that holds it down most. What counts is what the checker
proves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from argmaxable.check.checker import Checker
from argmaxable.check.ranks import scores_at
from argmaxable.compute.coordinates import Chart
from argmaxable.core.arrays import Ids, Vector
from argmaxable.core.domain import Ball, Box, LayerNorm, RMSNorm
from argmaxable.core.verdict import Certificate
from argmaxable.prove.boundary import basis_certificate
from argmaxable.prove.interior_point import BallSet, BoxSet, FeatureSet, InteriorPoint, Stalled
from argmaxable.prove.lazy import Blockers, LazySolver
from argmaxable.questions.best_rank.vertex import with_few_classes

_MAX_STEPS = 200
# Bounds this close to each other, relative to their size, count as met: a deficit's first six digits.
_CLOSE = 1e-7
# How close they are before rows left out are looked for: earlier, x has not settled.
_NEARLY = 1e-2
# Rows are looked for again once the bounds are so many times closer; that costs as much as several steps.
_LOOK_AGAIN = 100.0
# Steps that may fail to halve the distance between close bounds: floats can't bring them closer.
_PATIENCE = 10
# A lower bound is claimed this share of the score's size below what float64 says, so that it can be proven.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Margin:
    """`lower` ≤ t* ≤ `upper`, proven by the point z and the certificate (None where nothing was found)."""

    lower: float
    upper: float
    point: Vector | None
    certificate: Certificate | None


def nearly_best_margin(checker: Checker, chart: Chart, class_id: int, known: Margin) -> Margin:
    """Bounds on the class's margin as close as floats allow; never worse than those already known."""
    found = known
    if not chart.size:
        return found
    with np.errstate(all="ignore"):
        state = _best_state(checker, chart, class_id)
        if state is None:
            return found
        x, rows, weights = state
        found = _with_point(checker, class_id, chart.to_point(x[None])[0], found)
        if chart.is_cone:  # all classes tie at 0, which is the best that an unargmaxable one can do
            found = _with_point(checker, class_id, np.zeros(chart.head.features), found)
        for certificate in _certificates(chart, class_id, rows, weights):
            upper = checker.bound(class_id, certificate).upper
            if upper < found.upper:
                found = Margin(found.lower, upper, found.point, certificate)
    return _with_few(checker, class_id, found)


def proven_gap(checker: Checker, class_id: int, point: Vector) -> float:
    """A lower bound on the class's smallest gap at the point z, nearly as large as the gap; −∞ outside."""
    scores = scores_at(checker, point)
    rivals = np.delete(scores, class_id)
    if not len(rivals):
        return math.inf
    size = float(np.abs(scores).max())
    claim = float(scores[class_id] - rivals.max()) - _ROUNDING * size * checker.head.features
    return float(checker.gaps(np.array([class_id]), point[None], claims=np.array([claim])).lower[0])


def _with_point(checker: Checker, class_id: int, point: Vector, found: Margin) -> Margin:
    lower = proven_gap(checker, class_id, point)
    return found if lower <= found.lower else Margin(lower, found.upper, point, found.certificate)


def _with_few(checker: Checker, class_id: int, found: Margin) -> Margin:
    """The same with a certificate on few classes, where that proves as much."""
    if found.certificate is None:
        return found
    fewer = with_few_classes(checker, class_id, found.certificate)
    upper = checker.bound(class_id, fewer).upper
    # The pass keeps the bound up to rounding.
    if upper > found.upper + _CLOSE * abs(found.upper):
        return found
    return Margin(found.lower, upper, found.point, fewer)


def _certificates(chart: Chart, class_id: int, rows: Ids, weights: Vector) -> Iterator[Certificate]:
    yield Certificate(rows, weights / weights.sum())
    if not chart.is_bounded:
        basis = basis_certificate(chart, class_id, rows, weights)
        if basis is not None:
            yield basis


def _best_state(checker: Checker, chart: Chart, class_id: int) -> tuple[Vector, Ids, Vector] | None:
    """x, rows and weights of an interior point that has converged over all rows; None when it fails."""
    rows = LazySolver(chart, checker, Blockers.of(chart)).first_rows(class_id)
    if not len(rows):
        return None
    own = chart.rows(np.array([class_id]))[0]
    best = None
    try:
        point = _start(chart, class_id, own, rows)
        look_below, closest, idle = _NEARLY, math.inf, 0
        for _ in range(_MAX_STEPS):
            point.step()
            weights, upper = point.dual_bound()
            if not (np.isfinite(point.x).all() and np.isfinite(weights).all()):
                break
            best = point.x, rows, weights
            gap = (upper - point.t) / max(abs(upper), abs(point.t), 1e-300)
            closest, idle = (gap, 0) if gap < closest / 2 or gap >= _NEARLY else (closest, idle + 1)
            is_last = gap < _CLOSE or idle > _PATIENCE
            if gap >= look_below and not is_last:
                continue
            missing = _missing(chart, class_id, rows, point)
            if len(missing):
                rows = np.concatenate([rows, missing])
                point = _start(chart, class_id, own, rows)
                look_below, closest, idle = _NEARLY, math.inf, 0
            elif is_last:
                break
            else:
                look_below = gap / _LOOK_AGAIN
    except (Stalled, ZeroDivisionError):
        pass  # what was reached before is as valid as any
    return best


def _start(chart: Chart, class_id: int, own: Vector, rows: Ids) -> InteriorPoint:
    limits = chart.biases[class_id] - chart.biases[rows]
    space, x = _space(chart)
    return InteriorPoint(chart.rows(rows) - own, limits, space, x)


def _space(chart: Chart) -> tuple[FeatureSet, Vector]:
    """The domain itself where it is bounded: unlike a sign, a margin depends on its size."""
    domain, size = chart.domain, chart.size
    if isinstance(domain, Ball | RMSNorm | LayerNorm):
        radius = domain.radius if isinstance(domain, Ball) else math.sqrt(chart.head.features)
        return BallSet(radius, np.zeros(size)), np.zeros(size)
    lo, hi = chart.lo, chart.hi
    if isinstance(domain, Box):
        bounds = chart.domain_bounds()
        lo, hi = (
            np.where(np.isfinite(bounds[0]), bounds[0], lo),
            np.where(np.isfinite(bounds[1]), bounds[1], hi),
        )
    x = np.clip(0.0, lo + (hi - lo) / 4, hi - (hi - lo) / 4)
    return BoxSet(lo, hi, x), x


def _missing(chart: Chart, class_id: int, rows: Ids, point: InteriorPoint) -> Ids:
    """Rows left out that hold the class down more than those known, the worst of them."""
    gaps = np.full(chart.head.classes, np.inf)
    for block in np.array_split(chart.usable, 1 + len(chart.usable) * chart.size // (1 << 20)):
        gaps[block] = -(chart.rows(block) @ point.x) - chart.biases[block]
    own = chart.rows(np.array([class_id]))[0]
    gaps += float(own @ point.x) + chart.biases[class_id]
    gaps[rows] = gaps[class_id] = np.inf
    missing = np.flatnonzero(gaps < point.t)
    return missing[np.argsort(gaps[missing])[: chart.size]]
