"""verify() against independent truths: Qhull, HiGHS, Clarabel and a rational simplex, class by class."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from evidence import assert_agrees_exactly, verified
from oracles import exact_margin, hull_vertices, margin_by_clarabel, margin_by_highs

import argmaxable as am

INF = math.inf
# Accuracy of the float solvers: HiGHS keeps constraints to 1e-10, times points of size 100.
HIGHS_TOLERANCE = 1e-7
CLARABEL_TOLERANCE = 1e-6


def argmaxable_ids(result: am.Result) -> set[int]:
    return {verdict.class_id for verdict in result.argmaxable}


# ---------------------------------------------------------------------- Qhull

# Without bias and with 0 inside, the domain does not matter: each shape is asked about another one.
HULLS = [
    ("normal", 2, 70, am.Box(-100, 100)),
    ("uniform", 2, 60, am.Everywhere()),
    ("normal", 3, 60, am.Ball(0.5)),
    ("uniform", 3, 60, am.Box(-100, 100)),
    ("normal", 4, 60, am.Box(-1, 2)),
    ("uniform", 4, 60, am.RMSNorm(3.0)),
    ("normal", 5, 60, am.RMSNorm(1.0)),
    ("uniform", 5, 60, am.Box(-100, 100)),
    ("normal", 6, 60, am.Box(-100, 100)),
    ("uniform", 6, 60, am.Ball(1e-3)),
    ("normal", 7, 70, am.Ball(10.0)),
    ("uniform", 7, 70, am.Box(-1, 1)),
    ("normal", 8, 70, am.Everywhere()),
    ("uniform", 8, 70, am.Box(-100, 100)),
]


@pytest.mark.parametrize(("distribution", "features", "classes", "domain"), HULLS, ids=str)
def test_without_bias_the_argmaxable_classes_are_the_hulls_vertices(
    distribution: str, features: int, classes: int, domain: am.Domain
) -> None:
    generator = np.random.default_rng([features, classes])
    shape = (classes, features)
    rows = generator.normal(size=shape) if distribution == "normal" else generator.uniform(-1, 1, shape)
    vertices = hull_vertices(rows)
    assert 0 < len(vertices) < classes  # there are classes of both kinds
    assert argmaxable_ids(verified(am.Head(rows), domain)) == vertices


# ---------------------------------------------------------------------- HiGHS

BOXES = {
    "±100": am.Box(-100, 100),
    "[0, 100]": am.Box(0, 100),
    "[0, inf)": am.Box(0, INF),
    "(-inf, 1/2]": am.Box(-INF, 0.5),
    "[-1, 2]": am.Box(-1, 2),
    "[1, 3]": am.Box(1, 3),
    "everywhere": am.Everywhere(),
}
SHAPES = [(10, 1), (18, 2), (18, 3), (18, 5), (18, 8)]
BIASES = [0.3, 5.0, 100.0]
# Every box meets every shape and every bias, and every shape every bias: a third of all combinations.
BOXES_AND_SHAPES = [
    pytest.param(domain, *shape, BIASES[(i + j) % len(BIASES)], id=f"{name}-{shape}")
    for i, (name, domain) in enumerate(BOXES.items())
    for j, shape in enumerate(SHAPES)
]


def assert_agrees_with_highs(head: am.Head, domain: am.Box | am.Everywhere) -> None:
    for verdict in verified(head, domain).verdicts:
        margin = margin_by_highs(head, domain, verdict.class_id)
        tolerance = HIGHS_TOLERANCE * max(1.0, abs(margin)) if margin < INF else 0.0
        if abs(margin) <= tolerance:
            margin = float(exact_margin(head, domain, verdict.class_id))
        assert (verdict.status is am.Status.ARGMAXABLE) == (margin > 0), (verdict, margin)
        assert verdict.lower - tolerance <= margin <= verdict.upper + tolerance, (verdict, margin)


@pytest.mark.parametrize(("domain", "classes", "features", "bias"), BOXES_AND_SHAPES)
def test_with_bias_every_margin_agrees_with_highs(
    domain: am.Box | am.Everywhere, classes: int, features: int, bias: float
) -> None:
    generator = np.random.default_rng([classes, features])
    head = am.Head(generator.normal(size=(classes, features)), bias * generator.normal(size=classes))
    assert_agrees_with_highs(head, domain)


@pytest.mark.parametrize("seed", range(6))
def test_with_a_range_for_each_feature_every_margin_agrees_with_highs(seed: int) -> None:
    generator = np.random.default_rng(seed)
    features = int(generator.integers(2, 7))
    low = generator.normal(size=features)
    high = low + generator.exponential(size=features)
    low[generator.random(features) < 0.2] = -INF
    high[generator.random(features) < 0.2] = INF
    low[0] = high[0] = 0.75
    head = am.Head(generator.normal(size=(30, features)), generator.normal(size=30))
    assert_agrees_with_highs(head, am.Box(low, high))


# ---------------------------------------------------------------------- rationals

GRID_DOMAINS = {
    "±100": am.Box(-100, 100),
    "[0, 1]": am.Box(0, 1),
    "[0, inf)": am.Box(0, INF),
    "[1, 3]": am.Box(1, 3),
    "everywhere": am.Everywhere(),
}


@pytest.mark.parametrize("has_bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize("features", [1, 2, 3, 4])
@pytest.mark.parametrize("domain", GRID_DOMAINS.values(), ids=GRID_DOMAINS)
def test_on_small_grids_every_margin_agrees_with_the_rational_simplex(
    domain: am.Box | am.Everywhere, features: int, has_bias: bool
) -> None:
    for reach in (1, 2):
        generator = np.random.default_rng([reach, features, has_bias])
        rows = generator.integers(-reach, reach, size=(10, features), endpoint=True)
        bias = generator.integers(-1, 1, size=10, endpoint=True) if has_bias else None
        assert_agrees_exactly(am.Head(rows, bias), domain)


SQUARE = [[0, 0], [2, 0], [0, 2], [2, 2]]
# Heads whose class 0 has a margin that is known by hand, most of them exactly at zero.
BY_HAND = {
    "the middle of a square": ([[1, 1], *SQUARE], None, am.Box(-100, 100), 0),
    "the middle of a square, everywhere": ([[1, 1], *SQUARE], None, am.Everywhere(), 0),
    "the middle of an edge": ([[1, 0], *SQUARE], None, am.Box(-100, 100), 0),
    "the middle of an edge, everywhere": ([[1, 0], *SQUARE], None, am.Everywhere(), 0),
    "just outside an edge": ([[1, -(2**-40)], *SQUARE], None, am.Box(-1, 1), Fraction(1, 2**40)),
    "a corner of a square": ([*SQUARE, [1, 1]], None, am.Box(-1, 1), 2),
    "a tie at one corner of the box": ([[1, 1], [0, 0]], [-2, 0], am.Box(0, 1), 0),
    "a tie at the other corner": ([[1, 1], [0, 0]], [0, 0], am.Box(-1, 0), 0),
    "a tie at one end of a ray": ([[-1], [0]], [0, 0], am.Box(0, INF), 0),
    "a tie on an edge of the box": ([[1, 0], [0, 0]], [-1, 0], am.Box(-1, 1), 0),
    "a tie at a box of one point": ([[1, 2], [2, 1]], [3, 3], am.Box(2, 2), 0),
    "a tie of three at a corner": ([[1, 1], [1, 0], [0, 1]], [-1, 0, 0], am.Box(0, 1), 0),
    "a loss by one": ([[1, 1], [0, 0]], [-3, 0], am.Box(0, 1), -1),
    "a win by a quarter": ([[1, 1], [0, 0]], [Fraction(-7, 4), 0], am.Box(0, 1), Fraction(1, 4)),
    "three halves of a bias": ([[0], [1], [-1]], [1, 0, 0], am.Everywhere(), 1),
    "a shared bias and a middle row": ([[0], [1], [-1]], [0, 0, 0], am.Everywhere(), 0),
    "a negative bias and a middle row": ([[0], [1], [-1]], [-1, 0, 0], am.Everywhere(), -1),
    "no rival keeps up": ([[1], [0], [-1]], [-5, 0, 9], am.Everywhere(), INF),
}


@pytest.mark.parametrize("case", BY_HAND.values(), ids=BY_HAND)
def test_the_rational_simplex_gives_the_margin_known_by_hand(case: tuple) -> None:
    weight, bias, domain, margin = case
    head = am.Head(np.array(weight, float), None if bias is None else np.array(bias, float))
    assert exact_margin(head, domain, 0) == margin


@pytest.mark.parametrize("case", BY_HAND.values(), ids=BY_HAND)
def test_a_margin_known_by_hand_is_told_right(case: tuple) -> None:
    weight, bias, domain, _ = case
    head = am.Head(np.array(weight, float), None if bias is None else np.array(bias, float))
    assert_agrees_exactly(head, domain)


# ---------------------------------------------------------------------- Clarabel

HEADS_PER_TEST = 4


def random_solid(kind: str, features: int, generator: np.random.Generator) -> am.Domain:
    if kind == "ball":
        return am.Ball(float(generator.uniform(0.2, 5)))
    gain = generator.normal(size=features)
    gain[generator.random(features) < 0.05] = 0.0
    shift = generator.normal(size=features) * generator.integers(0, 2)
    return am.RMSNorm(gain, shift) if kind == "RMSNorm" else am.LayerNorm(gain, shift)


@pytest.mark.parametrize("batch", range(10))
@pytest.mark.parametrize("kind", ["ball", "RMSNorm", "LayerNorm"])
def test_on_curved_domains_every_margin_agrees_with_clarabel(kind: str, batch: int) -> None:
    for number in range(HEADS_PER_TEST):
        generator = np.random.default_rng([batch, number])
        features, classes = int(generator.integers(1, 17)), int(generator.integers(4, 19))
        head = am.Head(
            generator.normal(size=(classes, features)),
            generator.uniform(0.1, 4) * generator.normal(size=classes),
        )
        domain = random_solid(kind, features, generator)
        for verdict in verified(head, domain).verdicts:
            margin = margin_by_clarabel(head, domain, verdict.class_id)
            if abs(margin) > 1e-7:
                assert (verdict.status is am.Status.ARGMAXABLE) == (margin > 0), (verdict, margin)
            assert verdict.lower - CLARABEL_TOLERANCE <= margin <= verdict.upper + CLARABEL_TOLERANCE
