"""Reflection within bounds, where points are moved back into the domain, and among winners."""

from __future__ import annotations

from functools import partial
from itertools import islice

import numpy as np

import argmaxable as am
from argmaxable.compute.coordinates import Coordinates, coordinates_of
from argmaxable.compute.prepared import PreparedHead
from argmaxable.search.reflection import reflect, reflect_among_winners

BEHIND_RELU = am.Box(0, float("inf"))


def uneven_head() -> am.Head:
    """Rows of uneven length: the short ones lose at their own positive part, but win elsewhere."""
    rng = np.random.default_rng(4)
    return am.Head(rng.normal(size=(400, 48)) * rng.uniform(0.7, 1.6, (400, 1)), rng.normal(size=400) / 10)


def wins(within: tuple[np.ndarray, np.ndarray] | None) -> list[np.ndarray]:
    """The points that win in ten steps of the search, below the bounds or not."""
    head = uneven_head()
    coordinates = coordinates_of(PreparedHead(head), BEHIND_RELU)
    begin = np.maximum(coordinates.rows32, 0)
    steps = reflect(coordinates, np.arange(head.classes), begin, within=within)
    return [point for step in islice(steps, 1, 10) for point in step.points]


def test_points_of_a_bounded_search_stay_within_the_bounds() -> None:
    zero = np.zeros(48)
    assert min(point.min() for point in wins((zero, zero + np.inf))) >= 0
    assert min(point.min() for point in wins(None)) < 0


def test_behind_a_relu_a_bounded_search_finds_more_points_of_the_domain() -> None:
    zero = np.zeros(48)
    bounded, unbounded = wins((zero, zero + np.inf)), wins(None)
    assert len(bounded) > 40
    assert sum(point.min() >= 0 for point in unbounded) < 10


def stretched_head() -> am.Head:
    """Rows that vary a hundred times as much in some features as in others; short ones lose at first."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(3000, 24)) * np.geomspace(1, 100, 24) * rng.uniform(0.7, 1.3, (3000, 1))
    return am.Head(rows, rng.normal(size=3000) * 10)


def coordinates_in_a_box(head: am.Head) -> Coordinates:
    return coordinates_of(PreparedHead(head), am.Box(-100, 100))


def best_rivals(
    coordinates: Coordinates, classes: np.ndarray, x: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Whether each class wins against all rows at its point, and the best other row there."""
    scores = x @ coordinates.rows32.T + coordinates.biases32
    own = scores[np.arange(len(x)), classes]
    scores[np.arange(len(x)), classes] = -np.inf
    return own > scores.max(axis=1), scores.argmax(axis=1)


def found_by_the_paper(head: am.Head) -> int:
    coordinates = coordinates_in_a_box(head)
    steps = reflect(coordinates, np.arange(head.classes), coordinates.rows32 / np.float32(100))
    return sum(len(step.classes) for step in islice(steps, 12))


def found_among_winners(head: am.Head) -> dict[int, np.ndarray]:
    """The classes found in a dozen steps, with their points; those that win at the start are left out."""
    coordinates = coordinates_in_a_box(head)
    classes, start = np.arange(head.classes), coordinates.rows32 / np.float32(100)
    won, rivals = best_rivals(coordinates, classes, start)
    steps = reflect_among_winners(
        coordinates, classes[~won], start[~won], rivals[~won], partial(best_rivals, coordinates)
    )
    found = dict(zip(classes[won].tolist(), start[won], strict=True))
    for step in islice(steps, 11):
        found |= dict(zip(step.classes.tolist(), step.points, strict=True))
    return found


def test_among_winners_more_classes_are_found_and_each_of_them_wins_against_all() -> None:
    head = stretched_head()
    found = found_among_winners(head)
    assert len(found) > found_by_the_paper(head)
    wins, _ = best_rivals(coordinates_in_a_box(head), np.array(list(found)), np.array(list(found.values())))
    assert wins.all()


def test_a_search_ends_when_all_classes_have_won() -> None:
    assert len(found_among_winners(am.Head(np.eye(5), np.zeros(5)))) == 5


def test_a_point_that_wins_but_is_not_accepted_leaves_the_search() -> None:
    head = stretched_head()
    coordinates = coordinates_in_a_box(head)
    classes, start = np.arange(head.classes), coordinates.rows32 / np.float32(100)
    _, rivals = best_rivals(coordinates, classes, start)

    def refuse(ids: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(len(ids), bool), best_rivals(coordinates, ids, x)[1]

    steps = list(islice(reflect_among_winners(coordinates, classes, start, rivals, refuse), 200))
    assert not any(len(step.classes) for step in steps)
    assert len(steps[-1].winners) < len(steps[0].winners) / 4


def test_overflowing_rows_do_not_stop_a_search() -> None:
    rng = np.random.default_rng(6)
    head = am.Head(rng.normal(size=(300, 8)) * 1e30, rng.normal(size=300) * 1e38)
    with np.errstate(all="ignore"):
        assert set(found_among_winners(head)) <= set(range(300))
