"""Gaps at the edges: rows far from 0, twins beside near twins, fine points, leads at a limit of float32."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from oracles import exact_gap

import argmaxable as am
from argmaxable.check.checker import Checker
from argmaxable.check.witnesses import _SINGLE, Scores
from argmaxable.compute.backend import NumPy
from argmaxable.compute.prepared import prepared
from argmaxable.core.verdict import FinePoint
from argmaxable.exact.dyadic import round_down

INF = math.inf
BIT = 2.0**-52


class Guessing(NumPy):
    """A backend that does not keep to the bounds of float32, so that float64 is asked."""

    keeps_bounds = False


def test_what_all_rows_share_is_taken_off_before_scores_are_formed() -> None:
    """A part of 10⁷ in every row would round away what the bound on the rest allows."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        head = am.Head(rng.normal(size=(6, 3)) + 1e7, rng.normal(size=6))
        z = rng.normal(size=3) * 50
        for backend in (NumPy(), Guessing()):
            checker = Checker(head, am.Everywhere())
            checker.scores.backend = backend
            found = checker.gaps(np.arange(6), np.tile(z, (6, 1)))
            for class_id in range(6):
                truth = exact_gap(head, am.Everywhere(), class_id, z)
                assert truth is not None
                assert Fraction(float(found.lower[class_id])) <= truth
                assert found.lower[class_id] >= float(truth) - (0.1 if backend.keeps_bounds else 1e-9)


def test_twins_beside_a_near_twin_stand_apart_by_little() -> None:
    head = am.Head([[1.0], [1.0], [1.0 - BIT], [0.0]])
    found = Checker(head, am.Box(-9, 9), centre=np.zeros(1)).gaps(np.array([0, 1, 2]), np.ones((3, 1)))
    assert found.lower.tolist() == [0.0, 0.0, -BIT]
    assert found.apart.tolist() == [BIT, BIT, -BIT]


@pytest.mark.parametrize("domain", [am.LayerNorm([1.0, -3.0, 0.5], [0.1, 0.2, 0.3]), am.Everywhere()])
def test_near_twins_are_told_apart_exactly_over_a_norm(domain: am.Domain) -> None:
    """Means of three features have thirds in them."""
    rng = np.random.default_rng(1)
    row = rng.normal(size=3)
    head = am.Head(np.vstack([row, row * (1 + BIT), row * (1 - 3 * BIT)]))
    for _ in range(20):
        z = rng.normal(size=3) / 3
        found = Checker(head, domain, centre=np.zeros(3)).gaps(np.arange(3), np.tile(z, (3, 1)))
        for class_id in range(3):
            truth = exact_gap(head, domain, class_id, z)
            assert truth is not None
            assert found.lower[class_id] <= truth
            if truth > 0:
                assert found.lower[class_id] == round_down(truth)


def test_fine_points_are_inside_or_prove_nothing() -> None:
    checker = Checker(am.Head([[1.0], [0.0]]), am.Box(-1, 1))
    assert checker.fine_gap(0, FinePoint((2**70,), -70)) == 1.0
    assert checker.fine_gap(0, FinePoint((2**70 + 1,), -70)) == -INF
    assert checker.fine_gap(0, FinePoint((1,), -200)) == 2.0**-200
    assert checker.fine_gap(1, FinePoint((1,), -200)) == -(2.0**-200)
    alone = Checker(am.Head([[1.0]]), am.Box(-1, 1))
    assert alone.fine_gap(0, FinePoint((1,), -1)) == INF
    assert alone.fine_gap(0, FinePoint((3,), 0)) == -INF


# ---------------------------------------------------------------------- who is ahead

LEADS = (-6.0, 0.0, 2.9, 3.1, 3.99, 4.01, 4.9, 5.1, 6.0)
AHEAD = 4


def scores_of(rows: np.ndarray, biases: np.ndarray | None = None) -> Scores:
    return Scores(prepared(am.Head(rows, biases), np.zeros(rows.shape[1])), am.Everywhere())


def slack_of(scores: Scores, class_id: int, x: np.ndarray) -> float:
    error = scores._score_error(x[None], np.zeros((1, len(x))), _SINGLE)
    own = error(scores.norms[class_id], abs(scores.biases[class_id]), 0)
    return float(own + error(scores.norms.max(), np.abs(scores.biases).max(), 0))


def test_a_class_of_negative_bias_is_led_by_the_same_rule() -> None:
    x = np.array([0.5, -0.25])
    count = len(LEADS) + 4
    rows, biases = np.tile([1.0, 2.0], (count, 1)), np.full(count, -3.0)
    biases[-3:] = -80.0, 58.0, 58.0  # 0 on average, but for the leads, and the largest is negative
    slack = slack_of(scores_of(rows, biases), 0, x)
    biases[1:-3] += np.array(LEADS) * slack
    found = scores_of(rows, biases).ahead(np.array([0]), x[None])
    assert found.tolist() == [AHEAD + 2]


def test_a_score_at_the_very_limit_of_float32_is_looked_at_again() -> None:
    x = np.array([1.0, 0.0])
    rows = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 1.5]])
    slack = slack_of(scores_of(rows), 0, x)
    high = np.nextafter(np.float32(1 + 5 * slack), np.float32(INF))
    rows[1, 0] = float(high)
    assert slack_of(scores_of(rows), 0, x) == slack
    assert scores_of(rows).ahead(np.array([0]), x[None]).tolist() == [1]


def test_what_is_looked_at_again_counts_for_its_own_class() -> None:
    x = np.array([1.0, 0.0, 0.0])
    rows = np.zeros((len(LEADS) + 2, 3))
    rows[:, 0], rows[-1, 1] = 1.0, 1.5
    slack = slack_of(scores_of(rows), 0, x)
    rows[1:-1, 0] += np.array(LEADS) * slack
    alone = np.array([0.0, 1.0, 0.0])  # there the last class leads all others, and clearly
    found = scores_of(rows).ahead(np.array([0, len(rows) - 1, 1]), np.array([x, alone, alone]))
    assert found.tolist() == [AHEAD, 0, 1]
