"""Reflection within bounds: behind a ReLU a reflected point has to be moved back into the domain."""

from __future__ import annotations

from itertools import islice

import numpy as np

import argmaxable as am
from argmaxable.compute.coordinates import coordinates_of
from argmaxable.compute.prepared import PreparedHead
from argmaxable.search.reflection import reflect

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
