"""Claims that stand beside others of the same kind: none is believed because its neighbour is proven."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from oracles import exact_gap
from order_truths import exact_scores

import argmaxable as am
from argmaxable.check.checker import Checker
from argmaxable.check.ranks import not_below, scores_at
from argmaxable.check.verdicts import failed_verdicts
from argmaxable.core.verdict import Certificate, FinePoint, Method, OwnDirection, Point, Verdict

INF = math.inf
YES, NO, OPEN = am.Status.ARGMAXABLE, am.Status.UNARGMAXABLE, am.Status.UNDECIDED
BOX = am.Box(-100, 100)
SQUARE = am.Head([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0], [1.0, 1.0]])


def claim(class_id: int, status: am.Status, lower: float = -INF, upper: float = INF, **more: Any) -> Verdict:
    return Verdict(class_id, str(class_id), status, lower, upper, Method.NONE, None, **more)


def failures(*claims: Verdict, head: am.Head = SQUARE, domain: am.Domain = BOX) -> list[Any]:
    return [failure.key for failure in failed_verdicts(Checker(head, domain), claims)]


CORNER = np.array([-1.0, -1.0])


@pytest.mark.parametrize("witness", [Point(CORNER), FinePoint((-4, -4), -2)], ids=["point", "fine point"])
def test_one_point_proves_its_own_class_alone(witness: Any) -> None:
    """Corner 0 wins there by 2; the others say the same of themselves."""
    claims = [claim(c, YES, 2.0, witness=witness) for c in range(4)]
    assert failures(*claims) == [1, 2, 3]


def test_one_exponent_proves_each_own_direction_alone() -> None:
    """Corners win in their own directions; the middle, with the same words, does not."""
    claims = [claim(c, YES, 2.0, witness=OwnDirection(0)) for c in range(5)]
    assert failures(*claims) == [4]


@pytest.mark.parametrize("weight", [0.0, -1.0, math.nan, INF])
@pytest.mark.parametrize("rival", [1, 3])
def test_a_weight_that_is_none_proves_nothing_however_weak_the_claim(weight: float, rival: int) -> None:
    def bounded(weight: float) -> Verdict:
        return claim(0, OPEN, upper=1e6, certificate=Certificate(np.array([rival]), np.array([weight])))

    assert failures(bounded(2.0)) == []
    assert failures(bounded(weight)) == [0]


def test_a_class_may_be_said_to_tie_with_itself_alone() -> None:
    assert failures(claim(0, YES, 2.0, witness=Point(CORNER), tie_group=(0,))) == []
    assert failures(claim(1, YES, 2.0, witness=Point(CORNER), tie_group=(1,))) == [1]
    assert failures(claim(1, OPEN, tie_group=(0,))) == [1]


# ---------------------------------------------------------------------- ranks at a point


@pytest.mark.parametrize(
    "domain", [am.Everywhere(), am.RMSNorm([0.5, -3.0, 1.0], [0.1, 0.2, 5.0])], ids=["everywhere", "norm"]
)
def test_scores_at_a_point_differ_as_they_should(domain: am.Domain) -> None:
    rng = np.random.default_rng(0)
    head = am.Head(rng.normal(size=(9, 3)) + 4, rng.normal(size=9) + 2)
    z = rng.normal(size=3) / 4
    exact = exact_scores(head, domain, z)
    assert exact is not None
    for centre in (None, np.zeros(3), np.array([1.0, -2.0, 30.0])):
        found = scores_at(Checker(head, domain, centre=centre), z)
        assert found - found[0] == pytest.approx([float(score - exact[0]) for score in exact], abs=1e-12)


def test_a_tie_with_the_first_class_that_floats_take_for_a_win_counts() -> None:
    """The same numbers in another order: floats add them up to more, rationals do not."""
    rng, found = np.random.default_rng(1), 0
    for _ in range(100):
        entries = rng.random(9)
        head = am.Head([entries, rng.permutation(entries), np.zeros(9)])
        checker = Checker(head, am.Everywhere(), centre=np.zeros(9))
        scores = scores_at(checker, np.ones(9))
        assert exact_gap(head, am.Everywhere(), 1, np.ones(9)) == 0
        if scores[1] > scores[0]:
            above = not_below(checker, 1, np.ones(9))
            assert above is not None
            assert above.tolist() == [0]
            found += 1
    assert found > 5
