"""How many classes meet every one of some sets, against a search through all collections of classes."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from argmaxable.check.packing import Shares, are_packed, can_be_met

CLASSES = 6


def families(count: int) -> list[list[np.ndarray]]:
    """Families of up to six sets of one to four classes, some of them inside others."""
    rng = np.random.default_rng(3)
    return [
        [rng.choice(CLASSES, size=rng.integers(1, 5), replace=False) for _ in range(int(rng.integers(0, 7)))]
        for _ in range(count)
    ]


def is_met(family: list[np.ndarray], size: int) -> bool:
    """Whether some collection of that many classes meets all the sets: each one is looked at."""
    sets = [set(some.tolist()) for some in family]
    return any(
        all(some & set(chosen) for some in sets)
        for chosen in combinations(range(CLASSES), min(size, CLASSES))
    )


def test_a_search_finds_what_looking_at_every_collection_finds() -> None:
    for family in families(150):
        for size in range(CLASSES + 1):
            assert can_be_met(family, size) is is_met(family, size)


def test_a_search_that_gives_up_says_nothing_else() -> None:
    """However early it stops, it knows the truth or that it does not know."""
    known, unknown = 0, 0
    for family in families(60):
        for size in range(1, 4):
            truth = is_met(family, size)
            answers = [can_be_met(family, size, most_nodes=most) for most in range(30)]
            assert all(answer in (truth, None) for answer in answers)
            known += sum(answer is not None for answer in answers)
            unknown += sum(answer is None for answer in answers)
    assert min(known, unknown) > 100


def test_a_long_search_gives_up() -> None:
    """All triples of eleven classes: nine classes meet them, no eight do, and that takes many steps."""
    triples = [np.array(some) for some in combinations(range(11), 3)]
    assert can_be_met(triples, 9) is True
    assert can_be_met(triples, 8, most_nodes=100) is None
    assert can_be_met(triples, 3) is False  # three disjoint ones


def test_one_step_is_allowed_where_one_is() -> None:
    assert can_be_met([np.array([4])], 1, most_nodes=1) is True
    assert can_be_met([np.array([4])], 1, most_nodes=0) is None
    assert can_be_met([], 0, most_nodes=0) is True


TRIANGLE = [np.array([0, 1]), np.array([1, 2]), np.array([0, 2])]


@pytest.mark.parametrize(
    ("numerators", "whole", "packed"),
    [
        ((1, 1, 1), 2, True),  # halves: each class is in two of the sets
        ((1, 1, 1), 1, False),
        ((2, 2, 1), 3, False),  # class 1 has 4/3
        ((2, 1, 1), 3, True),
        ((1, 0, 0), 1, True),
        ((3, -1, 1), 3, False),  # no share is negative, whatever the sums are
        ((0, 0, 0), 0, False),
        ((-1, -1, -1), -2, False),
        ((1, 1), 2, False),  # a share is missing
        ((1, 1, 1, 0), 2, False),
    ],
)
def test_shares_are_packed_when_no_class_has_more_than_one(
    numerators: tuple[int, ...], whole: int, packed: bool
) -> None:
    assert are_packed(TRIANGLE, Shares(numerators, whole)) is packed


def test_a_class_that_a_set_names_twice_counts_once() -> None:
    assert are_packed([np.array([0, 0, 1])], Shares((1,), 1))


def test_no_sets_are_packed_by_no_shares() -> None:
    assert are_packed([], Shares((), 1))
    assert are_packed([np.empty(0, np.intp)], Shares((5,), 1))


@pytest.mark.parametrize(
    ("numerators", "whole"), [((1, 1, 1), 2), ((4,), 2), ((1, 1), 7), ((0,), 3), ((), 1)]
)
def test_as_many_classes_are_needed_as_the_shares_add_up_to(numerators: tuple[int, ...], whole: int) -> None:
    assert Shares(numerators, whole).needed == math.ceil(sum(numerators) / whole)


def test_packed_shares_need_no_more_classes_than_are_needed() -> None:
    rng = np.random.default_rng(1)
    checked = 0
    for family in families(200):
        shares = Shares(tuple(rng.integers(0, 3, len(family)).tolist()), int(rng.integers(1, 5)))
        if family and are_packed(family, shares):
            least = next(size for size in range(CLASSES + 1) if is_met(family, size))
            assert shares.needed <= least
            checked += 1
    assert checked > 20
