"""Regions of heads in the plane: they tile the window, agree with the argmax, and number what theory says."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import argmaxable as am
from argmaxable.models.random_heads import random_head
from argmaxable.report.figures.polygons import (
    Polygon,
    area,
    exact_scores,
    middle,
    part_above,
    ranking_of,
    ranking_regions,
    square,
    window_of_rankings,
    window_of_regions,
    winner_regions,
)
from argmaxable.theory.enumeration import enumerate_rankings
from argmaxable.theory.regions import count_regions

HEADS = [(classes, bias) for classes in (1, 2, 4, 9, 30) for bias in (False, True)]


def holds(polygon: Polygon, point: np.ndarray) -> bool:
    """Whether a point lies in a polygon whose corners go round against the clock, exactly."""
    sides = np.roll(polygon, -1, axis=0) - polygon
    (dx, dy), (x, y) = sides.T, (point - polygon).T
    return bool((dx * y - dy * x >= 0).all())


@pytest.mark.parametrize(("classes", "bias"), HEADS)
def test_decision_regions_tile_the_window_exactly(classes: int, bias: bool) -> None:
    head = random_head(classes, 2, seed=classes, bias=bias)
    window = window_of_regions(head)
    assert sum(area(region) for region in winner_regions(head, window).values()) == area(window)


@pytest.mark.parametrize(("classes", "bias"), HEADS)
def test_a_point_lies_in_the_region_of_its_argmax(classes: int, bias: bool) -> None:
    head = random_head(classes, 2, seed=classes, bias=bias)
    window = window_of_regions(head)
    regions = winner_regions(head, window)
    generator = np.random.default_rng(0)
    for share in generator.integers(1, 2**20, (40, 2)).tolist():
        point = window[0] + (window[2] - window[0]) * np.array([Fraction(part, 2**20) for part in share])
        winner = ranking_of(exact_scores(head) @ np.append(point, 1))[0]
        assert holds(regions[winner], point)


@pytest.mark.parametrize(("classes", "bias"), HEADS)
def test_exactly_the_argmaxable_classes_have_a_region(classes: int, bias: bool) -> None:
    head = random_head(classes, 2, seed=classes, bias=bias)
    verdicts = am.verify(head, am.Everywhere(), engine=am.Engine(workers=1))
    winners = {verdict.class_id for verdict in verdicts.argmaxable}
    assert winner_regions(head, window_of_regions(head)).keys() == winners


def test_classes_that_tie_everywhere_have_no_region() -> None:
    head = am.Head([[1.0, 0], [1.0, 0], [-1.0, 0]])
    assert winner_regions(head, square((0, 0), 1)).keys() == {2}


def test_a_class_on_an_edge_of_the_hull_has_no_region() -> None:
    head = am.Head([[1.0, 1], [1.0, -1], [1.0, 0], [-1.0, 0]])
    assert 2 not in winner_regions(head, square((0, 0), 1))


def test_a_class_just_outside_the_hull_has_a_region() -> None:
    """A cone of width 2^-49, which no picture made of pixels would show."""
    head = am.Head([[1.0, 1], [1.0, -1], [1.0 + 2**-50, 0], [-1.0, 0]])
    region = winner_regions(head, square((0, 0), 1))[2]
    assert 0 < area(region) < Fraction(1, 2**40)


def test_huge_and_tiny_weights_have_exact_regions_too() -> None:
    head = am.Head([[1e300, 0], [-1e300, 0], [0, 1e-300], [0, 0]])
    window = square((0, 0), 1)
    regions = winner_regions(head, window)
    assert regions.keys() == {0, 1, 2}
    assert sum(area(region) for region in regions.values()) == area(window)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("classes", [2, 3, 4, 5])
def test_slices_have_as_many_regions_as_theory_counts(classes: int, bias: bool) -> None:
    head = random_head(classes, 2, seed=7, bias=bias)
    regions = ranking_regions(head, window_of_rankings(head))
    assert len(regions) == count_regions(classes, 2, bias=bias).total


@pytest.mark.parametrize("bias", [False, True])
def test_a_slice_shows_the_rankings_that_theory_proves_feasible(bias: bool) -> None:
    head = random_head(4, 2, seed=3, bias=bias)
    shown = ranking_regions(head, window_of_rankings(head))
    assert shown.keys() == {ranked.classes for ranked in enumerate_rankings(head)}


def test_windows_show_every_region_between_parallel_lines() -> None:
    head = am.Head([[1.0, 0], [2, 0], [3, 0]], [0.0, -50, -200])
    assert winner_regions(head, window_of_regions(head)).keys() == {0, 1, 2}
    assert len(ranking_regions(head, window_of_rankings(head))) == count_regions(3, 1, bias=True).total


def test_ranking_regions_tile_the_window_exactly() -> None:
    head = random_head(5, 2, seed=2, bias=True)
    window = window_of_rankings(head)
    assert sum(area(region) for region in ranking_regions(head, window).values()) == area(window)


def test_the_part_above_a_line_through_corners_keeps_them() -> None:
    window = square((0, 0), 1)
    half = part_above(window, window[:, 0] - window[:, 1])
    assert area(half) == 2
    assert len(half) == 3


def test_a_part_without_interior_is_empty() -> None:
    window = square((0, 0), 1)
    assert len(part_above(window, window[:, 0] - 1)) == 0


def test_the_middle_of_a_square_is_its_centre() -> None:
    assert middle(square((3, -2), 5)).tolist() == [3, -2]


@pytest.mark.parametrize("features", [1, 3])
def test_heads_outside_the_plane_are_rejected(features: int) -> None:
    with pytest.raises(am.InputError, match=f"2 features, not {features}"):
        winner_regions(random_head(4, features, seed=0), square((0, 0), 1))
