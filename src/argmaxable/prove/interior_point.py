"""A small dense primal-dual interior point for: maximise t subject to A x + t ≤ β, x in a feature set.

Mehrotra's predictor-corrector with one (k+1)² Cholesky factorisation a step. The caller tests the
two claims it cares about after every step (is the dual bound of λ below zero? does x win?), so no
optimum is ever needed and nothing here has to be trusted.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from argmaxable.compute.lapack import dpotrf, dpotrs
from argmaxable.prove.feature_sets import FeatureSet, Stalled

if TYPE_CHECKING:
    from argmaxable.core.arrays import Matrix, Vector

# Tuned on the OCR heads of benchmarks/: how far λ is floored above zero at the start, how far t
# starts below the smallest slack (in spreads of the slacks), how close a step goes to the boundary.
_WEIGHT_FLOOR = 0.3
_START_DEPTH = 0.5
_STEP_FRACTION = 0.99
# A warm start begins this far below the t that the new rows allow (in units of what they took off it).
_WARM_DEPTH = 0.5
# At least this share of the slacks' spread, so that no slack starts at zero.
_LEAST_DEPTH = 0.01


@dataclass(eq=False)
class InteriorPoint:
    """State of the iteration: x, t, slacks s = β − A x − t, weights λ, and the set's own.

    With `before`, a point over the first of these rows, it goes on with that one's weights.
    """

    rows: Matrix
    limits: Vector
    space: FeatureSet
    x: Vector
    single: bool = False
    before: InitVar[InteriorPoint | None] = None

    def __post_init__(self, before: InteriorPoint | None) -> None:
        self._rows32: NDArray[np.float32] | None = None
        slack = self.limits - self.rows @ self.x
        spread = max(float(slack.std()), 0.05 * float(np.sqrt((self.rows[:64] ** 2).sum(axis=1).mean())))
        lowest = float(slack.min())
        if before is None:
            self.t = lowest - _START_DEPTH * spread
            self.slack = slack - self.t
            self.weights = self._least_squares_weights()
        else:
            self.t = lowest - _WARM_DEPTH * max(before.t - lowest, _LEAST_DEPTH * spread)
            self.slack = slack - self.t
            self.weights = self._weights_after(before)
        self.mu = float(self.weights @ self.slack) / len(slack)
        self.space.start(self.mu)

    def _weights_after(self, before: InteriorPoint) -> Vector:
        """The old weights; each at least what makes its product with the slack an average one."""
        known = len(before.weights)
        mean = float(before.weights @ self.slack[:known]) / known
        weights = mean / self.slack
        weights[:known] = np.maximum(weights[:known], before.weights)
        return np.asarray(weights / weights.sum())

    def _least_squares_weights(self) -> Vector:
        """The smallest λ with Aᵀλ = 0 and Σλ = 1, floored to be positive."""
        count, size = self.rows.shape
        even = np.full(count, 1 / count)
        normal = self._gram(even)
        normal.flat[:: size + 2] *= 1 + 1e-9
        factor, failed = dpotrf(normal, lower=1, overwrite_a=1)
        if failed:
            return even
        unit = np.zeros(size + 1)
        unit[-1] = 1
        z, _ = dpotrs(factor, unit, lower=1)
        weights = even * (self.rows @ z[:-1] + z[-1])
        weights = np.maximum(weights, _WEIGHT_FLOOR * even * abs(float(weights.sum())))
        total = float(weights.sum())
        return weights / total if np.isfinite(total) and total > 0 else even

    def _gram(self, scale: Vector) -> Matrix:
        """[A 1]ᵀ diag(scale) [A 1], in Fortran order for LAPACK."""
        size = self.rows.shape[1]
        normal = np.empty((size + 1, size + 1), order="F")
        if self.single:
            if self._rows32 is None:
                self._rows32 = self.rows.astype(np.float32)
            top = float(scale.max())
            scaled32 = self._rows32 * np.sqrt(scale / top).astype(np.float32)[:, None]
            normal[:-1, :-1] = scaled32.T @ scaled32
            normal[:-1, :-1] *= top
        else:
            scaled = self.rows * np.sqrt(scale)[:, None]
            normal[:-1, :-1] = scaled.T @ scaled
        edge = scale @ self.rows
        normal[-1, :-1] = edge
        normal[:-1, -1] = edge
        normal[-1, -1] = scale.sum()
        return normal

    def step(self) -> None:
        """One predictor-corrector step; raises Stalled when the normal matrix is not definite."""
        size = self.rows.shape[1]
        normal = self._gram(self.weights / self.slack)
        self.space.add_hessian(normal)
        normal.flat[:: size + 2] *= 1 + 1e-13
        self._factor, failed = dpotrf(normal, lower=1, overwrite_a=1)
        if failed:
            raise Stalled
        count = len(self.slack) + self.space.count
        products = self.weights * self.slack
        self.mu = mu = (float(products.sum()) + self.space.complementarity()) / count
        residual = np.empty(size + 1)
        residual[:-1] = self.space.gradient() - self.weights @ self.rows
        residual[-1] = 1 - self.weights.sum()

        self.space.predict()
        dx, dt, ds, dw = self._solve(residual, -products)
        primal, dual = self._lengths(dx, ds, dw, 1.0)
        after = float((self.weights + dual * dw) @ (self.slack + primal * ds))
        after = (after + self.space.complementarity_after(dx, primal, dual)) / count
        target = (after / mu) ** 2 * mu

        self.space.correct(target, dx)
        dx, dt, ds, dw = self._solve(residual, target - products - dw * ds)
        primal, dual = self._lengths(dx, ds, dw, _STEP_FRACTION)
        self.space.move(dx, primal, dual)
        self.x = self.x + primal * dx
        self.t += primal * dt
        self.slack = self.slack + primal * ds
        self.weights = self.weights + dual * dw
        self.mu = (float(self.weights @ self.slack) + self.space.complementarity()) / count

    def _solve(self, residual: Vector, right: Vector) -> tuple[Vector, float, Vector, Vector]:
        scaled = right / self.slack
        total = residual.copy()
        total[:-1] -= scaled @ self.rows + self.space.pull()
        total[-1] -= scaled.sum()
        step, _ = dpotrs(self._factor, total, lower=1)
        dx, dt = step[:-1], float(step[-1])
        moved = self.rows @ dx + dt
        return dx, dt, -moved, (right + self.weights * moved) / self.slack

    def _lengths(self, dx: Vector, ds: Vector, dw: Vector, fraction: float) -> tuple[float, float]:
        """Step lengths that keep slacks and multipliers positive."""
        set_primal, set_dual = self.space.steps(dx)
        primal = max(fraction, float((-ds / self.slack).max()), set_primal)
        dual = max(fraction, float((-dw / self.weights).max()), set_dual)
        return fraction / primal, fraction / dual

    def dual_bound(self) -> tuple[Vector, float]:
        """Normalised weights and the upper bound on t they prove (in floats)."""
        weights = self.weights / self.weights.sum()
        return weights, self.space.support(-(weights @ self.rows)) + float(weights @ self.limits)
