"""Which argmaxable classes are still the argmax of logits computed in bf16, fp16 or float32.

A verdict is about exact arithmetic. Here each argmaxable class is shown an input at which it leads by more
than the rounding errors; where none is found, it is argmaxable on paper only, or, when its rounded row
is unargmaxable, not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from argmaxable.check.checker import Checker
from argmaxable.compute.identical_rows import find_identical_rows
from argmaxable.core.verdict import Status, Verdict
from argmaxable.questions.argmax import verify
from argmaxable.questions.arithmetic.rounding import Machine
from argmaxable.search.ascent import ascend

if TYPE_CHECKING:
    from argmaxable.core.arrays import Ids, Matrix
    from argmaxable.core.result import Result
    from argmaxable.questions.arithmetic.formats import Float

# Each step is two products of the open classes with the head. Of 150 classes of ppocrv4 in bf16, 129 reach
# one unit in 80 steps; the Chebyshev centres of the others' regions have no more than these points.
_STEPS = 80


class Outcome(StrEnum):
    """What becomes of an argmaxable class in a machine's arithmetic: it leads by more than rounding errors
    somewhere; nowhere that was looked, so rounding decides; or its rounded row is unargmaxable."""

    SURVIVES = "survives"
    ON_PAPER_ONLY = "on paper only"
    UNARGMAXABLE = "unargmaxable"


@dataclass(frozen=True, slots=True)
class Fate:
    """An argmaxable class, and its best lead found in units of rounding error (above 1: survives)."""

    class_id: int
    label: str
    outcome: Outcome
    units: float


@dataclass(frozen=True, eq=False)
class Survival:
    """The argmaxable classes of a result in a number format.

    `merged` are the groups of classes whose rows and biases differ as stored and are the same once
    rounded: they tie in every logit. `improved` counts classes for which another input than the
    verdict's witness had to be found.
    """

    number: Float
    fates: tuple[Fate, ...]
    merged: tuple[tuple[int, ...], ...]
    improved: int

    def having(self, outcome: Outcome) -> tuple[Fate, ...]:
        """The classes with this outcome, the thinnest lead first."""
        found = (fate for fate in self.fates if fate.outcome is outcome)
        return tuple(sorted(found, key=lambda fate: fate.units))


def survival(result: Result, number: Float | str) -> Survival:
    """What becomes of the argmaxable classes of a result when logits are computed in that format.

    Witnesses that don't survive are improved first. That a class is on paper only says that no better input
    was found, not that there is none; that the rounded row of such a class is unargmaxable is proven.
    """
    result.domain.require_directions("computed arithmetic")
    machine = Machine(result.head, result.domain, number)
    verdicts = [verdict for verdict in result.verdicts if verdict.status is Status.ARGMAXABLE]
    classes = np.array([verdict.class_id for verdict in verdicts], np.intp)
    points = witness_points(Checker(result.head, result.domain, centre=result.centre), verdicts)
    units = machine.units(classes, points)
    weak = np.flatnonzero(~(units > 1))
    if len(weak):
        units[weak] = np.maximum(units[weak], _best_units(machine, classes[weak], points[weak]))
    left = np.flatnonzero(~(units > 1))
    unargmaxable = _unargmaxable(machine, classes[left])
    fates = tuple(
        Fate(verdict.class_id, verdict.label, _outcome(verdict.class_id, lead, unargmaxable), lead)
        for verdict, lead in zip(verdicts, units.tolist(), strict=True)
    )
    return Survival(machine.number, fates, _merged(result, machine), len(weak) - len(left))


def witness_points(checker: Checker, verdicts: Sequence[Verdict]) -> Matrix:
    """The witnesses of argmaxable verdicts as points z (n × features)."""
    points = np.empty((len(verdicts), checker.head.features))
    for k, verdict in enumerate(verdicts):
        assert verdict.witness is not None  # what makes it argmaxable
        points[k] = checker.point(verdict.class_id, verdict.witness)
    return points


def _outcome(class_id: int, units: float, unargmaxable: frozenset[int]) -> Outcome:
    if units > 1:
        return Outcome.SURVIVES
    return Outcome.UNARGMAXABLE if class_id in unargmaxable else Outcome.ON_PAPER_ONLY


def _best_units(machine: Machine, classes: Ids, points: Matrix) -> NDArray[np.float64]:
    def climb(where: Ids, z: Matrix, length: float) -> tuple[NDArray[np.float64], Matrix]:
        return machine.climb(classes[where], z, length)

    return ascend(climb, points, machine.domain.nearest, steps=_STEPS, enough=1.0)[1]


def _unargmaxable(machine: Machine, classes: Ids) -> frozenset[int]:
    """The classes whose rounded rows are unargmaxable, ties included."""
    if not len(classes):
        return frozenset()
    verdicts = verify(machine.head, machine.domain, only=classes.tolist()).unargmaxable
    return frozenset(verdict.class_id for verdict in verdicts)


def _merged(result: Result, machine: Machine) -> tuple[tuple[int, ...], ...]:
    before = find_identical_rows(result.head).tied_to
    groups = find_identical_rows(machine.head).ties.values()
    return tuple(group for group in groups if len(set(_origins(before, group))) > 1)


def _origins(tied_to: Ids, group: tuple[int, ...]) -> list[int]:
    """What each member was tied to before; itself where it was alone."""
    return [int(tied_to[member]) if tied_to[member] >= 0 else member for member in group]
