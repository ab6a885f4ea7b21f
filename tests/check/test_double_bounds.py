"""Scores of one point in float64: their errors are those of float64."""

from __future__ import annotations

import math

import numpy as np
import pytest

import argmaxable as am
from argmaxable.check.witnesses import Scores
from argmaxable.compute.prepared import prepared

UNIT, TINY = 2.0**-53, 2.0**-1021


def scores_of(rows: list[list[float]], biases: list[float] | None = None) -> Scores:
    head = am.Head(rows, biases)
    return Scores(prepared(head, np.zeros(head.features)), am.Everywhere())


def test_errors_are_units_of_float64() -> None:
    scores = scores_of([[3e5, 4e5], [0.0, 0.0], [-1e5, 0.0]], [-3e5, 1e5, 2e5])
    value, error = scores.scores64(np.array([0.0, 2.0]))
    relative = 12 * UNIT / (1 - 12 * UNIT)
    assert value.tolist() == [5e5, 1e5, 2e5]
    assert error == pytest.approx([relative * 1.3e6, relative * 1e5, relative * 4e5], rel=1e-9, abs=0)


def test_what_underflows_is_that_of_float64() -> None:
    scores = scores_of([[0.0, 0.0], [0.0, 0.0]])
    scores.norms = np.zeros(2)
    _, error = scores.scores64(np.array([2.0, -8.0]))
    assert error / TINY == pytest.approx(2 * 2 * 9)


@pytest.mark.parametrize(("exponent", "is_finite"), [(1020.5, True), (1021.5, False)])
def test_sums_may_grow_to_the_limit_of_float64(exponent: float, is_finite: bool) -> None:
    size = 2.0**exponent
    _, error = scores_of([[0.0], [0.0], [0.0]], [-size, size / 2, size / 2]).scores64(np.zeros(1))
    assert bool(np.isfinite(error).all()) is is_finite
    assert not math.isnan(error[0])
