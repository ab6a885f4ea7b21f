"""Bounds that certificates prove by float64 are what their formulas say in rationals: every rounding that the
comments count is in them, each to a few units."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from oracles import dot, rationals

import argmaxable as am
from argmaxable.check.checker import Checker
from argmaxable.check.orders import _scores
from argmaxable.check.sets import SetChecker
from argmaxable.check.solutions import (
    Equations,
    _float_equations,
    _frobenius,
    _only_solution,
    _smallest_eigenvalue,
)
from argmaxable.compute.lapack import dpotrf
from argmaxable.core.label_sets import SetTest
from argmaxable.core.verdict import Certificate

UNIT, TINY = Fraction(2) ** -53, Fraction(2) ** -1021
EVERYWHERE = am.Everywhere()


def gamma(count: int) -> Fraction:
    return count * UNIT / (1 - count * UNIT)


def total_of(numbers: Any) -> Fraction:
    return sum((abs(Fraction(float(number))) for number in np.ravel(numbers)), Fraction(0))


def is_near(found: float, exact: Fraction, size: Fraction, units: int = 4) -> bool:
    """Whether a float is that number but for roundings of terms of this size."""
    return abs(Fraction(float(found)) - exact) <= units * UNIT * size


def floats(numbers: list[Fraction]) -> np.ndarray:
    return np.array([float(number) for number in numbers])


def support(domain: am.Domain, u: list[Fraction], error: list[Fraction]) -> Fraction:
    return Fraction(float(domain.support_bound(floats(u)[None], floats(error)[None])[0]))


def a_head(seed: int, classes: int = 40, features: int = 3) -> am.Head:
    """Biases are 0 on average, so that nothing is taken off them."""
    rng = np.random.default_rng(seed)
    biases = np.round(rng.normal(size=classes) * 4, 3)
    biases -= biases.mean()
    return am.Head(rng.normal(size=(classes, features)), biases)


def checker_of(head: am.Head, domain: am.Domain = EVERYWHERE) -> Checker:
    return Checker(head, domain, centre=np.zeros(head.features))


BOXES = [am.Box(-1, 2), am.Box(0.5, 3), am.Box([0.1, -2.0, 0.3], [0.1, -2.0, 0.3])]


# ---------------------------------------------------------------------- weights that are meant literally


@pytest.mark.parametrize("domain", BOXES)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_literal_weights_count_their_sums_and_eight_roundings(domain: am.Domain, sign: float) -> None:
    rng = np.random.default_rng(0)
    for seed in range(6):
        head = a_head(seed)
        head = am.Head(sign * np.abs(head.weight), head.bias)
        checker = checker_of(head, domain)
        biases = rationals(checker.scores.biases)
        proof = Certificate(np.arange(5, 35), rng.uniform(0, 1, 30) * 10.0 ** rng.integers(-2, 3))
        weights, total = rationals(proof.weights), Fraction(float(proof.weights.sum()))
        relative = gamma(38)
        for class_id, found in enumerate(checker.bounds(np.arange(5), proof)):
            columns = [rationals(column) for column in head.weight.T]
            u = [total * column[class_id] - dot(weights, column[5:35]) for column in columns]
            error = [
                relative * (total * abs(c[class_id]) + dot(weights, list(map(abs, c[5:35])))) + 30 * TINY
                for c in columns
            ]
            value = support(domain, u, error)
            offset = total * biases[class_id] - dot(weights, biases[5:35])
            sizes = total * abs(biases[class_id]) + dot(weights, list(map(abs, biases[5:35])))
            slack = relative * sizes + 30 * TINY
            exact = (value + offset + slack) / total
            exact += relative * (abs(value) + abs(offset) + slack) / total + TINY
            assert is_near(found, exact, (total_of(floats(u)) * 3 + sizes + abs(value)) / total)


def test_literal_weights_on_nothing_count_what_underflows() -> None:
    proof = Certificate(np.array([1, 2]), np.array([0.75, 0.25]))
    checker = checker_of(am.Head(np.zeros((3, 2))), am.Box(0, 0))
    # One for each weight, one for the quotient, and one for each of two features in the support.
    assert checker.bounds(np.array([0]), proof)[0] / float(TINY) == pytest.approx(5.0)
    wide = checker_of(am.Head(np.zeros((3, 2))), am.Box(-1, 1))
    # And what two weights can lose in each feature.
    assert wide.bounds(np.array([0]), proof)[0] / float(TINY) == pytest.approx(9.0)


@pytest.mark.parametrize("domain", BOXES)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_one_rival_counts_its_roundings(domain: am.Domain, sign: float) -> None:
    for seed in range(10):
        head = a_head(seed)
        head = am.Head(sign * np.abs(head.weight), head.bias)
        checker = checker_of(head, domain)
        biases = rationals(checker.scores.biases)
        found = checker.rival_bounds(np.arange(20), np.arange(20, 40))
        for c in range(20):
            rival = c + 20
            u = [Fraction(float(a - b)) for a, b in zip(head.weight[c], head.weight[rival], strict=True)]
            value = support(domain, u, [gamma(2) * abs(each) + TINY for each in u])
            sizes = abs(biases[c]) + abs(biases[rival]) + abs(value)
            exact = value + biases[c] - biases[rival] + gamma(8) * sizes
            assert is_near(found[c], exact, sizes, 3)


# ---------------------------------------------------------------------- weights next to exact ones


def test_the_bound_near_a_solution_counts_shift_and_roundings() -> None:
    rng = np.random.default_rng(1)
    for seed in range(10):
        head = a_head(seed)
        checker = checker_of(head)
        biases = rationals(checker.scores.biases)
        proof = Certificate(np.arange(10, 40), rng.dirichlet(np.ones(30)), basis=20)
        weights, shift = rationals(proof.weights), Fraction(2) ** -50 * 7
        for class_id in range(5):
            drop = [biases[class_id] - each for each in biases[10:40]]
            size = [abs(biases[class_id]) + abs(each) for each in biases[10:40]]
            slack = shift * sum(map(abs, drop[:20]))
            slack += gamma(38) * (dot(weights, size) + slack)
            reach = sum(weights) + 20 * shift
            errors = max(abs(each) * 2 * UNIT for each in (*biases[10:40], biases[class_id]))
            slack += reach * errors * 2 + 38 * TINY
            exact = dot(weights, drop) * 1 + slack + 4 * UNIT * abs(dot(weights, drop))
            found = checker._bound_near(class_id, proof, float(shift))
            assert is_near(found, exact, dot(weights, size), 3)


def test_without_biases_the_bound_near_a_solution_is_zero() -> None:
    checker = checker_of(am.Head(np.eye(4)))
    assert checker._bound_near(0, Certificate(np.arange(1, 4), np.ones(3), basis=2), 0.25) == 0.0


def test_biases_over_a_shift_count_their_sums() -> None:
    head, shift = a_head(3), np.array([0.5, -3.0, 100.0])
    checker = checker_of(head, am.RMSNorm(np.ones(3), shift))
    found = checker._shifted_biases(np.arange(40))
    assert found is not None
    for k in range(40):
        row, bias = rationals(head.weight[k]), rationals(checker.scores.biases)[k]
        size = dot(list(map(abs, row)), list(map(abs, rationals(shift)))) + abs(bias)
        assert is_near(found[0][k], dot(row, rationals(shift)) + bias, size)
        assert is_near(found[1][k], gamma(9) * size, gamma(9) * size)


def test_biases_without_a_shift_are_off_by_their_centring() -> None:
    checker = checker_of(a_head(4))
    values, errors = checker._shifted_biases(np.array([3, 7])) or (None, None)
    assert values is not None
    assert errors is not None
    assert values.tolist() == checker.scores.biases[[3, 7]].tolist()
    assert errors.tolist() == (np.abs(values) * 2.0**-52).tolist()
    assert checker_of(am.Head(np.eye(2)))._shifted_biases(np.array([0])) is None


# ---------------------------------------------------------------------- weights to be solved for


def test_the_size_of_a_matrix_is_rounded_up() -> None:
    for matrix, length in (([[3.0, -4.0]], 5), ([[2.0, -2.0], [-2.0, 2.0]], 4), ([[1.0] * 100], 10)):
        count = np.size(matrix)
        exact = length * (1 + gamma(count + 4)) + count * TINY
        assert is_near(_frobenius(np.array(matrix)), exact, Fraction(length), 3)
    assert _frobenius(np.zeros((3, 5))) == float(15 * TINY)


GAINS = np.array([0.7, -1.3, 2.1])
SPACES = {
    "everywhere": EVERYWHERE,
    "gains": am.RMSNorm(GAINS),
    "mean": am.LayerNorm(GAINS),
}


@pytest.mark.parametrize("name", SPACES)
def test_rows_of_equations_and_their_errors(name: str) -> None:
    head, domain = a_head(5), SPACES[name]
    centre = np.array([0.3, -0.2, 0.1])
    rows, slack = _float_equations(head, domain, centre, np.arange(40))
    gains = [Fraction(1)] * 3 if name == "everywhere" else rationals(GAINS)
    for k in range(40):
        exact = [
            (a - b) * g for a, b, g in zip(rationals(head.weight[k]), rationals(centre), gains, strict=True)
        ]
        width = [gamma(4) * abs(each) + TINY for each in exact]
        if name == "mean":
            exact, width = (
                [each - exact[-1] for each in exact[:-1]],
                [one + width[-1] + gamma(2) * abs(each - exact[-1])
                 for one, each in zip(width[:-1], exact[:-1], strict=True)],
            )  # fmt: skip
        for j, (value, doubt) in enumerate(zip(exact, width, strict=True)):
            assert abs(Fraction(float(rows[k, j])) - value) <= doubt
            assert is_near(slack[k, j], doubt, abs(value) / 10 + doubt, 1)


def equations(head: am.Head, domain: am.Domain, count: int, basis: int) -> Equations:
    return Equations(head, domain, np.zeros(head.features), np.arange(1, count + 1), basis)


@pytest.mark.parametrize("name", SPACES)
def test_what_weights_miss_counts_every_rounding(name: str) -> None:
    rng = np.random.default_rng(6)
    head = a_head(6)
    some = equations(head, SPACES[name], 30, 20)
    weights = rng.dirichlet(np.ones(30), size=2)
    found = some._residuals(np.array([0, 35]), weights)
    points, doubts = some._points(np.arange(1, 31))
    own, own_doubt = some._points(np.array([0, 35]))
    for k in range(2):
        lambdas = rationals(weights[k])
        for j in range(points.shape[1]):
            column, target = rationals(points[:, j]), Fraction(float(own[k, j]))
            missed = abs(target - dot(lambdas, column))
            spread = abs(target) + dot(lambdas, list(map(abs, column)))
            doubt = Fraction(float(own_doubt[k, j])) + dot(lambdas, rationals(doubts[:, j]))
            exact = missed + gamma(36) * spread + some.count * TINY + doubt
            assert is_near(found[k, j], exact, spread, 4)
    assert points[:, -1].tolist() == [1.0] * 30
    assert doubts[:, -1].tolist() == [0.0] * 30


def test_a_large_basis_has_its_length_over_the_least_stretch() -> None:
    some = equations(a_head(7), EVERYWHERE, 30, 20)
    residual = np.array([3e-9, -1e-9, 2e-9, 5e-10])
    found, stretch = some._shift(residual), some._stretch
    assert found is not None
    assert stretch is not None
    length = Fraction(_frobenius(residual * stretch[0]))
    assert is_near(found, length / Fraction(stretch[1]) * (1 + gamma(8)), Fraction(found), 3)


@pytest.mark.parametrize("name", SPACES)
def test_the_least_stretch_counts_every_rounding(name: str) -> None:
    """α less the error of the Gram matrix and of its factorisation; so is the square of what is said."""
    head = a_head(8)
    some = equations(head, SPACES[name], 30, 20)
    assert some._stretch is not None
    scale, least = some._stretch
    points, doubts = some._points(np.arange(1, 21))
    scaled = points * scale
    assert (np.abs(scaled).max(axis=0) < 1).all()
    assert (np.abs(scaled).max(axis=0) >= 0.5).all()
    gram = scaled.T @ scaled
    alpha = _smallest_eigenvalue(gram) / 2
    gram.flat[:: some.count + 1] -= alpha
    factor, _ = dpotrf(gram, lower=1, clean=1)
    length = Fraction(_frobenius(scaled)) * (1 + gamma(5))
    doubtful = Fraction(_frobenius(doubts * scale)) * (1 + gamma(5))
    error = gamma(24) * length**2 + 2 * length * doubtful + doubtful**2
    error += gamma(some.count + 2) * Fraction(_frobenius(factor)) ** 2 + 4 * UNIT * length**2
    exact = Fraction(alpha) - error * (1 + gamma(16))
    assert is_near(least, Fraction(math.sqrt(exact)) / (1 + gamma(4)), Fraction(least), 3)
    smallest = float(np.linalg.svd(scaled, compute_uv=False).min())
    assert 0.7 * smallest < least < smallest


def test_the_smallest_eigenvalue_is_found_roughly() -> None:
    rng = np.random.default_rng(9)
    for _ in range(20):
        rows = rng.normal(size=(12, 5))
        gram = rows.T @ rows
        smallest = float(np.linalg.eigvalsh(gram).min())
        assert _smallest_eigenvalue(gram) == pytest.approx(smallest, rel=0.3)
    assert _smallest_eigenvalue(np.diag([1.0, 0.0])) == 0.0
    assert _smallest_eigenvalue(np.array([[4.0]])) == pytest.approx(4.0)


def test_the_only_solution_counts_the_inverse_and_its_defect() -> None:
    """|λ − λ̂| ≤ |Y r| / (1 − e) by the words of the module."""
    rng = np.random.default_rng(10)
    for size in (1, 2, 6):
        points, doubt = rng.normal(size=(size, size)) + 2 * np.eye(size), np.full((size, size), 1e-10)
        residual = rng.uniform(0, 1e-6, size)
        found = _only_solution(points, doubt, residual)
        assert found is not None
        inverse = np.linalg.inv(points.T)
        matrix = [rationals(row) for row in points.T]
        y = [rationals(row) for row in inverse]
        defects = []
        for i in range(size):
            row = Fraction(0)
            for j in range(size):
                product = dot(y[i], [matrix[k][j] for k in range(size)])
                row += abs((i == j) - product)
                row += sum(
                    abs(y[i][k]) * (gamma(size + 4) * abs(matrix[k][j]) + Fraction(float(doubt.T[k, j])))
                    for k in range(size)
                )
                row += gamma(4) + size * TINY
            defects.append(row)
        contraction = max(defects) * (1 + gamma(size))
        moved = max(dot(list(map(abs, row)), rationals(residual)) for row in y)
        exact = moved * (1 + gamma(size + 8)) / (1 - contraction)
        assert is_near(found, exact, exact, 6)


def test_a_matrix_that_may_be_singular_has_no_solution() -> None:
    assert _only_solution(np.eye(2), np.full((2, 2), 0.3), np.ones(2)) is None
    assert _only_solution(np.eye(2), np.full((2, 2), 0.2), np.ones(2)) is not None
    assert _only_solution(np.ones((2, 2)), np.zeros((2, 2)), np.ones(2)) is None
    assert _only_solution(np.full((2, 2), np.nan), np.zeros((2, 2)), np.ones(2)) is None


# ---------------------------------------------------------------------- sets and orders


@pytest.mark.parametrize("kind", tuple(am.SetKind))
@pytest.mark.parametrize("domain", BOXES)
def test_bounds_on_sets_count_every_rounding(kind: am.SetKind, domain: am.Domain) -> None:
    rng = np.random.default_rng(11)
    for seed in range(6):
        head = a_head(seed)
        is_top = kind is am.SetKind.TOP
        test = SetTest(kind, 0.0 if is_top else tuple(rng.normal(size=40)))
        checker = SetChecker(head, domain, test)
        inside = np.ones(30, bool) if kind is am.SetKind.AT_LEAST else np.arange(30) % 3 == 0
        proof = Certificate(np.arange(30), rng.uniform(0.01, 1, 30))
        weights = rationals(proof.weights)
        sides = [Fraction(float(proof.weights.sum()))] * 30
        if is_top:
            both = [
                Fraction(float(proof.weights[inside].sum())),
                Fraction(float(proof.weights[~inside].sum())),
            ]
            sides = [both[0] if one else both[1] for one in inside]
        factors = [(w if one else -w) / s for w, one, s in zip(weights, inside, sides, strict=True)]
        centre = rationals(checker.prepared.centre) if is_top else [Fraction(0)] * 3
        columns = [[each - middle for each in rationals(column[:30])]
                   for column, middle in zip(head.weight.T, centre, strict=True)]  # fmt: skip
        biases, limits = rationals(head.biases()[:30]), rationals(checker.thresholds[:30])
        relative, underflow, sizes = gamma(72), 120 * TINY, list(map(abs, factors))
        u = [dot(factors, column) for column in columns]
        width = [relative * dot(sizes, list(map(abs, column))) + underflow for column in columns]
        value = support(domain, u, width)
        offset = dot(factors, [b - t for b, t in zip(biases, limits, strict=True)])
        spread = dot(sizes, [abs(b) + abs(t) for b, t in zip(biases, limits, strict=True)])
        slack = relative * spread + underflow
        exact = value + offset + slack
        exact += gamma(8) * (abs(value) + abs(offset) + slack) + TINY
        found = checker._float_bound(inside, proof)
        reach = sum((dot(sizes, list(map(abs, column))) for column in columns), Fraction(0))
        assert is_near(found, exact, 3 * reach + spread, 3)


@pytest.mark.parametrize("features", [2, 30])
def test_scores_in_an_order_count_every_rounding_twice(features: int) -> None:
    rng = np.random.default_rng(12)
    head = am.Head(rng.normal(size=(5, features)), rng.normal(size=5))
    for domain in (EVERYWHERE, am.RMSNorm(rng.normal(size=features), rng.normal(size=features))):
        point = rng.normal(size=features) / (2 * math.sqrt(features))
        (x,), (misplaced,) = domain.place(point[None])
        scores, errors = _scores(head, domain, np.arange(5), point)
        for k in range(5):
            row, bias = rationals(head.weight[k]), Fraction(float(head.biases()[k]))
            sizes = list(map(abs, row))
            spread = dot(sizes, list(map(abs, rationals(x)))) + abs(bias)
            exact = 2 * (gamma(features + 10) * spread + dot(sizes, rationals(misplaced)))
            assert is_near(scores[k], dot(row, rationals(x)) + bias, spread)
            assert is_near(errors[k], exact, exact)


def test_scores_in_an_order_count_what_underflows() -> None:
    head = am.Head(np.zeros((2, 3)))
    _, errors = _scores(head, EVERYWHERE, np.arange(2), np.array([2.0, -8.0, 0.0]))
    assert errors / float(TINY) == pytest.approx(2 * 3 * 9)
    head = am.Head([[0.0, 0.0, 4.0], [0.0, 0.0, 0.0]])
    _, errors = _scores(head, EVERYWHERE, np.arange(2), np.array([2.0, -8.0, 0.0]))
    assert errors / float(TINY) == pytest.approx([2 * 3 * 9 * 5, 2 * 3 * 9])
