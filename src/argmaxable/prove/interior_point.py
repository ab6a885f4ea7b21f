"""A small dense primal-dual interior point for: maximise t subject to A x + t ≤ β, x in a feature set.

Mehrotra's predictor-corrector with one (k+1)² Cholesky factorisation a step. The caller tests the
two claims it cares about after every step (is the dual bound of λ below zero? does x win?), so no
optimum is ever needed and nothing here has to be trusted.

Rows and a box's sides are one system: G v + s = g with v = (x, t), G = [A 1; −I 0; I 0], multipliers y.
Newton's equations are G dv + ds = 0, Gᵀdy = e − Gᵀy (e the unit vector of t) and s∘dy + y∘ds = ρ. Let
N = Gᵀ diag(y/s) G and σ = G dv / s, the share of each slack that a step uses up; then
N dv = e − Gᵀ(y + ρ/s).

* The predictor has ρ = −y∘s: N dv = e, and y moves by −y∘(1 − σ). No product with the rows on the right.
* The corrector has ρ = μ − y∘s − dy∘ds, where the predictor's dy∘ds is y∘s∘σ∘(1 − σ). Let
  κ = μ/(y∘s) − σ∘(1 − σ); then N dv = e − Gᵀ(y∘κ), and y moves by y∘(κ − 1 + σ) with the σ of this step.

The residual e − Gᵀy itself is never formed. The same holds for curved sets: `pull` is their part of Gᵀ(y∘κ).
"""

from __future__ import annotations

import math
from dataclasses import InitVar, dataclass
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.compute.lapack import dpotrf, dpotrs
from argmaxable.prove.feature_sets import BoxSet, CurvedSet, FeatureSet, Stalled

if TYPE_CHECKING:
    from argmaxable.core.arrays import Matrix, Vector
    from argmaxable.prove.row_table import RowTable

