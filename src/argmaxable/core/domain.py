"""A domain: the feature vectors that can reach a head. A verdict is always about one of them.

Each domain is the image x = gain ∘ Πz + shift of a simple set of points z: a box, a ball, or the mixtures of
given vectors (Π removes the mean for LayerNorm, and is the identity elsewhere); core/reach.py has a matrix in
place of the gain. Witnesses are stored as z, so
that membership stays an exact test. Whatever depends on the kind of domain is one of its methods: a new kind
is one class (docs/architecture.md).

Floats here are always on the safe side: membership that is not certain is decided in integers, an error bound
is never too small, a support function h(u) = sup u·x never below the true one.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from argmaxable.core.arrays import Mask, Matrix, Vector
from argmaxable.core.errors import DomainError
from argmaxable.exact.dyadic import Dyadic
from argmaxable.exact.rounding import TINY, gamma, length_bounds

_HEXADECIMAL = re.compile(r"-?(0x[0-9a-f]+(\.[0-9a-f]*)?(p[+-]?[0-9]+)?|inf|nan)", re.ASCII)


class Domain(ABC):
    """A closed set of feature vectors."""

    kind: ClassVar[str]
    # Whether x is z itself: no gain, no shift, no mean removed.
    is_identity: ClassVar[bool] = True
    removes_mean: ClassVar[bool] = False
    # Whether z has an entry for each feature, so that directions of feature space are directions of z.
    has_features: ClassVar[bool] = True

    def __init_subclass__(cls) -> None:
        """A gain that nobody multiplies by would make verdicts wrong without a word."""
        super().__init_subclass__()
        moves = cls.gains is not Domain.gains or cls.shifts is not Domain.shifts or cls.removes_mean
        if cls.is_identity and moves:
            raise TypeError(f"{cls.__name__} maps z to another x: set is_identity = False.")

    # ------------------------------------------------------------------ in words and on disk

    @abstractmethod
    def require_features(self, features: int) -> None:
        """Raise DomainError unless the domain fits a head with that many features."""

    @abstractmethod
    def describe(self) -> str:
        """One word or phrase for people, e.g. "box ±100"."""

    @abstractmethod
    def in_words(self) -> str:
        """A sentence for people: which inputs of the head the verdicts are about."""

    @abstractmethod
    def scope(self) -> str:
        """What verdicts are about, to end a sentence with: "for features within ±100"; "" for all inputs."""

    def denial(self) -> str:
        """What an unargmaxable class can't do, in words, with the inputs that this is about."""
        where = self.scope()
        return f"can never be predicted {where}" if where else "can never be predicted, whatever the input"

    @abstractmethod
    def as_record(self) -> dict[str, Any]:
        """Plain JSON values from which `from_record` rebuilds the domain exactly."""

    @classmethod
    @abstractmethod
    def from_record(cls, record: dict[str, Any]) -> Self:
        """Inverse of `as_record`; may raise KeyError, TypeError, ValueError or DomainError."""

    def __str__(self) -> str:
        return self.describe()

    def require_directions(self, what: str) -> None:
        """Raise DomainError where z has no entry for each feature, which `what` relies on."""
        if not self.has_features:
            raise DomainError(f"{what} is not available over a {self.describe()}. Pass another domain.")

    # ------------------------------------------------------------------ points z

    def point_size(self, features: int) -> int:
        """How many entries a point z has."""
        return features

    @abstractmethod
    def contains(self, points: Matrix) -> Mask:
        """Which points z (n × point_size) belong to the domain; exact."""

    @abstractmethod
    def contains_exactly(self, z: Dyadic) -> bool:
        """Whether one point z belongs to the domain, which may be finer than float64."""

    def bounds(self, features: int) -> tuple[Vector, Vector]:
        """The box that holds z, lo and hi; infinite where z is not limited."""
        return np.full(features, -math.inf), np.full(features, math.inf)

    def ball_radius(self, features: int) -> float:
        """The radius of the ball that z can't leave; infinite where there is none."""
        return math.inf

    @property
    def is_bounded(self) -> bool:
        """Whether z has an end in every direction."""
        return True

    @property
    def has_origin(self) -> bool:
        """Whether z = 0 belongs to the domain, so that directions can be scaled at will."""
        return True

    @property
    def surrounds_origin(self) -> bool:
        """Whether z = 0 is well inside: every direction has room."""
        return self.has_origin

    def nearest(self, points: Matrix) -> Matrix:
        """Points z moved into the domain, in floats."""
        return points

    def own_points(self, rows: Matrix, exponents: NDArray[np.intp]) -> Matrix:
        """Where rows (n × features) point to: z = 2^exponent · gain ∘ row, moved into a box.

        Proofs refer to these by their exponents, so every machine must find the same floats.
        """
        if not self.is_identity:
            rows = self.gains(rows.shape[1]) * rows
        return self._clip(np.ldexp(rows, exponents[:, None]))

    def _clip(self, points: Matrix) -> Matrix:
        return points

    # ------------------------------------------------------------------ x = gain ∘ Πz + shift

    def gains(self, features: int) -> Vector:
        return np.ones(features)

    def shifts(self, features: int) -> Vector:
        return np.zeros(features)

    def fixed_part(self, features: int) -> Vector:
        """The part of x that is the same at every point: a shift, or features without width."""
        return self.shifts(features)

    def fixed_part_exactly(self, features: int) -> Dyadic:
        """The same in integers, which may be finer than float64."""
        return Dyadic.of(self.fixed_part(features))

    def free_features(self, features: int) -> Mask:
        """The entries of z that can vary."""
        return np.ones(features, bool)

    def rows_seen(self, rows: Matrix) -> Matrix:
        """Rows (n × features) as z sees them: Π(gain ∘ row), in floats."""
        if not self.is_identity:
            rows = rows * self.gains(rows.shape[1])
        return rows - rows.mean(axis=1, keepdims=True) if self.removes_mean else rows

    def corners_seen(self) -> Matrix | None:
        """Vectors, along `rows_seen`, whose mixtures are the domain; None for a box or a ball."""
        return None

    def corner_inputs(self) -> Matrix | None:
        """The same vectors as they are (n × features)."""
        return None

    def scaled_rows(self, rows: Dyadic) -> Dyadic:
        """gain ∘ row, exactly; the mean is left in."""
        if self.is_identity or not self.has_features:
            return rows
        return rows * Dyadic.of(self.gains(rows.integers.shape[-1]))

    def rows_seen_exactly(self, rows: Dyadic) -> Dyadic:
        """Rows as z sees them, exactly; the mean is left in. For domains of z in a box or a ball."""
        return self.scaled_rows(rows)

    def place(self, points: Matrix) -> tuple[Matrix, Matrix]:
        """Feature vectors x of the points z, and a bound on the error of each coordinate.

        A mean rounds n times, by γ_n of the mean size; the subtraction, the gain and the shift once each:
        γ_{n+8} of |gain| (|z| + mean|z|) + |shift| covers them. What underflows, at most TINY for each term
        of the mean, is magnified by the gain.
        """
        if self.is_identity:
            return points, np.zeros_like(points)
        features = points.shape[1]
        gain, shift = self.gains(features), self.shifts(features)
        spread = np.abs(points)
        centred = points
        if self.removes_mean:
            centred = points - points.mean(axis=1, keepdims=True)
            spread = spread + spread.mean(axis=1, keepdims=True)
        x = gain * centred + shift
        error = gamma(features + 8) * (np.abs(gain) * spread + np.abs(shift))
        return x, error + features * TINY * (1 + np.abs(gain))

    def place_exactly(self, point: Vector | Dyadic) -> tuple[Dyadic, int]:
        """(X, q) with x = X / q for one point z, in integers."""
        z = as_dyadic(point)
        if self.is_identity:
            return z, 1
        features = len(z.integers)
        gain, shift = Dyadic.of(self.gains(features)), Dyadic.of(self.shifts(features))
        if self.removes_mean:
            return gain * (z * features - z.sum()) + shift * features, features
        return gain * z + shift, 1

    # ------------------------------------------------------------------ the support function

    @abstractmethod
    def support_bound(self, u: Matrix, error: Matrix) -> Vector:
        """Upper bounds on h over every direction within `error` of the rows of u (n × features)."""

    @abstractmethod
    def support_is_at_most(self, u: Dyadic, limit: Dyadic) -> bool:
        """Whether h(u) ≤ limit, exactly."""

    def support_exactly(self, u: Dyadic) -> Dyadic | None:
        """h(u); None where it is infinite or need not be a rational number."""
        return None


