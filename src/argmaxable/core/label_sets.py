"""Sets of labels as outputs of a head: exactly these labels are on, these are the top k, at least these are
on.

One shape covers all three. Each label asks for a gap above 0: σ_i (s_i(x) − θ_i), with σ_i = +1 inside the
set and −1 outside (*at least* asks nothing of the labels outside); or s_i(x) − s_j(x) for i inside and j
outside (*top*). The margin t* is the largest over the domain of the smallest gap: positive exactly when the
set can come out, strictly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from operator import index
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from argmaxable.core.arrays import Mask, Vector
from argmaxable.core.domain import Domain, from_hex, hex_of
from argmaxable.core.errors import InputError
from argmaxable.core.feasibility import Feasibility
from argmaxable.core.head import Facts
from argmaxable.core.labels import visible
from argmaxable.core.verdict import Certificate

Members = tuple[int, ...]
# Labels shown when a set is named in a sentence.
_MOST_SHOWN = 8


class SetKind(StrEnum):
    """What it means that a set comes out."""

    EXACTLY = "exactly"  # every label inside is above its threshold, every label outside below
    TOP = "top"  # every label inside scores above every label outside
    AT_LEAST = "at-least"  # every label inside is above its threshold


class SetMethod(StrEnum):
    """How the evidence about a set was found."""

    NO_CONDITION = "no condition"
    MEAN_DIRECTION = "mean direction"
    REFLECTION = "reflection"
    INTERIOR_POINT = "interior point"
    SIMPLEX = "exact simplex"
    NONE = "none"


@dataclass(frozen=True, eq=False)
class SetTest:
    """The kind of question, and the thresholds on the logits: one for all labels, or one each."""

    kind: SetKind
    thresholds: Vector

    def __init__(self, kind: SetKind | str = SetKind.EXACTLY, thresholds: ArrayLike = 0.0) -> None:
        try:
            chosen = SetKind(kind)
        except ValueError:
            raise InputError(f"'{kind}' is not a kind of set: choose one of {', '.join(SetKind)}.") from None
        values = _thresholds(thresholds)
        if chosen is SetKind.TOP and values.any():
            raise InputError("the top k are compared with each other: they have no thresholds.")
        object.__setattr__(self, "kind", chosen)
        object.__setattr__(self, "thresholds", values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SetTest) and self.as_record() == other.as_record()

    def __hash__(self) -> int:
        return hash((self.kind, self.thresholds.tobytes()))

    def require_labels(self, labels: int) -> None:
        """Raise InputError unless there is a threshold for each label, or one for all."""
        if self.thresholds.ndim and len(self.thresholds) != labels:
            raise InputError(
                f"{len(self.thresholds):,} thresholds for {labels:,} labels. Pass one each, or one number."
            )

    def of_labels(self, labels: int) -> Vector:
        """The threshold of each label."""
        return np.broadcast_to(self.thresholds, (labels,))

    def asks_nothing(self, members: Members, labels: int) -> bool:
        """Whether a set has no condition to meet, so that every input will do."""
        if self.kind is SetKind.TOP:
            return len(members) in (0, labels)
        return self.kind is SetKind.AT_LEAST and not members

    def as_record(self) -> dict[str, Any]:
        """Plain JSON values from which `from_record` rebuilds the test exactly."""
        return {"kind": self.kind.value, "thresholds": hex_of(self.thresholds)}

    @staticmethod
    def from_record(record: dict[str, Any]) -> SetTest:
        """Inverse of `as_record`; may raise KeyError, TypeError or ValueError."""
        return SetTest(SetKind(record["kind"]), from_hex(record["thresholds"]))


def _thresholds(values: ArrayLike) -> Vector:
    try:
        given = np.array(values)
        array = given.astype(np.float64, casting="unsafe" if given.dtype.kind in "biufO" else "safe")
    except (TypeError, ValueError) as error:
        raise InputError(f"thresholds are numbers, one for all labels or one each: {error}") from error
    if array.ndim > 1 or not np.isfinite(array).all():
        raise InputError("thresholds are finite numbers, one for all labels or one each.")
    array.flags.writeable = False
    return array


def logits_of(probabilities: ArrayLike) -> Vector:
    """Thresholds on the logits for thresholds on the probabilities: log(p / (1 − p)), rounded to float64."""
    array = np.array(probabilities, np.float64)
    if not ((array > 0) & (array < 1)).all():
        raise InputError("thresholds on probabilities are above 0 and below 1.")
    return np.asarray(np.log(array) - np.log1p(-array))


def as_members(labels: Iterable[int], classes: int) -> Members:
    """The set in ascending order; raises InputError for labels that the head does not have, or has twice."""
    try:
        ids = sorted(index(label) for label in labels)
    except TypeError as error:
        raise InputError(f"the labels of a set are given by their numbers: {error}.") from error
    stray = next((label for label in ids if not 0 <= label < classes), None)
    if stray is not None:
        raise InputError(f"label {stray} does not exist: the head has labels 0 to {classes - 1}.")
    twice = next((label for label, after in pairwise(ids) if label == after), None)
    if twice is not None:
        raise InputError(f"label {twice} occurs twice in a set.")
    return tuple(ids)


def is_inside(members: Members, labels: int) -> Mask:
    """Which labels belong to the set."""
    inside = np.zeros(labels, bool)
    inside[list(members)] = True
    return inside


@dataclass(frozen=True, slots=True, eq=False)
class SetClaim:
    """What is known about one set: bounds on its margin t*, and the evidence for both.

    A feasible set has a `point` z of the domain at which it comes out; an infeasible one a `certificate`,
    weights λ ≥ 0 on labels (see check/sets.py). `count` says how many examples have this set.
    """

    members: Members
    labels: tuple[str, ...]
    status: Feasibility
    lower: float = -math.inf
    upper: float = math.inf
    method: SetMethod = SetMethod.NONE
    point: Vector | None = field(default=None, repr=False)
    certificate: Certificate | None = None
    count: int = 1
    reason: str = ""

    def __repr__(self) -> str:
        return f"SetClaim({self.name()}: {self.status}, margin from {self.lower:.4g} to {self.upper:.4g})"

    @property
    def is_at_best_tied(self) -> bool:
        """Infeasible, but some input reaches a margin of 0: a score meets its threshold, or another one."""
        return self.status is Feasibility.INFEASIBLE and self.lower >= 0

    def name(self) -> str:
        """The set for people, its first labels at least."""
        return set_name(self.labels)


def set_name(labels: Sequence[str]) -> str:
    """A set of labels for people, its first labels at least."""
    shown = [visible(label) for label in labels[:_MOST_SHOWN]]
    more = len(labels) - len(shown)
    return "{" + ", ".join([*shown, *([f"… {more:,} more"] if more else [])]) + "}"


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelSets:
    """What was found about sets of labels of one head over one domain, in the order in which they were
    given."""

    facts: Facts
    domain: Domain
    test: SetTest
    claims: tuple[SetClaim, ...]
    seconds: float
    is_complete: bool

    def __repr__(self) -> str:
        counts = ", ".join(f"{len(self.having(status)):,} {status}" for status in Feasibility)
        return f"LabelSets({self.test.kind}, {counts} over {self.domain})"

    def having(self, status: Feasibility) -> tuple[SetClaim, ...]:
        """The sets with this status."""
        return tuple(claim for claim in self.claims if claim.status is status)

    @property
    def examples(self) -> int:
        """How many examples all sets together have."""
        return sum(claim.count for claim in self.claims)
