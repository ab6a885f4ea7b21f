"""Entropic descent: minimises F(x) = log Σ_{i≠c} exp((s_i(x) − s_c(x))/T) over the domain, class by class, by
Newton steps whose matrix is the covariance of the rows under the softmax at x.

F is smooth and features are few, so a handful of steps brings the duality gap below 1e-6 where first-order
methods crawl along the domain's boundary. Nothing here has to be trusted: bounds.py judges the points.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.compute.coordinates import Coordinates, coordinates_of
from argmaxable.questions.ceiling.region import Region, Sphere, Walls

if TYPE_CHECKING:
    from argmaxable.check.checker import Checker
    from argmaxable.core.arrays import Ids, Matrix, Vector

_MAX_STEPS = 120
# Rows with a smaller softmax weight do not shape the Newton matrix (they do count in F and its gradient).
_LIGHT = 1e-8
# How far a step may move any log-odds where nothing else limits it.
_FARTHEST = 1e6
_ARMIJO, _HALVINGS = 1e-4, 30
# Beyond the gap in probability, the odds should be known this well: small ceilings deserve digits too.
_ODDS_GAP = 1e-3
# Where the domain has no end the gradient must vanish; in units of the rows this is as good as zero, and
# this good enough to cool down.
_ENDLESS, _STILL = 1e-14, 1e-2
# How a hot softmax is cooled: by this factor after so many steps at most.
_COOLING, _MOST_HEATS, _STEPS_A_HEAT = 5.0, 40, 12
# Where first points are tried: so many times as far as the nearest edge, or where the class's own score has
# risen by so much. Whitening the direction by the covariance of the rows settled no more classes.
_BEYOND, _LARGE_RISE = 2.0, 1e4


@dataclass(frozen=True, eq=False)
class Landing:
    """Where a descent ended: x, the softmax weights there, and what floats make of both ends."""

    x: Vector
    weights: Vector
    lower: float
    upper: float
    steps: int
    is_close: bool = False


class Slope:
    """One head's log-odds over one domain, in coordinates of z, ready for descents."""

    def __init__(self, checker: Checker, *, temperature: float, tolerance: float) -> None:
        self.coordinates, self.tolerance = _coordinates(checker), tolerance
        every = np.arange(checker.head.classes)
        with np.errstate(all="ignore"):
            self.rows = self.coordinates.rows(every) / (self.coordinates.scale * temperature)
            self.offsets = self.coordinates.biases / (self.coordinates.scale * temperature)
            self.size = float(np.abs(self.rows).sum(axis=1).mean())
        self.start = _middle(self.coordinates)

    def region(self) -> Region:
        """The domain around the start of a descent."""
        if self.coordinates.radius is not None:
            return Sphere(self.coordinates.radius, self.start)
        return Walls(self.coordinates.lo, self.coordinates.hi, self.start, tolerance=self.tolerance)

    @np.errstate(all="ignore")
    def first_points(self, classes: Ids) -> Matrix:
        """A point z for each class, all at once: from the middle of the domain along w_c − mean, until twice
        as far as its edge and then back onto it; a large way where it has none."""
        weights, _ = _softmax(self.rows @ self.start + self.offsets)
        ways = self.rows[classes] - weights @ self.rows
        is_endless = self.coordinates.radius is None and bool(
            (np.isinf(self.coordinates.lo) | np.isinf(self.coordinates.hi)).any()
        )
        if is_endless:
            lengths = _LARGE_RISE / (ways * ways).sum(axis=1)
        else:
            region = self.region()
            lengths = np.array([_BEYOND * region.limit(way) for way in ways])
        return self.place(self.start + lengths[:, None] * ways)

    def place(self, x: Matrix) -> Matrix:
        """Points z of the domain from coordinates."""
        return self.coordinates.to_point(np.where(np.isfinite(x), x, self.start))

    @np.errstate(all="ignore")  # extreme heads overflow here and there; bounds.py has the last word
    def descend(self, class_id: int) -> Landing:
        """Newton steps until both ends of the ceiling meet, or floats can do no more.

        Scores that are large in units of the temperature make F a polyhedron with hardly rounded edges, on
        which Newton may lose its way: then once more, from a hot softmax cooled down by and by.
        """
        landing = _Descent(self, class_id).run()
        heats = self._heats()
        if landing.is_close or not heats:
            return landing
        cooled = _Descent(self, class_id).run(heats)
        narrower = cooled.upper - cooled.lower < landing.upper - landing.lower
        return cooled if cooled.is_close or narrower else landing

    def _heats(self) -> list[float]:
        """Factors on the temperature, from where the softmax is smooth over the whole domain down to 1."""
        width = np.where(
            np.isfinite(self.coordinates.hi - self.coordinates.lo),
            self.coordinates.hi - self.coordinates.lo,
            1.0,
        )
        reach = self.coordinates.radius or float(width.max(initial=0.0))
        heats = [reach * self.size / _COOLING]
        while heats[-1] > _COOLING and len(heats) < _MOST_HEATS:
            heats.append(heats[-1] / _COOLING)
        return heats if 1 < heats[0] < math.inf else []


