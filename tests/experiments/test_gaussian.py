"""What normal heads are expected to lose: angles that are known, heads where it is plain, and many heads."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from oracles import hull_vertices

from experiments.heads.gaussian import expected_unargmaxable, log_inner_angle

TETRAHEDRON = (3 * math.acos(1 / 3) - math.pi) / (4 * math.pi)


@pytest.mark.parametrize(("vertices", "angle"), [(1, 1.0), (2, 1 / 2), (3, 1 / 6), (4, TETRAHEDRON)])
def test_angles_of_a_point_a_segment_a_triangle_and_a_tetrahedron(vertices: int, angle: float) -> None:
    assert math.exp(log_inner_angle(vertices)) == pytest.approx(angle, rel=1e-10)


def test_without_features_all_classes_but_the_one_with_the_largest_bias_are_unargmaxable() -> None:
    assert expected_unargmaxable(100, 0, has_bias=True) == pytest.approx(99)


def test_with_one_feature_and_no_bias_all_classes_but_the_two_outermost_are_unargmaxable() -> None:
    assert expected_unargmaxable(100, 1, has_bias=False) == pytest.approx(98)


@pytest.mark.parametrize("has_bias", [False, True])
def test_with_fewer_classes_than_a_simplex_has_vertices_none_is_unargmaxable(has_bias: bool) -> None:
    assert expected_unargmaxable(8, 7, has_bias=has_bias) == 0


def upper_hull(seed: int) -> set[int]:
    """The classes of a normal head (60 × 2, with bias) that win somewhere: vertices of the hull of the rows
    (w, b) and a point far below all of them."""
    rows = np.random.default_rng(seed).normal(size=(60, 3))
    return hull_vertices(np.vstack([rows, [0.0, 0.0, -1e6]])) - {60}


def whole_hull(seed: int) -> set[int]:
    """The classes of a normal head (60 × 2, without bias) that win somewhere."""
    return hull_vertices(np.random.default_rng(seed).normal(size=(60, 2)))


@pytest.mark.parametrize(("winners", "has_bias"), [(upper_hull, True), (whole_hull, False)])
def test_the_expected_number_is_the_mean_over_many_heads(
    winners: Callable[[int], set[int]], has_bias: bool
) -> None:
    counts = [60 - len(winners(seed)) for seed in range(400)]
    error = np.std(counts) / math.sqrt(len(counts))
    assert abs(np.mean(counts) - expected_unargmaxable(60, 2, has_bias=has_bias)) < 4 * error
