"""Bounds on rounding, against rationals: never too small, and hardly too large."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from oracles import dot, rationals

from argmaxable.exact.rounding import TINY, UNIT, gamma, length_bounds


def test_the_unit_is_half_of_what_separates_1_from_the_next_float() -> None:
    assert np.finfo(np.float64).eps / 2 == UNIT


def test_nothing_that_underflows_is_as_large_as_tiny() -> None:
    assert np.finfo(np.float64).tiny < TINY <= 4 * np.finfo(np.float64).tiny


@pytest.mark.parametrize("unit", [2.0**-53, 2.0**-24])
@pytest.mark.parametrize("count", [1, 7, 1000, 2**20])
def test_gamma_is_its_formula(count: int, unit: float) -> None:
    share = count * Fraction(unit)
    exact = share / (1 - share)
    assert abs(Fraction(gamma(count, unit)) - exact) <= exact * Fraction(4 * UNIT)


def test_gamma_is_about_float64_where_nothing_else_is_said() -> None:
    assert gamma(5) == gamma(5, 2.0**-53)


@pytest.mark.parametrize("size", [1, 2, 9, 300, 3000])
def test_a_length_is_never_understated_and_hardly_overstated(size: int) -> None:
    rng = np.random.default_rng(size)
    vectors = rng.normal(size=(max(4, 300 // size), size)) * 10.0 ** rng.integers(-9, 9)
    for vector, bound in zip(vectors, length_bounds(vectors), strict=True):
        square = dot(rationals(vector), rationals(vector))
        assert square <= Fraction(bound) ** 2 <= square * (1 + Fraction(8 * size + 64) * Fraction(UNIT))


def test_every_rounding_of_a_length_goes_the_same_way_and_is_still_covered() -> None:
    """Each square (1 + 2^-29)² = 1 + 2^-28 + 2^-58 rounds down, and so does every sum with the first."""
    for size in (2, 50, 2000):
        vector = np.full(size, 2.0**-27 + 2.0**-56)
        vector[0] = 1.0
        square = dot(rationals(vector), rationals(vector))
        assert Fraction(float(length_bounds(vector[None])[0])) ** 2 >= square


@pytest.mark.parametrize("entry", [5e-324, 1e-200, 1e-162, 1e-155])
def test_a_length_whose_squares_underflow_is_not_lost(entry: float) -> None:
    assert length_bounds(np.full((1, 3), entry))[0] >= 3 * entry / 2


def test_a_length_that_overflows_is_infinite() -> None:
    assert length_bounds(np.full((1, 2), 1e200))[0] == np.inf


def test_lengths_are_those_of_rows() -> None:
    assert length_bounds(np.array([[3.0, 4.0, 0.0], [0.0, 5.0, 12.0]])) == pytest.approx([5, 13], rel=1e-12)
