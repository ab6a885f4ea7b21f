"""Verdicts and their evidence: what was decided about a class, and why anyone may believe it.

A witness is a point of the domain: the class's gap to its best rival there bounds the margin t*
from below. A certificate is a set of weights on other classes: weak duality bounds t* from above.
A positive lower bound makes a class argmaxable, an upper bound of zero or less unargmaxable.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.labels import visible


class Status(StrEnum):
    """What is proven about a class over its domain."""

    ARGMAXABLE = "argmaxable"
    UNARGMAXABLE = "unargmaxable"
    UNDECIDED = "undecided"


class Strength(StrEnum):
    """Arithmetic in which the evidence was checked; each is a proof, cheapest first."""

    FLOAT32 = "float32"  # rounded, with a proven bound on the rounding error
    FLOAT64 = "float64"  # the same in double precision
    INTERVAL = "interval"  # exact weights exist near the stored ones, by a verified inverse
    EXACT = "exact"  # integers and rationals


class Method(StrEnum):
    """How the evidence was found."""

    ONLY_CLASS = "only class"
    TWIN = "twin"
    OWN_DIRECTION = "own direction"
    CORNER = "corner"
    REFLECTION = "reflection"
    INTERIOR_POINT = "interior point"
    TRANSFER = "transfer"
    SHARED_ROWS = "shared rows"
    ONE_RIVAL = "one rival"
    SIMPLEX = "exact simplex"
    CHEBYSHEV = "chebyshev"
    NONE = "none"


class Algorithm(StrEnum):
    """Which methods to use: all of them, or one alone to see how far it gets."""

    AUTO = "auto"
    OWN_DIRECTION = "own-direction"
    REFLECTION = "reflection"
    INTERIOR_POINT = "interior-point"
    CHEBYSHEV = "chebyshev"


@dataclass(frozen=True, slots=True, eq=False)
class OwnDirection:
    """The witness z = 2^exponent · gain ∘ (w_c − centre), clipped to a box; rebuilt, not stored."""

    exponent: int


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """A witness stored as such: the vector z of the domain (see domain.py), of float64."""

    values: NDArray[np.float64]

    def __repr__(self) -> str:
        return f"Point({self.values.size} features)"


@dataclass(frozen=True, slots=True, eq=False)
class FinePoint:
    """A witness that float64 is too coarse for: z = integers · 2^exponent."""

    integers: tuple[int, ...]
    exponent: int

    def __repr__(self) -> str:
        return f"FinePoint({len(self.integers)} features, in steps of 2^{self.exponent})"

    @property
    def values(self) -> NDArray[np.float64]:
        """The point in float64, rounded: near the witness, but not one."""
        step = Fraction(2) ** self.exponent
        return np.array([float(number * step) for number in self.integers])


Witness = OwnDirection | Point | FinePoint


@dataclass(frozen=True, slots=True, eq=False)
class Certificate:
    """Non-negative weights on classes other than the one they speak about.

    With `basis` = 0 the weights are meant literally. Otherwise the weights of the first `basis`
    classes are approximations of the exact solution of Σλ = 1 and u_j = 0 for every feature j in
    `coordinates` (None: every feature), the other weights kept; u = Σ λ_i (w_c − w_i). A basis larger
    than the number of equations has many solutions: one of them, near the stored weights, is meant.

    With `whole` nothing is to be solved for: these whole numbers, one for each class, are the weights up to a
    common factor, and the other ones and the basis do not count.
    """

    classes: NDArray[np.intp]
    weights: NDArray[np.float64]
    basis: int = 0
    coordinates: NDArray[np.intp] | None = None
    whole: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        # Sums in another precision would round more than the checker's bounds allow for.
        object.__setattr__(self, "classes", np.asarray(self.classes, np.intp))
        object.__setattr__(self, "weights", np.asarray(self.weights, np.float64))

    def __repr__(self) -> str:
        solved = f", {self.basis} solved for exactly" if self.basis and not self.whole else ""
        return f"Certificate(weights on {len(self.classes)} classes{solved})"


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What is known about one class: status, bounds on its margin, and the evidence for both.

    `ahead` says how far off an unargmaxable class is, for people to sort by: how many classes score higher
    than it in its own direction (see search/own_direction.py). Exact margins cost a solve each, and are 0 for
    all such classes of a head without bias.
    """

    class_id: int
    label: str
    status: Status
    lower: float
    upper: float
    method: Method
    strength: Strength | None
    witness: Witness | None = None
    certificate: Certificate | None = None
    tie_group: tuple[int, ...] = ()
    steps: int = 0
    rows: int = 0
    seconds: float = 0.0
    radius: float | None = None
    reason: str = ""
    ahead: int | None = None

    def __repr__(self) -> str:
        proof = f"{self.method}, {self.strength}" if self.strength else self.reason or "no evidence"
        bounds = f"margin from {self.lower:.4g} to {self.upper:.4g}"
        return f"Verdict({self.class_id} {visible(self.label[:40])}: {self.status}, {bounds}, {proof})"

    @property
    def tied_with(self) -> tuple[int, ...]:
        """The other classes with the same weights and bias (the group is shared: it may be large)."""
        return tuple(member for member in self.tie_group if member != self.class_id)

    @property
    def is_tied(self) -> bool:
        """Unargmaxable for no other reason than classes with the same weights and bias."""
        return bool(self.tie_group) and self.method is Method.TWIN and self.lower >= 0


def farthest_first(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Unargmaxable classes with most classes ahead of them first; where that is not known, and of ties,
    in class order at the end."""
    return sorted(
        verdicts, key=lambda verdict: (-1 if verdict.ahead is None else -verdict.ahead - 2, verdict.class_id)
    )


def status_of(lower: float, upper: float) -> Status:
    """The status that proven bounds on the margin leave."""
    if lower > 0:
        return Status.ARGMAXABLE
    return Status.UNARGMAXABLE if upper <= 0 else Status.UNDECIDED
