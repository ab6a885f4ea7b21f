"""Every domain's membership, placement and support function against rationals."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import oracles
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from oracles import placed, rationals

import argmaxable as am
from argmaxable.exact.dyadic import Dyadic
from argmaxable.exact.rounding import gamma

INF, NAN = math.inf, math.nan
deterministic = settings(
    derandomize=True,
    database=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)

DOMAINS = {
    "everywhere": am.Everywhere(),
    "box": am.Box(-1, 2),
    "box around 1/10": am.Box(0.1, 0.3),
    "box [0, inf)": am.Box(0, INF),
    "box (-inf, 1]": am.Box(-INF, 1),
    "box of mixed ranges": am.Box([-1.0, 0.0, -INF], [1.0, INF, 0.5]),
    "box of one point": am.Box(0.1, 0.1),
    "unbounded box": am.Box(-INF, INF),
    "ball": am.Ball(2.0),
    "ball of 1/10": am.Ball(0.1),
    "tiny ball": am.Ball(1e-170),
    "RMSNorm": am.RMSNorm(1.0),
    "RMSNorm with gains": am.RMSNorm([0.1, -3.0, 0.0], [0.3, 0.0, -7.0]),
    "LayerNorm": am.LayerNorm(1.0),
    "LayerNorm with gains": am.LayerNorm([0.1, -3.0, 0.0], [0.3, 0.0, -7.0]),
    "LayerNorm of mixed scales": am.LayerNorm([1e-12, 1.0, 1e12], [1e6, 0.0, -1e-6]),
    "hull": am.Hull([[0.1, -2.0, 0.0], [1.0, 0.3, 5.0], [-1.0, 0.0, 0.7]]),
    "hull of mixed scales": am.Hull([[1e-12, 1e12, 0.0], [1.0, -1e12, 1e-300], [0.1, 0.2, 0.3]]),
    "hull of one input, thrice": am.Hull([[0.1, 0.2, 0.3]] * 3),
    "reach": am.Reach([0.1, -2.0, 0.0], [[1.0, 0.3, 5.0], [0.0, 0.7, -0.1], [1.0, 1.0, 0.2]], am.Box(-1, 2)),
    "reach in a ball": am.Reach(
        [0.3, 0.0, -7.0], [[0.1, 0.0, 1.0], [0.0, -3.0, 0.0], [0.2] * 3], am.Ball(0.5)
    ),
    "reach of mixed scales": am.Reach(
        [1e6, 0.0, 1e-6], np.diag([1e-12, 1.0, 1e12]), am.Box([0, 0, -1], [0.3, 0, 1])
    ),
}
every_domain = pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
entries = st.floats(-4, 4) | st.floats(-1e6, 1e6) | st.sampled_from([0.0, -0.0, 0.1, -0.5, 1.0, 2.0, 5e-324])
vectors = st.lists(entries, min_size=3, max_size=3).map(np.array)


def point_of(domain: am.Domain, vector: NDArray[np.float64]) -> NDArray[np.float64]:
    """The vector as a point z: weights of a hull are not negative, and not all zero."""
    if not isinstance(domain, am.Hull):
        return vector
    assume(vector.any())
    return np.abs(vector)


def dyadic_value(number: Dyadic, position: int) -> Fraction:
    return number[position].fraction()


# ---------------------------------------------------------------------- membership

INSIDE = [
    (am.Ball(5.0), [3.0, 4.0], True),
    (am.Ball(5.0), [3.0, np.nextafter(4.0, 5)], False),
    (am.Ball(5.0), [np.nextafter(3.0, 0), 4.0], True),
    (am.Ball(5.0), [-5.0, 0.0], True),
    (am.Ball(5.0), [5.0, 1e-300], False),
    (am.Ball(1e-200), [1e-200, 0.0], True),
    (am.Ball(1e-200), [1e-200, 1e-250], False),
    (am.Ball(1e-200), [9e-201, 1e-201], True),
    (am.Ball(5e-324), [5e-324, 0.0], True),
    (am.Ball(5e-324), [5e-324, 5e-324], False),
    (am.Ball(1e100), [6e99, 7e99], True),
    (am.Ball(1e100), [1e99, 1e100], False),
    (am.Ball(1e300), [1e299, 1e299], True),
    (am.Ball(1e300), [1e300, 1e300], False),
    (am.Ball(1.0), [1e200, 0.0], False),
    (am.Ball(1.0), [NAN, 0.0], False),
    (am.Ball(1.0), [INF, 0.0], False),
    (am.RMSNorm(7.0, 9.0), [1.0, 1.0, 1.0, 1.0], True),
    (am.RMSNorm(7.0, 9.0), [2.0, 0.0, 0.0, 0.0], True),
    (am.RMSNorm(7.0, 9.0), [1.0, 1.0, 1.0, np.nextafter(1.0, 2)], False),
    (am.RMSNorm(7.0, 9.0), [2.0, 5e-324, 0.0, 0.0], False),
    (am.LayerNorm(7.0), [1.0, -1.0], True),
    (am.LayerNorm(7.0), [3.0, 1.0], True),
    (am.LayerNorm(7.0), [1e8 + 1, 1e8 - 1], True),
    (am.LayerNorm(7.0), [1.0, np.nextafter(-1.0, -2)], False),
    (am.LayerNorm(7.0), [1e300, 1e300], True),
    (am.LayerNorm(7.0), [1e300, 0.0], False),
    (am.LayerNorm(7.0), [INF, INF], False),
    (am.LayerNorm(7.0), [1e17], True),
    (am.Box(0.1, 0.3), [0.1, 0.3], True),
    (am.Box(0.1, 0.3), [np.nextafter(0.1, 0), 0.3], False),
    (am.Box(0.1, 0.3), [0.1, np.nextafter(0.3, 1)], False),
    (am.Box(0.1, 0.3), [0.2, NAN], False),
    (am.Box(0, INF), [0.0, 1.7e308], True),
    (am.Box(0, INF), [-0.0, 0.0], True),
    (am.Box(0, INF), [-5e-324, 0.0], False),
    (am.Box(0, INF), [INF, 0.0], False),
    (am.Box([0.0, -INF], [INF, 0.0]), [1.0, -1.0], True),
    (am.Box([0.0, -INF], [INF, 0.0]), [-1.0, 1.0], False),
    (am.Everywhere(), [1.7e308, -5e-324], True),
    (am.Everywhere(), [-INF, 0.0], False),
    (am.Everywhere(), [NAN, 0.0], False),
    (am.Hull([[1.0], [2.0]]), [0.0, 5e-324], True),
    (am.Hull([[1.0], [2.0]]), [1e308, 1e308], True),
    (am.Hull([[1.0], [2.0]]), [0.0, -0.0], False),
    (am.Hull([[1.0], [2.0]]), [1.0, -5e-324], False),
    (am.Hull([[1.0], [2.0]]), [1.0, NAN], False),
    (am.Hull([[1.0], [2.0]]), [1.0, INF], False),
]


@pytest.mark.parametrize(("domain", "point", "belongs"), INSIDE, ids=str)
def test_membership_is_exact(domain: am.Domain, point: list[float], belongs: bool) -> None:
    assert list(domain.contains(np.array([point]))) == [belongs]


@deterministic
@given(vectors, st.integers(-3, 3))
def test_membership_agrees_with_rationals_near_the_surface(direction: NDArray[np.float64], ulps: int) -> None:
    length = float(np.sqrt((direction * direction).sum()))
    assume(length > 1e-100)
    for name, domain in DOMAINS.items():
        ball = domain.within if isinstance(domain, am.Reach) else domain
        radius = ball.radius if isinstance(ball, am.Ball) else math.sqrt(3)
        point = direction / length * radius * (1 + ulps * 2.0**-52)
        assert domain.contains(point[None])[0] == (placed(domain, rationals(point)) is not None), name


@every_domain
def test_points_are_judged_one_by_one(domain: am.Domain) -> None:
    points = (
        np.random.default_rng(0).normal(size=(40, 3))
        * np.array([0.1, 1.0, 3.0, 1e-170])[np.arange(40) % 4, None]
    )
    together = domain.contains(points)
    assert list(together) == [placed(domain, rationals(point)) is not None for point in points]


# ---------------------------------------------------------------------- placement


def exact_place(domain: am.Domain, point: NDArray[np.float64]) -> list[Fraction]:
    z = rationals(point)
    if isinstance(domain, am.Reach):
        rows = [rationals(row) for row in domain.moves]
        return [start + oracles.dot(z, row) for start, row in zip(rationals(domain.base), rows, strict=True)]
    if isinstance(domain, am.Hull):
        x = placed(domain, z)
        assert x is not None
        return x
    if not isinstance(domain, am.RMSNorm | am.LayerNorm):
        return z
    if isinstance(domain, am.LayerNorm):
        z = [entry - sum(z) / len(z) for entry in z]
    gain, shift = rationals(domain.gains(len(z))), rationals(domain.shifts(len(z)))
    return [g * entry + s for g, entry, s in zip(gain, z, shift, strict=True)]


@deterministic
@given(vectors)
def test_membership_in_integers_agrees_with_membership_of_floats(vector: NDArray[np.float64]) -> None:
    for name, domain in DOMAINS.items():
        point = point_of(domain, vector)
        assert domain.contains_exactly(Dyadic.of(point)) == bool(domain.contains(point[None])[0]), name


@pytest.mark.parametrize("sign", [1, -1])
def test_membership_in_integers_sees_what_float64_can_not(sign: int) -> None:
    """A corner of the box and a point of the sphere, and their neighbours at a distance of 2^-100."""
    one = 2**100
    assert am.Box(-1.0, 1.0).contains_exactly(Dyadic(np.array([one, -one, 0], object), -100))
    for z in ([one + 1, 0, 0], [0, -one - 1, 0]):
        assert not am.Box(-1.0, 1.0).contains_exactly(Dyadic(np.array(z, object), -100))
        assert not am.Ball(1.0).contains_exactly(Dyadic(np.array(z, object), -100))
    inside = Dyadic(np.array([one - 1, sign, 0], object), -100)
    assert am.Box(-1.0, 1.0).contains_exactly(inside)
    assert am.Ball(1.0).contains_exactly(inside)
    assert am.Box(0.0, np.inf).contains_exactly(inside) == (sign > 0)
    assert am.Hull(np.eye(3)).contains_exactly(inside) == (sign > 0)


@deterministic
@given(vectors)
def test_a_placed_point_is_within_its_error_bound(vector: NDArray[np.float64]) -> None:
    for name, domain in DOMAINS.items():
        point = point_of(domain, vector)
        x, error = domain.place(point[None])
        if not np.isfinite(error).all():  # weights whose sum underflows leave it to integers
            assert isinstance(domain, am.Hull), name
            continue
        for value, bound, truth in zip(x[0], error[0], exact_place(domain, point), strict=True):
            assert abs(Fraction(float(value)) - truth) <= Fraction(float(bound)), name


@deterministic
@given(vectors)
def test_exact_placement_agrees_with_rationals(vector: NDArray[np.float64]) -> None:
    for name, domain in DOMAINS.items():
        point = point_of(domain, vector)
        x, denominator = domain.place_exactly(point)
        assert [dyadic_value(x, j) / denominator for j in range(3)] == exact_place(domain, point), name


def test_the_mean_of_subnormals_is_removed_within_the_error_bound() -> None:
    """A mean of 2^-1074/3 rounds to zero; a gain of 2^100 makes that error larger than any underflow."""
    domain, point = am.LayerNorm(2.0**100), np.array([5e-324, 0.0, 0.0])
    x, error = domain.place(point[None])
    for value, bound, truth in zip(x[0], error[0], exact_place(domain, point), strict=True):
        assert abs(Fraction(float(value)) - truth) <= Fraction(float(bound))


# ---------------------------------------------------------------------- support functions


@deterministic
@given(vectors)
def test_the_support_bound_is_not_below_the_support_function(u: NDArray[np.float64]) -> None:
    for name, domain in DOMAINS.items():
        bound = float(domain.support_bound(u[None], np.zeros((1, 3)))[0])
        assert bound == INF or oracles.support_is_at_most(domain, rationals(u), Fraction(bound)), name


@deterministic
@given(
    vectors,
    st.lists(st.floats(0, 0.5), min_size=3, max_size=3),
    st.lists(st.floats(-1, 1), min_size=3, max_size=3),
)
def test_the_support_bound_covers_every_direction_within_the_error(
    u: NDArray[np.float64], error: list[float], share: list[float]
) -> None:
    parts = zip(rationals(u), rationals(error), rationals(share), strict=True)
    nearby = [entry + part * room for entry, room, part in parts]
    for name, domain in DOMAINS.items():
        bound = float(domain.support_bound(u[None], np.array([error]))[0])
        assert bound == INF or oracles.support_is_at_most(domain, nearby, Fraction(bound)), name


@deterministic
@given(st.lists(st.floats(0.5, 4) | st.floats(-4, -0.5), min_size=3, max_size=3).map(np.array))
def test_the_support_bound_is_tight(u: NDArray[np.float64]) -> None:
    for name, domain in DOMAINS.items():
        bound = float(domain.support_bound(u[None], np.zeros((1, 3)))[0])
        if bound < INF:
            limit = Fraction(bound) - Fraction(1e-12 * size_of(domain, u) + 1e-150)
            assert not oracles.support_is_at_most(domain, rationals(u), limit), name
        else:
            assert isinstance(domain, am.Everywhere | am.Box), name


def size_of(domain: am.Domain, u: NDArray[np.float64]) -> float:
    """How large u·x gets before anything cancels: the measure of what rounding may cost."""
    if isinstance(domain, am.Hull):
        return float((np.abs(domain.points) @ np.abs(u)).max())
    if isinstance(domain, am.Reach):
        seen = np.abs(domain.moves).T @ np.abs(u)
        return float(np.abs(domain.base) @ np.abs(u)) + size_of(domain.within, seen)
    if isinstance(domain, am.RMSNorm | am.LayerNorm):
        reach = 2 * np.abs(domain.gains(3)) + np.abs(domain.shifts(3))
    elif isinstance(domain, am.Ball):
        reach = np.full(3, domain.radius)
    else:
        reach = np.maximum(
            *[np.where(np.isfinite(end), np.abs(end), 0) for end in oracles.box_bounds(domain, 3)]
        )
    return float(np.abs(u) @ reach)


SUPPORTS = [
    (am.Box(0, INF), [-1.0, 0.0], 0),
    (am.Box(0, INF), [0.0, 0.0], 0),
    (am.Box(0, INF), [5e-324, -1.0], None),
    (am.Box(-INF, 1), [0.0, 2.0], 2),
    (am.Box(-INF, 1), [-5e-324, 2.0], None),
    (am.Box(-INF, INF), [0.0, -0.0], 0),
    (am.Box([-1.0, -INF], [INF, 3.0]), [-2.0, 0.0], 2),
    (am.Box([-1.0, -INF], [INF, 3.0]), [-2.0, 0.5], Fraction(7, 2)),
    (am.Box([-1.0, -INF], [INF, 3.0]), [2.0, 0.5], None),
    (am.Box(2, 2), [1.0, -3.0], -4),
    (am.Box(1, 3), [-1.0, -2.0], -3),
]


@pytest.mark.parametrize(("domain", "u", "value"), SUPPORTS, ids=str)
def test_the_support_function_of_a_box_counts_nothing_times_infinity_as_nothing(
    domain: am.Box, u: list[float], value: Fraction | None
) -> None:
    support = domain.support_exactly(Dyadic.of(u))
    assert (None if support is None else support.fraction()) == value
    bound = float(domain.support_bound(np.array([u]), np.zeros((1, 2)))[0])
    assert bound == INF if value is None else value <= bound <= float(value) + 1e-14


def test_an_uncertain_direction_into_an_infinite_side_is_not_bounded() -> None:
    assert am.Box(0, INF).support_bound(np.array([[0.0, -1.0]]), np.array([[5e-324, 0.0]]))[0] == INF


LIMITS = [
    (am.Everywhere(), [0.0, 0.0], 0.0),
    (am.Everywhere(), [0.0, -0.0], 5e-324),
    (am.Box(-1, 2), [3.0, -1.0], 7.0),
    (am.Box(1, 3), [-1.0, -1.0], -2.0),
    (am.Box(0, INF), [-1.0, 0.0], 0.0),
    (am.Ball(1.0), [3.0, 4.0], 5.0),
    (am.Ball(2.5), [3.0, 4.0], 12.5),
    (am.Ball(1e-200), [3.0, 4.0], 5e-200),
    (am.Ball(1.0), [0.0, 0.0], 0.0),
    (am.RMSNorm(1.0), [1.0, 1.0], 2.0),
    (am.RMSNorm([3.0, 4.0], [1.0, -1.0]), [4.0, 3.0], 25.0),
    (am.RMSNorm(0.0, [1.0, -1.0]), [4.0, 3.0], 1.0),
    (am.LayerNorm(1.0), [3.0, 1.0], 2.0),
    (am.LayerNorm(1.0), [7.0, 7.0], 0.0),
    (am.LayerNorm(1.0, 5.0), [7.0, 7.0], 70.0),
    (am.LayerNorm([1.0, 0.0], [0.0, -3.0]), [8.0, 1.0], 5.0),
]


@pytest.mark.parametrize(("domain", "u", "limit"), LIMITS, ids=str)
def test_whether_the_support_function_is_at_most_a_limit_agrees_with_rationals(
    domain: am.Domain, u: list[float], limit: float
) -> None:
    for value in (limit, np.nextafter(limit, -INF), np.nextafter(limit, INF), -1.0, 0.0, 1e300):
        answer = domain.support_is_at_most(Dyadic.of(u), Dyadic.of(float(value)))
        assert answer == oracles.support_is_at_most(domain, rationals(u), Fraction(float(value)))


EXACTLY_MET = [
    case for case in LIMITS if case[0] not in (am.Everywhere(), am.Ball(1e-200)) and case[1] != [4.0, 3.0]
]


@pytest.mark.parametrize(("domain", "u", "limit"), EXACTLY_MET, ids=str)
def test_a_limit_that_is_met_exactly_holds_and_the_float_below_does_not(
    domain: am.Domain, u: list[float], limit: float
) -> None:
    assert domain.support_is_at_most(Dyadic.of(u), Dyadic.of(limit))
    assert not domain.support_is_at_most(Dyadic.of(u), Dyadic.of(np.nextafter(limit, -INF)))


@deterministic
@given(vectors, vectors)
def test_the_exact_comparison_agrees_with_rationals(
    u: NDArray[np.float64], limits: NDArray[np.float64]
) -> None:
    for (name, domain), limit in itertools.product(DOMAINS.items(), limits):
        answer = domain.support_is_at_most(Dyadic.of(u), Dyadic.of(limit))
        truth = oracles.support_is_at_most(domain, rationals(u), Fraction(float(limit)))
        assert answer == truth, (name, limit)


@pytest.mark.parametrize("operations", [1, 2, 100, 10**6])
def test_gamma_bounds_the_growth_of_relative_errors(operations: int) -> None:
    unit = Fraction(1, 2**53)
    assert Fraction(gamma(operations)) >= operations * unit
    assert gamma(operations) < 1.01 * operations * 2.0**-53


def test_a_gain_that_nobody_would_multiply_by_is_refused() -> None:
    with pytest.raises(TypeError, match="is_identity"):

        class Forgetful(am.Domain):
            def gains(self, features: int) -> NDArray[np.float64]:
                return np.full(features, 2.0)
