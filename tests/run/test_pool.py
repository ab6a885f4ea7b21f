"""A pool answers every item once, whoever dies."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
import squares

import argmaxable as am
from argmaxable.run.engines.engine import Job
from argmaxable.run.engines.pool import Pool


def some_job() -> Job:
    head = am.Head(np.eye(3, dtype=np.float32))
    nobody = np.empty(0, np.intp)
    return Job(head, am.Box(-1.0, 1.0), np.zeros(3), nobody, frozenset(), np.zeros(3), 0, None)


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> Job:
    """A job whose workers find the functions of this folder."""
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parent), *sys.path])
    return some_job()


@pytest.mark.parametrize("processes", [0, 1, 2])
def test_every_item_is_answered_once(job: Job, processes: int) -> None:
    own = squares.squaring(job, os.getpid())
    with Pool[int, int](processes, job, squares.MAKER, os.getpid()) as pool:
        for items in ([*range(40)], [], [7]):
            answers = list(pool.answers(items, own))
            assert sorted(answers) == [(number, item * item + 3) for number, item in enumerate(items)]


def test_items_of_workers_that_die_are_answered_here(job: Job) -> None:
    own = squares.squaring(job, os.getpid())
    items = [-1, -2, -3, *range(20)]
    with Pool[int, int](2, job, squares.MAKER, os.getpid()) as pool:
        for _ in range(2):  # with workers, and without any left
            assert sorted(pool.answers(items, own)) == [(k, item * item + 3) for k, item in enumerate(items)]


def test_late_answers_to_an_abandoned_question_are_dropped(job: Job) -> None:
    own = squares.squaring(job, os.getpid())
    with Pool[int, int](1, job, squares.MAKER, os.getpid()) as pool:
        for _ in pool.answers(range(100, 140), own):
            break
        assert sorted(pool.answers([1, 2], own)) == [(0, 4), (1, 7)]
