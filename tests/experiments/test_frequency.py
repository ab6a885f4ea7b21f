"""Steps, margins and outcomes of classes by their frequency."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import argmaxable as am
from argmaxable.models.random_heads import random_head
from experiments.heads.frequency import against_frequency, margin_correlation
from experiments.heads.settling import UNARGMAXABLE, Settled
from experiments.heads.vocabulary import Ranked


def test_rare_victims_show_in_the_correlations_and_the_last_tenth() -> None:
    outcome = np.repeat([0, UNARGMAXABLE], [15, 5])
    settled = Settled(outcome, np.where(outcome, 6, 0), 0)
    order = Ranked(np.arange(20), 100.0 - np.arange(20))
    found = against_frequency(order, settled)
    assert found["steps"] < -0.7
    assert found["tenths"][0][UNARGMAXABLE] == 0
    assert found["tenths"][-1][UNARGMAXABLE] == 2
    reversed_order = replace(order, frequency=order.frequency[::-1])
    assert against_frequency(reversed_order, settled)["steps"] == -found["steps"]


def test_classes_never_counted_are_a_group_of_their_own() -> None:
    outcome = np.repeat([0, UNARGMAXABLE], [20, 5])
    settled = Settled(outcome, np.arange(25), 0)
    order = Ranked(np.arange(25), np.r_[np.arange(20.0, 0.0, -1.0), np.zeros(5)])
    found = against_frequency(order, settled)
    assert (found["counted"], found["unseen"]) == (20, 5)
    assert [sum(tally) for tally in found["tenths"]] == [*[2] * 10, 5]
    assert [tally[UNARGMAXABLE] for tally in found["tenths"]] == [*[0] * 10, 5]


def test_classes_never_counted_are_no_part_of_the_correlation() -> None:
    steps = np.r_[np.arange(20), np.zeros(5, int)]
    settled = Settled(np.where(steps, 1, 0), steps, 0)
    order = Ranked(np.arange(25), np.r_[np.arange(20.0, 0.0, -1.0), np.zeros(5)])
    assert against_frequency(order, settled)["steps"] == -1


def test_mean_steps_of_the_tenths_need_not_rise() -> None:
    steps = np.repeat([5, 1, 2, 3], 5)
    order = Ranked(np.arange(20), 100.0 - np.arange(20))
    found = against_frequency(order, Settled(np.ones(20, np.int64), steps, 0))
    assert found["mean_steps"] == [5, 5, 3, 1, 1, 2, 2, 2.5, 3, 3]


def test_frequent_classes_with_large_margins_show_in_the_correlation() -> None:
    # The margin over the box is reached at a corner: 100 times the class's entry and its least rival's.
    entries = np.linspace(1, 3, 12)
    found = margin_correlation(am.Head(np.diag(entries)), Ranked(np.arange(12), entries), 12)
    low, high = found["interval"]
    assert found["classes"] == 12
    assert 0.9 < low < found["correlation"] < high <= 1


def test_no_more_margins_are_solved_than_asked_for_and_none_of_classes_never_counted() -> None:
    order = Ranked(np.arange(80), np.r_[np.zeros(30), np.arange(50.0)])
    assert margin_correlation(random_head(80, 4, seed=3), order, 20)["classes"] == 20
    assert margin_correlation(random_head(80, 4, seed=3), order, 1000)["classes"] == 49
