"""Ceilings as data: an interval around the largest probability of each class, with evidence for both ends.
And whether the class can ever enter the nucleus of top-p sampling.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from argmaxable.core.arrays import Vector
from argmaxable.core.domain import Domain
from argmaxable.core.head import Facts
from argmaxable.core.verdict import Certificate


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Weights λ on other classes that bound the class's margin by `margin`: with their entropy H its
    probability is at most 1/(1 + exp(H − margin/T)) at every input."""

    certificate: Certificate
    margin: float


@dataclass(frozen=True, slots=True, eq=False)
class Ceiling:
    """The largest probability of a class over the domain is between `lower` and `upper`.

    `point` is a z of the domain where it is at least `lower`; `upper` is proven by the tangent there or,
    where there is one, by the `mixture`. An upper bound of 1 needs no evidence.
    """

    class_id: int
    label: str
    lower: float
    upper: float
    point: Vector | None = field(default=None, repr=False)
    mixture: Mixture | None = None
    steps: int = 0

    @property
    def gap(self) -> float:
        """How far the two ends are apart."""
        return self.upper - self.lower

    def as_record(self) -> dict[str, Any]:
        """The claim without its evidence, as plain JSON values."""
        return {"class": self.class_id, "label": self.label, "lower": self.lower, "upper": self.upper}


@dataclass(frozen=True, eq=False, kw_only=True)
class Ceilings:
    """The ceilings of the wanted classes of a head over a domain, at a temperature of the softmax.

    `is_complete` is False after an interruption or a time limit: what was proven before stands.
    """

    facts: Facts
    domain: Domain
    temperature: float
    tolerance: float
    classes: tuple[Ceiling, ...]
    seconds: float
    is_complete: bool = True

    def __repr__(self) -> str:
        end = "" if self.is_complete else ", incomplete"
        return f"Ceilings({len(self.classes):,} classes over {self.domain}, {self.seconds:.1f} s{end})"

    @property
    def widest(self) -> float:
        """The largest gap between the two ends of a ceiling."""
        return max((ceiling.gap for ceiling in self.classes), default=0.0)

    @property
    def open(self) -> tuple[Ceiling, ...]:
        """Those whose two ends are farther apart than was asked for."""
        return tuple(ceiling for ceiling in self.classes if ceiling.gap > self.tolerance)

    def lowest(self) -> tuple[Ceiling, ...]:
        """All ceilings, the lowest first."""
        return tuple(sorted(self.classes, key=lambda ceiling: (ceiling.upper, ceiling.lower)))


class Entry(StrEnum):
    """Whether a class can be in the nucleus at any input."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, eq=False)
class Membership:
    """The answer for one class: yes at `point`, where the classes at least as likely have a mass of at most
    `mass` (the least that was found, also where it is not enough)."""

    class_id: int
    label: str
    entry: Entry
    mass: float
    point: Vector | None


@dataclass(frozen=True, eq=False, kw_only=True)
class Nucleus:
    """The answers for all classes with a ceiling, for one p."""

    top_p: float
    members: tuple[Membership, ...]

    def having(self, entry: Entry) -> tuple[Membership, ...]:
        """The classes with this answer."""
        return tuple(member for member in self.members if member.entry is entry)


@dataclass(frozen=True, slots=True, eq=False)
class CeilingClaim:
    """What is stated about the probability of one class: its ceiling, perhaps its place in the nucleus."""

    ceiling: Ceiling
    membership: Membership | None = None

    @property
    def class_id(self) -> int:
        return self.ceiling.class_id

    @property
    def label(self) -> str:
        return self.ceiling.label

    @property
    def entry(self) -> Entry | None:
        """The answer about the nucleus, if one is given."""
        return None if self.membership is None else self.membership.entry

    @property
    def entry_point(self) -> Vector | None:
        """Where the class enters the nucleus, if such a point is given."""
        return None if self.membership is None else self.membership.point
