"""Where each class of a head with two features wins: Figures 1 and 2 of Grivas et al. 2022."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from argmaxable.core.boxes import Everywhere
from argmaxable.core.errors import InputError
from argmaxable.core.verdict import Status
from argmaxable.questions.argmax import verify
from argmaxable.report.figures.hull import draw_weights
from argmaxable.report.figures.polygons import (
    Polygon,
    area,
    middle,
    require_plane,
    square,
    window_of_regions,
    winner_regions,
)
from argmaxable.report.figures.style import INK, PAGE, PALETTE, STATUS_COLOURS, colour_of, drawing, legible
from argmaxable.run.plan import ONE_PROCESS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from argmaxable.core.head import Head
    from argmaxable.core.result import Result

# Exact polygons of more take more than ten seconds, and nobody could tell their regions apart.
_MOST_CLASSES = 200
# As a share of the window's area: names of smaller regions would cover their neighbours.
_SMALLEST_NAMED = 0.006
_MOST_NAMED_LINES = 12


def decision_regions(head: Head, *, extent: float | None = None, title: str | None = None) -> Figure:
    """Three views of a head with two features: its regions, its hull, and its logits by direction.

    Regions are exact polygons; an unargmaxable class has none. The window shows the corners of all regions,
    or reaches from −extent to extent. A head with bias has no third view: it would depend on the distance.
    Raises InputError for another number of features, or more than 200 classes.
    """
    require_plane(head)
    require_few_classes(head)
    window = window_of_regions(head) if extent is None else _window(extent)
    result = verify(head, Everywhere(), engine=ONE_PROCESS)
    panels = 2 if head.has_bias else 3
    with drawing(PAGE, PAGE / panels + 0.55, title or head.name) as figure:
        views = figure.subplots(1, panels)
        regions = winner_regions(head, window)
        colours = colours_of(regions)
        draw_regions(views[0], result, regions, window, colours)
        draw_weights(views[1], result)
        views[1].set_title("weights and their hull" + (" (bias not shown)" if head.has_bias else ""))
        if panels == 3:
            _draw_directions(views[2], result, colours)
        handles, names = views[1].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=len(names), handletextpad=0.1)
    return figure


def require_few_classes(head: Head) -> None:
    """Raise InputError for more classes than regions can be drawn of."""
    if head.classes > _MOST_CLASSES:
        raise InputError(
            f"decision regions are drawn of up to {_MOST_CLASSES} classes, not {head.classes:,}."
        )


def _window(extent: float) -> Polygon:
    if not (math.isfinite(extent) and extent > 0):
        raise InputError(f"the extent is a finite number above 0, found {extent:g}.")
    return square((0, 0), Fraction(extent))


def colours_of(regions: Mapping[int, Polygon]) -> dict[int, str]:
    """The colour of each class with a region: its own, or the first that no neighbour has taken."""
    colours: dict[int, str] = {}
    corners = {number: set(map(tuple, region)) for number, region in regions.items()}
    for number in regions:
        taken = {colour for other, colour in colours.items() if corners[number] & corners[other]}
        wishes = (colour_of(number), *PALETTE)
        colours[number] = next((colour for colour in wishes if colour not in taken), wishes[0])
    return colours


def draw_regions(
    axes: Any, result: Result, regions: Mapping[int, Polygon], window: Polygon, colours: Mapping[int, str]
) -> None:
    head = result.head
    (left, low), (right, high) = window[0].astype(float), window[2].astype(float)
    for number, region in regions.items():
        axes.fill(
            *region.astype(float).T, facecolor=colours[number], alpha=0.55, edgecolor="white", linewidth=1.0
        )
        if area(region) >= _SMALLEST_NAMED * area(window):
            axes.text(
                *middle(region).astype(float),
                legible(head.label(number)),
                ha="center",
                va="center",
                color=INK,
            )
    unargmaxable = [verdict for verdict in result.verdicts if verdict.status is Status.UNARGMAXABLE]
    axes.set(
        xlim=(left, right), ylim=(low, high), aspect="equal", xlabel="first feature", ylabel="second feature"
    )
    axes.locator_params(nbins=5)
    axes.set_title("who wins where" + (f"; no region: {_names(unargmaxable)}" if unargmaxable else ""))


def _names(verdicts: list[Any]) -> str:
    names = ", ".join(legible(verdict.label) for verdict in verdicts[:5])
    return names + (f" and {len(verdicts) - 5} more" if len(verdicts) > 5 else "")


def _draw_directions(axes: Any, result: Result, colours: Mapping[int, str]) -> None:
    """The logits around the unit circle; whoever is never on top is unargmaxable."""
    head = result.head
    degrees = np.linspace(0, 360, 721)
    circle = np.column_stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))])
    logits = circle @ head.rows(slice(None)).T
    axes.plot(degrees, logits.max(axis=1), color="#DDDDDD", linewidth=4, solid_capstyle="round")
    for verdict in result.verdicts:
        line = logits[:, verdict.class_id]
        never_wins = verdict.class_id not in colours
        colour = colours.get(verdict.class_id, STATUS_COLOURS[verdict.status])
        axes.plot(degrees, line, color=colour, linestyle="--" if never_wins else "-", linewidth=1)
        if head.classes <= _MOST_NAMED_LINES:
            peak = int(np.argmax(line))
            axes.annotate(
                legible(verdict.label), (degrees[peak], line[peak]), xytext=(0, 2),
                textcoords="offset points", ha="center", va="bottom", color=colour if never_wins else INK,
            )  # fmt: skip
    axes.set(
        xlim=(0, 360), xticks=[0, 90, 180, 270, 360], xlabel="direction of the features (°)", ylabel="logit"
    )
    axes.margins(y=0.12)
    axes.set_box_aspect(1)
    axes.set_title("logits by direction")
