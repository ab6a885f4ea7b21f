"""Sets that few classes can't meet: packings in whole numbers, and searches."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from argmaxable.check.packing import Shares, are_packed, can_be_met
from argmaxable.questions.best_rank.hitting import (
    best_shares,
    few_that_meet,
    smallest_meeting_set,
)
from argmaxable.questions.best_rank.vertex import purify


def sets_of(*members: str) -> list[np.ndarray]:
    return [np.array([int(one) for one in some]) for some in members]


def random_sets(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.choice(8, int(rng.integers(1, 4)), replace=False) for _ in range(int(rng.integers(1, 9)))]


def fewest_by_force(sets: list[np.ndarray]) -> int:
    return next(
        size
        for size in range(9)
        for chosen in itertools.combinations(range(8), size)
        if all(set(some.tolist()) & set(chosen) for some in sets)
    )


@pytest.mark.parametrize("seed", range(30))
def test_all_ways_to_meet_sets_agree_with_brute_force(seed: int) -> None:
    sets = random_sets(seed)
    fewest = fewest_by_force(sets)
    shares = best_shares(sets)
    assert are_packed(sets, shares)
    assert shares.needed <= fewest == len(smallest_meeting_set(sets)) <= len(few_that_meet(sets))
    assert can_be_met(sets, fewest) is True
    assert fewest == 0 or can_be_met(sets, fewest - 1) is False


def test_three_sides_of_a_triangle_need_two_corners() -> None:
    sides = sets_of("01", "12", "02")
    assert best_shares(sides) == Shares((1, 1, 1), 2)
    assert best_shares(sides).needed == 2


@pytest.mark.parametrize(
    "shares",
    [Shares((1, 1), 1), Shares((2, -1), 1), Shares((1,), 1), Shares((0, 0), 0), Shares((1, 1, 1), 1)],
)
def test_shares_that_overload_a_class_or_fit_no_sets_are_refused(shares: Shares) -> None:
    assert not are_packed(sets_of("01", "12"), shares)


def test_a_class_named_twice_in_a_set_counts_once() -> None:
    assert are_packed([np.array([3, 3])], Shares((1,), 1))


def test_a_search_that_would_take_too_long_says_nothing() -> None:
    rng = np.random.default_rng(0)
    sets = [rng.choice(60, 12, replace=False) for _ in range(60)]
    assert can_be_met(sets, 8, most_nodes=50) is None


@pytest.mark.parametrize("seed", range(10))
def test_purified_weights_are_few_and_reproduce_the_same_point(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = np.hstack([rng.normal(size=(40, 4)), np.ones((40, 1))])
    weights, values = rng.random(40), rng.normal(size=40)
    few = purify(points, weights, values)
    assert (few >= 0).all()
    assert np.count_nonzero(few) <= 5
    np.testing.assert_allclose(few @ points, weights @ points, rtol=1e-9)
    assert few @ values >= weights @ values - 1e-9
