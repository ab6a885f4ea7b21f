"""A piecewise linear increasing function (PLIF): Figure 1 of Ganea et al. 2019."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from argmaxable.core.errors import InputError
from argmaxable.core.verdict import Status
from argmaxable.report.figures.style import COLUMN, FAINT, STATUS_COLOURS, drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# With more knots than this their dots would hide the function.
_MOST_DOTS = 40


def plif(
    knots: ArrayLike, slopes: ArrayLike, *, start: float | None = None, title: str | None = None
) -> Figure:
    """The function with these slopes between these knots (one more of them), which goes on beyond both ends.

    `start` is its value at the first knot (default: the knot itself). Of a trained layer pass
    `layer.knots()`, `layer.bin_slopes().detach()` and `float(layer.start)`. Raises InputError when it does
    not increase.
    """
    places, values = knots_and_values(knots, slopes, start)
    width = places[-1] - places[0]
    outside = (places[0] - 0.15 * width, places[-1] + 0.15 * width)
    first, last = np.diff(values)[[0, -1]] / np.diff(places)[[0, -1]]
    colour = STATUS_COLOURS[Status.ARGMAXABLE]
    with drawing(COLUMN, 2.9, title or f"a PLIF with {len(places) - 1:,} bins") as figure:
        axes = figure.add_subplot()
        axes.plot(outside, outside, color=FAINT, linewidth=0.8, linestyle=":", label="identity")
        axes.plot(places, values, color=colour, label="f")
        if len(places) <= _MOST_DOTS:
            axes.plot(places, values, "o", color=colour, markersize=3, label="knots")
        ends = (
            (outside[0], places[0], values[0] - 0.15 * width * first, values[0]),
            (places[-1], outside[1], values[-1], values[-1] + 0.15 * width * last),
        )
        for left, right, low, high in ends:
            axes.plot([left, right], [low, high], color=colour, linestyle="--")
        axes.plot([], [], color=colour, linestyle="--", label="beyond the bound")
        axes.set(xlabel="logit z", ylabel="f(z)")
        figure.legend(loc="outside lower center", ncols=2)
    return figure


def knots_and_values(
    knots: ArrayLike, slopes: ArrayLike, start: float | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The knots and the function's values there; raises InputError when it does not increase."""
    places, rises = np.asarray(knots, np.float64), np.asarray(slopes, np.float64)
    if places.ndim != 1 or rises.ndim != 1 or len(places) != len(rises) + 1 or not len(rises):
        raise InputError(
            f"a PLIF has a slope for each bin and one knot more, found {rises.size} slopes and "
            f"{places.size} knots."
        )
    if not (np.isfinite(places).all() and (np.diff(places) > 0).all()):
        raise InputError("the knots of a PLIF are finite numbers, each larger than the one before.")
    if not (np.isfinite(rises).all() and (rises > 0).all()):
        raise InputError("the slopes of a PLIF are finite numbers above 0.")
    first = places[0] if start is None else start
    return places, first + np.concatenate([[0.0], np.cumsum(rises * np.diff(places))])
