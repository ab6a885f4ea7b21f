"""The settled classes of a run: which classes are settled so far, how, and by what evidence.

Only checked evidence is entered. Settled classes become verdicts as they are collected, the others
at the end or at an interruption.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from argmaxable.check.checker import Bound, Checker, require, rival_certificate
from argmaxable.core.verdict import (
    Certificate,
    FinePoint,
    Method,
    OwnDirection,
    Point,
    Status,
    Strength,
    Verdict,
    Witness,
    status_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from argmaxable.check.witnesses import Gaps
    from argmaxable.compute.identical_rows import IdenticalRows
    from argmaxable.core.arrays import Ids, Mask

_STRENGTHS = list(Strength)
_ALL = np.ones(1)
_ALL.flags.writeable = False


@dataclass(slots=True)
class ClassRecord:
    """What is known about one class."""

    lower: float = -math.inf
    upper: float = math.inf
    method: Method = Method.NONE
    strength: Strength | None = None
    witness: Witness | None = None
    certificate: Certificate | None = None
    steps: int = 0
    rows: int = 0
    seconds: float = 0.0
    radius: float | None = None
    reason: str = "not reached"


@dataclass(eq=False)
class SettledClasses:
    """Entries of all wanted classes; `open` marks those still to be settled.

    `known` holds verdicts of an earlier part of the run; they are taken over as they are.
    """

    checker: Checker
    twins: IdenticalRows
    wanted: Ids
    known: Mapping[int, Verdict] = field(default_factory=dict)
    entries: dict[int, ClassRecord] = field(default_factory=dict)
    open: Mask = field(init=False)
    argmaxable: int = 0
    unargmaxable: int = 0
    _stands_for: dict[int, list[int]] = field(default_factory=dict)
    _settled: list[int] = field(default_factory=list)
    _built: dict[int, Verdict] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Open are the wanted classes, each by the twin that stands for it."""
        self._built = dict(self.known)
        left = np.array(
            [class_id for class_id in self.wanted.tolist() if class_id not in self.known], np.intp
        )
        beaten_by = self.twins.beaten_by[left]
        self.open = np.zeros(self.checker.head.classes, bool)
        self.open[np.where(beaten_by >= 0, beaten_by, left)] = True
        self.entries = {int(class_id): ClassRecord() for class_id in np.flatnonzero(self.open)}
        for class_id, best in zip(left.tolist(), beaten_by.tolist(), strict=True):
            self._stands_for.setdefault(best if best >= 0 else class_id, []).append(class_id)
        for verdict in self.known.values():
            self.argmaxable += verdict.status is Status.ARGMAXABLE
            self.unargmaxable += verdict.status is Status.UNARGMAXABLE

    @property
    def open_ids(self) -> Ids:
        return np.flatnonzero(self.open)

    def is_tied(self, classes: Ids) -> Mask:
        """Which classes have a twin with the same bias, so that a tie at the top is all they reach."""
        return np.isin(classes, np.fromiter(self.twins.ties, np.intp, len(self.twins.ties)))

    def enter_gaps(self, classes: Ids, gaps: Gaps, witnesses: list[Witness], method: Method) -> Mask:
        """Enter checked points; returns which of them settle their class."""
        settles = gaps.settle(self.is_tied(classes))
        for k, class_id in enumerate(classes.tolist()):
            entry = self.entries[class_id]
            if gaps.lower[k] <= entry.lower and not settles[k]:
                continue
            entry.lower, entry.witness = float(gaps.lower[k]), witnesses[k]
            if settles[k]:
                entry.method, entry.strength = method, _STRENGTHS[gaps.strength[k]]
                # All weight on the rival: thousands of these, so they share their arrays.
                entry.certificate = Certificate(gaps.rival[k : k + 1], _ALL) if gaps.rival[k] >= 0 else None
                self._close(class_id)
                self.argmaxable += 1
        return settles

    def enter_fine(self, class_id: int, gap: float, witness: FinePoint, method: Method) -> None:
        """Enter a checked point that float64 is too coarse for, at which the class wins by `gap`."""
        entry = self.entries[class_id]
        entry.lower, entry.witness = gap, witness
        entry.method, entry.strength = method, Strength.EXACT
        self._close(class_id)
        self.argmaxable += 1

    def enter_bound(self, class_id: int, bound: Bound, certificate: Certificate, method: Method) -> None:
        """Enter a checked certificate that proves the class unargmaxable."""
        entry = self.entries[class_id]
        entry.upper, entry.strength = bound.upper, bound.strength
        entry.certificate, entry.method = certificate, method
        self._close(class_id)
        self.unargmaxable += 1

    def give_up(self, class_id: int) -> None:
        """Close a class that was tried and stays undecided; its reason is entered with its cost."""
        self._close(class_id)

    def _close(self, class_id: int) -> None:
        self.open[class_id] = False
        self._settled.append(class_id)

    def explain_open(self, why: str, *, finished: bool) -> None:
        """Say why the classes still open are; a finished run gives them up."""
        for class_id in self.open_ids.tolist():
            self.entries[class_id].reason = why
            if finished:
                self._close(class_id)

    def enter_steps(self, classes: Ids, steps: int) -> None:
        """Note after how many reflections points were tried."""
        for class_id in classes.tolist():
            self.entries[class_id].steps = steps

    def enter_radius(self, class_id: int, radius: float) -> None:
        """Note the radius that the Chebyshev programme found; no verdict rests on it."""
        self.entries[class_id].radius = radius

    def enter_cost(self, class_id: int, *, steps: int, rows: int, seconds: float, reason: str) -> None:
        entry = self.entries[class_id]
        entry.steps, entry.rows, entry.seconds, entry.reason = steps, rows, seconds, reason

    def collect(self) -> list[Verdict]:
        """Verdicts of the classes settled since the last call, those that twins stand for included."""
        settled, self._settled = self._settled, []
        return self._verdicts_of(settled)

    def verdicts(self) -> tuple[Verdict, ...]:
        """One verdict for each wanted class, in order; none may be settled after this."""
        self.collect()
        # Open ones, and any whose verdict an interruption kept from being built.
        self._verdicts_of([best for best, group in self._stands_for.items() if group[0] not in self._built])
        return tuple(self._built[class_id] for class_id in self.wanted.tolist())

    def _verdicts_of(self, standing: list[int]) -> list[Verdict]:
        self._bound_argmaxable(standing)
        beaten_by = self.twins.beaten_by
        verdicts = [
            self._verdict(class_id)
            if beaten_by[class_id] < 0
            else self._twin_verdict(class_id, int(beaten_by[class_id]))
            for best in standing
            for class_id in self._stands_for[best]
        ]
        self._built.update((verdict.class_id, verdict) for verdict in verdicts)
        return verdicts

    def _bound_argmaxable(self, classes_settled: list[int]) -> None:
        """Upper margin bounds of settled winners: all weight on the rival they met."""
        settled = ((class_id, self.entries[class_id]) for class_id in classes_settled)
        pairs = [
            (class_id, int(entry.certificate.classes[0]))
            for class_id, entry in settled
            if entry.lower > 0 and entry.certificate is not None
        ]
        if pairs:
            classes, rivals = np.array(pairs, np.intp).T
            for class_id, upper in zip(
                classes.tolist(), self.checker.rival_bounds(classes, rivals), strict=True
            ):
                self.entries[class_id].upper = float(upper)

    def _verdict(self, class_id: int) -> Verdict:
        entry, group = self.entries[class_id], self.twins.ties.get(class_id, ())
        if group and entry.upper > 0:  # nothing dominates it but its twins: at best a tie
            return self._tied_verdict(class_id, entry, group)
        return self._build(class_id, entry, group)

    def _twin_verdict(self, class_id: int, best: int) -> Verdict:
        """A class whose row another one shares with at least its bias."""
        first = int(self.twins.tied_to[class_id])
        entry, group = self.entries[best], self.twins.ties.get(first, ())
        if first != best:  # the other one has the larger bias
            return self._build(class_id, self._beaten_by(class_id, best), group)
        if entry.upper <= 0:  # what dominates one of them dominates all
            if entry.certificate is not None and class_id in entry.certificate.classes:
                entry = self._beaten_by(class_id, best)  # no class is evidence against itself
            return self._build(class_id, entry, group)
        return self._tied_verdict(class_id, entry, group)

    def _tied_verdict(self, class_id: int, entry: ClassRecord, group: tuple[int, ...]) -> Verdict:
        tied = self._beaten_by(class_id, group[1] if class_id == group[0] else group[0])
        if entry.method is not Method.NONE:  # known to reach the top; otherwise only unargmaxable
            tied.lower, tied.witness = 0.0, entry.witness
        return self._build(class_id, tied, group)

    def _beaten_by(self, class_id: int, twin: int) -> ClassRecord:
        certificate = rival_certificate(twin)
        bound = self.checker.bound(class_id, certificate)
        require(bound.upper <= 0, f"Class {class_id} is not beaten by its twin {twin}.")
        return ClassRecord(
            upper=bound.upper, method=Method.TWIN, strength=bound.strength, certificate=certificate
        )

    def _build(self, class_id: int, entry: ClassRecord, group: tuple[int, ...]) -> Verdict:
        status = status_of(entry.lower, entry.upper)
        return Verdict(
            class_id=class_id, label=self.checker.head.label(class_id), status=status,
            lower=entry.lower, upper=entry.upper, method=entry.method, strength=entry.strength,
            witness=entry.witness, certificate=entry.certificate, tie_group=group,
            steps=entry.steps, rows=entry.rows, seconds=entry.seconds, radius=entry.radius,
            reason=entry.reason if status is Status.UNDECIDED else "",
        )  # fmt: skip


def points_as_witnesses(points: NDArray[np.float64]) -> list[Witness]:
    return [Point(point) for point in points]


def own_directions(exponents: Ids) -> list[Witness]:
    return [OwnDirection(exponent) for exponent in exponents.tolist()]
