"""Sets of labels at the edges: one label alone, claims without evidence, whole numbers of any size."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import argmaxable as am
from argmaxable.check.sets import SetChecker, failed_sets
from argmaxable.compute.prepared import prepared
from argmaxable.core.label_sets import SetClaim, SetTest
from argmaxable.core.verdict import Certificate

INF = math.inf
UNIT = Fraction(2) ** -53
EXACTLY, TOP, AT_LEAST = am.SetKind.EXACTLY, am.SetKind.TOP, am.SetKind.AT_LEAST
YES, NO, OPEN = am.Feasibility.FEASIBLE, am.Feasibility.INFEASIBLE, am.Feasibility.UNDECIDED
# Labels x, −x and x − 3 over [−1, 1]: the last is never on, the others are never on together.
LINE = am.Head([[1.0], [-1.0], [1.0]], [0.0, 0.0, -3.0])


def gamma(count: int) -> Fraction:
    return count * UNIT / (1 - count * UNIT)


def claim(
    members: tuple[int, ...], status: am.Feasibility, lower: float, upper: float, **more: Any
) -> SetClaim:
    return SetClaim(members, (), status, lower, upper, **more)


def failures(*claims: SetClaim) -> list[Any]:
    return [failure.key for failure in failed_sets(prepared(LINE), am.Box(-1, 1), claims, SetTest())]


def weights(on: dict[int, float], **more: Any) -> Certificate:
    return Certificate(np.array(list(on)), np.array(list(on.values())), **more)


@pytest.mark.parametrize("value", [3.0, -3.0, 0.7, -0.7])
def test_one_label_at_one_point_counts_its_roundings(value: float) -> None:
    """t* ≤ w at the point 1: fourteen roundings for the sum, eight at the end, and what the support takes."""
    for row, bias in ((value, 0.0), (0.0, value)):
        checker = SetChecker(am.Head([[row], [9.0]], [bias, 0.0]), am.Box(1, 1), SetTest(AT_LEAST))
        size = Fraction(abs(value))
        error = np.array([[float(gamma(14) * Fraction(abs(row)))]])
        support = Fraction(float(checker.domain.support_bound(np.array([[row]]), error)[0]))
        offset, slack = Fraction(bias), gamma(14) * abs(Fraction(bias))
        exact = support + offset + slack + gamma(8) * (abs(support) + abs(offset) + slack)
        found = Fraction(checker._float_bound(np.array([True]), weights({0: 2.0})))
        assert abs(found - exact) <= 2 * UNIT * size


def test_a_bound_below_what_is_proven_is_refused_however_clear_the_sign() -> None:
    proof = weights({2: 1.0})
    assert failures(claim((0, 2), NO, -INF, -2.0, certificate=proof)) == []
    assert failures(claim((0, 2), NO, -INF, -1.5, certificate=proof)) == []
    assert failures(claim((0, 2), NO, -INF, -2.5, certificate=proof)) == [(0, 2)]


def test_a_loss_needs_a_point_as_a_win_does() -> None:
    assert failures(claim((0, 1), OPEN, -1.0, INF, point=np.ones(1))) == []
    assert failures(claim((0, 1), OPEN, -1.0, INF)) == [(0, 1)]
    assert failures(claim((0, 1), OPEN, -0.0, INF)) == [(0, 1)]
    assert failures(claim((0, 1), OPEN, -INF, 5.0)) == [(0, 1)]


@pytest.mark.parametrize("kind", tuple(am.SetKind))
@pytest.mark.parametrize("size", [1, 2**40, 2**62, 2**70, 10**30])
def test_whole_weights_may_be_of_any_size(kind: am.SetKind, size: int) -> None:
    """Two labels that are never on together, or two whose middle is a third."""
    head = am.Head([[1.0], [-1.0], [0.0]])
    checker = SetChecker(head, am.Box(-1, 1), SetTest(kind))
    members = (2,) if kind is TOP else (0, 1)
    proof = weights({0: 0.5, 1: 0.5, 2: 1.0} if kind is TOP else {0: 0.5, 1: 0.5}, whole=())
    whole = (size, size, 7) if kind is TOP else (size, size)
    wrong = (size, 2 * size, 7) if kind is TOP else (size, 2 * size)
    assert checker.bound(members, Certificate(proof.classes, proof.weights, whole=whole)).upper == 0.0
    assert checker.bound(members, Certificate(proof.classes, proof.weights, whole=wrong)).upper > 0
    fine = np.array([1 / 3, 1 / 3, 2.0**-40] if kind is TOP else [1 / 3, 1 / 3])
    assert (
        checker._exact_bound(np.isin(proof.classes, members), Certificate(proof.classes, fine), INF).upper
        == 0.0
    )
