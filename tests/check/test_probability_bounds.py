"""Bounds on probabilities are what their formulas say, evaluated in rationals: every rounding that the
documentation counts is in them, each to a few units. Exponentials are those of exact/exponential.py."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from oracles import rationals

import argmaxable as am
from argmaxable.check.checker import Checker
from argmaxable.check.probabilities import CeilingChecker, _mass_above, _Odds, _reached, never_enters
from argmaxable.exact.exponential import exp_bounds

INF = math.inf
UNIT, TINY = Fraction(2) ** -53, Fraction(2) ** -1021
CLASSES = 60
Rows = list[list[Fraction]]


def gamma(count: int) -> Fraction:
    return count * UNIT / (1 - count * UNIT)


def is_within(found: float, exact: Fraction, units: int | Fraction) -> bool:
    """Whether a float is that number but for some roundings of its own computation."""
    return abs(Fraction(float(found)) - exact) <= units * UNIT * abs(exact)


def odds_of(values: Any, errors: Any, classes: Any, features: int = 2) -> _Odds:
    values, errors = np.array(values, float), np.array(errors, float)
    classes = np.array(classes)
    index = np.arange(len(values))
    values[index, classes], errors[index, classes] = -INF, 0.0
    nothing = np.zeros((len(values), features))
    return _Odds(classes, nothing, nothing, values, errors)


def lows_and_highs(odds: _Odds) -> tuple[Rows, Rows]:
    low, _ = exp_bounds(odds.values - odds.errors)
    _, high = exp_bounds(odds.values + odds.errors)
    return [rationals(row) for row in low], [rationals(row) for row in high]


def some_odds(seed: int, spread: float = 3.0) -> _Odds:
    rng = np.random.default_rng(seed)
    shape = (3, CLASSES)
    return odds_of(rng.normal(size=shape) * spread, rng.uniform(0, 0.5, shape), [5, 0, CLASSES - 1])


# ---------------------------------------------------------------------- at a point


@pytest.mark.parametrize("seed", range(3))
def test_what_is_reached_counts_its_sum_and_eight_units(seed: int) -> None:
    odds = some_odds(seed)
    _, high = lows_and_highs(odds)
    for k, found in enumerate(_reached(odds)):
        against = sum(value for i, value in enumerate(high[k]) if i != odds.classes[k])
        exact = (1 - 8 * UNIT) / (1 + against * (1 + gamma(CLASSES + 4)))
        assert is_within(found, exact, 4)


@pytest.mark.parametrize("seed", range(3))
def test_the_mass_above_counts_its_sums_and_sixteen_units(seed: int) -> None:
    odds = some_odds(seed)
    low, high = lows_and_highs(odds)
    relative = gamma(CLASSES + 8)
    for k, found in enumerate(_mass_above(odds)):
        others = [i for i in range(CLASSES) if i != odds.classes[k]]
        is_below = {i: odds.values[k, i] + odds.errors[k, i] < 0 for i in others}
        above = sum(high[k][i] for i in others if not is_below[i]) * (1 + relative)
        below = sum(low[k][i] for i in others if is_below[i]) * (1 - relative)
        assert is_within(found, (1 + 16 * UNIT) / (1 + (1 + below) / above), 6)


def test_a_mass_of_about_a_half_counts_the_sums_on_both_sides() -> None:
    values = np.where(np.arange(CLASSES) % 2 == 0, 0.1, -0.1)[None]
    odds = odds_of(values, np.full((1, CLASSES), 0.01), [7])
    low, high = lows_and_highs(odds)
    above = sum(high[0][0::2]) * (1 + gamma(CLASSES + 8))
    below = (sum(low[0][1::2]) - low[0][7]) * (1 - gamma(CLASSES + 8))
    assert is_within(_mass_above(odds)[0], (1 + 16 * UNIT) / (1 + (1 + below) / above), 6)


def test_a_class_that_may_tie_is_above() -> None:
    """Its odds are within their error of 0, or exactly 0."""
    for value, error in ((-0.25, 0.25), (0.0, 0.0), (-0.2, 0.25)):
        found = _mass_above(odds_of([[0.0, value]], [[0.0, error]], [0]))[0]
        assert found >= 0.49
    with np.errstate(all="ignore"):
        assert _mass_above(odds_of([[0.0, -0.25]], [[0.0, 0.2]], [0]))[0] == 0


def test_mass_is_nothing_where_nobody_is_above_and_at_most_all() -> None:
    odds = odds_of(
        [[0.0, -1.0, -2.0], [0.0, 800.0, 1.0], [0.0, 1.0, INF], [0.0, math.nan, 1.0], [0.0, 39.0, -1.0]],
        [[0.0] * 3, [0.0] * 3, [0.0, 0.0, INF], [0.0, INF, 0.0], [0.0] * 3],
        [0] * 5,
    )
    with np.errstate(all="ignore"):
        found = _mass_above(odds)
    assert found.tolist() == [0.0, 1.0, 1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("upper", "classes", "top_p", "never"),
    [
        (0.25, 2, 0.5, True),
        (0.25, 3, 0.25, True),
        (0.25, 3, 0.2500001, False),
        (0.1, 5, 0.5, False),
        (0.0, 9, 1.0, True),
    ],
)
def test_a_small_ceiling_keeps_a_class_out_of_the_nucleus(
    upper: float, classes: int, top_p: float, never: bool
) -> None:
    assert never_enters(upper, classes, top_p) is never  # 0.1 is more than a tenth


# ---------------------------------------------------------------------- errors of log-odds


def checker_of(
    rows: Any, biases: Any = None, temperature: float = 1.0, domain: am.Domain | None = None
) -> CeilingChecker:
    head = am.Head(np.array(rows, float), None if biases is None else np.array(biases, float))
    checker = Checker(head, domain or am.Everywhere(), centre=np.zeros(head.features))
    return CeilingChecker(checker, temperature=temperature)


def test_errors_of_scores_count_sums_and_twelve_roundings() -> None:
    rows = np.array([[3.0, 4.0], [0.0, 0.0], [-1.0, 0.0]])
    x = np.array([[0.6, -0.8], [0.0, 0.0], [8.0, -6.0]])
    found = checker_of(rows, [1.0, -4.0, 3.0])._score_errors(x, np.zeros_like(x))
    for k, length in enumerate((1, 0, 10)):
        for i, (norm, bias) in enumerate(((5, 1), (0, 4), (1, 3))):
            exact = gamma(14) * (norm * length + bias)
            assert exact <= Fraction(float(found[k, i])) * (1 + 8 * UNIT)
            assert is_within(found[k, i], exact, 100)


def test_a_misplaced_point_and_what_underflows_are_counted() -> None:
    x = np.array([[2.0, -8.0], [0.5, 0.0]])
    checker = checker_of([[6.0, 0.0], [0.0, 0.0]])
    found = checker._score_errors(np.zeros((2, 2)), np.array([[3.0, 4.0], [0.0, 1.0]]))
    assert found[:, 0] == pytest.approx([30.0, 6.0], rel=1e-9)
    # A row of zeros has a norm as small as an underflow can be: nothing else is left of its error.
    nothing = checker_of([[0.0, 0.0], [0.0, 0.0]])
    nothing.checker.scores.norms = np.zeros(2)
    found = nothing._score_errors(x, np.zeros_like(x)) / float(TINY)
    assert found[:, 0] == pytest.approx([4 * 9, 4 * 1.5])


def test_errors_that_overflow_are_infinite() -> None:
    with np.errstate(all="ignore"):
        checker = checker_of([[1e200, 0.0], [1.0, 0.0]])
    found = checker._score_errors(np.array([[1e150, 0.0]]), np.zeros((1, 2)))
    assert found.tolist() == [[INF, found[0, 1]]]
    assert 0 < found[0, 1] < INF


@pytest.mark.parametrize("temperature", [1.0, 0.25])
def test_log_odds_are_differences_over_the_temperature_with_four_roundings_more(temperature: float) -> None:
    rows, biases = [[3.0, 0.0], [0.0, 5.0], [-1.0, 2.0]], [1.0, -4.0, 3.0]
    checker = checker_of(rows, biases, temperature)
    points = np.array([[1.0, 2.0], [-3.0, 0.5]])
    classes = np.array([1, 0])
    odds = checker._odds(classes, points)
    errors = checker._score_errors(points, np.zeros_like(points))
    for k, c in enumerate(classes):
        scores = points[k] @ np.array(rows).T + biases
        for i in range(3):
            if i == c:
                assert (odds.values[k, i], odds.errors[k, i]) == (-INF, 0.0)
                continue
            value = (scores[i] - scores[c]) / temperature
            assert odds.values[k, i] == pytest.approx(value, rel=1e-15)
            sums = (Fraction(float(errors[k, i])) + Fraction(float(errors[k, c]))) / Fraction(temperature)
            exact = sums * (1 + 8 * UNIT) + gamma(4) * abs(Fraction(value)) + TINY
            assert is_within(odds.errors[k, i], exact, 3)


def test_differences_of_scores_that_vanish_still_have_an_error() -> None:
    """Two scores of 0: what is left is what a quotient can lose."""
    checker = checker_of([[0.0], [0.0]])
    checker.checker.scores.norms = np.zeros(2)
    odds = checker._odds(np.array([0]), np.zeros((1, 1)))
    assert odds.errors[0, 1] / float(TINY) == pytest.approx(5.0)


def test_scores_that_overflow_have_infinite_errors() -> None:
    """Also where the difference of two of them is not a number."""
    with np.errstate(all="ignore"):
        odds = checker_of([[1e300], [-1e300], [1.0]])._odds(np.array([2]), np.array([[1e300]]))
        alike = checker_of([[1e300], [1e300]])._odds(np.array([0]), np.array([[1e300]]))
    assert odds.errors[0].tolist() == [INF, INF, 0.0]
    assert alike.errors[0].tolist() == [0.0, INF]


# ---------------------------------------------------------------------- the tangent


def test_slopes_are_what_the_weights_make_of_the_rows_with_their_doubts() -> None:
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(CLASSES, 3)) - 0.5
    checker = checker_of(rows)
    weights, doubt = rng.uniform(0, 1, (2, CLASSES)), rng.uniform(0, 1e-12, (2, CLASSES))
    classes, relative = np.array([7, 3]), gamma(CLASSES + 8)
    u, slack = checker._slopes(classes, weights, doubt)
    for k, c in enumerate(classes):
        for j in range(3):
            column = rationals(rows[:, j])
            lambdas, doubts = rationals(weights[k]), rationals(doubt[k])
            exact = column[c] - sum(a * b for a, b in zip(lambdas, column, strict=True))
            assert abs(Fraction(float(u[k, j])) - exact) <= Fraction(float(slack[k, j]))
            width = relative * abs(column[c]) + TINY
            width += sum((d + relative * w) * abs(v) for d, w, v in zip(doubts, lambdas, column, strict=True))
            assert is_within(slack[k, j], width * (1 + relative) + CLASSES * TINY, 8)


def test_slopes_do_not_depend_on_the_centre() -> None:
    rng = np.random.default_rng(9)
    head = am.Head(rng.normal(size=(6, 2)))
    weights = rng.dirichlet(np.ones(6), size=2)
    expected = head.weight[[4, 1]] - weights @ head.weight
    for centre in (np.zeros(2), np.array([3.0, -70.0])):
        checker = CeilingChecker(Checker(head, am.Everywhere(), centre=centre))
        u, slack = checker._slopes(np.array([4, 1]), weights, np.zeros((2, 6)))
        assert (np.abs(u - expected) <= slack + 1e-15).all()
        assert (slack < 1e-12).all()


def test_slopes_of_nothing_are_off_by_what_underflows() -> None:
    checker = checker_of(np.zeros((4, 2)))
    _, slack = checker._slopes(np.array([0]), np.full((1, 4), 0.25), np.zeros((1, 4)))
    assert slack / float(TINY) == pytest.approx(5.0)


DOMAINS = {
    "a point": am.Box([0.5, -2.0], [0.5, -2.0]),
    "a box": am.Box(-3, 4),
    "a ball": am.Ball(5.0),
    "RMSNorm": am.RMSNorm([0.7, -1.3], [0.3, 5.0]),
}


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
@pytest.mark.parametrize("temperature", [1.0, 0.25])
@pytest.mark.parametrize("height", [0.0, 300.0, -300.0])
def test_what_the_tangent_allows_counts_every_rounding(
    domain: am.Domain, temperature: float, height: float
) -> None:
    """The formula of `_allowed` in rationals. Where rivals are far above or below, its terms are large."""
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(CLASSES, 2)) * 0.1
    biases = rng.normal(size=CLASSES)
    biases[:3] -= height * temperature
    checker = checker_of(rows, biases, temperature, domain)
    classes, points = np.arange(3), np.array([[0.5, -2.0]] * 3)
    odds = checker._odds(classes, points)
    found = checker._allowed(odds)
    for k in range(3):
        exact, units = allowed_exactly(checker, odds, k)
        assert is_within(found[k], min(exact, Fraction(1)), units)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_tangent_along_many_features_counts_them_all(sign: float) -> None:
    """Products of both signs that cancel: their sizes count, not their sum."""
    rng = np.random.default_rng(5)
    rows = sign * rng.normal(size=(CLASSES, 40)) * 0.3
    x = rng.normal(size=40) * 5
    rows -= np.outer(rows @ x / (x @ x), x)
    checker = checker_of(rows, rng.normal(size=CLASSES), domain=am.Box(x, x))
    odds = checker._odds(np.arange(3), np.tile(x, (3, 1)))
    for k, found in enumerate(checker._allowed(odds)):
        exact, _ = allowed_exactly(checker, odds, k)
        assert is_within(found, exact, 500)  # of which the sizes of the products make 2,000


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("temperature", [1.0, 0.25])
def test_a_long_way_along_the_tangent_counts_its_roundings(sign: float, temperature: float) -> None:
    """Rows take the class far up or down, and biases take it back."""
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(CLASSES, 3)) * 1e3
    x = np.array([2.0, -1.0, 3.0])
    rows[:3] += sign * 1e4 * x / (x @ x)
    checker = checker_of(rows, rng.normal(size=CLASSES) - rows @ x, temperature, am.Box(x, x))
    odds = checker._odds(np.arange(3), np.tile(x, (3, 1)))
    for k, found in enumerate(checker._allowed(odds)):
        exact, _ = allowed_exactly(checker, odds, k)
        # Eight roundings of u·y and of the support make at least three times as many units.
        assert is_within(found, exact, 50_000 / Fraction(temperature))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_tangent_at_a_misplaced_point_allows_more(sign: float) -> None:
    rng = np.random.default_rng(8)
    rows = sign * np.abs(rng.normal(size=(CLASSES, 2)))
    rows[:2] = 0.0
    checker = checker_of(rows, rng.normal(size=CLASSES), domain=am.Box(-1, 1))
    odds = checker._odds(np.arange(2), np.array([[0.5, -0.2], [0.1, 0.4]]))
    placed = checker._allowed(odds)
    odds = replace(odds, misplaced=np.array([[0.25, 0.5], [0.0, 0.125]]))
    found = checker._allowed(odds)
    assert (found > placed).all()
    for k in range(2):
        exact, units = allowed_exactly(checker, odds, k)
        assert is_within(found[k], exact, units)


def test_an_exponent_of_large_terms_that_cancel_counts_their_rounding() -> None:
    """At 0 the class is e⁻³⁰⁰⁰ of the others; at the end of the box it is one of sixty."""
    rows, biases = np.zeros((CLASSES, 1)), np.full(CLASSES, 50.0)
    rows[0], biases[0] = 1.0, 50.0 - 50 * CLASSES
    checker = checker_of(rows, biases, domain=am.Box(0, 50 * CLASSES))
    odds = checker._odds(np.array([0]), np.zeros((1, 1)))
    exact, _ = allowed_exactly(checker, odds, 0)
    assert is_within(checker._allowed(odds)[0], exact, 4000)
    assert abs(exact - Fraction(1, CLASSES)) < Fraction(1e-9)


def test_the_tangent_of_nothing_counts_its_sums() -> None:
    """Classes that differ in their biases alone: nothing but sums and quotients is left."""
    biases = np.zeros(CLASSES)
    biases[0], biases[1] = 1.0, -1.0
    checker = checker_of(np.zeros((CLASSES, 2)), biases, domain=am.Box(-1, 1))
    odds = checker._odds(np.array([2, 3]), np.zeros((2, 2)))
    for k, found in enumerate(checker._allowed(odds)):
        exact, _ = allowed_exactly(checker, odds, k)
        assert is_within(found, exact, 3)


def test_what_overflows_is_allowed_everything_and_no_more() -> None:
    """Class 0 is out of reach of floats; the others are bounded as ever."""
    head = [[1e300, 0.0], [1.0, 0.0], [0.0, 1.0]]
    with np.errstate(all="ignore"):
        checker = checker_of(head, domain=am.Box(-1e10, 1e10))
        assert checker.allowed(np.arange(3), np.zeros((3, 2))).tolist() == [1.0, 1.0, 1.0]
    checker = checker_of([[1.0], [0.0], [-1.0]], domain=am.Box(-1, 1))
    points = np.array([[1e308], [0.0], [0.5]])
    found = checker.allowed(np.array([0, 1, 2]), points)
    assert found[0] == 1.0
    assert (found[1:] < 0.9).all()
    wide = checker_of([[1.0], [0.0]], domain=am.Box(-1e4, 1e4))
    assert wide.allowed(np.array([0]), np.array([[800.0]])).tolist() == [1.0]


@pytest.mark.parametrize("temperature", [1e-300, 1e-100, 1e-3])
def test_no_temperature_and_no_point_outside_make_a_bound_too_low(temperature: float) -> None:
    checker = checker_of([[1.0], [0.0]], temperature=temperature, domain=am.Box(-1, 1))
    for y in (-1e10, -50.0, 0.0, 50.0, 1e10, 1e300):
        allowed = checker.allowed(np.array([0]), np.array([[y]]))[0]
        assert allowed <= 1.0
        assert allowed >= checker.reached(np.array([0]), np.array([[1.0]]))[0]


def test_heads_of_one_and_two_classes() -> None:
    one = checker_of([[1.0]], domain=am.Box(-1, 1))
    assert one.allowed(np.array([0]), np.zeros((1, 1))).tolist() == [1.0]
    two = checker_of([[1.0], [0.0]], domain=am.Box(-1, 1))
    found = two.allowed(np.array([0, 1]), np.zeros((2, 1)))
    assert found == pytest.approx([1 / (1 + math.exp(-1))] * 2, rel=0.1)


def test_outside_the_domain_nothing_is_reached_and_all_may_be_above() -> None:
    checker = checker_of([[1.0], [0.0]], domain=am.Box(-1, 1))
    points = np.array([[2.0], [1.0]])
    assert checker.reached(np.array([0, 0]), points)[0] == 0.0
    assert checker.mass_above(np.array([0, 0]), points).tolist() == [1.0, 0.0]


def test_log_odds_are_within_their_errors_whatever_all_rows_share() -> None:
    rng = np.random.default_rng(6)
    rows = rng.normal(size=(5, 3)) + 1e7
    head = am.Head(rows, rng.normal(size=5) + 1e5)
    checker = CeilingChecker(Checker(head, am.Everywhere()))
    x = rng.normal(size=3) + 50
    odds = checker._odds(np.array([2]), x[None])
    exact = [
        sum(a * b for a, b in zip(rationals(row), rationals(x), strict=True)) + Fraction(float(bias))
        for row, bias in zip(rows, head.biases(), strict=True)
    ]
    for i in (0, 1, 3, 4):
        off = abs(Fraction(float(odds.values[0, i])) - (exact[i] - exact[2]))
        assert off <= Fraction(float(odds.errors[0, i])) < Fraction(1e-9)


def test_differences_that_overflow_have_infinite_errors() -> None:
    checker = checker_of(np.zeros((2, 1)), [1.2e308, -1.2e308])
    with np.errstate(over="ignore"):
        assert checker._odds(np.array([0]), np.zeros((1, 1))).errors.tolist() == [[0.0, INF]]


def allowed_exactly(checker: CeilingChecker, odds: _Odds, k: int) -> tuple[Fraction, Fraction]:
    """The words of check/probabilities.py: top, weights and their doubts, slopes, drop, exponent. And how
    many units the computation itself may be off: less than half of what the bound has for it."""
    count, features = checker.head.classes, checker.head.features
    temperature = Fraction(checker.temperature)
    others = [i for i in range(count) if i != odds.classes[k]]
    values, errors = odds.values[k], odds.errors[k]
    top = max(float(values[i]) for i in others)
    low, high = {}, {}
    for i in others:
        # The same floats as there, so that the exponentials are of the same numbers.
        value = values[i] - top
        error = errors[i] + float(gamma(2)) * (abs(values[i]) + abs(top))
        low[i] = Fraction(float(exp_bounds(np.array([value - error]))[0][0]))
        high[i] = Fraction(float(exp_bounds(np.array([value + error]))[1][0]))
    least = sum(low.values()) * (1 - gamma(count + 4))
    most = sum(high.values()) * (1 + gamma(count + 4))
    weights, doubt = np.zeros((1, count)), np.zeros((1, count))
    for i in others:
        weight = high[i] / most
        weights[0, i] = float(weight)
        width = (high[i] / least - low[i] / most) * (1 + gamma(8)) + gamma(8) * weight + TINY
        doubt[0, i] = float(width)
    doubt[0, odds.classes[k]] = float(TINY)
    u, slack = checker._slopes(odds.classes[k : k + 1], weights, doubt)
    us, slacks, x = rationals(u[0]), rationals(slack[0]), rationals(odds.x[k])
    misplaced = rationals(odds.misplaced[k])
    along = sum(a * b for a, b in zip(us, x, strict=True)) - 2 * features * TINY
    for a, s, b, m in zip(us, slacks, x, misplaced, strict=True):
        along -= (gamma(features + 6) * abs(a) + s) * abs(b) * (1 + gamma(features + 8))
        along -= (abs(a) + s) * m * (1 + gamma(features + 8))
    support = Fraction(float(checker.domain.support_bound(u, slack)[0]))
    drop = (along - support) / temperature
    drop -= gamma(8) * (abs(along) + abs(support)) / temperature + TINY
    exponent = Fraction(top) + drop - gamma(4) * (abs(Fraction(top)) + abs(drop))
    share = Fraction(float(exp_bounds(np.array([float(exponent)]))[0][0]))
    units = 4 + 2 * (abs(Fraction(top)) + abs(drop)) + 3 * (abs(along) + abs(support)) / temperature
    # The weights are rounded on their own here, which moves u by a unit or two of what it is made of.
    units += 5 * sum(slacks, Fraction(0)) / gamma(count + 8) / temperature
    return (1 + 8 * UNIT) / (1 + least * share * (1 - gamma(4))), units
