"""Approximate against exact: what is counted as missed, and what precision and recall are made of it."""

from __future__ import annotations

import numpy as np
import pytest

import argmaxable as am
from argmaxable.questions.ceiling.descent import Slope
from experiments.approximate_search import (
    BOX,
    EXPERIMENT,
    PATIENCES,
    REAL,
    highest_share,
    least_recall_of_weights,
    measure,
    missed_by_descent,
    missed_by_own_direction,
    missed_by_reflection,
    most_missed_by_descent,
    precision,
    proven_by_descent,
    recall_of_weights,
    table,
    wins_after_descent,
)
from experiments.harness.cells import Cell, Scale

SMALL = {"head": "random", "features": 4, "seed": 0, "classes": 80, "descents": 10}
# A square and a point near its middle, pushed down by its bias.
SQUARE = am.Head(
    np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0], [0.1, 0.2]]),
    np.array([0.0, 0.0, 0.0, 0.0, -0.5]),
)


@pytest.fixture(scope="module")
def small() -> Cell:
    return Cell(SMALL, measure(SMALL, None), 1.0)


@pytest.fixture
def square() -> tuple[am.Checker, Slope]:
    checker = am.Checker(SQUARE, BOX)
    return checker, Slope(checker, temperature=0.1, tolerance=1e-6)


def test_a_corner_wins_after_descent(square: tuple[am.Checker, Slope]) -> None:
    assert all(wins_after_descent(*square, class_id) for class_id in range(4))
    assert not any(proven_by_descent(*square, class_id) for class_id in range(4))


def test_the_descent_proves_the_middle_unargmaxable(square: tuple[am.Checker, Slope]) -> None:
    assert proven_by_descent(*square, 4)
    assert not wins_after_descent(*square, 4)


def test_more_patience_misses_less(small: Cell) -> None:
    missed = [missed_by_reflection([small], patience) for patience in PATIENCES]
    assert missed == sorted(missed, reverse=True)
    assert missed[0] > missed[-1]


def test_the_counts_are_those_of_exact_verdicts(small: Cell) -> None:
    assert small.found["undecided"] == 0
    assert 0 < small.found["unargmaxable"] < 80
    assert missed_by_own_direction([small]) <= 80 - small.found["unargmaxable"]


def test_no_more_classes_are_descended_than_asked_for(small: Cell) -> None:
    for tried in small.found["descents"].values():
        assert tried["argmaxable"] == tried["unargmaxable"] == 10


def test_the_same_cell_gives_the_same_numbers_again(small: Cell) -> None:
    assert measure(SMALL, None) == small.found


def found(*, unargmaxable: int, own: int, missed: int, proven: int) -> Cell:
    tried = {"argmaxable": 10, "missed": missed, "unargmaxable": 20, "proven": proven}
    return Cell(
        SMALL,
        {
            "classes": 80, "features": 4, "unargmaxable": unargmaxable, "undecided": 0,
            "missed by own direction": own,
            "missed by reflection": dict.fromkeys(map(str, PATIENCES), own),
            "descents": {"1.0": tried, "0.1": tried},
        },
        1.0,
    )  # fmt: skip


def test_precision_is_the_share_of_unargmaxable_classes_in_all_that_was_not_found() -> None:
    assert precision([found(unargmaxable=30, own=10, missed=0, proven=0)], 10) == 0.75


def test_a_search_that_finds_everything_in_a_head_without_losses_is_right() -> None:
    assert precision([found(unargmaxable=0, own=0, missed=0, proven=0)], 0) == 1


def test_what_a_descent_misses_is_scaled_up_from_the_classes_it_tried() -> None:
    assert missed_by_descent([found(unargmaxable=30, own=40, missed=1, proven=0)] * 2, 1.0) == 8


def test_recall_is_taken_over_the_unargmaxable_classes_tried() -> None:
    assert recall_of_weights([found(unargmaxable=30, own=1, missed=0, proven=15)], 0.1) == 0.75


def test_the_table_puts_seeds_of_one_size_into_one_row() -> None:
    rows = table([found(unargmaxable=20, own=10, missed=1, proven=20)] * 2).splitlines()
    assert rows[2] == (
        "| random, 80 × 4 | 20, 20 | 66.7 % | 66.7 % | 66.7 % | 66.7 % | 66.7 % | 95.2 % | 95.2 % "
        "| 100.0 % | 100.0 % |"
    )


def test_the_table_has_the_worst_seed_in_brackets() -> None:
    rows = table(
        [
            found(unargmaxable=20, own=10, missed=0, proven=20),
            found(unargmaxable=20, own=20, missed=0, proven=20),
        ]
    )
    assert "| 57.1 % (50.0) |" in rows.splitlines()[2]


def test_none_of_a_hundred_leaves_up_to_three_percent() -> None:
    assert highest_share(0, 100) == pytest.approx(1 - 0.05 ** (1 / 100))
    assert highest_share(10, 10) == 1


def test_a_sample_allows_more_misses_than_it_has() -> None:
    cell = found(unargmaxable=30, own=40, missed=0, proven=20)
    assert missed_by_descent([cell], 1.0) == 0
    assert most_missed_by_descent(cell, 1.0) == pytest.approx(40 * highest_share(0, 10))


def test_where_every_class_was_tried_nothing_is_left_to_chance() -> None:
    cell = found(unargmaxable=20, own=10, missed=1, proven=15)
    assert most_missed_by_descent(cell, 1.0) == 1
    assert least_recall_of_weights(cell, 1.0) == 0.75


def test_a_sample_allows_less_recall_than_it_has() -> None:
    assert least_recall_of_weights(found(unargmaxable=30, own=10, missed=0, proven=20), 1.0) < 0.9


def test_real_heads_are_no_part_of_a_smoke_run() -> None:
    assert {cell["head"] for cell in EXPERIMENT.cells(Scale.SMOKE)} == {"random"}
    assert set(REAL) <= {cell["head"] for cell in EXPERIMENT.cells(Scale.COMMITTED)}
