"""Reflection within bounds, where points are moved back into the domain, and among winners."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np

import argmaxable as am
from argmaxable.compute.coordinates import coordinates_of
from argmaxable.compute.prepared import PreparedHead
from argmaxable.search.reflection import Step, reflect, reflect_among_winners

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


def found(search: Callable[..., Iterator[Step]], head: am.Head) -> dict[int, np.ndarray]:
    """The classes that a search settles in a dozen steps, with their points."""
    coordinates = coordinates_of(PreparedHead(head), am.Box(-100, 100))
    steps = search(coordinates, np.arange(head.classes), coordinates.rows32 / np.float32(100))
    return {
        class_id: point
        for step in islice(steps, 12)
        for class_id, point in zip(step.classes.tolist(), step.points, strict=True)
    }


def test_among_winners_more_classes_are_found_and_each_of_them_wins_against_all() -> None:
    head = stretched_head()
    plain, faster = found(reflect, head), found(reflect_among_winners, head)
    assert len(faster) > len(plain)
    scores = (
        np.array(list(faster.values())) @ (head.rows(slice(None)) - head.rows(slice(None)).mean(axis=0)).T
    )
    assert ((scores + head.biases()).argmax(axis=1) == list(faster)).all()


def test_a_search_ends_when_all_classes_have_won() -> None:
    head = am.Head(np.eye(5), np.zeros(5))
    assert len(found(reflect_among_winners, head)) == 5


def test_overflowing_rows_do_not_stop_a_search() -> None:
    rng = np.random.default_rng(6)
    head = am.Head(rng.normal(size=(300, 8)) * 1e30, rng.normal(size=300) * 1e38)
    assert set(found(reflect_among_winners, head)) <= set(range(300))