# ---------------------------------------------------------------------- arithmetic that several kinds share


def as_dyadic(point: Vector | Dyadic) -> Dyadic:
    return point if isinstance(point, Dyadic) else Dyadic.of(point)


def contained_in_ball(points: Matrix, limit: float, is_inside: Callable[[Dyadic], bool]) -> Mask:
    """Which points have ‖z‖² ≤ limit surely in floats, or else as `is_inside` says, exactly.

    A sum of n rounded squares is off by γ_n of itself, its product and the bounds by a few roundings more.
    """
    finite = np.isfinite(points).all(axis=1)
    features = points.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        squares = (points * points).sum(axis=1)
    surely = squares * (1 + gamma(features + 4)) + features * TINY <= limit
    surely &= np.isfinite(squares)
    for row in np.flatnonzero(finite & ~surely):
        surely[row] = is_inside(Dyadic.of(points[row]))
    return np.asarray(finite & surely)


def ball_support_bound(radius: float, u: Matrix, error: Matrix) -> Vector:
    """radius · ‖u‖ from above: the sum and the product round within the room of `length_bounds`, and the
    product may underflow."""
    return radius * length_bounds(np.abs(u) + error) + TINY


def root_is_at_most(square: Dyadic, limit: Dyadic) -> bool:
    """Whether √square ≤ limit, exactly."""
    return bool(limit.sign() >= 0) and bool((square - limit * limit).sign() <= 0)


