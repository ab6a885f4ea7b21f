"""Settling a head in two steps says what verifying it says, and how hard it was."""

from __future__ import annotations

import numpy as np
import pytest

import argmaxable as am
from argmaxable.random_heads import random_head
from experiments._settling import LOST, SOLVED, settle, tally


@pytest.fixture(scope="module")
def head() -> am.Head:
    return random_head(80, 4, seed=3)


def test_the_two_steps_find_what_verifying_finds(head: am.Head) -> None:
    settled = settle(head, patience=5)
    expected = [verdict.class_id for verdict in am.verify(head, workers=1).unargmaxable]
    assert np.flatnonzero(settled.outcome == LOST).tolist() == expected
    assert expected


def test_patience_changes_who_finds_a_class_but_no_verdict(head: am.Head) -> None:
    short, long = settle(head, patience=1), settle(head, patience=200)
    assert ((short.outcome == LOST) == (long.outcome == LOST)).all()
    assert (short.outcome == SOLVED).sum() > (long.outcome == SOLVED).sum()


def test_margins_are_positive_exactly_where_a_class_can_win(head: am.Head) -> None:
    settled = settle(head, patience=5)
    assert ((settled.margin > 0) == (settled.outcome != LOST)).all()


def test_a_class_that_wins_at_its_own_weights_needs_one_try() -> None:
    settled = settle(am.Head(np.eye(3)), patience=5)
    assert tally(settled.outcome) == [3, 0, 0, 0, 0]
    assert settled.mean_tries == 1


def test_identical_rows_are_tied() -> None:
    settled = settle(am.Head([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]), patience=5)
    assert settled.tied == tally(settled.outcome)[LOST] == 2
