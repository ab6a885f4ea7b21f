"""The checker never says more than rationals do, and says as much where arithmetic must be exact."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from drawn import drawn
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from oracles import certificate_proves, exact_gap

import argmaxable as am
from argmaxable.check.checker import require
from argmaxable.check.solutions import with_independent_basis

INF = math.inf
STRENGTHS = list(am.Strength)
SMALLEST = Fraction(5e-324)
ULP = 2.0**-52
deterministic = settings(
    derandomize=True,
    database=None,
    max_examples=40,
)

DOMAINS = {
    "box": am.Box(-100, 100),
    "box [0, inf)": am.Box(0, INF),
    "box [1, 3]": am.Box(1, 3),
    "everywhere": am.Everywhere(),
    "ball": am.Ball(2.0),
    "RMSNorm": am.RMSNorm([0.1, -3.0], [0.3, -7.0]),
    "LayerNorm": am.LayerNorm([0.1, -3.0], [0.3, -7.0]),
    "hull": am.Hull([[0.1, -3.0], [5.0, 0.3]]),
}
every_domain = pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)


def gap_at(head: am.Head, domain: am.Domain, point: list[float], class_id: int = 0, **options: Any) -> tuple:
    """The proven gap, the rival met, and the strength of the proof."""
    gaps = am.Checker(head, domain).gaps(np.array([class_id]), np.array([point]), **options)
    return float(gaps.lower[0]), int(gaps.rival[0]), STRENGTHS[gaps.strength[0]]


def certificate(
    weights: dict[int, float], basis: int = 0, coordinates: list[int] | None = None
) -> am.Certificate:
    return am.Certificate(
        np.array(list(weights), np.intp),
        np.array(list(weights.values())),
        basis,
        None if coordinates is None else np.array(coordinates, np.intp),
    )


# ---------------------------------------------------------------------- witnesses

TWO = am.Head([[1.0, 0.0], [0.0, 1.0]])
# (weight, bias, point) with the exact gap of class 0 and the strength it takes to know its sign
GAPS = {
    "a clear gap": (TWO, [2.0, 1.0], 1.0, am.Strength.FLOAT32),
    "a clear loss": (TWO, [1.0, 3.0], -2.0, am.Strength.FLOAT32),
    "a gap below float32": (TWO, [1.0 + 1e-9, 1.0], (1.0 + 1e-9) - 1.0, am.Strength.FLOAT64),
    "a loss below float32": (TWO, [1.0, 1.0 + 1e-9], 1.0 - (1.0 + 1e-9), am.Strength.FLOAT64),
    "a gap of nothing": (TWO, [0.1, 0.1], 0.0, am.Strength.EXACT),
    "a gap of one ulp": (TWO, [1.0 + ULP, 1.0], ULP, am.Strength.EXACT),
    "a loss of one ulp": (TWO, [1.0, 1.0 + ULP], -ULP, am.Strength.EXACT),
    "everything at zero": (TWO, [0.0, 0.0], 0.0, am.Strength.EXACT),
    "subnormal scores": (TWO, [1e-323, 5e-324], 5e-324, am.Strength.EXACT),
    "twins": (am.Head([[0.1, 0.7], [0.1, 0.7]]), [0.3, 3.1], 0.0, am.Strength.EXACT),
    "twins and a better bias": (am.Head([[0.1, 0.7]] * 2, [ULP, 0.0]), [0.3, 3.1], ULP, am.Strength.FLOAT64),
    "large scores, a gap of 2": (
        am.Head([[2.0**53, 2.0], [2.0**53, 0.0]]),
        [1.0, 1.0],
        2.0,
        am.Strength.FLOAT32,
    ),
    "large biases, a gap of 1": (
        am.Head(np.eye(2), [2.0**53, 2.0**53]),
        [2.0, 1.0],
        1.0,
        am.Strength.FLOAT32,
    ),
    "biases beyond float32": (am.Head(np.eye(2), [1e300, 0.0]), [0.0, 1.0], 1e300, am.Strength.FLOAT64),
}


@pytest.mark.parametrize(("head", "point", "gap", "_"), GAPS.values(), ids=GAPS)
def test_a_gap_is_proven_with_its_sign(head: am.Head, point: list[float], gap: float, _: Any) -> None:
    lower, rival, _ = gap_at(head, am.Everywhere(), point)
    assert lower <= gap
    assert (lower > 0, lower >= 0) == (gap > 0, gap >= 0)
    assert rival == 1


STRONG = {name: case for name, case in GAPS.items() if name != "twins and a better bias"}


@pytest.mark.parametrize(("head", "point", "gap", "strength"), STRONG.values(), ids=STRONG)
def test_arithmetic_is_as_exact_as_the_sign_needs(
    head: am.Head, point: list[float], gap: float, strength: am.Strength
) -> None:
    lower, _, found = gap_at(head, am.Everywhere(), point)
    assert found is strength
    assert strength is not am.Strength.EXACT or lower == gap


@st.composite
def cases(draw: st.DrawFn) -> tuple[am.Head, NDArray[np.float64]]:
    """A head of two features and a point, with many exact ties, near ties and mixed magnitudes."""
    simple = st.integers(-3, 3).map(float) | st.sampled_from([0.1, 1 + ULP, 1 - ULP / 2, -0.1, 1e-30, 1e30])
    entry = simple | st.floats(-4, 4) if draw(st.booleans()) else simple
    count = draw(st.integers(2, 5))
    rows = draw(st.lists(st.tuples(entry, entry), min_size=count, max_size=count))
    bias = draw(st.none() | st.lists(entry, min_size=count, max_size=count))
    return am.Head(rows, bias), np.array(draw(st.tuples(entry, entry)))


centres = st.tuples(*[st.floats(-10, 10) | st.floats(allow_nan=False, allow_infinity=False)] * 2).map(
    np.array
)


@functools.cache
def some_cases() -> list[tuple[am.Head, NDArray[np.float64], NDArray[np.float64]]]:
    """Heads, points and centres: the same over every domain."""
    return [(head, point, centre) for (head, point), centre in drawn(st.tuples(cases(), centres), 80)]


@every_domain
def test_the_proven_gap_is_at_most_the_true_one_and_has_its_sign(domain: am.Domain) -> None:
    for head, point, _ in some_cases():
        truth = exact_gap(head, domain, 0, point)
        lower, _, _ = gap_at(head, domain, list(point))
        case = (head.weight, head.bias, point)
        if truth is None:
            assert lower == -INF, case
        else:
            assert lower <= truth, case
            assert (lower > 0) == (truth >= SMALLEST), case


@every_domain
def test_no_centre_makes_a_gap_larger_than_it_is(domain: am.Domain) -> None:
    """The centre of a bundle comes from whoever wrote it."""
    for head, point, centre in some_cases():
        truth = exact_gap(head, domain, 0, point)
        lower = float(am.Checker(head, domain, centre=centre).gaps(np.array([0]), point[None]).lower[0])
        assert lower == -INF if truth is None else lower <= truth, (head.weight, head.bias, point, centre)


def test_the_rival_is_the_class_that_comes_closest() -> None:
    head = am.Head([[0.0], [1.0], [2.0], [-1.0]], [10.0, 0.0, 0.0, 0.0])
    assert gap_at(head, am.Everywhere(), [3.0])[1] == 2
    assert gap_at(head, am.Everywhere(), [-3.0])[1] == 3


def test_the_only_class_has_an_infinite_gap_inside_the_domain_alone() -> None:
    head = am.Head([[1.0, 2.0]])
    assert gap_at(head, am.Box(-1, 1), [1.0, 1.0])[0] == INF
    assert gap_at(head, am.Box(-1, 1), [1.0, 2.0])[0] == -INF


@every_domain
def test_points_are_judged_one_by_one(domain: am.Domain) -> None:
    generator = np.random.default_rng(0)
    head = am.Head(generator.integers(-2, 3, size=(9, 2)), generator.integers(-2, 3, size=9))
    points = generator.integers(-6, 7, size=(9, 2)) / 4
    together = am.Checker(head, domain).gaps(np.arange(9), points).lower
    for class_id, (point, lower) in enumerate(zip(points, together, strict=True)):
        truth = exact_gap(head, domain, class_id, point)
        assert lower == -INF if truth is None else lower <= truth
        assert (lower > 0) == (truth is not None and truth > 0)


@pytest.mark.parametrize("claim", [1.0, 1.0 - 1e-12, 1e-3, 0.0, -1.0])
def test_a_claim_that_holds_is_proven(claim: float) -> None:
    lower, _, _ = gap_at(TWO, am.Everywhere(), [2.0, 1.0], claims=np.array([claim]))
    assert claim <= lower <= 1.0


@pytest.mark.parametrize("claim", [-2.0, -2.0 - 1e-12, -3.0])
def test_a_negative_claim_that_holds_is_proven(claim: float) -> None:
    lower, _, _ = gap_at(TWO, am.Everywhere(), [1.0, 3.0], claims=np.array([claim]))
    assert claim <= lower <= -2.0


@pytest.mark.parametrize("claim", [1.0 + ULP, 1.0 + 1e-9, 2.0, 1e300])
def test_a_claim_above_the_gap_is_not_proven(claim: float) -> None:
    assert gap_at(TWO, am.Everywhere(), [2.0, 1.0], claims=np.array([claim]))[0] < claim


@deterministic
@given(cases())
def test_the_exact_gap_is_provable_as_a_claim_and_the_next_float_is_not(
    case: tuple[am.Head, NDArray[np.float64]],
) -> None:
    head, point = case
    truth = exact_gap(head, am.Everywhere(), 0, point)
    assert truth is not None
    claim = float(truth)
    if Fraction(claim) > truth:
        claim = math.nextafter(claim, -INF)
    above = math.nextafter(claim, INF)
    assert gap_at(head, am.Everywhere(), list(point), claims=np.array([claim]))[0] == claim
    assert gap_at(head, am.Everywhere(), list(point), claims=np.array([above]))[0] < above


# Points where class 0 loses or ties, but careless float arithmetic finds that it wins.
TRAPS = {
    "float32 overflows in a weight": ([[1e39, -3.3e38], [0.0, 0.0]], am.Box(-1, 1), [0.3, 1.0]),
    "float32 overflows in a sum": (
        np.array([[3e38, 3e38, -3e38, -3e38, -3e38], [0] * 5], np.float32),
        am.Box(-1, 1),
        [1.0] * 5,
    ),
    "float32 overflows in a product": (
        np.array([[3e38, -3e38], [0, 0]], np.float32),
        am.Box(-100, 100),
        [2.0, 2.5],
    ),
    "float64 overflows in a sum": (
        [[1e308, 1e308, -1e308, -1e308, -1e308], [0.0] * 5],
        am.Box(-1, 1),
        [1.0] * 5,
    ),
    "float32 overflows in the point": ([[1.0, -1.0], [0.0, 0.0]], am.Everywhere(), [1e39, 2e39]),
    "the mean of subnormals": (
        [[1.0, 2.5, 0.0], [0.0, 0.0, 0.0]],
        am.LayerNorm(2.0**100),
        [5e-324, 0.0, 0.0],
    ),
}


@pytest.mark.parametrize(("weight", "domain", "point"), TRAPS.values(), ids=TRAPS)
def test_overflow_and_underflow_make_no_loser_a_winner(
    weight: Any, domain: am.Domain, point: list[float]
) -> None:
    head = am.Head(weight)
    truth = exact_gap(head, domain, 0, np.array(point))
    assert truth is not None
    assert truth <= 0
    assert gap_at(head, domain, point)[0] <= truth


@pytest.mark.parametrize("exponent", [-1000, -700, -565, -500, -60, 0, 60, 500])
def test_near_ties_are_told_right_at_every_scale_of_points_and_weights(exponent: int) -> None:
    """Swapped weights at swapped features tie but for rounding, whatever the scale."""
    generator = np.random.default_rng(0)
    for _ in range(40):
        row = generator.normal(size=4)
        point = np.ldexp(np.append([1.0, 1.0], generator.normal(size=2)), exponent)
        head = am.Head(np.ldexp([row, row[[1, 0, 2, 3]]], min(-exponent, 500)))
        truth = exact_gap(head, am.Everywhere(), 0, point)
        assert truth == 0
        assert gap_at(head, am.Everywhere(), list(point))[0] <= 0


# ---------------------------------------------------------------------- certificates

PAIR = [[1.0, 1.0], [0.0, 0.0]]
SQUARE = [[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]]
TRIANGLE = [[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]]
MIDDLE = am.Head([*SQUARE, [1.0, 1.0]])
CENTROID = am.Head([*TRIANGLE, [1.0, 1.0]])
ON_EDGE = am.Head([*TRIANGLE, [1.0, 0.0]])
OUTSIDE = am.Head([*TRIANGLE, [2.0, 2.0]])
LIFTED = am.Head([*TRIANGLE, [1.0, 1.0]], [0.0, 0.0, 0.0, 0.5])
LOWERED = am.Head([*TRIANGLE, [1.0, 1.0]], [0.0, 3.0, 0.0, 0.5])
THIRD = 1 / 3
FINE = {0: THIRD, 1: THIRD, 2: THIRD}
ROUGH = {0: 0.33, 1: 0.34, 2: 0.33}
BOX = am.Box(-100, 100)
# head, domain, class, certificate → the bound it proves (None: nothing below or at zero)
PROOFS: dict[str, tuple[am.Head, am.Domain, int, am.Certificate, float | None]] = {
    "a literal middle": (MIDDLE, BOX, 4, certificate({0: 0.5, 3: 0.5}), 0.0),
    "a literal middle, not normalised": (MIDDLE, BOX, 4, certificate({0: 3.0, 3: 3.0}), 0.0),
    "a literal middle of four": (MIDDLE, BOX, 4, certificate({0: 1, 1: 1, 2: 1, 3: 1}), 0.0),
    "a literal middle, everywhere": (MIDDLE, am.Everywhere(), 4, certificate({0: 0.5, 3: 0.5}), 0.0),
    "a literal middle in a ball": (MIDDLE, am.Ball(7.0), 4, certificate({0: 0.5, 3: 0.5}), 0.0),
    "a literal middle after an RMSNorm": (MIDDLE, am.RMSNorm(0.1), 4, certificate({0: 0.5, 3: 0.5}), 0.0),
    "a literal middle after a LayerNorm": (MIDDLE, am.LayerNorm(0.1), 4, certificate({1: 1.0, 2: 1.0}), 0.0),
    "a difference that LayerNorm removes": (MIDDLE, am.LayerNorm(0.1), 4, certificate({3: 1.0}), 0.0),
    "the wrong middle": (MIDDLE, BOX, 4, certificate({0: 0.5, 3: 0.25}), None),
    "the wrong middle, everywhere": (MIDDLE, am.Everywhere(), 4, certificate({0: 0.5, 1: 0.5}), None),
    "a corner": (MIDDLE, BOX, 0, certificate({1: 0.5, 2: 0.5}), None),
    "thirds are no floats": (CENTROID, BOX, 3, certificate(FINE), 0.0),
    "tenths are no floats": (am.Head([[0.0], [1.0], [0.1]]), BOX, 2, certificate({0: 0.9, 1: 0.1}), None),
    "tenths are no floats, everywhere": (
        am.Head([[0.0], [1.0], [0.1]]), am.Everywhere(), 2, certificate({0: 0.9, 1: 0.1}), None,
    ),
    "tenths solved for": (am.Head([[0.0], [1.0], [0.1]]), BOX, 2, certificate({0: 0.9, 1: 0.1}, 2), 0.0),
    "tenths solved for, everywhere": (
        am.Head([[0.0], [1.0], [0.1]]), am.Everywhere(), 2, certificate({0: 0.9, 1: 0.1}, 2), 0.0,
    ),
    "rough weights are meant literally": (CENTROID, BOX, 3, certificate(ROUGH), None),
    "rough weights solved for": (CENTROID, BOX, 3, certificate(ROUGH, 3), 0.0),
    "rough weights solved for, everywhere": (CENTROID, am.Everywhere(), 3, certificate(ROUGH, 3), 0.0),
    "rough weights solved for in a ball": (CENTROID, am.Ball(1.0), 3, certificate(ROUGH, 3), 0.0),
    "rough weights solved for after an RMSNorm": (
        CENTROID, am.RMSNorm([0.1, 0.3], 0.7), 3, certificate(ROUGH, 3), 0.0,
    ),
    "rough weights solved for in every feature": (CENTROID, BOX, 3, certificate(ROUGH, 3, [0, 1]), 0.0),
    "features in another order": (CENTROID, BOX, 3, certificate(ROUGH, 3, [1, 0]), 0.0),
    "a feature twice": (CENTROID, BOX, 3, certificate(ROUGH, 3, [1, 0, 1]), 0.0),
    "too few features to be unique": (CENTROID, BOX, 3, certificate(ROUGH, 3, [0]), None),
    "no features": (CENTROID, BOX, 3, certificate({0: 1.0}, 1, []), None),
    "solved in one feature, met in both": (ON_EDGE, BOX, 3, certificate({0: 0.7, 1: 0.3}, 2, [0]), 0.0),
    "more equations than weights": (ON_EDGE, BOX, 3, certificate({0: 0.7, 1: 0.3}, 2), 0.0),
    "more equations, in contradiction": (CENTROID, BOX, 3, certificate({0: 0.5, 1: 0.5}, 2), None),
    "a weight that comes out zero": (ON_EDGE, BOX, 3, certificate({0: 0.6, 1: 0.3, 2: 0.1}, 3), 0.0),
    "a weight that comes out negative": (OUTSIDE, BOX, 3, certificate(ROUGH, 3), None),
    "a basis of equal rows": (am.Head([[1.0], [1.0], [1.0]]), BOX, 2, certificate({0: 0.5, 1: 0.5}, 2), None),
    "a basis of one equal row": (am.Head([[1.0], [1.0]]), BOX, 1, certificate({0: 0.5}, 1), 0.0),
    "a kept weight": (MIDDLE, BOX, 4, certificate({0: 0.4, 3: 0.4, 1: 0.0}, 2), 0.0),
    "a kept weight that counts": (MIDDLE, BOX, 4, certificate({0: 0.2, 2: 0.2, 3: 0.2, 1: 0.25}, 3), 0.0),
    "kept weights of more than one": (MIDDLE, BOX, 4, certificate({0: 0.4, 3: 0.4, 1: 1.0, 2: 1.0}, 2), None),
    "a bias above": (LIFTED, BOX, 3, certificate(ROUGH, 3), 0.5),
    "a bias below": (LOWERED, BOX, 3, certificate(ROUGH, 3), -0.5),
    "a bias below, everywhere": (LOWERED, am.Everywhere(), 3, certificate(ROUGH, 3), -0.5),
    "a bias below, literally": (
        am.Head(MIDDLE.weight, [1.0, 0.0, 0.0, 2.0, 0.0]), BOX, 4, certificate({0: 0.5, 3: 0.5}), -1.5,
    ),
    "one rival over a box": (am.Head(PAIR, [-3.0, 0.0]), am.Box(0, 1), 0, certificate({1: 1.0}), -1.0),
    "one rival on a corner": (am.Head(PAIR, [-2.0, 0.0]), am.Box(0, 1), 0, certificate({1: 1.0}), 0.0),
    "one rival on a sphere": (
        am.Head([[3.0, 4.0], [0.0, 0.0]], [-5.0, 0.0]), am.Ball(1.0), 0, certificate({1: 0.1}), 0.0,
    ),
    "one rival behind [0, inf)": (
        am.Head([[-1.0, 0.0], [0.0, 0.0]]), am.Box(0, INF), 0, certificate({1: 1.0}), 0.0,
    ),
    "one rival before [0, inf)": (
        am.Head([[1e-300, -1.0], [0.0, 0.0]]), am.Box(0, INF), 0, certificate({1: 1.0}), None,
    ),
    "a tiny total": (MIDDLE, BOX, 4, certificate({0: 5e-324, 3: 5e-324}), 0.0),
    "an enormous total": (MIDDLE, BOX, 4, certificate({0: 8e307, 3: 8e307}), 0.0),
}  # fmt: skip


@pytest.mark.parametrize("case", PROOFS.values(), ids=PROOFS)
def test_a_certificate_proves_what_is_known_by_hand(case: tuple) -> None:
    head, domain, class_id, evidence, bound = case
    upper = am.Checker(head, domain).bound(class_id, evidence).upper
    if bound is None:
        assert upper > 0
    else:
        assert upper >= bound
        assert (upper <= 0) == (bound <= 0)
    if upper < INF:
        assert certificate_proves(head, domain, class_id, evidence, Fraction(upper))


@pytest.mark.parametrize("case", PROOFS.values(), ids=PROOFS)
def test_rationals_agree_with_what_is_known_by_hand(case: tuple) -> None:
    head, domain, class_id, evidence, bound = case
    proven = certificate_proves(head, domain, class_id, evidence, Fraction(bound or 0))
    assert proven == (bound is not None)


@pytest.mark.parametrize("case", PROOFS.values(), ids=PROOFS)
def test_a_claim_is_proven_at_the_bound_and_not_below(case: tuple) -> None:
    head, domain, class_id, evidence, bound = case
    checker = am.Checker(head, domain)
    if bound is None:
        assert not checker.proves(class_id, evidence, 0.0)
    else:
        assert checker.proves(class_id, evidence, bound)
        assert not checker.proves(class_id, evidence, math.nextafter(bound, -INF))


STRENGTH_OF = {
    "floats suffice": (LOWERED, certificate({1: 1.0, 0: 1.0, 2: 1.0}), am.Strength.FLOAT64),
    "zero needs integers": (MIDDLE, certificate({0: 0.5, 3: 0.5}), am.Strength.EXACT),
    "a verified inverse": (CENTROID, certificate(FINE, 3), am.Strength.INTERVAL),
    "a verified inverse and a bias": (LOWERED, certificate(FINE, 3), am.Strength.INTERVAL),
    "rationals in chosen features": (CENTROID, certificate(ROUGH, 3, [0, 1]), am.Strength.EXACT),
    "rationals for an edge": (ON_EDGE, certificate({0: 0.7, 1: 0.3}, 2), am.Strength.EXACT),
}  # fmt: skip


@pytest.mark.parametrize(("head", "evidence", "strength"), STRENGTH_OF.values(), ids=STRENGTH_OF)
def test_a_proof_says_by_which_arithmetic_it_holds(
    head: am.Head, evidence: am.Certificate, strength: am.Strength
) -> None:
    bound = am.Checker(head, am.Box(-0.01, 0.01)).bound(head.classes - 1, evidence)
    assert bound.upper <= 0
    assert bound.strength is strength


@st.composite
def claims(draw: st.DrawFn) -> tuple[am.Head, am.Certificate]:
    """A head and weights for its class 0 that often prove it lost, or nearly."""
    simple = st.integers(-2, 2).map(float) | st.sampled_from([0.1, 1 + ULP, 1e-30, 1e30])
    count = draw(st.integers(2, 6))
    rows = draw(st.lists(st.tuples(simple, simple), min_size=count, max_size=count))
    bias = draw(st.none() | st.lists(simple, min_size=count, max_size=count))
    weight = st.sampled_from([0.0, 0.25, 0.5, 1.0, THIRD, 5e-324, 1e300, 1e308]) | st.floats(0, 1)
    weights = draw(st.lists(weight, min_size=count - 1, max_size=count - 1))
    basis = draw(st.just(0) | st.integers(0, count - 1))
    chosen = draw(st.permutations(range(1, count)))
    coordinates = draw(st.none() | st.lists(st.integers(0, 1), max_size=3))
    return am.Head(rows, bias), certificate(dict(zip(chosen, weights, strict=True)), basis, coordinates)


@functools.cache
def some_claims() -> list[tuple[am.Head, am.Certificate, NDArray[np.float64]]]:
    """Heads, certificates and centres: the same over every domain."""
    return [(head, evidence, centre) for (head, evidence), centre in drawn(st.tuples(claims(), centres), 100)]


@every_domain
def test_no_certificate_proves_more_than_rationals_confirm(domain: am.Domain) -> None:
    for head, evidence, _ in some_claims():
        checker, claim = am.Checker(head, domain), (head.weight, head.bias, evidence)
        with np.errstate(over="ignore"):
            total = evidence.weights.sum()
        by_float = float(checker.bounds(np.array([0]), evidence)[0])
        upper = checker.bound(0, evidence).upper
        for value in {upper, by_float} - {INF}:
            assert 0 < total < INF, claim
            assert certificate_proves(head, domain, 0, evidence, Fraction(float(value))), claim
        if total < INF:
            proven = checker.proves(0, evidence, 0.0)
            confirmed = certificate_proves(head, domain, 0, evidence, Fraction(0))
            # A basis larger than the equations has many solutions: the oracle takes any of them, the checker
            # only one near the stored weights.
            assert proven == confirmed or (not proven and evidence.basis > head.features + 1), claim


@every_domain
def test_what_is_proven_in_rationals_is_so(domain: am.Domain) -> None:
    for head, evidence, _ in some_claims():
        claim = (head.weight, head.bias, evidence)
        with np.errstate(over="ignore"):
            total = evidence.weights.sum()
        proven = am.Checker(head, domain).proves_in_rationals(0, evidence)
        if proven:
            assert not am.verify(head, domain, only=[0], engine=am.Engine(workers=1)).argmaxable, claim
        if 0 < total < INF:
            confirmed = certificate_proves(
                head, domain, 0, with_independent_basis(head, domain, evidence), Fraction(0)
            )
            # Coordinates mean nothing behind a LayerNorm; a certificate with some may be refused.
            assert proven == confirmed or (confirmed and evidence.coordinates is not None), claim


@every_domain
def test_no_centre_makes_a_certificate_prove_more(domain: am.Domain) -> None:
    for head, evidence, centre in some_claims():
        upper = am.Checker(head, domain, centre=centre).bound(0, evidence).upper
        claim = (head.weight, head.bias, evidence, centre)
        assert upper == INF or certificate_proves(head, domain, 0, evidence, Fraction(float(upper))), claim


def test_weights_that_overflow_prove_nothing_against_a_class_that_wins() -> None:
    """λ·w overflows to ∞ on both sides: ∞ − ∞ must not count as a direction of nothing."""
    head = am.Head([[10.0, 0.0], [5.0, 0.0], [-9.0, 0.0], [100.0, 50.0], [-300.0, 0.0]], [0, 1, 0, 0, 0])
    assert (
        am.verify(head, am.Box(-1, 1), engine=am.Engine(workers=1)).verdicts[0].status is am.Status.ARGMAXABLE
    )
    assert am.Checker(head, am.Box(-1, 1)).bound(0, certificate({1: 1.7e308})).upper > 0


def test_rows_that_overflow_prove_nothing_against_a_class_that_wins() -> None:
    head = am.Head([[1e300], [2e300]], [0.0, 1.0])
    assert am.Checker(head, am.Box(-1, 1), centre=np.zeros(1)).bound(0, certificate({1: 1e9})).upper > 0


@every_domain
def test_the_bound_from_one_rival_is_what_rationals_confirm(domain: am.Domain) -> None:
    generator = np.random.default_rng(1)
    head = am.Head(generator.normal(size=(12, 2)), generator.normal(size=12))
    classes, rivals = np.arange(12), np.roll(np.arange(12), 1)
    uppers = am.Checker(head, domain).rival_bounds(classes, rivals)
    for class_id, rival, upper in zip(classes.tolist(), rivals.tolist(), uppers.tolist(), strict=True):
        proof = certificate({rival: 1.0})
        if upper < INF:
            assert certificate_proves(head, domain, class_id, proof, Fraction(upper))
            slack = Fraction(1e-12 * max(1.0, abs(upper)))
            assert not certificate_proves(head, domain, class_id, proof, Fraction(upper) - slack)


def test_dependent_rows_leave_the_basis_with_their_weights() -> None:
    head = am.Head([[0.0, 0], [3, 0], [-3, 0], [6, 0], [0, 1], [0, -1]])
    redundant = certificate({1: 0.25, 2: 0.25, 3: 0.0, 4: 0.25, 5: 0.25}, basis=5)
    found = with_independent_basis(head, am.Everywhere(), redundant)
    assert (found.classes.tolist(), found.basis) == ([1, 2, 4, 3, 5], 3)
    assert found.weights.tolist() == [0.25, 0.25, 0.25, 0.0, 0.25]
    assert am.Checker(head, am.Everywhere()).proves_in_rationals(0, found)


@every_domain
def test_one_certificate_is_tried_on_many_classes_and_never_on_its_own(domain: am.Domain) -> None:
    generator = np.random.default_rng(2)
    head = am.Head(generator.normal(size=(20, 2)) * 0.1, generator.normal(size=20))
    proof = certificate({3: 0.25, 5: 0.5, 8: 0.25})
    uppers = am.Checker(head, domain).bounds(np.arange(20), proof)
    assert all(uppers[i] == INF for i in (3, 5, 8))
    for class_id in np.flatnonzero(uppers < INF).tolist():
        assert certificate_proves(head, domain, class_id, proof, Fraction(float(uppers[class_id])))


def test_a_certificate_with_a_basis_is_not_tried_on_many_classes() -> None:
    assert am.Checker(CENTROID, BOX).bounds(np.array([3]), certificate(ROUGH, 3))[0] == INF


# ---------------------------------------------------------------------- the rest


def test_an_own_direction_is_the_row_off_the_centre_scaled_and_clipped() -> None:
    head = am.Head([[3.0, -1.0], [1.0, 1.0]])
    checker = am.Checker(head, am.Box(-1, 3), centre=np.array([1.0, 0.5]))
    assert list(checker.point(0, am.OwnDirection(0))) == [2.0, -1.0]
    assert list(checker.point(0, am.OwnDirection(-2))) == [0.5, -0.375]
    assert list(checker.point(0, am.OwnDirection(99999))) == [3.0, -1.0]


def test_an_own_direction_after_a_norm_carries_the_gain() -> None:
    head = am.Head([[3.0, -1.0], [1.0, 1.0]])
    checker = am.Checker(head, am.RMSNorm([2.0, -0.5], 7.0), centre=np.zeros(2))
    assert list(checker.point(0, am.OwnDirection(1))) == [12.0, 1.0]


def test_a_point_is_itself() -> None:
    assert list(am.Checker(TWO, BOX).point(0, am.Point(np.array([0.1, 0.2])))) == [0.1, 0.2]


def test_failed_evidence_of_our_own_stops_the_run() -> None:
    require(True, "This holds.")
    with pytest.raises(am.EvidenceError, match="Class 3 is not beaten"):
        require(False, "Class 3 is not beaten by its twin.")


@pytest.mark.parametrize("total", [1.0, 1e300, 1e308])
def test_a_large_total_does_not_divide_a_margin_away(total: float) -> None:
    """t* is 5e-325 and 3e-310 here: divided by a large total, floats would round it to zero, or down."""
    tiny = am.Head([[2.0**-540], [0.0]])
    box = am.Box(0, 2.0**-540)
    assert am.Checker(tiny, box).bound(0, certificate({1: total})).upper > 0
    head, hull = am.Head([[0.0], [0.0], [1e-10], [-3e-10]]), am.Hull([[0.0], [-1e-300]])
    evidence = certificate({0: total, 1: 1.0, 2: 1.0})
    for upper in (am.Checker(head, hull).bound(3, evidence).upper, rough_bound(head, hull, 3, evidence)):
        assert certificate_proves(head, hull, 3, evidence, Fraction(upper))


def test_a_tiny_ball_does_not_swallow_a_margin() -> None:
    """t* is about 2e-460: the radius times the length of the difference is zero in floats."""
    checker = am.Checker(am.Head([[0.0, 1e-160], [0.0, -1e-160]]), am.Ball(1e-300))
    assert checker.rival_bounds(np.array([0]), np.array([1]))[0] > 0
    assert checker.bound(0, certificate({1: 1.0})).upper > 0


def rough_bound(head: am.Head, domain: am.Domain, class_id: int, evidence: am.Certificate) -> float:
    return float(am.Checker(head, domain).bounds(np.array([class_id]), evidence)[0])


@every_domain
@pytest.mark.parametrize("seed", range(6))
def test_rivals_left_out_count_as_little_as_if_the_head_had_not_got_them(
    domain: am.Domain, seed: int
) -> None:
    """Small whole numbers, so that ties and exact arithmetic come up; with a bias and without."""
    rng = np.random.default_rng(seed)
    weight, bias = rng.integers(-2, 3, (9, 2)).astype(float), rng.integers(-1, 2, 9).astype(float)
    head = am.Head(weight, bias if seed % 2 else None)
    points = np.array([domain.own_points(row[None], np.array([-1]))[0] for row in weight])
    if isinstance(domain, am.Hull):
        points = rng.integers(1, 4, (9, 2)) / 4.0
        points /= points.sum(axis=1, keepdims=True)
    for class_id in range(9):
        without = rng.choice(np.delete(np.arange(9), class_id), rng.integers(0, 9), replace=False)
        left = np.setdiff1d(np.arange(9), without)
        smaller = am.Head(weight[left], bias[left] if seed % 2 else None)
        ids, point = np.array([class_id]), points[class_id][None]
        here = am.Checker(head, domain, without=without).gaps(ids, point)
        there = am.Checker(smaller, domain).gaps(np.searchsorted(left, ids), point)
        assert np.sign(here.lower[0]) == np.sign(there.lower[0])
        assert here.lower[0] == pytest.approx(there.lower[0], rel=1e-4, abs=1e-4)
        if len(left) > 1 and np.isfinite(here.lower[0]):
            assert here.rival[0] in left


def test_rivals_left_out_stay_out_where_scores_overflow() -> None:
    head = am.Head(np.array([[1e38], [-1e38], [3e38]], np.float32), np.array([0.0, 0.0, 1e38], np.float32))
    gaps = am.Checker(head, am.Box(-100, 100), without=np.array([2])).gaps(np.array([0]), np.array([[100.0]]))
    assert gaps.lower[0] > 0


def test_a_mixture_of_a_twin_and_another_proves_what_the_mixture_does() -> None:
    # Class 1 alone proves 0; half of it and half of class 2 prove no more than 4 over the box ±4.
    head = am.Head([[0.0], [0.0], [2.0]])
    found = am.Checker(head, am.Box(-4, 4)).bound(0, am.Certificate(np.array([1, 2]), np.array([0.5, 0.5])))
    assert found.upper == 4
