"""Gaps at points, format by format: what floats find, less the errors of the scores that they compare."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import argmaxable as am
from argmaxable.check.checker import Checker
from argmaxable.check.witnesses import _DOUBLE, _SINGLE, Scores
from argmaxable.compute.backend import NumPy
from argmaxable.compute.prepared import prepared
from argmaxable.core.verdict import Strength

INF = math.inf
# All sums are whole numbers, so that nothing is rounded but the bounds.
ROWS = np.array([[4.0, 0.0], [1.0, 16.0], [0.0, 8.0], [-2.0, 0.0]])
BIASES = np.array([-6.0, 2.0, 1.0, 3.0])
X = np.array([1.0, 0.0])


class Guessing(NumPy):
    """A backend that does not keep to the bounds of float32, so that float64 is asked."""

    keeps_bounds = False


def scores_of(rows: Any = ROWS, biases: Any = BIASES, without: Any = None) -> Scores:
    return Scores(prepared(am.Head(rows, biases), np.zeros(2)), am.Everywhere(), without)


def errors_of(scores: Scores, floats: Any) -> tuple[np.ndarray, float]:
    """Of every class, and of one with the largest row and the largest bias."""
    error = scores._score_error(X[None], np.zeros((1, 2)), floats)
    largest = error(scores.norms.max(), np.abs(scores.biases).max(), 0)
    return np.asarray(error(scores.norms, np.abs(scores.biases), 0)), float(largest)


@pytest.mark.parametrize("class_id", range(4))
def test_float32_takes_off_the_errors_of_the_class_and_of_the_largest(class_id: int) -> None:
    scores = scores_of()
    values = ROWS @ X + BIASES
    gap = values[class_id] - np.delete(values, class_id).max()
    each, largest = errors_of(scores, _SINGLE)
    slack = each[class_id] + largest
    for claims, times in ((None, 3), (np.array([-100.0]), 1)):
        found = scores.gaps(np.array([class_id]), X[None], claims=claims)
        assert list(Strength)[found.strength[0]] is Strength.FLOAT32
        assert gap - found.lower[0] == pytest.approx(times * slack, rel=1e-6, abs=0)


@pytest.mark.parametrize("class_id", range(4))
def test_float64_takes_off_the_errors_of_both_classes(class_id: int) -> None:
    scores = scores_of()
    scores.backend = Guessing()
    values = ROWS @ X + BIASES
    each, _ = errors_of(scores, _DOUBLE)
    bounds = values[class_id] - values - each[class_id] - each
    found = scores.gaps(np.array([class_id]), X[None])
    rival = int(np.argmin(np.where(np.arange(4) == class_id, INF, bounds)))
    assert list(Strength)[found.strength[0]] is Strength.FLOAT64
    assert found.rival[0] == rival
    off = values[class_id] - values[rival] - found.lower[0]
    assert off == pytest.approx(each[class_id] + each[rival], rel=0.2, abs=0)
    assert found.apart[0] == found.lower[0]


def test_biases_decide_where_rows_do_not() -> None:
    scores = scores_of(np.ones((3, 2)), [1.0, 3.0, -4.0])
    found = scores.gaps(np.arange(3), np.tile(X, (3, 1)))
    assert found.lower == pytest.approx([-2.0, 2.0, -7.0], rel=1e-4)
    assert found.rival.tolist() == [1, 0, 1]


def test_classes_that_are_left_out_are_nobody_s_rivals() -> None:
    for backend in (NumPy(), Guessing()):
        scores = scores_of(without=np.array([1, 3]))
        scores.backend = backend
        found = scores.gaps(np.array([0, 2]), np.tile(X, (2, 1)))
        assert found.lower == pytest.approx([-3.0, 3.0], rel=1e-4)
        assert found.rival.tolist() == [2, 0]


# ---------------------------------------------------------------------- twins

TWINS = am.Head([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0], [1.0, 1.0], [0.0, 0.0]])
CORNER = np.array([-1.0, -1.0])


def test_twins_tie_and_stand_apart_from_others() -> None:
    found = Checker(TWINS, am.Box(-9, 9)).gaps(np.array([0, 5, 4]), np.tile(CORNER, (3, 1)))
    assert found.lower[:2].tolist() == [0.0, 0.0]
    assert found.rival[:2].tolist() == [5, 0]
    assert found.apart[:2] == pytest.approx([2.0, 2.0])
    assert found.settle(np.array([True, True, True])).tolist() == [True, True, False]
    assert found.settle(np.array([False, False, False])).tolist() == [False, False, False]
    assert found.lower[2] == pytest.approx(-2.0, rel=1e-4)


def test_almost_twins_are_no_twins() -> None:
    """One bit of a row or of a bias apart: exact gaps tell, and nobody ties."""
    bit = 2.0**-52
    head = am.Head([[1.0, 1.0], [1.0, 1.0 + bit], [1.0, 1.0], [0.0, 0.0]], [0.0, 0.0, bit, 0.0])
    found = Checker(head, am.Box(-9, 9)).gaps(np.arange(3), np.tile([0.25, 0.5], (3, 1)))
    assert found.lower.tolist() == [-bit, -bit / 2, bit / 2]
    assert found.apart.tolist() == found.lower.tolist()
    assert [list(Strength)[each] for each in found.strength] == [Strength.EXACT] * 3


def test_an_only_class_has_no_rival_to_beat() -> None:
    alone = Checker(am.Head([[1.0, 2.0]]), am.Box(-1, 1))
    found = alone.gaps(np.array([0, 0]), np.array([[0.0, 0.0], [2.0, 0.0]]))
    assert found.lower.tolist() == found.apart.tolist() == [INF, -INF]


@pytest.mark.parametrize("claim", [None, 0.0, -1.0])
def test_many_points_that_only_integers_tell_apart(claim: float | None) -> None:
    """Whatever block of them is decided at a time, each point gets its own answer."""
    bit = 2.0**-52
    head = am.Head([[1.0], [1.0 + bit], [1.0 - bit / 2]])
    points = np.array([[1.0], [-1.0], [2.0], [0.0], [0.5]])
    claims = None if claim is None else np.full(5, claim)
    checker = Checker(head, am.Box(-9, 9), centre=np.zeros(1))
    found = checker.gaps(np.array([1, 1, 1, 0, 2]), points, claims=claims)
    assert found.lower.tolist() == [bit, -1.5 * bit, 2 * bit, 0.0, -0.75 * bit]
