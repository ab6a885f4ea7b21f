"""A public head is settled in the paper's two steps and told by category and frequency."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import argmaxable as am
from argmaxable.random_heads import random_head
from experiments._experiment import Cell, Scale
from experiments._settling import LOST, Settled
from experiments._vocabulary import Ranked
from experiments.real_models import (
    FREQUENCY_OF,
    STANDARD_OF,
    _against_frequency,
    cells,
    describe,
    measure,
    table,
)

SETTINGS = {"classes": 80, "features": 4, "patience": 5}


@pytest.fixture(scope="module")
def head() -> am.Head:
    return random_head(80, 4, seed=3)


def test_every_model_of_the_gallery_is_a_cell_and_names_in_tables_exist() -> None:
    names = {cell["name"] for cell in cells(Scale.COMMITTED)}
    assert len(names) == 32
    assert {*FREQUENCY_OF, *STANDARD_OF} <= names


def test_tallies_sum_to_the_classes(head: am.Head) -> None:
    labelled = am.Head(head.weight, None, [chr(0x4E00 + number) for number in range(80)])
    found = describe(labelled, family="", name="", patience=5)
    assert sum(found["outcomes"]) == sum(map(sum, found["vocabulary"])) == 80
    assert sum(count for count, _ in found["categories"].values()) == 80
    assert sum(lost for _, lost in found["categories"].values()) == found["outcomes"][LOST]


def test_rare_victims_show_in_the_correlations_and_the_last_tenth() -> None:
    outcome = np.repeat([0, LOST], [15, 5])
    settled = Settled(outcome, np.where(outcome, 6, 0), 20.0 - np.arange(20), 0)
    order = Ranked(np.arange(20), 100.0 - np.arange(20))
    found = _against_frequency(order, settled)
    assert found["margin"] == 1
    assert found["steps"] < -0.7
    assert found["tenths"][0][LOST] == 0
    assert found["tenths"][-1][LOST] == 2
    shuffled = replace(order, frequency=order.frequency[::-1])
    assert _against_frequency(shuffled, settled)["margin"] == -1


def test_classes_never_counted_are_a_group_of_their_own() -> None:
    outcome = np.repeat([0, LOST], [20, 5])
    settled = Settled(outcome, outcome, -1.0 * outcome, 0)
    order = Ranked(np.arange(25), np.r_[np.arange(20.0, 0.0, -1.0), np.zeros(5)])
    found = _against_frequency(order, settled)
    assert found["unseen"] == 5
    assert [sum(tally) for tally in found["tenths"]] == [*[2] * 10, 5]
    assert [tally[LOST] for tally in found["tenths"]] == [*[0] * 10, 5]


def test_the_same_cell_gives_the_same_numbers() -> None:
    assert measure(SETTINGS, None) == measure(SETTINGS, Path("unused"))


def test_the_table_has_the_papers_numbers_beside_ours() -> None:
    written = table([Cell(SETTINGS, measure(SETTINGS, None), 0.1)])
    assert "| **paper, all** | 13 | 150 |" in written
    assert "| **here, all** | 1 | 1 |" in written
