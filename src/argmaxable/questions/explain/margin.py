"""The margin of one class from both sides, nearly optimal: how far it is from being the argmax, or how far
ahead.

The same interior point that decides verdicts, run on until its two bounds meet: its x is the input at which
the class does best, its λ the mixture of classes that holds it down most. What counts is what the checker
proves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from argmaxable.check.checker import Checker
from argmaxable.check.ranks import scores_at
from argmaxable.compute.coordinates import Coordinates, coordinates_of
from argmaxable.compute.prepared import PreparedHead
from argmaxable.core.arrays import Ids, Vector
from argmaxable.core.domain import Domain
from argmaxable.core.verdict import Certificate
from argmaxable.prove.boundary import basis_certificate
from argmaxable.prove.feature_sets import Stalled
from argmaxable.prove.lazy import Blockers, LazySolver
from argmaxable.prove.margin_loop import MarginLoop, Next, Problem, domain_space, points_at
from argmaxable.questions.best_rank.vertex import with_few_classes

_MAX_STEPS = 200
# Bounds this close to each other, relative to their size, count as met: a deficit's first six digits.
_CLOSE = 1e-7
# How close they are before rows left out are looked for: earlier, x has not settled.
_NEARLY = 1e-2
# Rows are looked for again once the bounds are this many times closer: a look costs several steps.
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

    @property
    def deficit(self) -> tuple[float, float]:
        """From how much extra bias frees the class at the earliest, to how much surely does."""
        return max(0.0, -self.upper), max(0.0, -self.lower)


NOTHING_KNOWN = Margin(-math.inf, math.inf, None, None)


class Margins:
    """The margins of classes of one head over one domain, from both sides."""

    def __init__(self, prepared: PreparedHead, domain: Domain, *, centre: Vector | None = None) -> None:
        self.checker = Checker(prepared, domain, centre=centre)
        self.coordinates = coordinates_of(prepared, domain, ignored=prepared.twins.ignored)

    def of(self, class_id: int, known: Margin = NOTHING_KNOWN) -> Margin:
        """Bounds as close as floats allow; never worse than those already known."""
        return nearly_best_margin(self.checker, self.coordinates, class_id, known)


def nearly_best_margin(checker: Checker, coordinates: Coordinates, class_id: int, known: Margin) -> Margin:
    """Bounds on the class's margin as close as floats allow; never worse than those already known."""
    found = known
    if not coordinates.size:
        return found
    with np.errstate(all="ignore"):
        best = _best_state(checker, coordinates, class_id)
        if best is None:
            return found
        points = best.points
        if coordinates.is_cone:  # all classes tie at 0, which is the best that an unargmaxable one can do
            points = [*points, np.zeros(coordinates.head.features)]
        for point in points:
            found = _with_point(checker, class_id, point, found)
        for certificate in _certificates(coordinates, class_id, best.rows, best.weights):
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


def _certificates(
    coordinates: Coordinates, class_id: int, rows: Ids, weights: Vector
) -> Iterator[Certificate]:
    yield Certificate(rows, weights / weights.sum())
    if not coordinates.is_bounded:
        basis = basis_certificate(coordinates, class_id, rows, weights)
        if basis is not None:
            yield basis


@dataclass(frozen=True, eq=False)
class _State:
    """Points z, rows and weights of an interior point that has converged over all rows."""

    points: list[Vector]
    rows: Ids
    weights: Vector


def _best_state(checker: Checker, coordinates: Coordinates, class_id: int) -> _State | None:
    """Where the loop ends; None when it fails from the start."""
    rows = LazySolver(coordinates, checker, Blockers.of(coordinates)).first_rows(class_id)
    if not len(rows):
        return None
    problem = Problem(
        class_id=class_id, size=coordinates.size, rows=coordinates.rows,
        limits=lambda ids, _: coordinates.biases[class_id] - coordinates.biases[ids],
        space=lambda _: domain_space(coordinates), most_steps=_MAX_STEPS,
    )  # fmt: skip
    rule = _BoundsMeet(coordinates, class_id)
    with suppress(Stalled):  # what was reached before is as valid as any
        MarginLoop(problem, rows).run(rule)
    return rule.best


class _BoundsMeet:
    """The rule of an explanation: stop where both bounds agree, or floats can't bring them closer."""

    def __init__(self, coordinates: Coordinates, class_id: int) -> None:
        self.coordinates, self.class_id = coordinates, class_id
        self.best: _State | None = None
        self._begin()

    def _begin(self) -> None:
        self.look_below, self.closest, self.idle = _NEARLY, math.inf, 0

    def judge(self, loop: MarginLoop) -> Next:
        point = loop.point
        dual = point.dual()
        self.best = _State(points_at(self.coordinates, point)[1:], loop.ids, dual.weights)
        self.gap = (dual.upper - point.t) / max(abs(dual.upper), abs(point.t), 1e-300)
        is_closer = self.gap < self.closest / 2 or self.gap >= _NEARLY
        self.closest, self.idle = (self.gap, 0) if is_closer else (self.closest, self.idle + 1)
        self.is_last = self.gap < _CLOSE or self.idle > _PATIENCE
        return Next.LOOK if self.is_last or self.gap < self.look_below else Next.STEP

    def look(self, loop: MarginLoop) -> Ids | None:
        missing = _missing(self.coordinates, self.class_id, loop)
        if len(missing):
            self._begin()
        elif self.is_last:
            return None
        else:
            self.look_below = self.gap / _LOOK_AGAIN
        return missing


def _missing(coordinates: Coordinates, class_id: int, loop: MarginLoop) -> Ids:
    """Rows left out that hold the class down more than those known, the worst of them."""
    x = loop.point.x
    gaps = np.full(coordinates.head.classes, np.inf)
    for block in np.array_split(
        coordinates.usable, 1 + len(coordinates.usable) * coordinates.size // (1 << 20)
    ):
        gaps[block] = -(coordinates.rows(block) @ x) - coordinates.biases[block]
    gaps += float(loop.own @ x) + coordinates.biases[class_id]
    gaps[loop.ids] = gaps[class_id] = np.inf
    missing = np.flatnonzero(gaps < loop.point.t)
    return missing[np.argsort(gaps[missing])[: coordinates.size]]