class _Descent:
    """The state of one class's descent: x and the log-odds there."""

    def __init__(self, slope: Slope, class_id: int) -> None:
        self.rows, self.class_id, self.tolerance = slope.rows, class_id, slope.tolerance
        self.own = slope.rows[class_id]
        self.x = slope.start
        scores = slope.rows @ self.x + slope.offsets
        self.odds = scores - scores[class_id]
        self.odds[class_id] = -np.inf
        self.region = slope.region()
        self.size = slope.size
        self.steps, self.heat = 0, 1.0

    def run(self, heats: Sequence[float] = ()) -> Landing:
        for heat in heats:
            self._cool_to(heat)
            for _ in range(_STEPS_A_HEAT):
                self._landing()
                is_rough = self.escape.finite <= 1 and self.escape.endless <= _STILL * self.size
                if is_rough or not self._step():
                    break
        if heats:
            self._cool_to(1.0)
        return self._settle()

    def _cool_to(self, heat: float) -> None:
        self.region.rescale(self.heat / heat)
        self.heat = heat

    def _settle(self) -> Landing:
        best = landing = self._landing()
        while self.steps < _MAX_STEPS and not self._is_close(landing) and self._step():
            self.steps += 1
            landing = self._landing()
            if not math.isfinite(self.level):
                break
            # In an endless domain what counts is that the gradient vanishes: the later, the better.
            if self.escape.endless > 0 or landing.upper - landing.lower <= best.upper - best.lower:
                best = landing
        return replace(best, steps=self.steps, is_close=self._is_close(landing))

    def _landing(self) -> Landing:
        self.weights, self.level = _softmax(self.odds / self.heat)
        self.gradient = (self.weights @ self.rows - self.own) / self.heat
        self.escape = self.region.escape(-self.gradient)
        lower, upper = _probability(self.level), _probability(self.level - self.escape.finite)
        return Landing(self.x, self.weights, lower, upper, self.steps)

    def _is_close(self, landing: Landing) -> bool:
        if 1 - landing.lower <= self.tolerance:
            return True
        gap = landing.upper - landing.lower
        is_still = self.escape.endless <= _ENDLESS * self.size
        return gap <= self.tolerance and self.escape.finite <= _ODDS_GAP and is_still

    def _step(self) -> bool:
        """One Newton step; False when there is none that helps."""
        heavy = np.flatnonzero(self.weights > _LIGHT)
        mean = self.heat * self.gradient + self.own
        matrix = _covariance(self.rows[heavy], self.weights[heavy], mean) / self.heat / self.heat
        dx = self.region.propose(self.gradient, matrix)
        if dx is None:
            return False
        change = self.rows @ dx
        change -= change[self.class_id]
        step = self._length(change, float(self.gradient @ dx))
        if step == 0.0:
            return False
        self.region.accept(step)
        self.x = self.x + step * dx
        self.odds = self.odds + step * change
        return True

    def _length(self, change: Vector, slope: float) -> float:
        """A whole step, halved until F and the barrier fall as they should (Armijo); 0 if never. Where the
        domain has no end it is doubled while they fall: towards infinity Newton's matrix fades away."""
        region = self.region

        def merit(step: float) -> float:
            return _softmax((self.odds + step * change) / self.heat)[1] + region.barrier(step)

        slope += region.barrier_slope()
        start = merit(0.0)
        # Near the end the merit moves by less than its rounding error: then a full step is the best.
        noise = 1e-13 * (1 + abs(start))
        most = float(np.abs(change).max())
        longest = region.longest()
        if self.escape.endless > 0 and most > 0:
            longest = min(longest, _FARTHEST / most)
        step = min(1.0, longest)
        for _ in range(_HALVINGS):
            if merit(step) <= start + _ARMIJO * step * slope + noise:
                break
            step /= 2
        else:
            return 0.0
        while self.escape.endless > 0 and 2 * step <= longest and merit(2 * step) < merit(step) - noise:
            step *= 2
        return step


def _coordinates(checker: Checker) -> Coordinates:
    """The coordinates with the domain itself as its set: where a cone suffices for the sign of a margin,
    probabilities need the true scale."""
    coordinates = coordinates_of(checker.prepared, checker.domain)
    lo, hi = coordinates.domain_bounds()
    return replace(coordinates, is_cone=False, lo=lo, hi=hi, radius=coordinates.domain_radius)


def _middle(coordinates: Coordinates) -> Vector:
    """0 where the set has it well inside, else the nearest point that is."""
    if coordinates.radius is not None:
        return np.zeros(coordinates.size)
    room = coordinates.hi - coordinates.lo
    inset = np.where(np.isfinite(room), np.minimum(1.0, room / 4), 1.0)
    return np.asarray(np.clip(0.0, coordinates.lo + inset, coordinates.hi - inset))


def _softmax(odds: Vector) -> tuple[Vector, float]:
    """Weights e^v/Σe^v and log Σe^v."""
    top = float(odds.max())
    powers = np.exp(odds - top)
    total = float(powers.sum())
    return powers / total, top + math.log(total) if total > 0 else math.nan


def _covariance(rows: Matrix, weights: Vector, mean: Vector) -> Matrix:
    scaled = (rows - mean) * np.sqrt(weights)[:, None]
    return np.asarray(scaled.T @ scaled)


def _probability(level: float) -> float:
    """1/(1 + e^level)."""
    if math.isnan(level):
        return 0.0
    return 1 / (1 + math.exp(level)) if level < 700 else 0.0
