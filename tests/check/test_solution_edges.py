"""Weights to be solved for: rows of many digits, kept weights that decide, means of several features."""

from __future__ import annotations

from fractions import Fraction

import flint
import numpy as np
import pytest
from oracles import rationals

import argmaxable as am
from argmaxable.check.solutions import Equations, _only_solution, exact_weights, weights_solving
from argmaxable.core.verdict import Certificate
from argmaxable.exact.dyadic import Dyadic
from argmaxable.exact.rounding import gamma

TINY = 2.0**-1021


def shares(weights: Dyadic | None) -> list[Fraction] | None:
    if weights is None:
        return None
    values = [Fraction(int(value)) * Fraction(2) ** weights.exponent for value in weights.integers]
    return [value / sum(values) for value in values]


def solved(points: np.ndarray, kept: np.ndarray, target: np.ndarray) -> list[Fraction]:
    """λ with Σ λ a = a_c, Σ λ = 1, the last ones given, by flint's rationals."""
    size = len(points) - len(kept)
    lines = [[*rationals(point), Fraction(1)] for point in points]
    given = rationals(kept)
    right = [
        value - sum((k * line[j] for k, line in zip(given, lines[size:], strict=True)), Fraction(0))
        for j, value in enumerate([*rationals(target), Fraction(1)])
    ]

    def q(value: Fraction) -> flint.fmpq:
        return flint.fmpq(value.numerator, value.denominator)

    matrix = flint.fmpq_mat([[q(lines[i][j]) for i in range(size)] for j in range(size)])
    found = matrix.solve(flint.fmpq_mat([[q(value)] for value in right]))
    return [*(Fraction(int(found[i, 0].p), int(found[i, 0].q)) for i in range(size)), *given]


@pytest.mark.parametrize("others", [0, 1, 3])
@pytest.mark.parametrize("features", [1, 4])
def test_rows_and_weights_of_all_digits_are_solved_exactly(features: int, others: int) -> None:
    rng = np.random.default_rng(features)
    for _ in range(10):
        points = rng.normal(size=(features + 1 + others, features))
        mixture = rng.dirichlet(np.full(len(points), 5.0))
        target, kept = mixture @ points, mixture[features + 1 :]
        stored = Dyadic.of(np.concatenate([np.ones(features + 1), kept]))
        found = shares(weights_solving(Dyadic.of(np.vstack([points, target])), stored, features + 1))
        assert found == solved(points, kept, target)


def test_a_kept_weight_of_one_leaves_nothing_to_the_basis() -> None:
    rows = Dyadic.of(np.array([[1.0], [5.0], [3.0], [3.0]]))
    for size in (1.0, 2.0):
        found = shares(weights_solving(rows, Dyadic.of(np.array([size, size, 1.0])), 2))
        assert found == [Fraction(0), Fraction(0), Fraction(1)]


@pytest.mark.parametrize("kept", [2.0, 4.0, 2.0**60])
def test_kept_weights_above_one_leave_less_than_nothing(kept: float) -> None:
    """Also where all weights are even, so that their common exponent is above 0."""
    rows = Dyadic.of(np.array([[1.0], [5.0], [3.0], [2.0]]))
    for others in (1.0, 2.0, 2.0**70):
        assert weights_solving(rows, Dyadic.of(np.array([others, others, kept])), 2) is None
    assert shares(weights_solving(rows, Dyadic.of(np.array([2.0, 2.0, 0.0])), 2)) == [
        Fraction(3, 4), Fraction(1, 4), Fraction(0)
    ]  # fmt: skip


@pytest.mark.parametrize("features", [2, 3, 5])
def test_over_a_layer_norm_every_difference_between_features_counts(features: int) -> None:
    """Rows may differ by a constant over all features, and by nothing else."""
    rng = np.random.default_rng(features)
    rows = rng.integers(-8, 9, (features, features)).astype(float)
    norm = am.LayerNorm(np.ones(features))
    middle = rows.mean(axis=0) if features in (2,) else rows[0] * 0.5 + rows[1] * 0.25 + rows[2] * 0.25
    halves = [0.5, 0.5] if features == 2 else [0.5, 0.25, 0.25]
    proof = Certificate(np.arange(len(halves)), np.array(halves), len(halves))
    head = am.Head(np.vstack([rows, middle + 7]))
    assert shares(exact_weights(head, norm, features, proof)) == [Fraction(each) for each in halves]
    for j in range(features):
        off = middle + 7
        off[j] += 0.125
        head = am.Head(np.vstack([rows, off]))
        found = shares(exact_weights(head, norm, features, proof))
        assert found != [Fraction(each) for each in halves]


def test_rows_of_zeros_miss_what_underflows() -> None:
    some = Equations(am.Head(np.zeros((4, 2))), am.Everywhere(), np.zeros(2), np.arange(3), 3)
    found = some._residuals(np.array([3]), np.array([[0.25, 0.25, 0.5]]))
    # Three equations, the row of the class and those of the others.
    assert found[0, :2] / TINY == pytest.approx(5.0)


def test_the_defect_of_an_inverse_counts_whatever_its_sign() -> None:
    """Matrices that are almost singular: the same sums in floats, written out."""
    rng = np.random.default_rng(0)
    refused = found = 0
    for exponent in np.linspace(9, 14, 60):
        size = 6
        points = rng.normal(size=(size, size))
        points[-1] = points[:-1].sum(axis=0) + 10.0**-exponent * rng.normal(size=size)
        doubt, residual = np.zeros((size, size)), np.full(size, 1e-20)
        inverse = np.linalg.inv(points.T)
        off = np.abs(np.eye(size) - inverse @ points.T)
        rounding = np.abs(inverse) @ (gamma(size + 4) * np.abs(points.T)) + gamma(4)
        contraction = float((off + rounding).sum(axis=1).max())
        answer = _only_solution(points, doubt, residual)
        assert (answer is None) == (contraction >= 0.5)
        if answer is not None:
            moved = float((np.abs(inverse) @ residual).max())
            assert answer == pytest.approx(moved / (1 - contraction), rel=1e-12)
        refused, found = refused + (answer is None), found + (answer is not None)
    assert min(refused, found) > 5