# ---------------------------------------------------------------------- reading what a domain is made of


def finite_vector(values: ArrayLike, name: str) -> Vector:
    """A number or a vector of finite numbers, read-only; raises DomainError."""
    array = vector_of(values, name)
    if not np.isfinite(array).all():
        raise DomainError(f"{name} holds NaN or infinite values.")
    return array


def vector_of(values: ArrayLike, name: str) -> Vector:
    """A number or a vector of numbers, read-only; raises DomainError."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DomainError(f"{name} must be a number or a vector of numbers: {error}") from error
    if array.ndim > 1:
        raise DomainError(f"{name} must be a number or a vector, found shape {array.shape}.")
    array.flags.writeable = False
    return array


def require_length(array: Vector, features: int, what: str) -> None:
    """Raise DomainError unless a vector has an entry for each feature; a single number fits all."""
    if array.ndim and len(array) != features:
        raise DomainError(f"{what} has {len(array)} entries but the head has {features} features.")


def hex_of(array: Vector) -> str | list[str]:
    """Hexadecimal floats survive JSON bit for bit, infinities included."""
    return float(array).hex() if array.ndim == 0 else [float(value).hex() for value in array]


def from_hex(record: Any) -> ArrayLike:
    """Inverse of `hex_of`."""
    if isinstance(record, str):
        return float_of_hex(record)
    if not isinstance(record, list):
        raise TypeError(f"{record!r} is not a list")
    return [float_of_hex(value) for value in record]


def float_of_hex(text: Any) -> float:
    """A hexadecimal float; raises ValueError for anything that could be read as a decimal number as well,
    such as "100", which is 256."""
    if not isinstance(text, str) or not _HEXADECIMAL.fullmatch(text):
        raise ValueError(f"{text!r:.40} is not a hexadecimal float such as 0x1.9p+6, or inf")
    return float.fromhex(text)
