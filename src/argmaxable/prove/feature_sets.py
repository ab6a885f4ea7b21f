"""The sets that an interior point works in: a box, a ball, or the mixtures of corners. Nothing here has to be
trusted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from argmaxable.compute.lapack import dpotrf, dpotrs

if TYPE_CHECKING:
    from argmaxable.core.arrays import Ids, Matrix, Vector


class Stalled(Exception):
    """The normal equations lost definiteness: no further progress in this arithmetic."""


class CurvedSet(Protocol):
    """A set with slacks and multipliers of its own, and its part of the Newton step."""

    count: int

    def start(self, mu: float) -> None: ...
    def complementarity(self) -> float: ...
    def add_hessian(self, normal: Matrix) -> None: ...
    def predict(self) -> None: ...
    def correct(self, target: float, dx: Vector) -> None: ...
    def pull(self) -> Vector: ...
    def steps(self, dx: Vector) -> tuple[float, float]: ...
    def complementarity_after(self, dx: Vector, primal: float, dual: float) -> float: ...
    def move(self, dx: Vector, primal: float, dual: float) -> None: ...
    def support(self, u: Vector) -> float: ...


@dataclass(frozen=True, eq=False)
class BoxSet:
    """lo ≤ x ≤ hi. Its sides are linear like the rows: the interior point treats them as such."""

    lo: Vector
    hi: Vector

    def slack(self, x: Vector) -> Vector:
        """Distances from the lower sides, then from the upper ones."""
        return np.concatenate([x - self.lo, self.hi - x])

    def support(self, u: Vector) -> float:
        return float(np.maximum(self.lo * u, self.hi * u).sum())


class BallSet:
    """‖x‖ ≤ radius as the smooth constraint g = (radius² − ‖x‖²)/2 ≥ 0 with one multiplier."""

    count = 1

    def __init__(self, radius: float, x: Vector) -> None:
        self.radius, self.x = radius, x
        self.room = (radius * radius - float(x @ x)) / 2

    def start(self, mu: float) -> None:
        if not 0 < self.room < np.inf:  # a radius whose square is no float
            raise Stalled
        self.y = mu / self.room

    def complementarity(self) -> float:
        return self.y * self.room

    def add_hessian(self, normal: Matrix) -> None:
        k = len(self.x)
        normal.flat[: k * (k + 2) : k + 2] += self.y
        normal[:k, :k] += np.outer(self.x * (self.y / self.room), self.x)

    def predict(self) -> None:
        self._r = -self.y * self.room

    def correct(self, target: float, dx: Vector) -> None:
        step = self._multiplier_step(dx)
        # second order: room changes by −x·dx − |dx|²/2 along the step
        self._r = target - self.y * self.room + step * float(self.x @ dx) + self.y * float(dx @ dx) / 2

    def pull(self) -> Vector:
        return self.x * (self._r / self.room + self.y)

    def _multiplier_step(self, dx: Vector) -> float:
        return (self._r + self.y * float(self.x @ dx)) / self.room

    def steps(self, dx: Vector) -> tuple[float, float]:
        # largest α with ‖x + α dx‖ ≤ radius, from the quadratic's positive root
        a, b = float(dx @ dx), float(self.x @ dx)
        root = np.sqrt(b * b + 2 * a * self.room)
        primal = (root + b) / (2 * self.room)
        return primal, -self._multiplier_step(dx) / self.y

    def complementarity_after(self, dx: Vector, primal: float, dual: float) -> float:
        room = self.room - primal * float(self.x @ dx) - primal**2 * float(dx @ dx) / 2
        return (self.y + dual * self._multiplier_step(dx)) * room

    def move(self, dx: Vector, primal: float, dual: float) -> None:
        self.y += dual * self._multiplier_step(dx)
        self.x = self.x + primal * dx
        self.room = (self.radius * self.radius - float(self.x @ self.x)) / 2

    def support(self, u: Vector) -> float:
        return self.radius * float(np.sqrt(u @ u))


class HullSet:
    """x = Pᵀμ with μ ≥ 0, Σμ = 1, over some of the corners P (n × k), the active ones.

    Multipliers w of x = Pᵀμ and v of Σμ = 1 give those of μ ≥ 0, z = Pw + v. Eliminating μ leaves the inverse
    of the corners' covariance, weighted by μ/z, as the set's Hessian in x.
    """

    def __init__(self, corners: Matrix, active: Ids) -> None:
        self.corners, self.active = corners, active
        self.count = len(active)
        self._sides = np.hstack([corners[active], np.ones((self.count, 1))])
        self.mixture = np.full(self.count, 1 / self.count)
        self.x = self.mixture @ corners[active]

    def start(self, mu: float) -> None:
        self._multipliers = np.zeros(self._sides.shape[1])  # w, then v
        self._multipliers[-1] = mu * self.count
        self._z = np.full(self.count, mu * self.count)

    def complementarity(self) -> float:
        return float(self.mixture @ self._z)

    def add_hessian(self, normal: Matrix) -> None:
        scaled = self._sides * np.sqrt(self.mixture / self._z)[:, None]
        gram = np.asfortranarray(scaled.T @ scaled)
        size = len(gram)
        # Corners that are not in use leave directions without weight: a breath of ridge keeps them stiff.
        gram.flat[:: size + 1] *= 1 + 1e-12
        factor, failed = dpotrf(gram, lower=1, overwrite_a=1)
        if failed:
            raise Stalled
        self._inverse = np.asarray(dpotrs(factor, np.eye(size), lower=1)[0])
        normal[:-1, :-1] += self._inverse[:-1, :-1]

    def predict(self) -> None:
        self._r = -self.mixture * self._z

    def correct(self, target: float, dx: Vector) -> None:
        mixture, _, z = self._changes(dx)
        self._r = target - self.mixture * self._z - mixture * z

    def pull(self) -> Vector:
        return np.asarray(-(self._inverse @ ((self._r / self._z) @ self._sides) + self._multipliers)[:-1])

    def _changes(self, dx: Vector) -> tuple[Vector, Vector, Vector]:
        """Steps of the mixture, the multipliers w and v, and z."""
        right = (self._r / self._z) @ self._sides
        right[:-1] -= dx
        multipliers = self._inverse @ right
        z = self._sides @ multipliers
        return (self._r - self.mixture * z) / self._z, multipliers, z

    def steps(self, dx: Vector) -> tuple[float, float]:
        mixture, _, z = self._changes(dx)
        return float((-mixture / self.mixture).max()), float((-z / self._z).max())

    def complementarity_after(self, dx: Vector, primal: float, dual: float) -> float:
        mixture, _, z = self._changes(dx)
        return float((self.mixture + primal * mixture) @ (self._z + dual * z))

    def move(self, dx: Vector, primal: float, dual: float) -> None:
        mixture, multipliers, z = self._changes(dx)
        self.mixture = self.mixture + primal * mixture
        self._multipliers = self._multipliers + dual * multipliers
        self._z = self._z + dual * z

    def support(self, u: Vector) -> float:
        return float((self.corners @ u).max())

    def active_support(self, u: Vector) -> float:
        """The largest u·p over the active corners alone."""
        return float((self._sides[:, :-1] @ u).max())

    def weights(self) -> Vector:
        """The mixture as weights on all corners."""
        weights = np.zeros(len(self.corners))
        weights[self.active] = self.mixture
        return weights


FeatureSet = BoxSet | CurvedSet