# Tuned on the OCR heads of benchmarks/: how far λ is floored above zero at the start, how far t
# starts below the smallest slack (in spreads of the slacks), how close a step goes to the boundary.
_WEIGHT_FLOOR = 0.3
_START_DEPTH = 0.5
_STEP_FRACTION = 0.99
# A warm start begins this far below the t that the new rows allow (in units of what they took off it).
_WARM_DEPTH = 0.5
# At least this share of the slacks' spread, so that no slack starts at zero.
_LEAST_DEPTH = 0.01


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Where a point was: enough to start from there when the limits have changed a little.

    Whatever the limits, its multipliers still solve Gᵀy = e, and a smaller t makes its x feasible again.
    """

    x: Vector
    t: float
    depth: float  # the least slack
    weights: Vector  # of the first rows
    sides: Vector  # multipliers of a box's sides; empty for other sets


@dataclass(frozen=True, eq=False)
class Dual:
    """Normalised weights λ, u = −Aᵀλ, and the upper bound on t that they prove."""

    weights: Vector
    u: Vector
    upper: float


@dataclass(eq=False)
class InteriorPoint:
    """State of the iteration: x, t, and for the rows, then for a box's sides, slacks s and multipliers y.

    With `before`, a point over the first of these rows, it starts from that one's weights: floored, as those
    of a fresh start are, or raised to an average product with the slack.
    """

    table: RowTable
    limits: Vector
    space: FeatureSet
    x: Vector
    single: bool = False
    before: InitVar[InteriorPoint | Snapshot | None] = None
    is_floored: InitVar[bool] = False
    likely: InitVar[Vector | None] = None

    def __post_init__(
        self, before: InteriorPoint | Snapshot | None, is_floored: bool, likely: Vector | None
    ) -> None:
        self._table = self.table.double
        self.rows = self._table[:, :-1]
        self._unit = np.zeros(self._table.shape[1])
        self._unit[-1] = 1
        slack = self.limits - self.rows @ self.x
        spread = max(float(slack.std()), 0.05 * float(np.sqrt((self.rows[:64] ** 2).sum(axis=1).mean())))
        lowest = float(slack.min())
        if before is None:
            self.t = lowest - _START_DEPTH * spread
            slack -= self.t
            weights = self._least_squares_weights(likely)
        elif isinstance(before, Snapshot):
            self.t = lowest - max(_WARM_DEPTH * (before.t - lowest), before.depth)
            slack -= self.t
            weights = _raised(before.weights, slack)
        else:
            self.t = lowest - _WARM_DEPTH * max(before.t - lowest, _LEAST_DEPTH * spread)
            slack -= self.t
            weights = (_floored if is_floored else _raised)(before.weights, slack)
        self.mu = float(weights @ slack) / len(slack)
        self._slack, self._multipliers = slack, weights
        self._curved: CurvedSet | None = None
        if isinstance(self.space, BoxSet):
            sides = self.space.slack(self.x)
            self._slack = np.concatenate([slack, sides])
            known = before.sides if isinstance(before, Snapshot) else 0.0
            self._multipliers = np.concatenate([weights, np.maximum(self.mu / sides, known)])
        else:
            self._curved = self.space
            self.space.start(self.mu)

    @property
    def slack(self) -> Vector:
        """β − A x − t for each row."""
        return self._slack[: len(self.rows)]

    @property
    def weights(self) -> Vector:
        """The multipliers λ of the rows."""
        return self._multipliers[: len(self.rows)]

    def snapshot(self) -> Snapshot:
        """Where the point is now."""
        count = len(self.rows)
        return Snapshot(self.x, self.t, float(self.slack.min()), self.weights, self._multipliers[count:])

    def _least_squares_weights(self, likely: Vector | None) -> Vector:
        """The λ with Aᵀλ = 0 and Σλ = 1 that is smallest relative to the likely one (default: an even one),
        floored to be positive."""
        count, size = self.rows.shape
        even = np.full(count, 1 / count)
        likely = even if likely is None else likely
        normal = self._gram(likely)
        normal.reshape(-1)[:: size + 2] *= 1 + 1e-9
        factor, failed = dpotrf(normal.T, lower=1, clean=0, overwrite_a=1)
        if failed:
            return even
        z, _ = dpotrs(factor, self._unit, lower=1)
        weights = likely * (self._table @ z)
        weights = np.maximum(weights, _WEIGHT_FLOOR * likely * abs(float(weights.sum())))
        total = float(weights.sum())
        return weights / total if np.isfinite(total) and total > 0 else even

    def _gram(self, scale: Vector) -> Matrix:
        """[A 1]ᵀ diag(scale) [A 1]; its upper half at least, which is the lower one of its transpose in
        Fortran order, as LAPACK sees it."""
        return self.table.gram_by_float32(scale) if self.single else self.table.gram(scale)

    def _normal(self) -> Matrix:
        """N = Gᵀ diag(y/s) G, and what a curved set adds to it."""
        count, size = self.rows.shape
        scale = self._multipliers / self._slack
        normal = self._gram(scale[:count])
        diagonal = normal.reshape(-1)[:: size + 2]
        if self._curved is None:
            diagonal[:-1] += scale[count : count + size]
            diagonal[:-1] += scale[count + size :]
        else:
            self._curved.add_hessian(normal)
        diagonal *= 1 + 1e-13
        return normal

    def _shares(self, step: Vector) -> Vector:
        """σ = G dv / s: the share of each slack that a step uses up."""
        count, size = self.rows.shape
        used = np.empty(len(self._slack))
        np.matmul(self._table, step, out=used[:count])
        if self._curved is None:
            np.negative(step[:-1], out=used[count : count + size])
            used[count + size :] = step[:-1]
        used /= self._slack
        return used

    def _gather(self, values: Vector) -> Vector:
        """Gᵀ times one value for each row and side."""
        count, size = self.rows.shape
        total = values[:count] @ self._table
        if self._curved is None:
            total[:-1] += values[count + size :] - values[count : count + size]
        return np.asarray(total)

    def step(self) -> None:
        """One predictor-corrector step; raises Stalled, and stays where it is, when floats allow none."""
        factor, failed = dpotrf(self._normal().T, lower=1, clean=0, overwrite_a=1)
        if failed:
            raise Stalled
        curved, products = self._curved, self._multipliers * self._slack
        count = len(products) + (0 if curved is None else curved.count)
        self.mu = mu = (float(products.sum()) + (0.0 if curved is None else curved.complementarity())) / count

        step, _ = dpotrs(factor, self._unit, lower=1)
        shares = self._shares(step)
        rest = 1 - shares
        if curved is not None:
            curved.predict()
        primal, dual = self._lengths(step, float(shares.max()), float(rest.max()), 1.0)
        after = float((products * (1 - dual * rest)) @ (1 - primal * shares))
        if curved is not None:
            after += curved.complementarity_after(step[:-1], primal, dual)
        target = (after / count / mu) ** 2 * mu

        change = target / products - shares * rest  # κ
        right = self._unit - self._gather(self._multipliers * change)
        if curved is not None:
            curved.correct(target, step[:-1])
            right[:-1] -= curved.pull()
        step, _ = dpotrs(factor, right, lower=1)
        shares = self._shares(step)
        change += shares
        change -= 1
        self._move(step, shares, change)

    def _move(self, step: Vector, shares: Vector, change: Vector) -> None:
        """Go along the step, which uses up these shares of the slacks and changes multipliers by those."""
        curved = self._curved
        primal, dual = self._lengths(step, float(shares.max()), -float(change.min()), _STEP_FRACTION)
        x = self.x + primal * step[:-1]
        slack, multipliers = self._slack * (1 - primal * shares), self._multipliers * (1 + dual * change)
        total = float(multipliers @ slack)
        if not (math.isfinite(total) and np.isfinite(x).all()):
            raise Stalled
        self.x, self._slack, self._multipliers = x, slack, multipliers
        self.t += primal * float(step[-1])
        count = len(slack)
        if curved is not None:
            curved.move(step[:-1], primal, dual)
            total, count = total + curved.complementarity(), count + curved.count
        self.mu = total / count

    def _lengths(self, step: Vector, primal: float, dual: float, fraction: float) -> tuple[float, float]:
        """How far to go: a whole step uses up these shares of a slack and of a multiplier at most."""
        if self._curved is not None:
            set_primal, set_dual = self._curved.steps(step[:-1])
            primal, dual = max(primal, set_primal), max(dual, set_dual)
        return fraction / max(fraction, primal), fraction / max(fraction, dual)

    def dual(self) -> Dual:
        """What the multipliers of the rows would prove, in floats."""
        weights = self.weights / self.weights.sum()
        u = -(weights @ self.rows)
        return Dual(weights, u, self.space.support(u) + float(weights @ self.limits))


def _floored(known: Vector, slack: Vector) -> Vector:
    """The weights known, each at least a share of the mean one; as much for the rows that are new."""
    least = _WEIGHT_FLOOR * float(known.sum()) / len(slack)
    weights = np.full(len(slack), least)
    np.maximum(known, least, out=weights[: len(known)])
    return np.asarray(weights / weights.sum())


def _raised(known: Vector, slack: Vector) -> Vector:
    """The weights known; each at least what makes its product with the slack an average one."""
    mean = float(known @ slack[: len(known)]) / len(known)
    weights = mean / slack
    weights[: len(known)] = np.maximum(weights[: len(known)], known)
    return np.asarray(weights / weights.sum())
