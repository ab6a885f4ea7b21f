"""Domains: the feature vectors that can reach a head. A verdict is always about one of them.

Each domain is the image x = gain ∘ z + shift of a simple set of z: a box, a ball, or all vectors;
LayerNorm also removes z's mean. Witnesses are stored as z, so that membership stays an exact test.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from argmaxable.core.arrays import Vector
from argmaxable.core.errors import DomainError

_FILE_FORMAT = "argmaxable domain 1"


class Domain(ABC):
    """A closed set of feature vectors with a name that the command line can read back."""

    @abstractmethod
    def require_features(self, features: int) -> None:
        """Raise DomainError unless the domain fits a head with so many features."""

    @abstractmethod
    def describe(self) -> str:
        """One word or phrase for people, e.g. "box ±100"."""

    @abstractmethod
    def as_record(self) -> dict[str, Any]:
        """Plain JSON values from which `domain_from_record` rebuilds the domain exactly."""

    def __str__(self) -> str:
        return self.describe()


@final
@dataclass(frozen=True)
class Everywhere(Domain):
    """All of feature space: the pure theory of Cover 1967 and Demeter 2020."""

    def require_features(self, features: int) -> None:
        return None

    def describe(self) -> str:
        return "everywhere"

    def as_record(self) -> dict[str, Any]:
        return {"kind": "everywhere"}


@final
@dataclass(frozen=True, eq=False)
class Box(Domain):
    """lo ≤ x ≤ hi, with one bound for all features or one each; bounds may be infinite."""

    lo: Vector
    hi: Vector

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
            _require_length(bound, features, f"the box's {name}")

    def bounds(self, features: int) -> tuple[Vector, Vector]:
        """lo and hi as vectors of that many features."""
        return np.broadcast_to(self.lo, (features,)), np.broadcast_to(self.hi, (features,))

    def describe(self) -> str:
        if self.lo.ndim or self.hi.ndim:
            return "box with a range for each feature"
        if self.lo == -self.hi:
            return f"box ±{float(self.hi):g}"
        return f"box [{float(self.lo):g}, {float(self.hi):g}]"

    def as_record(self) -> dict[str, Any]:
        return {"kind": "box", "lo": _record(self.lo), "hi": _record(self.hi)}


@final
@dataclass(frozen=True)
class Ball(Domain):
    """‖x‖₂ ≤ radius."""

    radius: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.radius) and self.radius > 0):
            raise DomainError(f"a ball needs a finite radius above 0, found {self.radius}.")
        object.__setattr__(self, "radius", float(self.radius))

    def require_features(self, features: int) -> None:
        return None

    def describe(self) -> str:
        return f"ball of radius {self.radius:g}"

    def as_record(self) -> dict[str, Any]:
        return {"kind": "ball", "radius": self.radius.hex()}


@dataclass(frozen=True, eq=False)
class _NormSolid(Domain):
    """x = gain ∘ z + shift with ‖z‖₂ ≤ √features; ε > 0 inside a norm makes the solid exact."""

    gain: Vector
    shift: Vector

    kind = ""

    def __init__(self, gain: ArrayLike, shift: ArrayLike = 0.0) -> None:
        object.__setattr__(self, "gain", _finite(gain, f"{self.kind} gain"))
        object.__setattr__(self, "shift", _finite(shift, f"{self.kind} shift"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _NormSolid) and self.as_record() == other.as_record()

    def __hash__(self) -> int:
        return hash((self.kind, self.gain.tobytes(), self.shift.tobytes()))

    def require_features(self, features: int) -> None:
        _require_length(self.gain, features, f"the {self.kind} gain")
        _require_length(self.shift, features, f"the {self.kind} shift")

    def gains(self, features: int) -> Vector:
        return np.broadcast_to(self.gain, (features,))

    def shifts(self, features: int) -> Vector:
        return np.broadcast_to(self.shift, (features,))

    def describe(self) -> str:
        return f"{self.kind} solid"

    def as_record(self) -> dict[str, Any]:
        return {"kind": self.kind.lower(), "gain": _record(self.gain), "shift": _record(self.shift)}


@final
class RMSNorm(_NormSolid):
    """What an RMSNorm with this gain (and shift) can put out: Llama, Gemma, T5."""

    kind = "RMSNorm"


@final
class LayerNorm(_NormSolid):
    """What a LayerNorm with this gain and shift can put out (z has mean 0): GPT-2, BERT, Marian."""

    kind = "LayerNorm"


NormSolid = RMSNorm | LayerNorm


def parse_domain(text: str) -> Domain:
    """The domain a user wrote: everywhere, box:100, box:LO:HI, ball:R, or file:PATH for one that a file
    has."""
    kind, *numbers = text.strip().split(":")
    if kind == "file":
        return read_domain(text.strip().removeprefix("file:"))
    try:
        values = [float(number) for number in numbers]
    except ValueError:
        values = []
    if kind == "everywhere" and not numbers:
        return Everywhere()
    if kind == "box" and len(values) == 1:
        if not values[0] > 0:
            raise DomainError(f"'{text}': a box ±R needs R above 0.")
        return Box(-values[0], values[0])
    if kind == "box" and len(values) == 2:
        return Box(values[0], values[1])
    if kind == "ball" and len(values) == 1:
        return Ball(values[0])
    raise DomainError(
        f"'{text}' is no domain. Write everywhere, box:100 (±100), box:0:inf (lo:hi), ball:10 or file:PATH."
    )


def write_domain(path: str | Path, domain: Domain, about: Mapping[str, Any] | None = None) -> None:
    """Write a domain file: JSON with the domain's record, and whatever else is worth knowing about it."""
    content = {"format": _FILE_FORMAT, "domain": domain.as_record(), "about": dict(about or {})}
    Path(path).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read_domain(path: str | Path) -> Domain:
    """The domain of a file that `write_domain` wrote. Raises DomainError on anything else."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise DomainError(f"domain file {path} can't be read ({error.strerror or error}).") from error
    except (ValueError, RecursionError) as error:
        raise DomainError(f"domain file {path} is no JSON ({error}).") from error
    if not isinstance(content, dict) or content.get("format") != _FILE_FORMAT:
        raise DomainError(f'{path} is no domain file: its "format" should be "{_FILE_FORMAT}".')
    return domain_from_record(content.get("domain"))


def domain_from_record(record: Any) -> Domain:
    """Inverse of `Domain.as_record`; raises DomainError on anything else."""
    try:
        kind = record["kind"]
        if kind == "everywhere":
            return Everywhere()
        if kind == "box":
            return Box(_from_record(record["lo"]), _from_record(record["hi"]))
        if kind == "ball":
            return Ball(float.fromhex(record["radius"]))
        if kind == "rmsnorm":
            return RMSNorm(_from_record(record["gain"]), _from_record(record["shift"]))
        if kind == "layernorm":
            return LayerNorm(_from_record(record["gain"]), _from_record(record["shift"]))
    except DomainError:  # says it better
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DomainError(f"unreadable domain record: {error!r}") from error
    raise DomainError(f"unknown kind of domain: {kind!r}.")


def _bound(values: ArrayLike, name: str) -> Vector:
    array = _vector(values, f"box {name}")
    if np.isnan(array).any():
        raise DomainError(f"box {name} holds NaN.")
    return array


def _finite(values: ArrayLike, name: str) -> Vector:
    array = _vector(values, name)
    if not np.isfinite(array).all():
        raise DomainError(f"{name} holds NaN or infinite values.")
    return array


def _vector(values: ArrayLike, name: str) -> Vector:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DomainError(f"{name} must be a number or a vector of numbers: {error}") from error
    if array.ndim > 1:
        raise DomainError(f"{name} must be a number or a vector, found shape {array.shape}.")
    array.flags.writeable = False
    return array


def _require_length(array: Vector, features: int, what: str) -> None:
    if array.ndim and len(array) != features:
        raise DomainError(f"{what} has {len(array)} entries but the head has {features} features.")


def _record(array: Vector) -> str | list[str]:
    # Hexadecimal floats survive JSON bit for bit, infinities included.
    return float(array).hex() if array.ndim == 0 else [float(value).hex() for value in array]


def _from_record(record: str | list[str]) -> ArrayLike:
    if isinstance(record, str):
        return float.fromhex(record)
    if not isinstance(record, list):
        raise TypeError(f"{record!r} is no list")
    return [float.fromhex(value) for value in record]
