"""A public head is settled in the paper's two steps and told by category and frequency."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import argmaxable as am
from argmaxable.models.random_heads import random_head
from experiments.harness.cells import Cell, Scale
from experiments.heads.frequency import against_frequency, margin_correlation
from experiments.heads.settling import UNARGMAXABLE, settle
from experiments.heads.vocabulary import Ranked
from experiments.real_models import (
    FREQUENCY_OF,
    STANDARD_OF,
    cells,
    describe,
    figures,
    measure,
    table,
)

SETTINGS = {"classes": 80, "features": 4, "patience": 5, "margins": 20}


@pytest.fixture(scope="module")
def head() -> am.Head:
    return random_head(80, 4, seed=3)


def test_every_model_of_the_gallery_is_a_cell_and_names_in_tables_exist() -> None:
    names = {cell["name"] for cell in cells(Scale.COMMITTED)}
    assert len(names) == 44
    assert {*FREQUENCY_OF, *STANDARD_OF} <= names


def test_tallies_sum_to_the_classes(head: am.Head) -> None:
    labelled = am.Head(head.weight, None, [chr(0x4E00 + number) for number in range(80)])
    found = describe(labelled, SETTINGS, family="", name="")
    assert sum(found["outcomes"]) == sum(map(sum, found["vocabulary"])) == 80
    assert sum(count for count, _ in found["categories"].values()) == 80
    assert sum(never for _, never in found["categories"].values()) == found["outcomes"][UNARGMAXABLE]


def test_the_same_cell_gives_the_same_numbers() -> None:
    assert measure(SETTINGS, None) == measure(SETTINGS, Path("unused"))


def test_the_table_has_the_papers_numbers_beside_ours() -> None:
    written = table([Cell(SETTINGS, measure(SETTINGS, None), 0.1)])
    assert "| **paper, all** | 13 | 150 |" in written
    assert "| **here, all** | 1 | 1 |" in written
    assert "mean steps (reflections)" in written


def test_the_most_frequent_tenth_is_drawn_with_its_mean_steps(head: am.Head) -> None:
    order = Ranked(np.arange(80), 80.0 - np.arange(80))
    settled = settle(head, patience=5)
    frequency = {**against_frequency(order, settled), "margin": margin_correlation(head, order, 10)}
    cell = Cell({**SETTINGS, "name": "PP-OCRv5"}, {**measure(SETTINGS, None), "frequency": frequency}, 0.1)
    written = table([cell])
    assert f"| {frequency['steps']:+.2f} | {frequency['margin']['correlation']:+.2f} (" in written
    axes = figures([cell])["real_models-frequency"].axes[0]
    assert axes.texts[0].get_text() == f"{frequency['mean_steps'][0]:.1f}"
