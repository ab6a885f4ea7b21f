"""Unargmaxable tokens of small trained heads, and how frequent they are."""

from __future__ import annotations

import numpy as np

import argmaxable as am
from argmaxable.questions.argmax import DEFAULT_DOMAIN
from experiments.harness.cells import Cell, Scale
from experiments.stolen_probability import (
    FEATURES,
    NORMAL,
    QUESTIONS,
    SEEDS,
    UNIFORM,
    _spread,
    ask,
    cells,
    figures,
    measure,
    table,
)

SETTINGS = {"features": 3, "seed": 0, "vocabulary": 40, "epochs": 1}
ANGLES = np.arange(11) * 2 * np.pi / 11
# Eleven corners, and a row between them.
WITH_ONE_INSIDE = am.Head(np.vstack([np.column_stack([np.cos(ANGLES), np.sin(ANGLES)]), [0.1, 0.1]]))
COUNTS = np.array([*[10] * 9, 5, 3, 2])


def test_a_row_inside_the_hull_is_counted_with_its_frequency() -> None:
    found = ask(WITH_ONE_INSIDE, DEFAULT_DOMAIN, COUNTS)
    assert found["unargmaxable"] == 1
    assert found["share_of_text"] == 0.02
    assert found["tenths"] == [*[0] * 9, 1]
    assert found["undecided"] == 0


def test_without_victims_no_part_of_the_text_is_unargmaxable() -> None:
    found = ask(am.Head(np.eye(12)), DEFAULT_DOMAIN, COUNTS)
    assert found["unargmaxable"] == 0
    assert found["share_of_text"] == 0


def test_a_smaller_domain_loses_no_fewer_tokens() -> None:
    head = am.Head(np.random.default_rng(0).normal(size=(60, 3)), np.random.default_rng(1).normal(size=60))
    counts = np.ones(60, np.int64)
    near, far = (ask(head, am.Box(-size, size), counts)["unargmaxable"] for size in (1.0, 100.0))
    assert near >= far


def test_every_width_has_as_many_seeds() -> None:
    committed = cells(Scale.COMMITTED)
    assert len(committed) == len(FEATURES) * SEEDS
    assert {cell["vocabulary"] for cell in committed} == {1000}


def test_the_same_cell_gives_the_same_numbers_and_a_row() -> None:
    found = measure(SETTINGS, None)
    assert measure(SETTINGS, None) == found
    written = table([Cell(SETTINGS, found, 1.0)])
    assert f"| 3 | {found['test']:.0f} |" in written
    assert all(name in written for name in (UNIFORM, NORMAL, *QUESTIONS.values()))


def test_the_figure_shows_both_questions_by_frequency() -> None:
    asked = {"unargmaxable": 3, "undecided": 0, "tenths": [0.0] * 9 + [0.75], "share_of_text": 0.01}
    found = {"test": 9.0, "uniform": {"unargmaxable": 1, "undecided": 0}, "normal_expected": 2.5,
             "weights": asked, "reachable": {**asked, "tenths": [1.0] * 10}}  # fmt: skip
    _, *panels = figures([Cell(SETTINGS, found, 1.0)])["stolen_probability"].axes
    assert [axes.get_title() for axes in panels] == list(QUESTIONS.values())
    assert [axes.lines[0].get_ydata()[-1] for axes in panels] == [75, 100]


def test_a_spread_names_its_ends_only_where_seeds_differ() -> None:
    assert _spread([2, 2, 2], ",.0f") == "2"
    assert _spread([1, 2, 6], ",.0f") == "3 (1–6)"
