"""The set that a descent moves in, and the Newton step it allows: walls of a box by a primal-dual barrier, a
sphere by the exact minimum of the quadratic model inside it. Everything here is approximate; bounds.py
alone proves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from argmaxable.compute.lapack import dpotrf, dpotrs, dtrtrs

if TYPE_CHECKING:
    from argmaxable.core.arrays import Matrix, Vector

# Keeps a matrix definite in directions without curvature, as a share of its mean diagonal.
_RIDGE = 1e-13
# How close a step goes to a wall.
_NEAR = 0.99
# How far the barrier weakens in a step: by the cube of what a pure Newton step would leave (Mehrotra), but no
# more than a thousandfold, and never below the share of the tolerance where slacks would lose their digits.
_MOST_WEAKENING, _LEAST_WEAKENING, _FLOOR = 1e-3, 0.8, 0.01
_SECULAR_STEPS = 40


@dataclass(frozen=True, slots=True)
class Escape:
    """How far u·x can still rise: by `finite` within bounds, and without end in directions where u has the
    size `endless`."""

    finite: float
    endless: float


class Region(Protocol):
    """A set around the current x."""

    def escape(self, u: Vector) -> Escape:
        """How far the linear function u can rise from x within the set."""

    def propose(self, gradient: Vector, matrix: Matrix) -> Vector | None:
        """A descent direction for a function with this gradient and Newton matrix (which is overwritten)."""

    def longest(self) -> float:
        """The longest step along the proposal."""

    def barrier(self, step: float) -> float:
        """What the set adds to the function after a step along the proposal."""

    def barrier_slope(self) -> float:
        """How fast that changes at the start of the step."""

    def accept(self, step: float) -> None:
        """Go there."""

    def limit(self, dx: Vector) -> float:
        """How many times dx reaches from x to the boundary."""

    def rescale(self, factor: float) -> None:
        """Get ready for the function times this factor."""


class Walls:
    """lo ≤ x ≤ hi with slacks and multipliers y; sides at infinity have no wall. Slacks are kept apart from
    x: near a far wall their difference would lose all its digits."""

    def __init__(self, lo: Vector, hi: Vector, x: Vector, *, tolerance: float) -> None:
        self.below, self.above = np.flatnonzero(np.isfinite(lo)), np.flatnonzero(np.isfinite(hi))
        self.slack = np.concatenate([(x - lo)[self.below], (hi - x)[self.above]])
        self.size, self.tolerance = len(x), tolerance
        self.y = 1 / self.slack

    def _pull(self, y: Vector) -> Vector:
        pulled = np.zeros(self.size)
        pulled[self.below] += y[: len(self.below)]
        pulled[self.above] -= y[len(self.below) :]
        return pulled

    def _push(self, dx: Vector) -> Vector:
        return np.concatenate([dx[self.below], -dx[self.above]])

    def escape(self, u: Vector) -> Escape:
        room = np.full((2, self.size), np.inf)
        room[0, self.below] = self.slack[: len(self.below)]
        room[1, self.above] = self.slack[len(self.below) :]
        reach = np.where(u > 0, room[1], room[0])
        ends = np.isfinite(reach)
        return Escape(float(np.abs(u[ends]) @ reach[ends]), float(np.abs(u[~ends]).sum()))

    def _stiffen(self, matrix: Matrix) -> None:
        stiffness = self.y / self.slack
        np.add.at(matrix, (self.below, self.below), stiffness[: len(self.below)])
        np.add.at(matrix, (self.above, self.above), stiffness[len(self.below) :])

    def propose(self, gradient: Vector, matrix: Matrix) -> Vector | None:
        ridge = _ridge(matrix)  # of the function alone: walls are stiff, and would hide what is soft
        self._stiffen(matrix)
        factor = _cholesky(matrix, ridge)
        if factor is None:
            return None
        self._aim(factor, gradient)
        return self._dx if np.isfinite(self._dx).all() else None

    def _aim(self, factor: Matrix, gradient: Vector) -> None:
        """Steps of x and y towards a weaker barrier."""
        self._mu = 0.0
        self._solve(factor, gradient)
        if not len(self.slack):
            return
        now = float(self.y @ self.slack) / len(self.slack)
        primal, dual = min(1.0, self.limit(self._dx)), min(1.0, self._dual_limit())
        left = float((self.y + dual * self._dy) @ (self.slack + primal * self._push(self._dx)))
        left = max(0.0, left / len(self.slack) / now)
        self._mu = now * min(_LEAST_WEAKENING, max(_MOST_WEAKENING, left**3))
        self._mu = max(self._mu, _FLOOR * self.tolerance / len(self.slack))
        self._solve(factor, gradient)

    def _solve(self, factor: Matrix, gradient: Vector) -> None:
        pull = self._pull(self._mu / self.slack) - gradient
        self._dx: Vector = np.asarray(dpotrs(factor, pull, lower=1)[0], np.float64)
        self._dy = self._mu / self.slack - self.y - self.y / self.slack * self._push(self._dx)

    def limit(self, dx: Vector) -> float:
        return _steps_to_zero(self.slack, self._push(dx))

    def rescale(self, factor: float) -> None:
        self.y = self.y * factor

    def _dual_limit(self) -> float:
        return _steps_to_zero(self.y, self._dy)

    def longest(self) -> float:
        return _NEAR * self.limit(self._dx)

    def barrier(self, step: float) -> float:
        return -self._mu * float(np.log(self.slack + step * self._push(self._dx)).sum())

    def barrier_slope(self) -> float:
        return -self._mu * float((self._push(self._dx) / self.slack).sum())

    def accept(self, step: float) -> None:
        self.y = self.y + min(1.0, _NEAR * self._dual_limit()) * self._dy
        self.slack = self.slack + step * self._push(self._dx)


class Sphere:
    """‖x‖ ≤ radius. A barrier would creep along the curved wall; the quadratic model's minimum inside the
    ball costs a few factorisations (Moré and Sorensen 1983)."""

    def __init__(self, radius: float, x: Vector) -> None:
        self.radius, self.x = radius, x

    def escape(self, u: Vector) -> Escape:
        return Escape(self.radius * float(np.sqrt(u @ u)) - float(u @ self.x), 0.0)

    def propose(self, gradient: Vector, matrix: Matrix) -> Vector | None:
        """p − x for the p that minimises the model: (matrix + ν) p = matrix·x − gradient, ‖p‖ ≤ radius."""
        target = matrix @ self.x - gradient
        # Above zero where the matrix is zero, as with a single rival, and negligible otherwise.
        nu = _RIDGE * float(np.sqrt(target @ target)) / self.radius
        for _ in range(_SECULAR_STEPS):
            factor = _cholesky(matrix, nu + _ridge(matrix))
            if factor is None:
                return None
            p = dpotrs(factor, target, lower=1)[0]
            length = float(np.sqrt(p @ p))
            if not np.isfinite(length):
                return None
            if length <= self.radius * (1 + 1e-15):
                break
            w = dtrtrs(factor, p, lower=1)[0]
            # Newton's step for 1/radius = 1/‖p(ν)‖, which approaches the root from below.
            nu += float(p @ p) / float(w @ w) * (length - self.radius) / self.radius
        inward = min(1.0, self.radius / length) if length > 0 else 1.0
        self._dx = np.asarray(inward * p - self.x, np.float64)
        return self._dx

    def longest(self) -> float:
        return 1.0

    def barrier(self, step: float) -> float:
        return 0.0

    def barrier_slope(self) -> float:
        return 0.0

    def accept(self, step: float) -> None:
        self.x = self.x + step * self._dx

    def rescale(self, factor: float) -> None:
        pass  # no multiplier to keep

    def limit(self, dx: Vector) -> float:
        a, b = float(dx @ dx), float(self.x @ dx)
        c = self.radius * self.radius - float(self.x @ self.x)
        return c / (b + float(np.sqrt(b * b + a * c))) if a > 0 else np.inf


def _steps_to_zero(values: Vector, change: Vector) -> float:
    """How many times the change can be added before one of the positive values is zero."""
    closing = float((-change / values).max(initial=0.0))
    return 1 / closing if closing > 0 else np.inf


def _ridge(matrix: Matrix) -> float:
    return _RIDGE * float(np.trace(matrix)) / max(len(matrix), 1) + 1e-300


def _cholesky(matrix: Matrix, shift: float) -> Matrix | None:
    """The Cholesky factor of a matrix whose diagonal is shifted; None when there is none."""
    size = len(matrix)
    if not size or not np.isfinite(matrix).all():
        return None
    shifted = np.array(matrix, order="F")
    shifted.flat[:: size + 1] += shift
    factor, failed = dpotrf(shifted, lower=1, overwrite_a=1)
    return None if failed else np.asarray(factor)
