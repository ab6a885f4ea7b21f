"""sets(head, domain, ...): for each set of labels, whether any input makes it come out, with evidence.

First the cheap searches for all sets at once (search.py), then a solve for each that is left (solve.py),
shared by processes. Whatever they find has passed check/sets.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from argmaxable.check.checker import require
from argmaxable.check.sets import SetChecker
from argmaxable.compute.prepared import PreparedHead, prepared
from argmaxable.compute.threads import one_thread
from argmaxable.core.arrays import Vector
from argmaxable.core.domain import Domain
from argmaxable.core.errors import InputError
from argmaxable.core.feasibility import feasibility_of
from argmaxable.core.head import Head
from argmaxable.core.label_sets import LabelSets, Members, SetClaim, SetKind, SetMethod, SetTest, as_members
from argmaxable.core.progress import Deadline, Pace, Progress, ProgressCallback, ignore_progress
from argmaxable.questions.argmax import DEFAULT_DOMAIN
from argmaxable.questions.sets.answer import SetAnswer
from argmaxable.questions.sets.geometry import Space
from argmaxable.questions.sets.search import SetSearch
from argmaxable.questions.sets.solve import SetSolver
from argmaxable.run.engines.engine import Job
from argmaxable.run.engines.pool import Pool
from argmaxable.run.plan import DEFAULT_ENGINE, Engine, make_plan

# Sets searched for at a time; a time limit is heeded between two batches.
_BATCH = 512
# Fewer solves than this for each further process are done sooner without it.
_WORTH_A_PROCESS = 8

Item = tuple[Members, Vector | None]


def sets(
    head: Head | PreparedHead,
    domain: Domain = DEFAULT_DOMAIN,
    sets: Iterable[Iterable[int]] = (),
    *,
    kind: SetKind | str = SetKind.EXACTLY,
    thresholds: ArrayLike = 0.0,
    counts: Sequence[int] | None = None,
    engine: Engine = DEFAULT_ENGINE,
    time_limit: float | None = None,
    progress: ProgressCallback = ignore_progress,
) -> LabelSets:
    """Whether each of the sets, given by the numbers of their labels, can come out at some input.

    `kind` is "exactly" (the labels inside are above their thresholds, all others below), "top" (those inside
    score above all others) or "at-least" (those inside are above their thresholds), always strictly.
    `thresholds` are on the logits, one for all labels or one each; `logits_of` makes them of probabilities.
    `counts` says how many examples have each set. Sets that occur twice are asked about once, their counts
    added. After `time_limit` seconds or Ctrl-C the rest is undecided, with `is_complete` False. Raises
    InputError for arguments that make no sense.
    """
    started = time.perf_counter()
    ready = prepared(head)
    test = SetTest(kind, thresholds)
    wanted = _wanted(sets, counts, ready.head.classes)
    plan = make_plan(ready.head, domain, engine=engine, time_limit=time_limit)
    work = SetWork(
        SetChecker(ready, domain, test), plan.settings.workers or 1, Deadline(time_limit), progress
    )
    found, is_complete = work.run(list(wanted))
    claims = tuple(
        replace(_claim(work.checker, members, answer), count=wanted[members])
        for members, answer in zip(wanted, found, strict=True)
    )
    return LabelSets(
        facts=ready.facts, domain=domain, test=test, claims=claims, seconds=time.perf_counter() - started,
        is_complete=is_complete,
    )  # fmt: skip


def _wanted(sets: Iterable[Iterable[int]], counts: Sequence[int] | None, labels: int) -> dict[Members, int]:
    """The sets in the order in which they first occur, with their counts."""
    listed = [as_members(one, labels) for one in sets]
    if counts is None:
        counts = [1] * len(listed)
    if len(counts) != len(listed):
        raise InputError(f"{len(counts):,} counts for {len(listed):,} sets. Pass one for each set.")
    wanted: dict[Members, int] = {}
    for members, count in zip(listed, counts, strict=True):
        if count < 0:
            raise InputError(f"a set can't have {count} examples.")
        wanted[members] = wanted.get(members, 0) + int(count)
    return wanted


@dataclass(eq=False)
class SetWork:
    """How one question is worked on."""

    checker: SetChecker
    workers: int
    deadline: Deadline
    progress: ProgressCallback

    def run(self, sets: list[Members]) -> tuple[list[SetAnswer], bool]:
        """An answer for each set, and whether every set was reached."""
        answers = [SetAnswer(reason="not reached")] * len(sets)
        starts: dict[int, Vector] = {}
        space = Space.of(self.checker)
        is_complete = False
        with suppress(KeyboardInterrupt):
            is_complete = self._search(space, sets, answers, starts) and self._solve(
                space, sets, answers, starts
            )
        return answers, is_complete

    def _search(
        self, space: Space, sets: list[Members], answers: list[SetAnswer], starts: dict[int, Vector]
    ) -> bool:
        """Fill in what is found cheaply, and where solves may begin; False when time is up."""
        asks_nothing = [self.checker.test.asks_nothing(members, space.labels) for members in sets]
        numbers = [k for k in range(len(sets)) if not asks_nothing[k]]
        for k in np.flatnonzero(asks_nothing).tolist():
            point = space.coordinates.some_point()[0]
            answers[k] = SetAnswer(point, np.inf, method=SetMethod.NO_CONDITION)
        if not space.coordinates.size:
            return True
        search = SetSearch(space)
        for first in range(0, len(numbers), _BATCH):
            if self.deadline.has_passed:
                return False
            batch = numbers[first : first + _BATCH]
            found, points = search.run([sets[k] for k in batch])
            for k, answer, point in zip(batch, found, points, strict=True):
                if answer.is_settled:
                    answers[k] = answer
                else:
                    starts[k] = point.astype(np.float64)
            self.progress(Progress("searching", first + len(batch), len(numbers)))
        return True

    def _solve(
        self, space: Space, sets: list[Members], answers: list[SetAnswer], starts: dict[int, Vector]
    ) -> bool:
        left = [k for k, answer in enumerate(answers) if not answer.is_settled]
        items: list[Item] = [(sets[k], starts.get(k)) for k in left]
        pace = Pace()
        with self._pool(min(self.workers - 1, len(left) // _WORTH_A_PROCESS)) as pool, one_thread():
            replies = pool.answers(items, answering_with(space))
            for done, (number, answer) in enumerate(replies, 1):
                k = left[number]
                answers[k] = _checked(self.checker, sets[k], answer)
                self.progress(Progress("solving", done, len(left), pace.seconds_left(done, len(left))))
                if self.deadline.has_passed and done < len(left):
                    return False
        return True

    def _pool(self, processes: int) -> Pool[Item, SetAnswer]:
        head = self.checker.head
        job = Job(
            head=Head(head.weight, head.bias), domain=self.checker.domain, centre=np.zeros(head.features),
            ignored=np.empty(0, np.intp), tied=frozenset(), score=np.empty(0), seed=0, memory=None,
        )  # fmt: skip
        return Pool(processes, job, f"{__name__}:answering", self.checker.test)


def answering_with(space: Space) -> Callable[[Item], SetAnswer]:
    """The function from a set and a point to begin with to its answer."""
    solver = SetSolver(space)
    return lambda item: solver.solve(*item)


def answering(job: Job, test: SetTest) -> Callable[[Item], SetAnswer]:
    """What a worker process does: sets of the job's head."""
    return answering_with(Space.of(SetChecker(job.head, job.domain, test)))


