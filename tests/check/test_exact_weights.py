"""Weights that are solved for exactly, against Cramer's rule in rationals."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest

import argmaxable as am
from argmaxable.check.solutions import (
    Equations,
    exact_weights,
    independent_rows,
    weights_solving,
    with_independent_basis,
)
from argmaxable.core.verdict import Certificate
from argmaxable.exact.dyadic import Dyadic

INF = math.inf
EVERYWHERE = am.Everywhere()


def determinant(matrix: list[list[Fraction]]) -> Fraction:
    total = Fraction(0)
    for order in permutations(range(len(matrix))):
        sign = (-1) ** sum(order[i] > order[j] for i in range(len(order)) for j in range(i + 1, len(order)))
        total += sign * math.prod((matrix[i][j] for i, j in enumerate(order)), start=Fraction(1))
    return total


def solved(
    points: list[list[Fraction]], kept: list[Fraction], target: list[Fraction]
) -> list[Fraction] | None:
    """λ ≥ 0 with Σ λ a = a_c, Σ λ = 1, as many unknown as equations and the last ones given; None without."""
    size = len(points) - len(kept)
    lines = [[*point, Fraction(1)] for point in points]
    right = [
        value - sum((k * line[j] for k, line in zip(kept, lines[size:], strict=True)), Fraction(0))
        for j, value in enumerate([*target, Fraction(1)])
    ]
    matrix = [[lines[i][j] for i in range(size)] for j in range(size)]
    whole = determinant(matrix)
    if not whole:
        return None
    found = []
    for i in range(size):
        replaced = [[right[j] if k == i else matrix[j][k] for k in range(size)] for j in range(size)]
        found.append(determinant(replaced) / whole)
    return [*found, *kept] if min(found) >= 0 else None


def fractions(numbers: Dyadic) -> list[Fraction]:
    return [Fraction(int(value)) * Fraction(2) ** numbers.exponent for value in numbers.integers]


def shares(weights: Dyadic | None) -> list[Fraction] | None:
    """Weights up to a common factor, as shares of 1."""
    if weights is None:
        return None
    values = fractions(weights)
    return [value / sum(values) for value in values]


@pytest.mark.parametrize("features", [1, 2, 3])
@pytest.mark.parametrize("others", [0, 1, 2])
@pytest.mark.parametrize("scale", [1.0, 2.0**-40, 2.0**80])
def test_weights_are_those_that_cramer_finds(features: int, others: int, scale: float) -> None:
    rng = np.random.default_rng(features)
    answers = {True: 0, False: 0}
    for _ in range(25):
        points = rng.integers(-4, 5, (features + 1 + others, features)).astype(float) * scale
        # Weights of other sizes than 1, above all: each is a float with an exponent of its own.
        kept = rng.choice([0.0, 0.125, 2.0**-30, 0.375, 2.0, 4.0], others)
        target = rng.integers(-1, 2, features).astype(float) * scale
        rows = Dyadic.of(np.vstack([points, target]))
        stored = Dyadic.of(np.concatenate([np.ones(features + 1), kept]))
        rationals = [[Fraction(float(value)) for value in point] for point in points]
        exact = solved(rationals, [Fraction(float(k)) for k in kept], [Fraction(float(t)) for t in target])
        found = shares(weights_solving(rows, stored, features + 1))
        assert found == exact
        answers[found is not None] += 1
    assert answers[False] > 0
    assert answers[True] > 0


def test_a_smaller_basis_must_satisfy_every_equation() -> None:
    """Between two points of the plane there is a middle; beside the line there is none."""
    ones = Dyadic.of(np.ones(2))

    def found(*target: float) -> list[Fraction] | None:
        return shares(weights_solving(Dyadic.of(np.array([[0.0, 0.0], [4.0, 2.0], target])), ones, 2))

    assert found(1.0, 0.5) == [Fraction(3, 4), Fraction(1, 4)]
    assert found(4.0, 2.0) == [Fraction(0), Fraction(1)]
    assert found(1.0, 0.75) is None
    assert found(5.0, 2.5) is None
    assert found(-1.0, -0.5) is None


def test_rows_that_depend_on_each_other_have_no_only_solution() -> None:
    rows = Dyadic.of(np.array([[0.0], [2.0], [4.0], [1.0]]))
    assert weights_solving(rows, Dyadic.of(np.full(3, 0.25)), 3) is None
    assert shares(weights_solving(rows, Dyadic.of(np.full(3, 0.25)), 2)) == [
        Fraction(3, 4), Fraction(0), Fraction(1, 4)
    ]  # fmt: skip


def test_equal_rows_of_a_square_system_are_singular() -> None:
    rows = Dyadic.of(np.array([[3.0], [3.0], [3.0]]))
    assert weights_solving(rows, Dyadic.of(np.ones(2)), 2) is None


# ---------------------------------------------------------------------- heads


def certificate(ids: Any, weights: Any, basis: int, coordinates: Any = None) -> Certificate:
    return Certificate(
        np.array(ids), np.array(weights, float), basis, None if coordinates is None else np.array(coordinates)
    )


PLANE = am.Head([[0.0, 0.0, 7.0], [4.0, 0.0, 7.0], [0.0, 4.0, 7.0], [1.0, 2.0, 7.0], [1.0, 2.0, 8.0]])


def test_coordinates_name_features() -> None:
    """Over the first two features class 3 is a mixture; so is class 4, over all three it is none."""
    both = certificate([0, 1, 2], [0.2, 0.2, 0.6], 3, [0, 1])
    expected = [Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)]
    assert shares(exact_weights(PLANE, EVERYWHERE, 3, both)) == expected
    assert shares(exact_weights(PLANE, EVERYWHERE, 4, both)) == expected
    assert shares(exact_weights(PLANE, EVERYWHERE, 3, certificate([0, 1, 2], [0.2] * 3, 3))) == expected
    assert exact_weights(PLANE, EVERYWHERE, 4, certificate([0, 1, 2], [0.2] * 3, 3)) is None
    for wrong in ([0, 3], [-1, 0], [-3, 1], [0, 1, 2, 3]):
        assert exact_weights(PLANE, EVERYWHERE, 3, certificate([0, 1, 2], [0.2] * 3, 3, wrong)) is None
        same = certificate([0, 1, 2], [0.2] * 3, 3, wrong)
        assert with_independent_basis(PLANE, EVERYWHERE, same) is same
    assert exact_weights(PLANE, EVERYWHERE, 3, certificate([0, 1, 2], [0.2] * 3, 3, [0])) is None


def test_gains_and_means_change_the_equations() -> None:
    head = am.Head([[0.0, 1.0], [4.0, 3.0], [2.0, 5.0]])
    gains = np.array([2.0, 0.5])
    # Seen with gains the rows are (0, ½), (8, 1½), (4, 2½); without their means −½, 6½, 1½.
    norm = am.LayerNorm(gains)
    found = shares(exact_weights(head, norm, 2, certificate([0, 1], [0.5, 0.5], 2)))
    assert found == [Fraction(5, 7), Fraction(2, 7)]
    assert exact_weights(head, am.RMSNorm(gains), 2, certificate([0, 1], [0.5, 0.5], 2)) is None
    assert exact_weights(head, EVERYWHERE, 2, certificate([0, 1], [0.5, 0.5], 2)) is None


def test_an_independent_basis_is_chosen_from_the_front() -> None:
    line = am.Head([[0.0], [2.0], [4.0], [6.0], [3.0]])
    chosen = with_independent_basis(line, EVERYWHERE, certificate([0, 1, 2, 3], [0.25] * 4, 4))
    assert chosen.basis == 2
    assert chosen.classes.tolist() == [0, 1, 2, 3]
    assert chosen.weights.tolist() == [0.25] * 4
    twice = am.Head([[2.0], [2.0], [4.0], [3.0]])
    chosen = with_independent_basis(twice, EVERYWHERE, certificate([0, 1, 2], [0.1, 0.3, 0.6], 3))
    assert chosen.basis == 2
    assert chosen.classes.tolist() == [0, 2, 1]
    assert chosen.weights.tolist() == [0.1, 0.6, 0.3]
    plain = certificate([0, 1], [0.5, 0.5], 0)
    assert with_independent_basis(line, EVERYWHERE, plain) is plain
    large = am.Head([[0.0], [2.0**70], [2.0**71], [2.0**69]])
    assert with_independent_basis(large, EVERYWHERE, certificate([0, 1, 2], [0.3] * 3, 3)).basis == 2


def test_independent_rows_are_told_from_others() -> None:
    def whole(rows: list[list[int]]) -> np.ndarray:
        return np.array(rows, dtype=object)

    assert independent_rows(whole([[1, 2, 3], [4, 5, 6]]))
    assert not independent_rows(whole([[1, 2, 3], [2, 4, 6]]))
    assert independent_rows(whole([[0, 1], [1, 0]]))
    assert not independent_rows(whole([[0, 0], [1, 0]]))
    assert not independent_rows(whole([[1, 0], [0, 1], [1, 1]]))
    assert independent_rows(whole([[2**90, 1], [2**90 + 1, 1]]))
    assert not independent_rows(whole([[2**90, 2**45], [2**45, 1]]))


# ---------------------------------------------------------------------- equations in floats


def equations(head: am.Head, count: int, basis: int, domain: am.Domain = EVERYWHERE) -> Equations:
    return Equations(head, domain, np.zeros(head.features), np.arange(count), basis)


def test_there_is_an_equation_for_each_feature_and_one_for_the_sum() -> None:
    rng = np.random.default_rng(0)
    head = am.Head(rng.normal(size=(12, 3)))
    assert equations(head, 10, 5).count == 4
    assert equations(head, 10, 5, am.LayerNorm(np.ones(3))).count == 3
    constant = am.Head(np.hstack([rng.normal(size=(12, 2)), np.full((12, 1), 0.3), rng.normal(size=(12, 1))]))
    assert equations(constant, 10, 6).count == 4  # a larger basis than all equations
    assert equations(constant, 10, 5).count == 5
    assert equations(constant, 10, 4).count == 5
    assert equations(constant, 10, 6, am.LayerNorm(np.ones(4))).count == 4
    almost = am.Head(np.vstack([constant.weight[:9], constant.weight[9:] + 1e-9]))
    assert equations(almost, 10, 6).count == 5


def test_a_class_off_the_constant_feature_is_not_near() -> None:
    rng = np.random.default_rng(1)
    rows = np.hstack([rng.normal(size=(9, 2)), np.full((9, 1), 0.3)])
    weights = np.full(8, 1 / 8)
    middle = weights @ rows[:8]
    for third, is_near in ((0.3, True), (0.30000001, False)):
        head = am.Head(np.vstack([rows[:8], [*middle[:2], third], [*middle[:2], 0.3]]))
        found = equations(head, 8, 8).errors(np.array([8, 9]), np.tile(weights, (2, 1)))
        assert bool(found[0] < 1e-12) is is_near
        assert found[1] < 1e-12


@pytest.mark.parametrize("basis", [3, 6])
def test_weights_that_may_be_negative_are_not_near_enough(basis: int) -> None:
    """Nearness is proven where every weight is larger than what it may be off."""
    rng = np.random.default_rng(2)
    head = am.Head(np.vstack([rng.normal(size=(6, 2)), np.zeros((2, 2))]))
    weights = np.zeros(6)
    weights[:basis] = 1 / basis
    rows = np.vstack([head.weight[:6], weights @ head.weight[:6], weights @ head.weight[:6] + 1e-3])
    head = am.Head(rows)
    near = equations(head, 6, basis).errors(np.array([6, 7]), np.tile(weights, (2, 1)))
    assert near[0] < 1e-13
    assert 1e-4 < near[1] < 1
    small = weights.copy()
    small[0], small[1] = near[1] / 2, weights[0] + weights[1] - near[1] / 2
    target = small @ rows[:6] + 1e-3
    head = am.Head(np.vstack([rows[:6], target, rows[7]]))
    assert equations(head, 6, basis).errors(np.array([6]), small[None]).tolist() == [INF]
    assert equations(head, 6, 2).errors(np.array([6]), weights[None]).tolist() == [INF]
