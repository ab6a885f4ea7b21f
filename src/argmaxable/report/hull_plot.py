"""The hull of a small head: argmaxable classes are its vertices, unargmaxable ones lie inside.

The one module that knows matplotlib; it comes with the extra `plot`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from argmaxable.errors import InputError
from argmaxable.result import Result
from argmaxable.verdict import Status

_COLOURS = {Status.ARGMAXABLE: "#1b7837", Status.UNARGMAXABLE: "#c51b7d", Status.UNDECIDED: "#888888"}
_MOST_NAMED = 60


def require_plottable(features: int, path: Path) -> None:
    """Raise InputError unless a picture of that many features can be drawn into the file."""
    if features not in (2, 3):
        raise InputError(f"--plot draws heads with 2 or 3 features, not {features}.")
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InputError(f"--plot writes .png, .svg or .pdf files, not '{path.name}'.")
    _pyplot_figure()


def _pyplot_figure() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError("--plot needs matplotlib: pip install 'argmaxable[plot]'.") from error
    return Figure


def plot_hull(result: Result, path: Path) -> None:
    """Draw the weight vectors, their hull and which of them are unargmaxable."""
    rows = result.head.rows(slice(None))
    flat = rows.shape[1] == 2
    figure = _pyplot_figure()(figsize=(6, 6), layout="constrained")
    axes = figure.add_subplot() if flat else figure.add_subplot(projection="3d")
    _draw_hull(axes, rows)
    for status, colour in _COLOURS.items():
        ids = [verdict.class_id for verdict in result.verdicts if verdict.status is status]
        if ids:
            marker = "o" if status is Status.ARGMAXABLE else "X"
            axes.scatter(
                *rows[ids].T, c=colour, marker=marker, s=36, label=f"{status.value} ({len(ids)})", zorder=3
            )
    if flat and len(rows) <= _MOST_NAMED:
        for verdict in result.verdicts:
            axes.annotate(
                verdict.label, rows[verdict.class_id], xytext=(5, 4), textcoords="offset points", fontsize=8
            )
    if flat:
        axes.set_aspect("equal")
    axes.set(xlabel="feature 0", ylabel="feature 1", title=result.head.name)
    figure.legend(loc="outside lower center", ncols=len(_COLOURS))  # beside the points, not over them
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise InputError(f"can't write {path}: {error.strerror or error}.") from error


def _draw_hull(axes: Any, rows: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> None:
    try:
        hull = ConvexHull(rows)
    except QhullError:
        return  # too few or flat points have no hull to draw; the points alone tell the story
    for simplex in hull.simplices:
        corners = np.append(simplex, simplex[0])
        axes.plot(*rows[corners].T, color="#777777", linewidth=1, zorder=1)
