"""Claims about best ranks, each with one thing wrong, on a line whose ranks can be read off."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import argmaxable as am
from argmaxable.check.checker import Checker
from argmaxable.check.packing import MOST_NODES, Shares, are_packed, can_be_met
from argmaxable.check.ranks import failed_ranks, not_below
from argmaxable.core.best_rank import BestRank, RankProof
from argmaxable.core.verdict import Certificate

# Scores −2x, −x, 0, x, 2x: the middle class ties with all at 0 and else has two above it. Its bias lifts it.
LINE = [[-2.0], [-1.0], [0.0], [1.0], [2.0]]
FLAT, LOWERED = am.Head(LINE), am.Head(LINE, [0.0, 0.0, -0.5, 0.0, 0.0])
BOX = am.Box(-1, 1)


def weights(*classes: int) -> Certificate:
    return Certificate(np.array(classes), np.full(len(classes), 0.5))


PAIRS = (weights(0, 4), weights(1, 3))  # two supports without a class in common: two are not below
SEARCHED, SHARED = RankProof(PAIRS), RankProof(PAIRS, (1, 1), 1)


def claim(lower: int, upper: int, with_ties: int = 1, class_id: int = 2, **more: Any) -> BestRank:
    fields: dict[str, Any] = {"proof": None, "proof_with_ties": None, "point": None}
    return BestRank(class_id, "", lower, upper, with_ties, **(fields | more))


def failures(*claims: BestRank, head: am.Head = FLAT, domain: am.Domain = BOX) -> list[Any]:
    return [failure.key for failure in failed_ranks(Checker(head, domain), claims)]


HALF = np.array([0.5])
SOUND = {
    "nothing": claim(1, 5),
    "a rank at a point": claim(1, 3, point=HALF),
    "a worse rank than at the point": claim(1, 4, point=HALF),
    "a search": claim(3, 5, proof=SEARCHED),
    "shares": claim(3, 5, proof=SHARED),
    "less than is proven": claim(2, 5, proof=SEARCHED),
    "less than the shares": claim(2, 5, proof=SHARED),
    "all": claim(3, 3, proof=SHARED, point=HALF),
}
FORGED = {
    "a rank that the point does not give": claim(1, 2, point=HALF),
    "a tie at the point": claim(1, 4, point=np.zeros(1)),
    "a rank without a point": claim(1, 4),
    "a point outside": claim(1, 3, point=np.array([1.5])),
    "a point too long": claim(1, 3, point=np.array([0.5, 0.5])),
    "a point that is not one": claim(1, 3, point=np.array([np.nan])),
    "a search that finds less": claim(4, 5, proof=SEARCHED),
    "shares that are less": claim(4, 5, proof=SHARED),
    "a bound without a proof": claim(2, 5),
    "weights that prove nothing": claim(3, 5, proof=RankProof((*PAIRS[:1], weights(0, 1)))),
    "shares of a proof of nothing": claim(3, 5, proof=RankProof((weights(0, 1), PAIRS[0]), (1, 1), 1)),
    "a class in too many shares": claim(3, 5, proof=RankProof((PAIRS[0], PAIRS[0]), (1, 1), 1)),
    "shares of another number": claim(3, 5, proof=RankProof(PAIRS, (1, 1, 1), 1)),
    "negative shares": claim(3, 5, proof=RankProof((*PAIRS, PAIRS[0]), (2, 1, -1), 1)),
    "shares of nothing": claim(3, 5, proof=RankProof(PAIRS, (1, 1), 0)),
    "a tie that is a loss": claim(3, 5, 3, proof=SEARCHED, proof_with_ties=SEARCHED),
    "ends that are crossed": claim(3, 2, proof=SEARCHED, point=HALF),
    "a rank beyond the classes": claim(1, 6),
    "better without ties": claim(2, 5, 3, proof=SEARCHED, proof_with_ties=SEARCHED),
}  # fmt: skip


@pytest.mark.parametrize("sound", SOUND.values(), ids=SOUND)
def test_what_the_evidence_proves_passes(sound: BestRank) -> None:
    assert failures(sound) == []


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_what_the_evidence_does_not_prove_is_named_once(forged: BestRank) -> None:
    assert failures(claim(1, 1, class_id=4, point=HALF), forged) == [2]


def test_ties_in_its_favour_need_certificates_below_zero() -> None:
    assert failures(claim(3, 5, 3, proof=SEARCHED, proof_with_ties=SEARCHED), head=LOWERED) == []
    assert failures(claim(3, 5, 2, proof=SHARED, proof_with_ties=SHARED), head=LOWERED) == []
    assert failures(claim(3, 5, 2, proof=SHARED), head=LOWERED) == [2]
    assert failures(claim(4, 5, 4, proof=SEARCHED, proof_with_ties=SEARCHED), head=LOWERED) == [2]


def test_a_bound_above_zero_proves_no_rank() -> None:
    lifted = am.Head(LINE, [0.0, 0.0, 0.25, 0.0, 0.0])
    assert failures(claim(3, 5, proof=SEARCHED), head=lifted) == [2]
    assert failures(claim(3, 5, proof=SHARED), head=lifted) == [2]


def test_a_tie_that_floats_take_for_a_win_counts_as_not_below() -> None:
    """0.1 + 0.2 + 0.3 depends on the order in floats; in rationals it does not."""
    entries = [0.1, 0.2, 0.3]
    for order in ([2, 1, 0], [1, 2, 0], [0, 2, 1]):
        head = am.Head([entries, [entries[k] for k in order]])
        for class_id in (0, 1):
            checker = Checker(head, am.Everywhere(), centre=np.zeros(3))
            above = not_below(checker, class_id, np.ones(3))
            assert above is not None
            assert above.tolist() == [1 - class_id]


def test_a_bound_of_zero_that_only_integers_prove_counts() -> None:
    """Three tenths of a third: floats alone leave a little above 0."""
    third = am.Head([[0.1], [0.3], [0.2], [0.7]])
    proof = RankProof((Certificate(np.array([0, 1]), np.array([0.5, 0.5]), 2),))
    assert failures(claim(2, 4, proof=proof), head=third) == []
    assert failures(claim(2, 4, proof=proof, class_id=3), head=third) == [3]


@pytest.mark.parametrize(("x", "found"), [(0.5, [3, 4]), (-0.5, [0, 1]), (0.0, [0, 1, 3, 4])])
def test_the_classes_not_below_are_those_above_and_those_that_tie(x: float, found: list[int]) -> None:
    above = not_below(Checker(FLAT, BOX), 2, np.array([x]))
    assert above is not None
    assert above.tolist() == found


def test_a_class_that_floats_can_not_tell_apart_is_put_where_it_belongs() -> None:
    """0.1 + 0.2 is above 0.3 by 2^−55 in rationals; in floats the order depends on the summation."""
    head, ones = am.Head([[0.3, 0.0, 0.0], [0.1, 0.2, 0.0], [0.1, 0.1, 0.1], [9.0, 0.0, 0.0]]), np.ones(3)
    everywhere = am.Everywhere()
    for class_id, most in ((0, 3), (1, 2), (2, 3)):
        above = not_below(Checker(head, everywhere), class_id, ones)
        assert above is not None
        assert 3 in above
        assert class_id not in above
        assert len(above) <= most
    assert 1 in not_below(Checker(head, everywhere), 0, ones)


def test_no_class_is_not_below_outside_the_domain() -> None:
    assert not_below(Checker(FLAT, BOX), 2, np.array([2.0])) is None


# ---------------------------------------------------------------------- packings


def sets_of(*members: str) -> list[np.ndarray]:
    return [np.array([int(one) for one in some]) for some in members]


@pytest.mark.parametrize(
    ("numerators", "whole", "needed"),
    [((1, 1, 1), 2, 2), ((1, 1), 1, 2), ((1,), 3, 1), ((), 1, 0), ((2, 2), 2, 2), ((5,), 2, 3)],
)
def test_shares_are_rounded_up(numerators: tuple[int, ...], whole: int, needed: int) -> None:
    assert Shares(numerators, whole).needed == needed


def test_a_class_may_be_full_and_not_more() -> None:
    sides = sets_of("01", "12", "02")
    assert are_packed(sides, Shares((1, 1, 1), 2))
    assert not are_packed(sides, Shares((1, 1, 2), 2))
    assert not are_packed(sides, Shares((1, 1, 1), 1))
    assert are_packed([], Shares((), 1))
    assert not are_packed([], Shares((), 0))
    assert are_packed(sets_of("0", "1"), Shares((0, 1), 1))
    assert not are_packed(sets_of("0", "0"), Shares((2, -1), 1))


def test_a_set_without_classes_is_met_by_nothing() -> None:
    assert can_be_met([np.array([], int)], 5) is False
    assert can_be_met([], 0) is True
    assert can_be_met(sets_of("0"), 0) is False
    assert can_be_met(sets_of("0"), -1) is False


def test_a_search_is_given_up_at_its_limit_and_not_before() -> None:
    sides = sets_of("01", "12", "02")  # two corners: the root, one taken, and there the last set
    assert can_be_met(sides, 2) is True
    assert can_be_met(sides, 1, most_nodes=MOST_NODES) is False
    assert can_be_met(sides, 1, most_nodes=0) is None
    grid = sets_of("012", "345", "678", "036", "147", "258", "048", "246")  # lines of three by three
    assert can_be_met(grid, 3, most_nodes=1) is None
    assert can_be_met(grid, 3) is True
    assert can_be_met(grid, 2) is False