def _checked(checker: SetChecker, members: Members, answer: SetAnswer) -> SetAnswer:
    """The answer of whoever it was, proven here."""
    if answer.point is not None:
        lower = float(checker.margins([members], answer.point[None])[0])
        require(lower > 0, f"The point found for the set {members} does not prove it.")
        return replace(answer, lower=lower)
    if answer.certificate is not None:
        upper = checker.bound(members, answer.certificate).upper
        require(upper <= 0, f"The certificate found for the set {members} does not prove it.")
        return replace(answer, upper=upper)
    return answer


def _claim(checker: SetChecker, members: Members, answer: SetAnswer) -> SetClaim:
    labels = tuple(checker.head.label(member) for member in members)
    answer = _with_tie(checker, members, answer)
    return SetClaim(
        members=members, labels=labels, status=feasibility_of(answer.lower, answer.upper), lower=answer.lower,
        upper=answer.upper, method=answer.method, point=answer.point, certificate=answer.certificate,
        reason="" if answer.is_settled else answer.reason,
    )  # fmt: skip


def _with_tie(checker: SetChecker, members: Members, answer: SetAnswer) -> SetAnswer:
    """With the point 0, where an infeasible set reaches a margin of 0 there."""
    if answer.upper != 0 or not (checker.domain.has_origin and checker.domain.has_features):
        return answer
    origin = np.zeros(checker.domain.point_size(checker.head.features))
    lower = float(checker.margins([members], origin[None])[0])
    return replace(answer, point=origin, lower=lower) if lower == 0 else answer


def all_pairs(labels: int) -> Iterator[Members]:
    """Every set of two labels."""
    return ((first, second) for first in range(labels) for second in range(first + 1, labels))
