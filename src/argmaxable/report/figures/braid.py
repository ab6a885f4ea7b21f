"""The braid arrangement and its slice by a head: Figures 3, 7 and 8 of Grivas, Bogoychev & Lopez 2022.

The hyperplanes y_i = y_j cut the space of logits into a region for each ranking. A head with few features
reaches only a line or a plane of it, through 0 without a bias and past it with one, and so only some
regions. All hyperplanes share the direction (1, …, 1), which no ranking depends on: pictures leave it out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, pairwise, permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from argmaxable.core.errors import InputError
from argmaxable.report.figures.examples import FOUR_IN_PLANE, THREE_ON_LINE, without_bias
from argmaxable.report.figures.logit_space import (
    draw_feasible_plane,
    draw_sphere,
    fan_sector,
    reachable,
    reaches_plane,
    view_of,
)
from argmaxable.report.figures.polygons import (
    Ranking,
    area,
    exact_scores,
    middle,
    ranking_of,
    ranking_regions,
    require_plane,
    window_of_rankings,
)
from argmaxable.report.figures.style import INK, PAGE, colour_of, drawing, legible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from argmaxable.core.head import Head

# More have hundreds of regions.
_MOST_CLASSES = 6
_SMALLEST_NAMED = Fraction(8, 1000)
_REACHED = "#444444"


def braid(*, bias: bool = False, title: str | None = None) -> Figure:
    """All rankings of three and of four classes, and which of them a head with one feature, or with two, can
    reach (Figure 3): the arrangement, the head's line or plane in it, and the slice in feature space."""
    line, plane = (head if bias else without_bias(head) for head in (THREE_ON_LINE, FOUR_IN_PLANE))
    with drawing(PAGE, 4.9, title or "rankings (highest class first), and those a head can reach") as figure:
        fan = figure.add_subplot(2, 3, 1)
        _draw_fan(fan, line, alpha=0.55)
        fan.set_title("3 classes: 6 rankings")
        reach = figure.add_subplot(2, 3, 2)
        _draw_fan(reach, line, alpha=0.18)
        _draw_line(reach, line)
        reach.set_title("logits with 1 feature: a line")
        _draw_segments(figure.add_subplot(2, 3, 3), line)
        towards = view_of(plane)
        sphere = figure.add_subplot(2, 3, 4, projection="3d")
        draw_sphere(sphere, _names(plane), towards)
        sphere.set_title("4 classes: 24 rankings")
        space = figure.add_subplot(2, 3, 5, projection="3d")
        draw_feasible_plane(space, plane, towards)
        space.set_title("logits with 2 features: a plane")
        _draw_slice(figure.add_subplot(2, 3, 6), plane)
    return figure


def slices(head: Head = FOUR_IN_PLANE, *, title: str | None = None) -> Figure:
    """The rankings that a head with two features can reach, without and with its bias (Figure 7).

    Of four classes the plane among the arrangement's planes is drawn too. Raises InputError for heads with
    another number of features, more than six classes, or no bias.
    """
    _require_few(head)
    if not head.has_bias:
        raise InputError("slices compare a head without and with its bias, and this one has none.")
    heads = (without_bias(head), head)
    rows = 2 if head.classes == 4 and reaches_plane(head) else 1
    with drawing(PAGE, 3.5 * rows, title or f"{head.name}: rankings, highest class first") as figure:
        for column, each in enumerate(heads, start=1):
            flat = figure.add_subplot(rows, 2, column)
            _draw_slice(flat, each)
            flat.set_title(f"{'with' if each.has_bias else 'without'} bias: {flat.get_title()}")
            if rows == 2:
                space = figure.add_subplot(2, 2, 2 + column, projection="3d")
                draw_feasible_plane(space, each, view_of(each))
                through = "past" if each.has_bias else "through"
                space.set_title(f"its logits: a plane {through} the point where all tie")
    return figure


def construction(head: Head = FOUR_IN_PLANE, *, title: str | None = None) -> Figure:
    """From weights to rankings, without a bias (Figure 8): the weights, their differences, and the lines
    across those, on which two classes tie. Raises InputError as `slices` does."""
    _require_few(head)
    head = without_bias(head)
    rows, names = head.rows(slice(None)), _names(head)
    pairs = list(combinations(range(head.classes), 2))
    differences = np.array([rows[first] - rows[second] for first, second in pairs])
    with drawing(PAGE, 2.6, title or f"{head.name}: from weights to rankings") as figure:
        weights, normals, lines = figure.subplots(1, 3)
        _draw_arrows(
            weights, rows, names, [colour_of(number) for number in range(head.classes)], what="weight"
        )
        weights.set_title("weights")
        pair_names = [f"{names[first]}−{names[second]}" for first, second in pairs]
        _draw_arrows(normals, differences, pair_names, [_REACHED] * len(pairs), what="difference")
        normals.set_title("their differences")
        _draw_slice(lines, head)
    return figure


def ranking_segments(head: Head) -> list[tuple[Fraction | None, Fraction | None, Ranking]]:
    """The rankings of a head with one feature from left to right: where each begins and ends, if it does."""
    scores = exact_scores(head)
    ties = {
        -(scores[first] - scores[second])[1] / (scores[first] - scores[second])[0]
        for first, second in combinations(range(head.classes), 2)
        if scores[first][0] != scores[second][0]
    }
    ends = [None, *sorted(ties), None]
    return [
        (left, right, ranking_of(scores @ np.array([_between(left, right), 1])))
        for left, right in pairwise(ends)
    ]


