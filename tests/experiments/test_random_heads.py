"""Random heads: the paper's own draws, the cells' numbers, and how they are shown."""

from __future__ import annotations

import numpy as np
import pytest

import argmaxable as am
from argmaxable.models.random_heads import Distribution
from argmaxable.questions.argmax import verify
from experiments.harness.cells import Cell, Scale
from experiments.heads.gaussian import expected_unargmaxable
from experiments.random_heads import (
    EXPERIMENT,
    FEATURES,
    PATIENCE,
    figures,
    head_of_the_paper,
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


def test_a_class_out_of_reach_of_reflection_counts_one_step_more_than_patience() -> None:
    """Row 2 lies inside the triangle of the others: no step finds it."""
    head = am.Head(np.array([[1.0, 0.0], [-1.0, 1.0], [0.0, 0.0], [-1.0, -1.0]]))
    assert reflections_needed(head, [0, 2]).tolist() == [0, PATIENCE + 1]


def test_the_same_cell_gives_the_same_numbers_again() -> None:
    assert measure(SMALL, None) == measure(SMALL, None)


def test_the_mean_steps_are_those_of_the_classes_that_were_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """With little patience: 2,500 steps miss a class only in heads of hundreds."""
    monkeypatch.setattr("experiments.random_heads.PATIENCE", 3)
    settings = {"distribution": "uniform", "features": 4, "seed": 14, "classes": 60}
    found = measure(settings, None)
    head = head_of_the_paper(60, 4, seed=14, distribution=Distribution.UNIFORM)
    verdicts = verify(head, method=am.Algorithm.REFLECTION, patience=3, engine=am.Engine(workers=1)).verdicts
    steps = [verdict.steps for verdict in verdicts if verdict.status is am.Status.ARGMAXABLE]
    assert found["not_found"] > 0
    assert len(steps) + found["not_found"] == 60 - found["unargmaxable"]
    assert found["mean_steps_found"] == np.mean(steps)
    assert found["median_steps_found"] == np.median(steps)


def test_a_cell_has_proven_counts_beside_the_expected_one() -> None:
    found = measure(SMALL, None)
    assert found["undecided"] == 0
    assert abs(found["unargmaxable"] - found["expected"]) < 10


def test_the_committed_run_has_every_size_of_the_figure_in_both_distributions() -> None:
    wanted = {(kind.value, features, 10_000) for kind in Distribution for features in FEATURES}
    cells = EXPERIMENT.cells(Scale.COMMITTED)
    assert {(cell["distribution"], cell["features"], cell["classes"]) for cell in cells} == wanted


FOUND = {"unargmaxable": 1234, "undecided": 0, "solves": 5, "mean_steps_found": 1.5,
         "median_steps_found": 1.0, "not_found": 2, "expected": 1200.4}  # fmt: skip


def cells_of(features: int) -> list[Cell]:
    return [
        Cell({**SMALL, "features": features, "distribution": kind.value, "seed": seed}, FOUND, 1.0)
        for kind in Distribution
        for seed in (13, 14)
    ]


def test_the_table_has_a_row_for_each_number_of_features_with_all_seeds() -> None:
    (row,) = table(cells_of(3)).splitlines()[2:]
    assert row.startswith("| 3 |")
    assert row.count("1,234, 1,234") == 2
    assert "| 1,200 |" in row


def test_the_table_quotes_the_paper_only_after_30_features() -> None:
    rows = table([*cells_of(30), *cells_of(31)]).splitlines()[2:]
    assert ["none expected" in row for row in rows] == [False, True]


def test_the_figure_of_normal_weights_has_the_formulas_curve_beside_the_counts() -> None:
    drawn = figures([*cells_of(3), *cells_of(5)])
    means, curve = drawn["random_heads_normal"].axes[0].lines
    assert list(means.get_ydata()) == [1234, 1234]
    assert list(curve.get_ydata()) == [expected_unargmaxable(60, d, has_bias=True) for d in (3, 4, 5)]
    assert len(drawn["random_heads_uniform"].axes[0].lines) == 1
