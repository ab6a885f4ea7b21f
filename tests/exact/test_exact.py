"""Dyadic numbers are the floats themselves, and rounding a rational errs on the side that was asked for."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles import dot, rationals

from argmaxable.exact.dyadic import Dyadic, round_down, round_up

deterministic = settings(derandomize=True, database=None, max_examples=80)
LARGEST, TINIEST = float(np.finfo(np.float64).max), 5e-324
floats = st.floats(allow_nan=False, allow_infinity=False)  # from subnormal to the largest
vectors = st.lists(floats, min_size=1, max_size=6)
pairs = st.integers(1, 6).flatmap(lambda n: st.tuples(*[st.lists(floats, min_size=n, max_size=n)] * 2))


def values(number: Dyadic) -> list[Fraction]:
    return [number[i].fraction() for i in range(len(number.integers))]


@deterministic
@given(vectors)
@example([TINIEST, LARGEST])
@example([-TINIEST, 0.0, -0.0, 1.0])
@example([2.0**-1022, -(2.0**-1022), 2.0**1023])
@example([-(2.0**52) - 1, 2.0**62, 2.0**53 - 1])
def test_a_dyadic_is_its_floats(entries: list[float]) -> None:
    assert values(Dyadic.of(entries)) == rationals(entries)


@deterministic
@given(floats)
@example(TINIEST)
@example(-LARGEST)
def test_a_single_dyadic_is_its_float(value: float) -> None:
    assert Dyadic.of(value).fraction() == Fraction(value)


@deterministic
@given(floats, floats)
@example(TINIEST, LARGEST)
@example(1 + 2.0**-52, 1 + 2.0**-52)
@example(0.0, LARGEST)
def test_single_dyadics_reckon_exactly(one: float, other: float) -> None:
    left, right = Dyadic.of(one), Dyadic.of(other)
    assert (left + right).fraction() == Fraction(one) + Fraction(other)
    assert (left - right).fraction() == Fraction(one) - Fraction(other)
    assert (left * right).fraction() == Fraction(one) * Fraction(other)
    assert (left * left * right * right).fraction() == (Fraction(one) * Fraction(other)) ** 2
    assert (left * 10**30).fraction() == Fraction(one) * 10**30


@deterministic
@given(pairs)
@example(([TINIEST], [LARGEST]))
def test_sums_and_differences_are_exact(pair: tuple[list[float], list[float]]) -> None:
    left, right = pair
    a, b = rationals(left), rationals(right)
    assert values(Dyadic.of(left) + Dyadic.of(right)) == [x + y for x, y in zip(a, b, strict=True)]
    assert values(Dyadic.of(left) - Dyadic.of(right)) == [x - y for x, y in zip(a, b, strict=True)]


@deterministic
@given(pairs)
@example(([TINIEST], [TINIEST]))
@example(([LARGEST], [LARGEST]))
def test_products_are_exact(pair: tuple[list[float], list[float]]) -> None:
    left, right = pair
    a, b = rationals(left), rationals(right)
    assert values(Dyadic.of(left) * Dyadic.of(right)) == [x * y for x, y in zip(a, b, strict=True)]
    assert (Dyadic.of(left) @ Dyadic.of(right)).fraction() == dot(a, b)


@deterministic
@given(vectors, st.integers(-(10**30), 10**30))
def test_multiples_are_exact(entries: list[float], factor: int) -> None:
    assert values(Dyadic.of(entries) * factor) == [factor * value for value in rationals(entries)]


@deterministic
@given(vectors)
def test_the_sum_of_all_elements_is_exact(entries: list[float]) -> None:
    assert Dyadic.of(entries).sum().fraction() == sum(rationals(entries))


@deterministic
@given(vectors)
def test_signs_are_those_of_the_floats(entries: list[float]) -> None:
    assert list(Dyadic.of(entries).sign()) == list(np.sign(entries))


@deterministic
@given(
    st.integers(1, 3).flatmap(
        lambda n: st.tuples(
            st.lists(floats, min_size=n, max_size=n),
            st.lists(st.tuples(floats, floats), min_size=n, max_size=n),
        )
    )
)
def test_a_vector_times_a_matrix_is_exact(pair: tuple[list[float], list[tuple[float, float]]]) -> None:
    vector, matrix = pair
    columns = [rationals(column) for column in zip(*matrix, strict=True)]
    product = Dyadic.of(vector) @ Dyadic.of(matrix)
    assert values(product) == [dot(rationals(vector), column) for column in columns]


# ---------------------------------------------------------------------- rounding

thirds = st.builds(
    lambda value, shift: Fraction(value) + Fraction(shift, 3) * Fraction(2) ** -1080,
    floats,
    st.integers(-5, 5),
)
rational = st.one_of(
    thirds,
    floats.map(Fraction),
    st.fractions(),
    st.builds(lambda a, b: Fraction(a) * Fraction(b), floats, floats),
    st.builds(lambda a, b: Fraction(a) + Fraction(b), floats, floats),
)


@deterministic
@given(rational)
@example(Fraction(0))
@example(Fraction(1, 3))
@example(Fraction(TINIEST) / 2)
@example(-Fraction(TINIEST) / 2)
@example(Fraction(LARGEST))
@example(Fraction(LARGEST) + 1)
@example(-Fraction(LARGEST) - 1)
@example(Fraction(2) ** 1024)
@example(-(Fraction(10) ** 400))
def test_rounding_down_gives_the_largest_float_that_is_not_above(value: Fraction) -> None:
    rounded = round_down(value)
    assert rounded <= value
    assert math.nextafter(rounded, math.inf) > value or rounded == LARGEST


@deterministic
@given(rational)
@example(Fraction(TINIEST) / 2)
@example(-Fraction(TINIEST) / 2)
@example(Fraction(2) ** 1024)
@example(-(Fraction(10) ** 400))
def test_rounding_up_gives_the_smallest_float_that_is_not_below(value: Fraction) -> None:
    rounded = round_up(value)
    assert rounded >= value
    assert math.nextafter(rounded, -math.inf) < value or rounded == -LARGEST


@deterministic
@given(floats)
def test_a_float_rounds_to_itself(value: float) -> None:
    assert round_down(Fraction(value)) == round_up(Fraction(value)) == value


ENDS = {
    "above the largest": (Fraction(10) ** 400, LARGEST, math.inf),
    "below the lowest": (-(Fraction(10) ** 400), -math.inf, -LARGEST),
    "above zero": (Fraction(1, 10**400), 0.0, TINIEST),
    "below zero": (Fraction(-1, 10**400), -TINIEST, 0.0),
}


@pytest.mark.parametrize(("value", "down", "up"), ENDS.values(), ids=ENDS)
def test_beyond_the_floats_rounding_meets_their_ends(value: Fraction, down: float, up: float) -> None:
    assert (round_down(value), round_up(value)) == (down, up)


@pytest.mark.parametrize("value", [Fraction(0), Fraction(1, 3), Fraction(10) ** 400, -(Fraction(10) ** 400)])
def test_rounding_gives_plain_floats(value: Fraction) -> None:
    assert type(round_down(value)) is float
    assert type(round_up(value)) is float


def test_zero_rounds_to_the_positive_zero() -> None:
    assert math.copysign(1, round_down(Fraction(0))) == 1
    assert math.copysign(1, round_up(Fraction(0))) == 1


def test_narrow_floats_are_themselves_too() -> None:
    values = np.array([0.1, -3.0, 6e-8], np.float16)
    exact = Dyadic.of(values)
    assert [exact[k].fraction() for k in range(3)] == [Fraction(float(value)) for value in values]
