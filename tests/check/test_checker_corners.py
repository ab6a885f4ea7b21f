"""What the checker does at its edges: heads that don't fit, claims that are no numbers, one bad certificate
among good ones, sums that overflow."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import argmaxable as am
from argmaxable.check.checker import Checker
from argmaxable.check.sets import SetChecker
from argmaxable.core.label_sets import SetTest
from argmaxable.core.verdict import Certificate

INF = math.inf
BOX = am.Box(-100, 100)
# Four corners and their middle.
SQUARE = am.Head([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0], [1.0, 1.0]])


def weights(on: dict[int, float], basis: int = 0, **more: Any) -> Certificate:
    return Certificate(np.array(list(on)), np.array(list(on.values())), basis, **more)


@pytest.mark.parametrize("make", [Checker, lambda head, domain: SetChecker(head, domain, SetTest())])
def test_a_domain_of_other_features_is_refused(make: Any) -> None:
    with pytest.raises(am.ArgmaxableError, match="features"):
        make(SQUARE, am.Box([0.0, 0.0, 0.0], [1.0, 1.0, 1.0]))


@pytest.mark.parametrize("claim", [-INF, math.nan])
def test_a_claim_that_is_no_number_is_not_proven(claim: float) -> None:
    checker = Checker(SQUARE, BOX)
    proofs = (
        weights({0: 0.5, 3: 0.5}),
        weights({0: 0.4, 3: 0.4}, 2),
        weights({0: 1.0, 3: 1.0}, whole=(1, 1)),
    )
    for proof in proofs:
        assert checker.proves(4, proof, 0.0)
        assert not checker.proves(4, proof, claim)
        assert not checker._proves_exactly(4, proof, INF)


def test_weights_that_many_could_solve_are_proven_in_rationals() -> None:
    """Four corners for two features: one of them keeps the weight it has."""
    checker = Checker(SQUARE, BOX)
    assert checker.proves_in_rationals(4, weights({0: 0.25, 1: 0.25, 2: 0.25, 3: 0.25}, 4))
    assert checker.proves_in_rationals(4, weights({0: 0.5, 3: 0.5, 1: 0.0}, 3))
    assert checker.proves_in_rationals(4, weights({0: 0.9, 3: 0.1}, whole=(1, 1)))
    assert not checker.proves_in_rationals(4, weights({0: 0.9, 3: 0.1}))
    assert not checker.proves_in_rationals(0, weights({1: 0.25, 2: 0.25, 3: 0.25, 4: 0.25}, 4))


LIFTED = am.Head(SQUARE.rows(slice(None)), [1.0, 1.0, 1.0, 1.0, 0.0])
CORNERS = np.arange(4)


@pytest.mark.parametrize(
    ("class_id", "bad"),
    [
        (4, Certificate(CORNERS, np.array([0.5, 0.5, 0.5, -0.5]), 3)),  # a weight below 0 outside the basis
        (4, Certificate(CORNERS, np.array([0.25, 0.25, 0.25, math.nan]), 3)),
        (3, Certificate(CORNERS, np.full(4, 0.25), 3)),  # itself among its rivals
    ],
    ids=["negative", "not a number", "itself"],
)
def test_one_bad_certificate_over_the_same_rows_proves_nothing(class_id: int, bad: Certificate) -> None:
    good = Certificate(CORNERS, np.full(4, 0.25), 3)
    found = Checker(LIFTED, BOX).bounds_together(np.array([4, class_id, 4]), [good, bad, good])
    assert found[1] == INF
    assert found[0] == found[2] == pytest.approx(-1.0)


def test_a_negative_weight_that_solves_the_equations_proves_nothing() -> None:
    """1 = 0.45 · 0 + 0.75 · 4 − 0.2 · 10, and the bias of the last would bound the margin by −2."""
    line = am.Head([[0.0], [4.0], [10.0], [1.0]], [0.0, 0.0, -10.0, 0.0])
    bad = Certificate(np.arange(3), np.array([0.45, 0.75, -0.2]), 2)
    good = Certificate(np.arange(3), np.array([0.75, 0.25, 0.0]), 2)
    found = Checker(line, BOX).bounds_together(np.array([3, 3]), [good, bad])
    assert 0 <= found[0] < 1e-12
    assert found[1] == INF


def test_no_good_certificate_over_the_same_rows_proves_nothing() -> None:
    bad = Certificate(CORNERS, np.full(4, -0.25), 3)
    assert Checker(LIFTED, BOX).bounds_together(np.array([4, 4]), [bad, bad]).tolist() == [INF, INF]


# ---------------------------------------------------------------------- overflow, class by class

LARGE = am.Head(
    [[1e300, 0.0], [0.0, 1e300], [1.0, 1.0], [-1.0, 2.0], [0.5, 0.5]], [0.0, 0.0, -9.0, -9.0, 5.0]
)


@pytest.mark.parametrize("domain", [am.Box(0, 0), am.Box(-1, 1), am.Everywhere()])
def test_whatever_overflows_is_not_bounded_and_the_rest_is(domain: am.Domain) -> None:
    """At the one point 0 an infinite direction has no support: 0 · ∞ is not 0."""
    checker = Checker(LARGE, domain, centre=np.zeros(2))
    proof = weights({4: 1e10})
    found = checker.bounds(np.arange(4), proof)
    assert found[:2].tolist() == [INF, INF]
    assert np.isfinite(found[2:]).all() == (domain != am.Everywhere())
    far = Checker(
        am.Head([[1.5e308, 0.0], [-1.5e308, 0.0], [1.0, 0.0], [0.0, 0.0]]), domain, centre=np.zeros(2)
    )
    rivals = far.rival_bounds(np.array([0, 2, 1]), np.array([1, 3, 0]))
    assert rivals[[0, 2]].tolist() == [INF, INF]
    assert np.isfinite(rivals[1]) == (domain != am.Everywhere())
