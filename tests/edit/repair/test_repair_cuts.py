"""Least solutions of cuts and of points, against the plain iterations that define them."""

from __future__ import annotations

import numpy as np
import pytest

from argmaxable.edit.repair.cuts import Cut, least_at_points, least_solution

LIMIT = 1e6


def longest_paths(alone: np.ndarray, among: np.ndarray) -> np.ndarray | None:
    """δ = max(alone, among + δ), repeated as often as there are classes."""
    raises = alone
    for _ in range(len(alone) + 1):
        more = np.maximum(alone, (among + raises).max(axis=1))
        if (more <= raises).all():
            return raises
        raises = more
    return None


@pytest.mark.parametrize("seed", range(20))
def test_what_suffices_at_points_is_the_longest_path(seed: int) -> None:
    generator = np.random.default_rng(seed)
    count = int(generator.integers(1, 40))
    among = generator.normal(-2.0, 1.0, (count, count))
    np.fill_diagonal(among, -np.inf)
    alone = generator.random(count)
    truth, found = longest_paths(alone, among), least_at_points(alone, among, LIMIT)
    assert (truth is None) == (found is None)
    if truth is not None and found is not None:
        np.testing.assert_allclose(found, truth, rtol=1e-12)


def test_classes_that_outbid_each_other_have_no_sufficient_raise() -> None:
    among = np.array([[-np.inf, 1e-9], [0.0, -np.inf]])
    assert least_at_points(np.zeros(2), among, LIMIT) is None


def test_a_raise_above_the_limit_is_none() -> None:
    assert least_at_points(np.array([0.0, 2.0]), np.array([[-np.inf, 3.0], [-9.0, -np.inf]]), 4.0) is None


def random_cuts(count: int, share: float, generator: np.random.Generator) -> list[Cut]:
    """Two cuts for each class, whose weights on other classes that may be raised add up to less than 1."""
    cuts = []
    for class_id in [*range(count)] * 2:
        others = np.delete(np.arange(count), class_id)
        chosen = generator.choice(others, min(8, len(others)), replace=False)
        weights = generator.random(len(chosen))
        cuts.append(Cut(class_id, generator.normal(0.3, 1.0), chosen, share * weights / weights.sum()))
    return cuts


# The larger one is beyond what is solved with a dense factor.
@pytest.mark.parametrize("count", [12, 700])
def test_the_least_solution_of_cuts_is_the_limit_of_their_iteration(count: int) -> None:
    cuts = random_cuts(count, 0.8, np.random.default_rng(count))
    raises = np.zeros(count)
    for _ in range(300):
        raises = raises.copy()
        for cut in cuts:
            value = cut.constant + cut.weights @ raises[cut.classes]
            raises[cut.class_id] = max(raises[cut.class_id], value)
    found = least_solution(cuts, count, LIMIT)
    assert found is not None
    np.testing.assert_allclose(found, raises, rtol=1e-7, atol=1e-9)
    again = least_solution(cuts, count, LIMIT, start=least_solution(cuts[:count], count, LIMIT))
    assert again is not None
    np.testing.assert_allclose(again, raises, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("count", [12, 700])
def test_raises_that_come_back_in_full_have_no_least_solution(count: int) -> None:
    cuts = [Cut(c, 0.1, np.array([(c + 1) % count]), np.ones(1)) for c in range(count)]
    assert least_solution(cuts, count, LIMIT) is None


def test_no_cuts_need_no_raise() -> None:
    found = least_solution([], 3, LIMIT)
    assert found is not None
    assert found.tolist() == [0.0, 0.0, 0.0]