def _between(left: Fraction | None, right: Fraction | None) -> Fraction:
    if left is None:
        return Fraction(0) if right is None else right - 1
    return left + 1 if right is None else (left + right) / 2


def _require_few(head: Head) -> None:
    require_plane(head)
    if not 2 <= head.classes <= _MOST_CLASSES:
        raise InputError(f"rankings are drawn of 2 to {_MOST_CLASSES} classes, not {head.classes:,}.")


def _names(head: Head) -> list[str]:
    return [legible(head.label(number)) for number in range(head.classes)]


def _ranking_name(names: Sequence[str], ranking: Ranking) -> str:
    """Letters are put together, longer names kept apart."""
    return ("" if max(map(len, names)) == 1 else ">").join(names[number] for number in ranking)


def _draw_slice(axes: Any, head: Head) -> None:
    """Feature space cut into a polygon for each ranking, coloured by the winner."""
    window, names = window_of_rankings(head), _names(head)
    regions = ranking_regions(head, window)
    for ranking, region in regions.items():
        axes.fill(
            *region.astype(float).T, facecolor=colour_of(ranking[0]), alpha=0.55, edgecolor=INK, linewidth=0.6
        )
        if area(region) >= _SMALLEST_NAMED * area(window):
            place = middle(region).astype(float)
            axes.text(*place, _ranking_name(names, ranking), ha="center", va="center", fontsize=6.5)
    (left, low), (right, high) = window[0].astype(float), window[2].astype(float)
    axes.set(xlim=(left, right), ylim=(low, high), aspect="equal")
    axes.set(xlabel="first feature", ylabel="second feature")
    axes.locator_params(nbins=5)
    axes.set_title(f"{len(regions)} of {math.factorial(head.classes)} rankings")


def _draw_fan(axes: Any, head: Head, *, alpha: float) -> None:
    """The plane of logits of three classes, cut into its six rankings."""
    names = _names(head)
    for ranking in permutations(range(3)):
        sector = fan_sector(ranking)
        axes.fill(*sector.T, facecolor=colour_of(ranking[0]), alpha=alpha, linewidth=0)
        axes.plot(*sector[[0, 1]].T, color=INK, linewidth=0.6)
        axes.plot(*sector[[0, -1]].T, color=INK, linewidth=0.6)
        place = sector.sum(axis=0) / np.linalg.norm(sector.sum(axis=0)) * 1.25
        axes.text(*place, _ranking_name(names, ranking), ha="center", va="center")
    axes.set(xlim=(-1.4, 1.4), ylim=(-1.4, 1.4), aspect="equal")
    axes.set_axis_off()


def _draw_line(axes: Any, head: Head) -> None:
    """The head's logits, scaled (which moves no region) so that all regions they meet are in the picture."""
    point, (direction,) = reachable(head)
    crossings = [point + float(end) * direction for _, end, _ in ranking_segments(head) if end is not None]
    farthest = max(float(np.linalg.norm(crossing)) for crossing in crossings)
    direction = direction / np.linalg.norm(direction)
    foot = (point - (point @ direction) * direction) / (1.3 * farthest or 1.0)
    reach = math.sqrt(1.02**2 - foot @ foot)
    ends = np.array([foot - reach * direction, foot + reach * direction])
    axes.plot(*ends.T, color=_REACHED, linewidth=2.2, solid_capstyle="round", zorder=5)


def _draw_segments(axes: Any, head: Head) -> None:
    """The feature's axis cut where two classes tie."""
    segments, names = ranking_segments(head), _names(head)
    ties = [float(left) for left, _, _ in segments if left is not None]
    centre, half = (min(ties) + max(ties)) / 2, max((max(ties) - min(ties)) * 0.95, 1.0)
    low, high = centre - half, centre + half
    for left, right, ranking in segments:
        start, end = (low if left is None else float(left)), (high if right is None else float(right))
        axes.barh(0, end - start, left=start, height=0.3, color=colour_of(ranking[0]), alpha=0.55)
        axes.text((start + end) / 2, 0, _ranking_name(names, ranking), ha="center", va="center", rotation=90)
    axes.vlines(ties, -0.15, 0.15, color=INK, linewidth=0.6)
    axes.set(xlim=(low, high), ylim=(-0.18, 0.18), yticks=[], xlabel="the feature", box_aspect=0.45)
    axes.spines["left"].set_visible(False)
    axes.set_title(f"{len(segments)} of {math.factorial(head.classes)} rankings")


def _draw_arrows(axes: Any, rows: Any, names: Sequence[str], colours: Sequence[str], *, what: str) -> None:
    reach = float(np.abs(rows).max()) * 1.4 or 1.0
    for row, name, colour in zip(rows, names, colours, strict=True):
        axes.annotate(
            "", row, (0, 0), arrowprops={"arrowstyle": "-|>", "color": colour, "shrinkA": 0, "shrinkB": 0}
        )
        axes.text(*(row + reach * 0.14 * row / (np.linalg.norm(row) or 1)), name, ha="center", va="center")
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    axes.set(xlabel=f"first {what}", ylabel=f"second {what}")
    axes.locator_params(nbins=5)
