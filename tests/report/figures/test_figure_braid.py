"""The braid arrangement: its cones are rankings, and a head meets as many of them as theory says."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

import argmaxable as am
from argmaxable.models.random_heads import random_head
from argmaxable.report.figures import braid, construction, decision_regions, save, slices
from argmaxable.report.figures.braid import ranking_segments
from argmaxable.report.figures.examples import FOUR_IN_PLANE, THREE_ON_LINE, without_bias
from argmaxable.report.figures.logit_space import across_ones, fan_sector, feasible_pieces, rays, reachable
from argmaxable.report.figures.polygons import ranking_of, ranking_regions, window_of_rankings
from argmaxable.theory.regions import count_regions


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_the_basis_is_orthonormal_and_across_the_ones(classes: int) -> None:
    basis = across_ones(classes)
    np.testing.assert_allclose(basis @ basis.T, np.eye(classes - 1), atol=1e-15)
    np.testing.assert_allclose(basis.sum(axis=1), 0, atol=1e-15)


@pytest.mark.parametrize("classes", [3, 4])
def test_logits_inside_a_cone_have_its_ranking(classes: int) -> None:
    for ranking in permutations(range(classes)):
        logits = rays(ranking).sum(axis=0) @ across_ones(classes)
        assert ranking_of(logits) == ranking


def test_the_sectors_of_three_classes_fill_the_disc() -> None:
    def swept(ranking: tuple[int, ...]) -> float:
        x, y = fan_sector(ranking).T
        return abs(float((x * np.roll(y, -1) - y * np.roll(x, -1)).sum())) / 2

    assert sum(map(swept, permutations(range(3)))) == pytest.approx(np.pi, rel=1e-3)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_plane_of_a_head_meets_the_regions_of_its_slice(seed: int, bias: bool) -> None:
    head = random_head(4, 2, seed=seed, bias=bias)
    pieces = feasible_pieces(head)
    assert len(pieces) == count_regions(4, 2, bias=bias).total
    assert pieces.keys() == ranking_regions(head, window_of_rankings(head)).keys()


@pytest.mark.parametrize("head", [FOUR_IN_PLANE, without_bias(FOUR_IN_PLANE)])
def test_pieces_lie_in_the_heads_own_plane(head: am.Head) -> None:
    point, directions = reachable(head)
    upright = np.cross(*directions)
    for piece in feasible_pieces(head).values():
        np.testing.assert_allclose((piece - point) @ upright, 0, atol=1e-12)


@pytest.mark.parametrize("bias", [False, True])
def test_a_line_meets_as_many_regions_as_theory_counts(bias: bool) -> None:
    head = THREE_ON_LINE if bias else without_bias(THREE_ON_LINE)
    segments = ranking_segments(head)
    assert len({ranking for _, _, ranking in segments}) == count_regions(3, 1, bias=bias).total


@pytest.mark.parametrize(("bias", "told"), [(False, "12 of 24"), (True, "18 of 24")])
def test_the_figure_tells_how_many_rankings_a_head_reaches(bias: bool, told: str) -> None:
    titles = [axes.get_title() for axes in braid(bias=bias).axes]
    assert f"{told} rankings" in titles


def test_slices_are_drawn_without_and_with_the_bias() -> None:
    titles = [axes.get_title() for axes in slices().axes]
    assert "without bias: 12 of 24 rankings" in titles
    assert "with bias: 18 of 24 rankings" in titles


def test_slices_of_other_numbers_of_classes_have_no_view_in_space() -> None:
    assert len(slices(random_head(3, 2, seed=0, bias=True)).axes) == 2


def test_a_construction_shows_every_pair_of_classes() -> None:
    texts = {text.get_text() for text in construction().axes[1].texts}
    assert {"a−b", "a−c", "a−d", "b−c", "b−d", "c−d"} <= texts


@pytest.mark.parametrize("classes", [1, 7])
def test_too_few_or_too_many_classes_are_rejected(classes: int) -> None:
    with pytest.raises(am.InputError, match="2 to 6 classes"):
        construction(random_head(classes, 2, seed=0))


def test_slices_of_a_head_without_bias_are_rejected() -> None:
    with pytest.raises(am.InputError, match="this one has none"):
        slices(without_bias(FOUR_IN_PLANE))


@pytest.mark.parametrize(
    "rows",
    [
        [[1.0, 0], [2, 0], [3, 0], [0, 0]],  # on a line: no two ties cross
        [[1.0, 0], [1, 0], [0, 1], [-1, -1]],  # twins, told apart by their bias
        [[0.0, 0]] * 4,
    ],
)
def test_odd_heads_are_drawn_too(rows: list[list[float]], tmp_path: Path) -> None:
    head = am.Head(rows, [0.0, 1, 2, 3])
    save(slices(head), tmp_path / "slices.png")
    save(construction(head), tmp_path / "construction.png")
    save(decision_regions(head), tmp_path / "regions.png")
