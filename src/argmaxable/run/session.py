"""A run in progress: what is to be done, what has been entered, when to stop."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.check.checker import Bound, Checker, require
from argmaxable.core.progress import Deadline, Progress, ProgressCallback
from argmaxable.core.result import Cost
from argmaxable.core.verdict import Certificate, Method, Strength, Verdict
from argmaxable.prove.transfer import reweighted, transfer
from argmaxable.run.settled_classes import SettledClasses, points_as_witnesses

if TYPE_CHECKING:
    from collections.abc import Callable

    from argmaxable.check.witnesses import Gaps
    from argmaxable.compute.coordinates import Coordinates
    from argmaxable.core.arrays import Ids
    from argmaxable.prove.prover import Prover, Settled
    from argmaxable.run.engines.engine import Report
    from argmaxable.run.engines.processes import Processes
    from argmaxable.run.journal import Journal
    from argmaxable.run.plan import Settings

# How often finished classes are handed to the journal.
_SECONDS_BETWEEN_ENTRIES = 1.0
# How often points of other processes are checked: one after the other they take several times as long.
_SECONDS_BETWEEN_CHECKS = 0.1
# Proofs in a row whose rows, weighted otherwise, prove nothing else, until no more are tried.
_FRUITLESS = 32


@dataclass(eq=False)
class Session:
    """A run in progress."""

    settled_classes: SettledClasses
    prover: Prover
    settings: Settings
    deadline: Deadline
    progress: ProgressCallback
    journal: Journal
    processes: Processes
    started: float
    phases: dict[str, float] = field(default_factory=dict)
    reports: list[Report] = field(default_factory=list)
    # Who beats each class in its own direction, once that is known.
    rivals: Ids = field(init=False)
    _fruitless: int = 0
    _placed: list[Report] = field(default_factory=list)
    _checked_at: float = field(default_factory=time.perf_counter)
    _unrecorded: list[Verdict] = field(default_factory=list)
    _recorded_at: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        self.rivals = np.full(self.checker.head.classes, -1)

    @property
    def checker(self) -> Checker:
        return self.settled_classes.checker

    @property
    def coordinates(self) -> Coordinates:
        return self.prover.coordinates

    def timed(self, phase: str, work: Callable[[], None]) -> None:
        """Do the work and note the seconds it took, finished or not."""
        started = time.perf_counter()
        try:
            work()
        finally:
            self.phases[phase] = time.perf_counter() - started

    def report(self, phase: str, seconds_left: float | None = None) -> None:
        """Tell how far it got, record it from time to time; raises TimeIsOver at the deadline."""
        if time.perf_counter() - self._recorded_at > _SECONDS_BETWEEN_ENTRIES:
            self.record()
        self.deadline.require_time()
        settled_classes = self.settled_classes
        total = len(settled_classes.entries) + len(settled_classes.known)
        note = f"{settled_classes.argmaxable:,} argmaxable, {settled_classes.unargmaxable:,} unargmaxable"
        done = settled_classes.argmaxable + settled_classes.unargmaxable
        self.progress(Progress(phase, done, total, seconds_left, note))

    def record(self) -> None:
        """Hand what was settled since the last time to the journal."""
        self._unrecorded += self.settled_classes.collect()
        self.journal.record(self._unrecorded, self.cost())
        self._unrecorded = []  # only now: an interruption in between must not drop any
        self._recorded_at = time.perf_counter()

    def enter_own(self, report: Report) -> None:
        """Enter an answer of this process's own prover, which has had it checked."""
        answer = report.settled.answer
        self.enter(report, gaps=answer.gaps, bound=answer.bound)

    def enter_others(self, reports: list[Report]) -> None:
        """Enter answers of other processes: proofs at once, points when some can be checked together."""
        for report in reports:
            if report.settled.answer.point is None:
                self.enter(report)
            else:
                self._placed.append(report)
        if time.perf_counter() - self._checked_at > _SECONDS_BETWEEN_CHECKS:
            self.enter_placed()

    def enter_placed(self) -> None:
        """Check the points that other processes have found, and enter them."""
        placed, self._placed = self._placed, []
        if placed:
            ids = np.array([report.settled.answer.class_id for report in placed])
            points = [report.settled.answer.point for report in placed]
            gaps = self.checker.gaps(ids, np.array(points))
            for k, report in enumerate(placed):
                self.enter(report, gaps=gaps.part(slice(k, k + 1)))
        self._checked_at = time.perf_counter()

    def enter(
        self, report: Report, *, gaps: Gaps | None = None, bound: Bound | None = None, share: bool = True
    ) -> None:
        """Enter an answer and try its proof on others. `gaps` or `bound` is what this process's checker said
        about it; where it has said nothing it is asked now."""
        settled, settled_classes = report.settled, self.settled_classes
        answer = settled.answer
        self.reports.append(report)
        settled_classes.enter_cost(
            answer.class_id,
            steps=answer.steps,
            rows=answer.rows,
            seconds=report.seconds,
            reason=answer.reason,
        )
        if not settled_classes.open[answer.class_id]:
            return  # settled meanwhile by another's proof
        if answer.point is not None:
            ids = np.array([answer.class_id])
            gaps = self.checker.gaps(ids, answer.point[None]) if gaps is None else gaps
            accepted = settled_classes.enter_gaps(
                ids, gaps, points_as_witnesses(answer.point[None]), settled.method
            )
            require(bool(accepted[0]), f"The witness for class {answer.class_id} failed its check.")
        elif answer.fine is not None:
            gap = self.checker.fine_gap(answer.class_id, answer.fine)
            require(gap > 0, f"The witness for class {answer.class_id} failed its check.")
            settled_classes.enter_fine(answer.class_id, gap, answer.fine, settled.method)
        elif answer.certificate is not None:
            bound = self.checker.bound(answer.class_id, answer.certificate) if bound is None else bound
            self._enter_certificate(settled, answer.certificate, bound, share=share)
        else:
            settled_classes.give_up(answer.class_id)

    def _enter_certificate(
        self, settled: Settled, certificate: Certificate, bound: Bound, *, share: bool
    ) -> None:
        class_id = settled.answer.class_id
        require(bound.upper <= 0, f"The certificate for class {class_id} failed its check.")
        self.settled_classes.enter_bound(class_id, bound, certificate, settled.method)
        if not share:
            return
        moved, uppers = transfer(self.coordinates, self.checker, certificate, self.settled_classes.open_ids)
        for other, upper in zip(moved.tolist(), uppers.tolist(), strict=True):
            self.settled_classes.enter_bound(
                other, Bound(upper, Strength.FLOAT64), certificate, Method.TRANSFER
            )
        if self._fruitless < _FRUITLESS:
            self._reweigh(certificate)

    def _reweigh(self, certificate: Certificate) -> None:
        """Try the proof's rows with other weights on classes nearby, until that has often been in vain."""
        settled_classes, found = self.settled_classes, 0
        for class_id, bound, other in reweighted(
            self.coordinates, self.checker, certificate, settled_classes.open_ids
        ):
            settled_classes.enter_bound(class_id, bound, other, Method.TRANSFER)
            found += 1
        self._fruitless = 0 if found else self._fruitless + 1

    def cost(self) -> Cost:
        """What the run took so far, with the part before it was resumed."""
        answers = [report.settled.answer for report in self.reports]
        return self.journal.spent + Cost(
            seconds=time.perf_counter() - self.started,
            phases=self.phases,
            solves=len(answers),
            mean_steps=float(np.mean([answer.steps for answer in answers])) if answers else 0.0,
            mean_rows=float(np.mean([answer.rows for answer in answers])) if answers else 0.0,
        )
