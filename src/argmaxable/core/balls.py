"""Domains that are balls of z: a ball of feature vectors, and what RMSNorm and LayerNorm can put out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike

from argmaxable.core.arrays import Mask, Matrix, Vector
from argmaxable.core.domain import (
    Domain,
    ball_support_bound,
    contained_in_ball,
    finite_vector,
    float_of_hex,
    from_hex,
    hex_of,
    require_length,
    root_is_at_most,
)
from argmaxable.core.errors import DomainError
from argmaxable.exact.dyadic import Dyadic
from argmaxable.exact.rounding import TINY, UNIT, gamma, length_bounds

# A point's radius relative to the ball's: products of floats must not put it outside.
_INSIDE = 1 - 1e-12


class _Round(Domain):
    """A ball of z."""

    def nearest(self, points: Matrix) -> Matrix:
        if self.removes_mean:
            points = points - points.mean(axis=1, keepdims=True)
        length = np.sqrt((points * points).sum(axis=1, keepdims=True))
        with np.errstate(divide="ignore"):
            factor = self.ball_radius(points.shape[1]) * _INSIDE / length
        return np.asarray(points * np.minimum(np.where(np.isfinite(factor), factor, 1.0), 1.0))


@final
@dataclass(frozen=True)
class Ball(_Round):
    """‖x‖₂ ≤ radius."""

    radius: float

    kind: ClassVar[str] = "ball"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.radius) and self.radius > 0):
            raise DomainError(f"a ball needs a finite radius above 0, found {self.radius}.")
        object.__setattr__(self, "radius", float(self.radius))

    def require_features(self, features: int) -> None:
        return None

    def describe(self) -> str:
        return f"ball of radius {self.radius:g}"

    def in_words(self) -> str:
        return f"The head may receive any feature vector of length at most {self.radius:g}."

    def scope(self) -> str:
        return f"for feature vectors of length at most {self.radius:g}"

    def as_record(self) -> dict[str, Any]:
        return {"kind": self.kind, "radius": self.radius.hex()}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Self:
        return cls(float_of_hex(record["radius"]))

    def ball_radius(self, features: int) -> float:
        return self.radius

    def contains(self, points: Matrix) -> Mask:
        # The square of the radius rounds once, the factor's product once more.
        return contained_in_ball(points, self.radius * self.radius * (1 - 4 * UNIT), self.contains_exactly)

    def contains_exactly(self, z: Dyadic) -> bool:
        radius = Dyadic.of(self.radius)
        return bool((z @ z - radius * radius).sign() <= 0)

    def support_bound(self, u: Matrix, error: Matrix) -> Vector:
        return ball_support_bound(self.radius, u, error)

    def support_is_at_most(self, u: Dyadic, limit: Dyadic) -> bool:
        radius = Dyadic.of(self.radius)
        return root_is_at_most((u @ u) * radius * radius, limit)


@dataclass(frozen=True, eq=False)
class NormSolid(_Round):
    """x = gain ∘ z + shift with ‖z‖₂ ≤ √features; ε > 0 inside a norm makes the solid exact."""

    gain: Vector
    shift: Vector

    name: ClassVar[str]
    is_identity: ClassVar[bool] = False

    def __init__(self, gain: ArrayLike, shift: ArrayLike = 0.0) -> None:
        object.__setattr__(self, "gain", finite_vector(gain, f"{self.name} gain"))
        object.__setattr__(self, "shift", finite_vector(shift, f"{self.name} shift"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NormSolid) and self.as_record() == other.as_record()

    def __hash__(self) -> int:
        return hash((self.kind, self.gain.tobytes(), self.shift.tobytes()))

    def require_features(self, features: int) -> None:
        require_length(self.gain, features, f"the {self.name} gain")
        require_length(self.shift, features, f"the {self.name} shift")

    def describe(self) -> str:
        return f"{self.name} solid"

    def in_words(self) -> str:
        return (
            f"The features come from a {self.name} layer with the model's own gain. Every vector "
            "that such a layer can output is considered."
        )

    def scope(self) -> str:
        return f"for outputs of the {self.name}"

    def as_record(self) -> dict[str, Any]:
        return {"kind": self.kind, "gain": hex_of(self.gain), "shift": hex_of(self.shift)}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Self:
        return cls(from_hex(record["gain"]), from_hex(record["shift"]))

    def gains(self, features: int) -> Vector:
        return np.broadcast_to(self.gain, (features,))

    def shifts(self, features: int) -> Vector:
        return np.broadcast_to(self.shift, (features,))

    def ball_radius(self, features: int) -> float:
        return math.sqrt(features)

    def contains(self, points: Matrix) -> Mask:
        # Removing the mean never lengthens z: what is surely inside without it stays inside.
        return contained_in_ball(points, float(points.shape[1]), self.contains_exactly)

    def contains_exactly(self, z: Dyadic) -> bool:
        features = Dyadic.of(float(len(z.integers)))
        squares = features * (z @ z)
        if self.removes_mean:  # Σ(z − mean)² ≤ d, times d
            squares = squares - z.sum() * z.sum()
        return bool((squares - features * features).sign() <= 0)

    def support_bound(self, u: Matrix, error: Matrix) -> Vector:
        """h(u) = shift·u + √d ‖Π(gain ∘ u)‖, each part from above.

        shift·u: n products and sums, γ_{n+4} of the sizes, and |shift|·error. v = gain ∘ u: one rounding and
        the error, γ_4 with room; a mean of n entries, γ_{n+4} of their mean size, and its subtraction, γ_2.
        √d and the last product and sum: 4 units, γ_4.
        """
        features = u.shape[1]
        gain, shift = self.gains(features), self.shifts(features)
        moved = shift * u
        linear = moved.sum(axis=1) + gamma(features + 4) * np.abs(moved).sum(axis=1)
        linear += (np.abs(shift) * error).sum(axis=1) * (1 + gamma(features + 4))
        v = gain * u
        slack = np.abs(gain) * error + gamma(4) * np.abs(v) + TINY
        if self.removes_mean:  # removing the mean shrinks the slack, so it may stay
            slack = slack + gamma(features + 4) * np.abs(v).mean(axis=1, keepdims=True)
            v = v - v.mean(axis=1, keepdims=True)
            slack = slack + gamma(2) * np.abs(v)
        curved = math.sqrt(features) * (1 + 4 * UNIT) * (length_bounds(v) + length_bounds(slack))
        return np.asarray(linear + curved + gamma(4) * (np.abs(linear) + curved))

    def support_is_at_most(self, u: Dyadic, limit: Dyadic) -> bool:
        features = len(u.integers)
        v = self.scaled_rows(u)
        squares = (v @ v) * features
        if self.removes_mean:  # d‖Πv‖² = d‖v‖² − (Σv)²
            squares = squares - v.sum() * v.sum()
        return root_is_at_most(squares, limit - Dyadic.of(self.shifts(features)) @ u)


@final
class RMSNorm(NormSolid):
    """What an RMSNorm with this gain (and shift) can put out: Llama, Gemma, T5."""

    kind: ClassVar[str] = "rmsnorm"
    name: ClassVar[str] = "RMSNorm"


@final
class LayerNorm(NormSolid):
    """What a LayerNorm with this gain and shift can put out (z has mean 0): GPT-2, BERT, Marian."""

    kind: ClassVar[str] = "layernorm"
    name: ClassVar[str] = "LayerNorm"
    removes_mean: ClassVar[bool] = True
