"""The hull of a small head: argmaxable classes are its vertices, unargmaxable ones lie inside.

With a bias that is no longer so: a class inside may be lifted above the others (decision_regions shows it).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, QhullError

from argmaxable.core.errors import InputError
from argmaxable.core.verdict import Status
from argmaxable.report.figures.style import (
    COLUMN,
    INK,
    STATUS_COLOURS,
    STATUS_MARKERS,
    draw_faces,
    drawing,
    legible,
    paint,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from argmaxable.core.result import Result

_MOST_NAMED, _MOST_UNARGMAXABLE_NAMED = 40, 12


def require_drawable(features: int) -> None:
    """Raise InputError unless a hull of that many features can be drawn."""
    if features not in (2, 3):
        raise InputError(f"hulls are drawn of heads with 2 or 3 features, not {features}.")


def hull(result: Result, *, title: str | None = None) -> Figure:
    """The weight vectors, their hull and which of them are unargmaxable; InputError past 3 features."""
    features = result.head.features
    require_drawable(features)
    with drawing(COLUMN, COLUMN + (0.35 if features == 2 else 0.1), title or result.head.name) as figure:
        axes = figure.add_subplot(projection="3d" if features == 3 else None)
        draw_weights(axes, result)
        figure.legend(loc="outside lower center", ncols=len(STATUS_COLOURS), handletextpad=0.1)
    return figure


def draw_weights(axes: Any, result: Result) -> None:
    """Hull and points, labelled in the plane where there are few."""
    rows = result.head.rows(slice(None))
    _draw_edges(axes, rows)
    for status, colour in STATUS_COLOURS.items():
        ids = [verdict.class_id for verdict in result.verdicts if verdict.status is status]
        if ids:
            marker = STATUS_MARKERS[status]
            name = f"{status.value} ({len(ids):,})"
            axes.scatter(
                *rows[ids].T, c=colour, marker=marker, s=26, linewidths=0.4, edgecolors="white", label=name,
                zorder=3,
            )  # fmt: skip
    names = ("first", "second", "third")
    axes.set(
        **{
            f"{axis}label": f"{name} weight"
            for axis, name in zip("xyz"[: rows.shape[1]], names, strict=False)
        }
    )
    axes.locator_params(nbins=5)
    if rows.shape[1] == 3:
        _set_up_space(axes)
    else:
        _set_up_plane(axes, rows)
        _write_names(axes, result, rows)


def _set_up_space(axes: Any) -> None:
    """Depth is hard to see on paper: light walls, thin lines, and a view that no axis points along."""
    axes.view_init(elev=20, azim=-58)
    axes.set_box_aspect((1, 1, 1), zoom=0.98)
    axes.tick_params(pad=-3)
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.set_pane_color((0.97, 0.97, 0.97))
        axis.line.set_linewidth(0.6)
        axis.labelpad = -6


def _set_up_plane(axes: Any, rows: NDArray[np.float64]) -> None:
    """A square around all points, so that views side by side have the same size."""
    low, high = rows.min(axis=0), rows.max(axis=0)
    half = max((high - low).max() / 2, np.abs(rows).max() * 1e-3) * 1.25 or 1.0
    (x, y) = (low + high) / 2
    axes.set(xlim=(x - half, x + half), ylim=(y - half, y + half), aspect="equal")


def _write_names(axes: Any, result: Result, rows: NDArray[np.float64]) -> None:
    """Labels outward of their points; of crowded heads only those of argmaxable classes, or none."""
    centre = rows.mean(axis=0)
    for verdict in result.verdicts:
        most = _MOST_NAMED if verdict.status is Status.ARGMAXABLE else _MOST_UNARGMAXABLE_NAMED
        if len(rows) <= most:
            x, y = 1.0 * (rows[verdict.class_id] >= centre) * 2 - 1
            axes.annotate(
                legible(verdict.label), rows[verdict.class_id], xytext=(4 * x, 4 * y),
                textcoords="offset points", ha="left" if x > 0 else "right", va="bottom" if y > 0 else "top",
                color=INK if verdict.status is Status.ARGMAXABLE else STATUS_COLOURS[verdict.status],
            )  # fmt: skip


def _draw_edges(axes: Any, rows: NDArray[np.float64]) -> None:
    try:
        facets = ConvexHull(rows).simplices
    except (QhullError, ValueError):
        return  # too few or flat points have no hull to draw; the points alone tell the story
    if rows.shape[1] == 3:
        faces = list(rows[facets])
        colours = [paint(STATUS_COLOURS[Status.ARGMAXABLE], alpha=0.12)] * len(faces)
        draw_faces(axes, faces, colours, [paint(INK, pale=0.1, alpha=0.5)] * len(faces), width=0.5)
        return
    for facet in facets:
        axes.plot(*rows[facet].T, color=INK, linewidth=0.8, zorder=1)
