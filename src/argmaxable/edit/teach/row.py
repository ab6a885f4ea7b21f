"""One row of a head, fitted with all others fixed.

With o(x) the logsumexp of the other logits, the softmax likelihood of one row (w, b) is a logistic regression
with the offset o: minimise Σ₊ softplus(o − s) + Σ₋ softplus(s − o) + (λ/2)‖w‖² over s = w·x + b. That is
convex, so Newton's method finds the one minimum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from argmaxable.compute import lapack
from argmaxable.core.arrays import Matrix, Vector

# On ‖w‖² against a sum over rows. On left-out fonts of PP-OCRv4 ten times as much read as well and erred
# more.
RIDGE = 0.1
# Keeps the bias, which is not to be held back, from leaving the problem without a minimum.
_BIAS_RIDGE = 1e-6
_MOST_STEPS = 60
# Newton's decrement below which another step would change the loss by less than a billionth of it.
_NEAR_ENOUGH = 1e-9
_SHORTEST_STEP = 1e-4
_ARMIJO = 1e-4
# Rows that bend the loss less than this add nothing to the second derivative that the ridge would notice.
_FLAT = 1e-7


@dataclass(frozen=True, eq=False)
class RowData:
    """Rows at which the class should win (`signs` +1) or not (−1), n × features, the offset at each and how
    much it counts."""

    features: Matrix
    offsets: Vector
    signs: Vector
    weights: Vector


@dataclass(frozen=True, eq=False)
class RowSolution:
    """The vector (w, b), or (w,) for a head without bias; the loss there and the Newton steps it took."""

    vector: Vector
    loss: float
    steps: int


class _Objective:
    """The loss and its derivatives."""

    def __init__(self, data: RowData, has_bias: bool) -> None:
        ones = [np.ones((len(data.features), 1))] if has_bias else []
        self.design = np.hstack([data.features, *ones])
        self.data = data
        self.ridge = np.full(self.design.shape[1], RIDGE)
        if has_bias:
            self.ridge[-1] = _BIAS_RIDGE

    def margins(self, vector: Vector) -> Vector:
        return self.data.signs * (self.design @ vector - self.data.offsets)

    def loss(self, margins: Vector, vector: Vector) -> float:
        loss = self.data.weights @ np.logaddexp(0.0, -margins)
        return float(loss + 0.5 * (self.ridge * vector) @ vector)

    def newton_step(self, margins: Vector, vector: Vector) -> tuple[Vector, float]:
        """The step, and how much the loss would fall along it at first (Newton's decrement)."""
        wrong = 1.0 / (1.0 + np.exp(np.clip(margins, -500, 500)))
        slope = self.design.T @ (self.data.weights * self.data.signs * wrong) - self.ridge * vector
        bend = self.data.weights * wrong * (1.0 - wrong)
        curved = bend > _FLAT
        part = self.design[curved] * np.sqrt(bend[curved])[:, None]
        hessian = part.T @ part
        hessian[np.diag_indices_from(hessian)] += self.ridge
        factor, _ = lapack.dpotrf(hessian, lower=True)
        step, _ = lapack.dpotrs(factor, slope, lower=True)
        return step, float(step @ slope)


def fit_row(data: RowData, *, has_bias: bool, start: Vector | None = None) -> RowSolution:
    """The row at which the loss is least, from `start` on (default: no weights)."""
    problem = _Objective(data, has_bias)
    vector = np.zeros(problem.design.shape[1]) if start is None else start.copy()
    if start is None and has_bias:
        vector[-1] = data.offsets[data.signs > 0].mean()
    margins = problem.margins(vector)
    loss, steps = problem.loss(margins, vector), 0
    for steps in range(1, _MOST_STEPS + 1):
        step, decrement = problem.newton_step(margins, vector)
        if decrement < _NEAR_ENOUGH * (1.0 + loss):
            break
        moved, length = problem.margins(vector + step), 1.0
        while problem.loss(moved, vector + length * step) > loss - _ARMIJO * length * decrement:
            length /= 2
            if length < _SHORTEST_STEP:
                return RowSolution(vector, loss, steps)
            moved = problem.margins(vector + length * step)
        vector, margins = vector + length * step, moved
        loss = problem.loss(margins, vector)
    return RowSolution(vector, loss, steps)
