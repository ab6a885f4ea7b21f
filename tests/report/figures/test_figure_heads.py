"""Figures of single heads: decision regions, hulls, random heads and PLIFs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import argmaxable as am
from argmaxable.core.verdict import Status
from argmaxable.layers import PLIF
from argmaxable.models.random_heads import Distribution, random_head
from argmaxable.questions.argmax import verify
from argmaxable.report.figures import decision_regions, hull, measure_random_heads, plif, random_heads, save
from argmaxable.report.figures.examples import ARGMAXABLE_CLASS, UNARGMAXABLE_CLASS, ball_of_classes
from argmaxable.report.figures.plif import knots_and_values


def statuses(head: am.Head) -> list[Status]:
    return [
        verdict.status for verdict in am.verify(head, am.Everywhere(), engine=am.Engine(workers=1)).verdicts
    ]


def test_the_example_loses_one_class_and_a_bias_brings_it_back() -> None:
    assert statuses(UNARGMAXABLE_CLASS) == [Status.ARGMAXABLE] * 3 + [Status.UNARGMAXABLE]
    assert statuses(ARGMAXABLE_CLASS) == [Status.ARGMAXABLE] * 4


def test_decision_regions_name_the_classes_without_one() -> None:
    views = decision_regions(UNARGMAXABLE_CLASS).axes
    assert views[0].get_title() == "who wins where; no region: d"
    assert [text.get_text() for text in views[0].texts] == ["a", "b", "c"]


def test_with_a_bias_there_is_no_view_by_direction() -> None:
    assert len(decision_regions(UNARGMAXABLE_CLASS).axes) == 3
    assert len(decision_regions(ARGMAXABLE_CLASS).axes) == 2


def test_the_extent_sets_the_window() -> None:
    axes = decision_regions(ARGMAXABLE_CLASS, extent=7).axes[0]
    assert axes.get_xlim() == axes.get_ylim() == (-7, 7)


@pytest.mark.parametrize("extent", [0, -1, float("inf"), float("nan")])
def test_an_extent_that_is_no_size_is_rejected(extent: float) -> None:
    with pytest.raises(am.InputError, match="finite number above 0"):
        decision_regions(UNARGMAXABLE_CLASS, extent=extent)


def test_regions_of_too_many_classes_are_rejected() -> None:
    with pytest.raises(am.InputError, match="up to 200 classes, not 201"):
        decision_regions(random_head(201, 2, seed=0))


def test_neighbouring_regions_differ_in_colour() -> None:
    from argmaxable.report.figures.polygons import window_of_regions, winner_regions
    from argmaxable.report.figures.regions import colours_of

    head = random_head(60, 2, seed=4, bias=True)
    regions = winner_regions(head, window_of_regions(head))
    corners = {number: set(map(tuple, region)) for number, region in regions.items()}
    colours = colours_of(regions)
    shared = [(a, b) for a in regions for b in regions if a < b and len(corners[a] & corners[b]) == 2]
    assert shared
    assert all(colours[a] != colours[b] for a, b in shared)


@pytest.mark.parametrize("features", [2, 3])
def test_a_hull_tells_how_many_classes_have_each_status(features: int) -> None:
    result = am.verify(ball_of_classes(20, features, seed=0), am.Everywhere(), engine=am.Engine(workers=1))
    texts = [text.get_text() for text in hull(result).legends[0].get_texts()]
    assert texts == [
        f"argmaxable ({len(result.argmaxable)})",
        f"unargmaxable ({len(result.unargmaxable)})",
    ]


@pytest.mark.parametrize("rows", [[[1.0, 2]], [[1.0, 2], [3, 4]], [[0.0, 0]] * 3, [[1.0, 1], [2, 2], [3, 3]]])
def test_heads_without_a_hull_are_drawn_as_points(rows: list[list[float]], tmp_path: Path) -> None:
    save(hull(am.verify(am.Head(rows), am.Everywhere(), engine=am.Engine(workers=1))), tmp_path / "hull.png")


@pytest.mark.parametrize("features", [1, 4])
def test_hulls_are_drawn_of_two_or_three_features(features: int) -> None:
    result = am.verify(random_head(5, features, seed=0), engine=am.Engine(workers=1))
    with pytest.raises(am.InputError, match=f"2 or 3 features, not {features}"):
        hull(result)


def test_measured_heads_have_the_unargmaxable_classes_that_verify_proves() -> None:
    (measured,) = measure_random_heads(40, [3], seeds=1)
    head = random_head(40, 3, seed=0, distribution=Distribution.UNIFORM)
    result = am.verify(head, engine=am.Engine(workers=1))
    assert measured.unargmaxable == len(result.unargmaxable)
    assert 0 < measured.unargmaxable < 40
    assert measured.steps > 0


def test_a_class_that_reflection_does_not_find_is_counted_and_left_out_of_the_mean() -> None:
    (measured,) = measure_random_heads(400, [4], seeds=1)
    head = random_head(400, 4, seed=0, distribution=Distribution.UNIFORM)
    verdicts = verify(
        head, method=am.Algorithm.REFLECTION, patience=2500, engine=am.Engine(workers=1)
    ).verdicts
    steps = [verdict.steps for verdict in verdicts if verdict.status is am.Status.ARGMAXABLE]
    assert measured.not_found == 400 - measured.unargmaxable - len(steps) > 0
    assert measured.steps == np.mean(steps)
    title = random_heads([measured]).axes[1].get_title()
    assert title == f"without {measured.not_found} not found in 2,500 steps"


def test_random_heads_have_a_dot_each_and_a_line_through_the_means() -> None:
    measured = measure_random_heads(20, [2, 4], seeds=2)
    axes = random_heads(measured).axes[0]
    dots = np.asarray(axes.collections[0].get_offsets())
    np.testing.assert_allclose(sorted(dots[:, 1]), sorted(each.unargmaxable for each in measured))
    np.testing.assert_allclose(
        axes.lines[0].get_ydata(),
        [np.mean([each.unargmaxable for each in measured if each.features == d]) for d in (2, 4)],
    )


def test_nothing_measured_is_rejected() -> None:
    with pytest.raises(am.InputError, match="nothing was measured"):
        random_heads([])
    with pytest.raises(am.InputError, match="at least one"):
        measure_random_heads(5, [])
    with pytest.raises(am.InputError, match="two classes; found 1, 3 and 1"):
        measure_random_heads(1, [2])


def test_the_knots_of_a_layer_have_the_values_that_the_layer_computes() -> None:
    layer = PLIF(bins=8, bound=3.0).double()
    with torch.no_grad():
        layer.raw.copy_(torch.linspace(-2, 2, 8))
    places, values = knots_and_values(layer.knots(), layer.bin_slopes().detach(), float(layer.start))
    np.testing.assert_allclose(values, layer(torch.tensor(places)).detach().numpy(), rtol=1e-12)


def test_a_plif_goes_on_beyond_both_ends_with_its_end_slopes() -> None:
    lines = plif([0, 1, 3], [2, 0.5]).axes[0].lines
    ends = [line for line in lines if line.get_linestyle() == "--" and len(line.get_xdata())]
    slopes = [np.diff(line.get_ydata())[0] / np.diff(line.get_xdata())[0] for line in ends]
    np.testing.assert_allclose(slopes, [2, 0.5])


@pytest.mark.parametrize(
    ("knots", "slopes", "why"),
    [
        ([0, 1], [1, 2], "one knot more"), ([0], [], "one knot more"), ([0, 0], [1], "larger than"),
        ([0, np.inf], [1], "finite"), ([0, 1], [0], "above 0"), ([0, 1], [np.nan], "above 0"),
    ],
)  # fmt: skip
def test_what_is_no_increasing_function_is_rejected(
    knots: list[float], slopes: list[float], why: str
) -> None:
    with pytest.raises(am.InputError, match=why):
        plif(knots, slopes)
