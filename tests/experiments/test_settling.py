"""Settling a head in two steps says what verifying it says, and how hard it was."""

from __future__ import annotations

import numpy as np
import pytest

import argmaxable as am
from argmaxable.models.random_heads import random_head
from experiments.heads.settling import SOLVED, UNARGMAXABLE, margins, settle, tally


@pytest.fixture(scope="module")
def head() -> am.Head:
    return random_head(80, 4, seed=3)


def test_the_two_steps_find_what_verifying_finds(head: am.Head) -> None:
    settled = settle(head, patience=5)
    expected = [verdict.class_id for verdict in am.verify(head, engine=am.Engine(workers=1)).unargmaxable]
    assert np.flatnonzero(settled.outcome == UNARGMAXABLE).tolist() == expected
    assert expected


def test_patience_changes_who_finds_a_class_but_no_verdict(head: am.Head) -> None:
    short, long = settle(head, patience=1), settle(head, patience=200)
    assert ((short.outcome == UNARGMAXABLE) == (long.outcome == UNARGMAXABLE)).all()
    assert (short.outcome == SOLVED).sum() > (long.outcome == SOLVED).sum()


def test_twins_that_reflections_do_not_reach_are_tied_all_the_same(head: am.Head) -> None:
    hard = int(np.flatnonzero(settle(head, patience=1).outcome == SOLVED)[0])
    weight = head.rows(slice(None))
    settled = settle(am.Head(np.vstack([weight, weight[hard]])), patience=1)
    assert settled.tied == 2
    assert settled.outcome[[hard, -1]].tolist() == [UNARGMAXABLE, UNARGMAXABLE]


def test_margins_are_those_that_a_linear_programme_finds(head: am.Head) -> None:
    found = margins(head, np.arange(40))
    expected = [best_gap(head, class_id) for class_id in range(40)]
    assert len(set(np.round(expected))) > 10
    # The accuracy promised (5 % or half a logit between the bounds, the middle taken), and the rounding.
    assert (np.abs(found - expected) <= 0.5 + np.maximum(0.25, 0.025 * np.abs(expected))).all()


def test_no_unargmaxable_class_has_a_margin_above_zero(head: am.Head) -> None:
    unargmaxable = np.flatnonzero(settle(head, patience=5).outcome == UNARGMAXABLE)
    assert (margins(head, unargmaxable) <= 0).all()


def best_gap(head: am.Head, class_id: int) -> float:
    """The margin over the box of ±100, from scipy's solver."""
    from scipy.optimize import linprog

    weight = head.rows(slice(None)).astype(float)
    others = np.delete(weight - weight[class_id], class_id, axis=0)
    features = weight.shape[1]
    bounds = [*[(-100, 100)] * features, (None, None)]
    rows = np.hstack([others, np.ones((len(others), 1))])
    return float(-linprog(np.r_[np.zeros(features), -1], rows, np.zeros(len(rows)), bounds=bounds).fun)


def test_a_class_that_wins_at_its_own_weights_takes_no_step() -> None:
    settled = settle(am.Head(np.eye(3)), patience=5)
    assert tally(settled.outcome) == [3, 0, 0, 0, 0]
    assert settled.mean_steps() == 0


def test_only_classes_that_steps_find_enter_their_mean(head: am.Head) -> None:
    settled = settle(head, patience=5)
    found = np.flatnonzero(settled.steps <= 5)
    assert 0 < len(found) < 80
    assert settled.mean_steps() == settled.mean_steps(found) == round(settled.steps[found].mean(), 3)
    assert settled.mean_steps(np.flatnonzero(settled.outcome == UNARGMAXABLE)) is None


def test_identical_rows_are_tied() -> None:
    settled = settle(am.Head([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]), patience=5)
    assert settled.tied == tally(settled.outcome)[UNARGMAXABLE] == 2
