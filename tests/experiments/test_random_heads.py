"""Random heads: the paper's own draws, the formula for what to expect, and the cells' numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracles import hull_vertices

import argmaxable as am
from argmaxable.random_heads import Distribution
from experiments._experiment import Cell, Scale
from experiments.random_heads import (
    EXPERIMENT,
    FEATURES,
    PATIENCE,
    expected_unargmaxable,
    head_of_the_paper,
    log_inner_angle,
    measure,
    reflections_needed,
    table,
)

SMALL = {"distribution": "normal", "features": 3, "seed": 13, "classes": 60}


def test_a_head_is_the_one_that_the_papers_code_draws() -> None:
    np.random.seed(13)
    weight, bias = np.random.uniform(-1, 1, (7, 3)), np.random.uniform(-1, 1, (1, 7))
    head = head_of_the_paper(7, 3, seed=13, distribution=Distribution.UNIFORM)
    np.testing.assert_array_equal(head.weight, weight)
    np.testing.assert_array_equal(head.bias, bias[0])


TETRAHEDRON = (3 * math.acos(1 / 3) - math.pi) / (4 * math.pi)


@pytest.mark.parametrize(("vertices", "angle"), [(1, 1.0), (2, 1 / 2), (3, 1 / 6), (4, TETRAHEDRON)])
def test_angles_of_a_point_a_segment_a_triangle_and_a_tetrahedron(vertices: int, angle: float) -> None:
    assert math.exp(log_inner_angle(vertices)) == pytest.approx(angle, rel=1e-10)


def test_without_features_all_classes_but_the_one_with_the_largest_bias_are_lost() -> None:
    assert expected_unargmaxable(100, 0) == pytest.approx(99)


def test_with_as_many_features_as_classes_none_is_lost() -> None:
    assert expected_unargmaxable(8, 7) == pytest.approx(0, abs=1e-12)


def test_the_expected_number_is_the_mean_over_many_heads() -> None:
    counts = [60 - len(upper_hull(seed)) for seed in range(400)]
    error = np.std(counts) / math.sqrt(len(counts))
    assert abs(np.mean(counts) - expected_unargmaxable(60, 2)) < 4 * error


def upper_hull(seed: int) -> set[int]:
    """The classes of a normal head (60 × 2, with bias) that win somewhere: vertices of the hull of the rows
    (w, b) and a point far below all of them."""
    rows = np.random.default_rng(seed).normal(size=(60, 3))
    return hull_vertices(np.vstack([rows, [0.0, 0.0, -1e6]])) - {60}


def test_a_class_out_of_reach_of_reflection_counts_one_step_more_than_patience() -> None:
    """Row 2 lies inside the triangle of the others: no step finds it."""
    head = am.Head(np.array([[1.0, 0.0], [-1.0, 1.0], [0.0, 0.0], [-1.0, -1.0]]))
    assert reflections_needed(head, [0, 2]).tolist() == [0, PATIENCE + 1]


def test_the_same_cell_gives_the_same_numbers_again() -> None:
    assert measure(SMALL, None) == measure(SMALL, None)


def test_a_cell_has_proven_counts_beside_the_expected_one() -> None:
    found = measure(SMALL, None)
    assert found["undecided"] == 0
    assert abs(found["unargmaxable"] - found["expected"]) < 10


def test_the_committed_run_has_every_size_of_the_figure_in_both_distributions() -> None:
    wanted = {(kind.value, features, 10_000) for kind in Distribution for features in FEATURES}
    cells = EXPERIMENT.cells(Scale.COMMITTED)
    assert {(cell["distribution"], cell["features"], cell["classes"]) for cell in cells} == wanted


def test_the_table_has_a_row_for_each_number_of_features_with_all_seeds() -> None:
    found = {"unargmaxable": 1234, "undecided": 0, "solves": 5, "mean_steps": 1.5, "median_steps": 1.0,
             "not_found": 2, "expected": 1200.4}  # fmt: skip
    cells = [
        Cell({**SMALL, "distribution": kind.value, "seed": seed}, found, 1.0)
        for kind in Distribution
        for seed in (13, 14)
    ]
    (row,) = table(cells).splitlines()[2:]
    assert row.startswith("| 3 |")
    assert row.count("1,234, 1,234") == 2
    assert "| 1,200 |" in row
