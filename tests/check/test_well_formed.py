"""Which certificates are ones at all, and exact bounds where the support is a root."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from oracles import dot, rationals

import argmaxable as am
from argmaxable.check.checker import Checker, exact_bound, is_well_formed
from argmaxable.core.verdict import Certificate
from argmaxable.exact.dyadic import Dyadic

INF = math.inf
UNIT, TINY = Fraction(2) ** -53, Fraction(2) ** -1021


def certificate(ids: Any, weights: Any, basis: int = 0, whole: tuple[int, ...] = ()) -> Certificate:
    return Certificate(np.array(ids, np.int64), np.array(weights, float), basis, whole=whole)


GOOD = {
    "one": certificate([3], [1.0]),
    "several": certificate([3, 0, 4], [1.0, 0.0, 2.0]),
    "the last class": certificate([5], [1e-300]),
    "a basis": certificate([3, 0, 4], [1.0, 0.0, 2.0], 3),
    "whole": certificate([3, 0], [0.5, 0.5], whole=(0, 7)),
    "large and whole": certificate([3, 0], [0.5, 0.5], whole=(2**200, 0)),
}
BAD = {
    "none": certificate([], []),
    "fewer weights": certificate([3, 0], [1.0]),
    "fewer classes": certificate([3], [1.0, 1.0]),
    "a basis too large": certificate([3, 0], [1.0, 1.0], 3),
    "a negative basis": certificate([3, 0], [1.0, 1.0], -1),
    "one class from the end": certificate([3, -1], [1.0, 1.0]),
    "one class too many": certificate([3, 6], [1.0, 1.0]),
    "itself": certificate([3, 2], [1.0, 1.0]),
    "a class twice": certificate([3, 3], [1.0, 1.0]),
    "not a number": certificate([3, 0], [1.0, math.nan]),
    "infinite": certificate([3, 0], [1.0, INF]),
    "negative": certificate([3, 0], [2.0, -1.0]),
    "nothing": certificate([3, 0], [0.0, 0.0]),
    "a sum that overflows": certificate([3, 0], [1.5e308, 1.5e308]),
    "fewer whole weights": certificate([3, 0], [0.5, 0.5], whole=(1,)),
    "more whole weights": certificate([3, 0], [0.5, 0.5], whole=(1, 1, 1)),
    "a negative whole weight": certificate([3, 0], [0.5, 0.5], whole=(2, -1)),
    "whole weights of nothing": certificate([3, 0], [0.5, 0.5], whole=(0, 0)),
}


@pytest.mark.parametrize("good", GOOD.values(), ids=GOOD)
def test_weights_on_other_classes_are_a_certificate(good: Certificate) -> None:
    assert is_well_formed(good, 2, 6) is True


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_anything_else_is_not(bad: Certificate) -> None:
    assert is_well_formed(bad, 2, 6) is False


def test_whole_weights_may_be_of_any_size() -> None:
    line = Checker(am.Head([[0.0], [2.0], [1.0]]), am.Box(-1, 1))
    for size in (1, 2**62, 2**70, 10**40):
        assert line.bound(2, certificate([0, 1], [0.5, 0.5], whole=(size, size))).upper == 0.0
        assert line.bound(2, certificate([0, 1], [0.5, 0.5], whole=(size, 2 * size))).upper > 0


# ---------------------------------------------------------------------- exact bounds


def bound(domain: am.Domain, u: list[float], offset: float, total: int = 2, upper: float = INF) -> float:
    return exact_bound(
        domain, Dyadic.of(np.array(u)), Dyadic.of(np.array(offset)), Fraction(total), upper
    ).upper


def test_over_a_box_the_bound_itself_is_computed() -> None:
    box = am.Box(-1, 2)
    assert bound(box, [3.0, -4.0], -5.0) == (6 + 4 - 5) / 2
    assert bound(box, [3.0, 0.0], -7.0) == -0.5
    assert bound(box, [0.0, 0.0], -7.0) == -3.5
    assert bound(box, [3.0, -4.0], -5.0, upper=1.0) == 1.0
    third = bound(am.Box(0, 1), [1.0, 0.0], 0.0, total=3)
    assert Fraction(third) > Fraction(1, 3) > Fraction(math.nextafter(third, 0))


def test_over_a_ball_only_zero_is_compared() -> None:
    ball = am.Ball(1.0)
    assert bound(ball, [3.0, 4.0], -5.0) == 0.0
    assert bound(ball, [3.0, 4.0], -6.0) == 0.0
    assert bound(ball, [3.0, 4.0], -4.75) == INF
    assert bound(ball, [3.0, 4.0], -4.75, upper=9.0) == 9.0
    assert bound(ball, [3.0, 4.0], -5.0, upper=-0.25) == -0.25
    # A direction along one feature is not nothing.
    assert bound(ball, [3.0, 0.0], -4.0) == 0.0
    assert bound(ball, [0.0, 0.0], -4.0) == -2.0
    assert bound(ball, [0.0, 0.0], 4.0) == INF


# ---------------------------------------------------------------------- near a solution


def gamma(count: int) -> Fraction:
    return count * UNIT / (1 - count * UNIT)


def test_a_large_shift_moves_every_part_of_the_bound() -> None:
    biases = [3.0, -1.0, -5.0, 2.0, 1.0]
    checker = Checker(am.Head(np.zeros((5, 2)), biases), am.Everywhere(), centre=np.zeros(2))
    proof = certificate([1, 2, 3, 4], [0.4, 0.3, 0.2, 0.1], 3)
    b, lambdas, shift = rationals(checker.scores.biases), rationals(proof.weights), Fraction(8)
    drop, size = [b[0] - each for each in b[1:]], [abs(b[0]) + abs(each) for each in b[1:]]
    moved = shift * sum(map(abs, drop[:3]))
    slack = moved + gamma(12) * (dot(lambdas, size) + moved)
    slack += (sum(lambdas) + 3 * shift) * max(map(abs, b)) * 2 * UNIT * 2
    exact = dot(lambdas, drop) + slack + 4 * UNIT * abs(dot(lambdas, drop))
    found = Fraction(checker._bound_near(0, proof, 8.0))
    assert abs(found - exact) <= 3 * UNIT * exact


def test_a_shift_of_some_features_moves_the_biases() -> None:
    rows = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    domain = am.RMSNorm(np.ones(3), [0.0, 10.0, 0.0])
    for centre in (np.zeros(3), np.array([1.0, -3.0, 2.0])):
        checker = Checker(am.Head(rows), domain, centre=centre)
        found = checker._shifted_biases(np.arange(2))
        assert found is not None
        assert found[0] == pytest.approx(10 * (rows[:, 1] - centre[1]))
        assert (found[1] > 0).all()
