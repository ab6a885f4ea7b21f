"""Bounds where the truth is exactly 0 or beyond floats: a term of the wrong sign shows at once."""

from __future__ import annotations

import math

import numpy as np
import pytest

import argmaxable as am
from argmaxable.check.checker import Checker
from argmaxable.core.verdict import Certificate

INF = math.inf
TINY = 2.0**-1021


def test_a_rival_that_is_never_below_leaves_a_margin_of_zero() -> None:
    """Over [0, 1] the class ties at 0 and loses elsewhere: no bound may be below 0."""
    rng = np.random.default_rng(0)
    for features in (1, 2, 20):
        rows = rng.uniform(0.1, 1, (8, features))
        head = am.Head(np.vstack([rows, rows + rng.uniform(0.1, 1, (8, features))]))
        checker = Checker(head, am.Box(0, 1), centre=np.zeros(features))
        found = checker.rival_bounds(np.arange(8), np.arange(8, 16))
        assert (found >= 0).all()
        assert (found < 1e-13).all()
        for class_id in range(8):
            proof = Certificate(np.array([class_id + 8]), np.array([3.0]))
            assert 0 <= checker.bounds(np.array([class_id]), proof)[0] < 1e-13


def test_a_twin_is_above_by_what_may_underflow() -> None:
    checker = Checker(am.Head(np.zeros((2, 2))), am.Box(-1, 1))
    # Of each of two features: what its difference can lose, and what its product can.
    assert checker.rival_bounds(np.array([0]), np.array([1]))[0] / TINY == pytest.approx(4.0)


def test_biases_that_overflow_bound_nothing() -> None:
    """∞ − ∞ is not a number, which is neither above nor below anything."""
    head = am.Head(np.zeros((3, 1)), [-1.7e308, 1.7e308, 0.0])
    checker = Checker(head, am.Box(0, 0), centre=np.zeros(1))
    assert checker.rival_bounds(np.array([0, 1]), np.array([1, 0])).tolist() == [INF, INF]
    both = Certificate(np.array([1, 2]), np.array([1e10, 1e10]))
    assert checker.bounds(np.array([0]), both).tolist() == [INF]
    assert checker.bounds(np.array([0, 2]), Certificate(np.array([1]), np.array([1e10]))).tolist() == [
        INF,
        INF,
    ]


def test_an_own_direction_outside_a_ball_proves_nothing_whatever_the_centre() -> None:
    """w − centre = (6, 0) is outside; w + centre would not be."""
    head = am.Head([[3.0, 0.0], [0.0, 1.0], [-3.0, 0.0]])
    for domain, expected in ((am.Ball(4.0), -INF), (am.Ball(7.0), 18.0)):
        checker = Checker(head, domain, centre=np.array([-3.0, 0.0]))
        ((_, gaps),) = checker.own_gaps(np.array([0]), np.array([0]))
        assert gaps.lower[0] == expected if expected == -INF else 17.99 < gaps.lower[0] <= 18.0
    box = Checker(head, am.Box(-4, 4), centre=np.array([-3.0, 0.0]))
    ((_, gaps),) = box.own_gaps(np.array([0]), np.array([0]))
    assert 11.99 < gaps.lower[0] <= 12.0  # moved to (4, 0)
