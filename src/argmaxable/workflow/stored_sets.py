"""A question about sets of labels that lasts: resumed or found again in a store, where there is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from argmaxable.compute.prepared import PreparedHead
from argmaxable.core.domain import Domain
from argmaxable.core.feasibility import Feasibility
from argmaxable.core.label_sets import LabelSets, Members, SetClaim, SetTest
from argmaxable.core.progress import Deadline, ProgressCallback, ignore_progress
from argmaxable.questions.sets.sets import sets
from argmaxable.run.plan import DEFAULT_ENGINE, Engine

if TYPE_CHECKING:  # a database library is loaded only for those who store runs
    from argmaxable.store import Store
    from argmaxable.store.set_store import SetRun
    from argmaxable.workflow.stored_run import Origin

# Sets between two commits: what a killed process loses at most.
_BATCH = 2000


@dataclass(frozen=True, eq=False)
class SetQuestion:
    """Which sets, over which domain, and what it means that they come out."""

    head: PreparedHead
    domain: Domain
    test: SetTest
    sets: Mapping[Members, int]


@dataclass(frozen=True, eq=False)
class StoredSets:
    """The answer, and the number under which it is stored, if it is; `was_known` when nothing had to be
    computed."""

    found: LabelSets
    run_id: int | None = None
    was_known: bool = False


def ask_stored(
    question: SetQuestion,
    store: Store | None,
    *,
    origin: Origin,
    overwrite: bool = False,
    engine: Engine = DEFAULT_ENGINE,
    time_limit: float | None = None,
    progress: ProgressCallback = ignore_progress,
) -> StoredSets:
    """Answer the question. With a store, an earlier answer to the same one is found again or resumed there,
    unless `overwrite`. Raises InputError, and StoreError when the store can't be used."""
    work = _Work(question, engine, Deadline(time_limit), progress)
    if store is None:
        return StoredSets(work.ask(list(question.sets)))
    from argmaxable.store import SetPlan

    plan = SetPlan(
        facts=question.head.facts, labels=question.head.head.labels, domain=question.domain,
        test=question.test, sets=question.sets, origin=origin.origin, domain_source=origin.domain_source,
    )  # fmt: skip
    with store.sets.begin(plan, overwrite=overwrite) as run:
        was_known = run.is_finished
        found = work.resume(run)
        if found.is_complete and not was_known:
            run.finish()
        return StoredSets(found, run.run_id, was_known)


@dataclass(eq=False)
class _Work:
    """How one question is worked on."""

    question: SetQuestion
    engine: Engine
    deadline: Deadline
    progress: ProgressCallback

    def ask(self, members: Sequence[Members]) -> LabelSets:
        question = self.question
        return sets(
            question.head, question.domain, members, kind=question.test.kind,
            thresholds=question.test.thresholds, counts=[question.sets[each] for each in members],
            engine=self.engine, time_limit=self.deadline.seconds_left, progress=self.progress,
        )  # fmt: skip

    def resume(self, run: SetRun) -> LabelSets:
        """Ask about the sets that have no answer yet, and store answers as they come."""
        question, answers = self.question, dict(run.known)
        left = [] if run.is_finished else [each for each in question.sets if each not in answers]
        is_complete, seconds = True, run.seconds
        for first in range(0, len(left), _BATCH):
            found = self.ask(left[first : first + _BATCH])
            is_complete, seconds = found.is_complete, seconds + found.seconds
            # What was not reached is asked about again.
            done = [c for c in found.claims if is_complete or c.status is not Feasibility.UNDECIDED]
            run.record(done, seconds)
            answers |= {claim.members: claim for claim in done}
            if not is_complete:
                break
        claims = tuple(answers.get(each) or self._not_reached(each) for each in question.sets)
        return LabelSets(
            facts=question.head.facts, domain=question.domain, test=question.test, claims=claims,
            seconds=seconds, is_complete=is_complete,
        )  # fmt: skip

    def _not_reached(self, members: Members) -> SetClaim:
        head = self.question.head.head
        return SetClaim(
            members, tuple(map(head.label, members)), Feasibility.UNDECIDED,
            count=self.question.sets[members], reason="not reached",
        )  # fmt: skip
