"""Boxes of feature vectors, and all of feature space."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike

from argmaxable.core.arrays import Mask, Matrix, Vector
from argmaxable.core.domain import Domain, from_hex, hex_of, require_length, vector_of
from argmaxable.core.errors import DomainError
from argmaxable.exact.dyadic import Dyadic
from argmaxable.exact.rounding import TINY, gamma


@final
@dataclass(frozen=True)
class Everywhere(Domain):
    """All of feature space: the pure theory of Cover 1967 and Demeter 2020."""

    kind: ClassVar[str] = "everywhere"

    def require_features(self, features: int) -> None:
        return None

    def describe(self) -> str:
        return "everywhere"

    def in_words(self) -> str:
        return "The head may receive any feature vector, however large."

    def scope(self) -> str:
        return ""

    def as_record(self) -> dict[str, Any]:
        return {"kind": self.kind}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Self:
        return cls()

    @property
    def is_bounded(self) -> bool:
        return False

    def contains(self, points: Matrix) -> Mask:
        return np.asarray(np.isfinite(points).all(axis=1))

    def contains_exactly(self, z: Dyadic) -> bool:
        return True

    def support_bound(self, u: Matrix, error: Matrix) -> Vector:
        return np.where(u.any(axis=1) | error.any(axis=1), math.inf, 0.0)

    def support_is_at_most(self, u: Dyadic, limit: Dyadic) -> bool:
        return not u.sign().any() and bool(limit.sign() >= 0)


@final
@dataclass(frozen=True, eq=False)
class Box(Domain):
    """lo ≤ x ≤ hi, with one bound for all features or one each; bounds may be infinite."""

    lo: Vector
    hi: Vector

    kind: ClassVar[str] = "box"

    def __init__(self, lo: ArrayLike, hi: ArrayLike) -> None:
        low, high = _bound(lo, "lo"), _bound(hi, "hi")
        if low.ndim and high.ndim and len(low) != len(high):
            raise DomainError(f"box bounds differ in length: lo has {len(low)}, hi has {len(high)}.")
        empty = np.atleast_1d((low > high) | (low == math.inf) | (high == -math.inf))
        if empty.any():
            first = int(np.argmax(empty))
            raise DomainError(
                f"the box is empty: lo = {np.broadcast_to(low, empty.shape)[first]} > "
                f"hi = {np.broadcast_to(high, empty.shape)[first]} (feature {first}). Swap them?"
            )
        object.__setattr__(self, "lo", low)
        object.__setattr__(self, "hi", high)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Box) and self.as_record() == other.as_record()

    def __hash__(self) -> int:
        return hash((self.lo.tobytes(), self.hi.tobytes()))

    def require_features(self, features: int) -> None:
        for name, bound in (("lo", self.lo), ("hi", self.hi)):
            require_length(bound, features, f"the box's {name}")

    def describe(self) -> str:
        if self.lo.ndim or self.hi.ndim:
            return "box with a range for each feature"
        if self.lo == -self.hi:
            return f"box ±{float(self.hi):g}"
        return f"box [{float(self.lo):g}, {float(self.hi):g}]"

    def in_words(self) -> str:
        if self.lo.ndim or self.hi.ndim:
            return "Each feature has its own range, and may take any value in it."
        lo, hi = (f"{float(bound):g}".replace("-", "−") for bound in (self.lo, self.hi))
        limit = f" from {lo} to {hi}"
        if lo == "−inf":
            limit = "" if hi == "inf" else f" up to {hi}"
        elif hi == "inf":
            limit = f" from {lo} upwards"
        return f"Each feature may take any value{limit}."

    def scope(self) -> str:
        if self.lo.ndim or self.hi.ndim:
            return "for features within the ranges of the domain"
        lo, hi = (f"{float(bound):g}".replace("-", "−") for bound in (self.lo, self.hi))
        if self.lo == -self.hi:
            return "" if hi == "inf" else f"for features within ±{hi}"
        if lo == "−inf":
            return f"for features up to {hi}"
        return f"for features from {lo} upwards" if hi == "inf" else f"for features from {lo} to {hi}"

    def as_record(self) -> dict[str, Any]:
        return {"kind": self.kind, "lo": hex_of(self.lo), "hi": hex_of(self.hi)}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Self:
        return cls(from_hex(record["lo"]), from_hex(record["hi"]))

    def bounds(self, features: int) -> tuple[Vector, Vector]:
        return np.broadcast_to(self.lo, (features,)), np.broadcast_to(self.hi, (features,))

    @property
    def is_bounded(self) -> bool:
        return bool(np.isfinite(self.lo).all() and np.isfinite(self.hi).all())

    @property
    def has_origin(self) -> bool:
        return bool((self.lo <= 0).all() and (self.hi >= 0).all())

    @property
    def surrounds_origin(self) -> bool:
        return bool((self.lo < 0).all() and (self.hi > 0).all())

    def fixed_part(self, features: int) -> Vector:
        lo, hi = self.bounds(features)
        return np.where(lo == hi, lo, 0.0)

    def free_features(self, features: int) -> Mask:
        lo, hi = self.bounds(features)
        return np.asarray(lo < hi)

    def contains(self, points: Matrix) -> Mask:
        inside = ((points >= self.lo) & (points <= self.hi)).all(axis=1)
        return np.asarray(np.isfinite(points).all(axis=1) & inside)

    def contains_exactly(self, z: Dyadic) -> bool:
        lo, hi = self.bounds(len(z.integers))
        limited, ended = np.isfinite(lo), np.isfinite(hi)
        above = (z[limited] - Dyadic.of(lo[limited])).sign() >= 0
        below = (z[ended] - Dyadic.of(hi[ended])).sign() <= 0
        return bool(above.all() and below.all())

    def nearest(self, points: Matrix) -> Matrix:
        return self._clip(points)

    def _clip(self, points: Matrix) -> Matrix:
        return np.asarray(np.clip(points, self.lo, self.hi))

    def support_bound(self, u: Matrix, error: Matrix) -> Vector:
        """Σ max(lo·v, hi·v) is convex in v, so over u ± error it is largest at one of the two ends.

        An end's difference and product round once each, the sum n − 1 times: γ_{n+4} of all sizes.
        """
        features = u.shape[1]
        terms = np.maximum(self._terms(u - error), self._terms(u + error))
        slack = gamma(features + 4) * np.abs(terms).sum(axis=1) + features * TINY
        return np.asarray(terms.sum(axis=1) + slack)

    def _terms(self, u: Matrix) -> Matrix:
        lo, hi = self.bounds(u.shape[1])
        with np.errstate(invalid="ignore", over="ignore"):
            terms = np.maximum(hi * u, lo * u)
        # 0·∞ counts as 0: a direction that does not move in a feature is not rewarded for it.
        return terms if self.is_bounded else np.where(u == 0, 0.0, terms)

    def support_is_at_most(self, u: Dyadic, limit: Dyadic) -> bool:
        value = self.support_exactly(u)
        return value is not None and bool((value - limit).sign() <= 0)

    def support_exactly(self, u: Dyadic) -> Dyadic | None:
        lo, hi = self.bounds(len(u.integers))
        sign = u.sign()
        bound = np.where(sign > 0, hi, np.where(sign < 0, lo, 0.0))
        return u @ Dyadic.of(bound) if np.isfinite(bound).all() else None


def _bound(values: ArrayLike, name: str) -> Vector:
    array = vector_of(values, f"box {name}")
    if np.isnan(array).any():
        raise DomainError(f"box {name} holds NaN.")
    return array
