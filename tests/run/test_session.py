"""A session: what it takes from its own prover, and what from other processes."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

import argmaxable as am
from argmaxable.check.checker import Bound, Checker
from argmaxable.check.witnesses import Gaps
from argmaxable.core.errors import EvidenceError
from argmaxable.core.progress import Deadline, ignore_progress
from argmaxable.core.verdict import Certificate, Method, Strength
from argmaxable.prove.attempt import Answer
from argmaxable.prove.prover import Prover, Settled
from argmaxable.run.engines.engine import Report
from argmaxable.run.engines.processes import Processes
from argmaxable.run.journal import NO_JOURNAL
from argmaxable.run.plan import ONE_PROCESS, make_plan
from argmaxable.run.session import Session
from argmaxable.run.settled_classes import SettledClasses

# Four corners of a square, and a class inside it.
HEAD = am.Head(np.array([[1, 1], [1, -1], [-1, 1], [-1, -1], [0.25, 0]]), np.array([0, 0, 0, 0, -0.5]))
CORNER, INSIDE = 0, 4


def new_session() -> Session:
    plan = make_plan(HEAD, am.Box(-1, 1), engine=ONE_PROCESS)
    checker = Checker(plan.prepared, plan.domain)
    twins = checker.prepared.twins
    prover = Prover(checker, ignored=twins.ignored, tied=frozenset(), score=None, seed=0)
    return Session(
        SettledClasses(checker, twins, plan.wanted), prover, plan.settings, Deadline(None), ignore_progress,
        NO_JOURNAL, Processes(0), time.perf_counter(),
    )  # fmt: skip


def as_report(answer: Answer) -> Report:
    return Report(Settled(answer, Method.INTERIOR_POINT), 0.0)


def enter_and_check(session: Session, reports: list[Report]) -> None:
    session.enter_others(reports)
    session.enter_placed()


def test_answers_of_the_own_prover_carry_what_the_checker_said() -> None:
    session = new_session()
    for class_id in (CORNER, INSIDE):
        answer = session.prover.settle(class_id).answer
        if answer.point is not None:
            assert answer.gaps is not None
            again = session.checker.gaps(np.array([class_id]), answer.point[None])
            assert answer.gaps.lower.tolist() == again.lower.tolist()
        else:
            assert answer.certificate is not None
            assert answer.bound == session.checker.bound(class_id, answer.certificate)
        session.enter_own(as_report(answer))
    assert (session.settled_classes.argmaxable, session.settled_classes.unargmaxable) == (1, 1)


def test_answers_of_other_processes_are_entered_after_a_check() -> None:
    session = new_session()
    answers = [session.prover.settle(class_id).answer for class_id in range(HEAD.classes)]
    enter_and_check(session, [as_report(replace(answer, gaps=None, bound=None)) for answer in answers])
    assert (session.settled_classes.argmaxable, session.settled_classes.unargmaxable) == (4, 1)


@pytest.mark.parametrize(
    "forged",
    [
        Answer(
            INSIDE, np.zeros(2), None, 1, 1, 1,
            gaps=Gaps(np.ones(1), np.ones(1), np.array([CORNER]), np.zeros(1, np.uint8)),
        ),
        Answer(
            CORNER, None, Certificate(np.array([INSIDE]), np.ones(1)), 1, 1, 1,
            bound=Bound(-1.0, Strength.EXACT),
        ),
    ],
)  # fmt: skip
def test_what_another_process_says_of_its_checks_counts_for_nothing(forged: Answer) -> None:
    with pytest.raises(EvidenceError):
        enter_and_check(new_session(), [as_report(forged)])
