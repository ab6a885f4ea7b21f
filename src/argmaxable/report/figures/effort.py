"""What it took to settle each class: Figures 9, 11 and 12 of Grivas et al. 2022, from stored runs.

Steps are those of the method that settled a class: reflections in a run of reflection alone, as in the paper;
otherwise none for a class that wins along its own direction or is settled by another's proof, reflections
for those after, and Newton steps where a programme had to be solved.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import InputError
from argmaxable.core.verdict import Status, Verdict
from argmaxable.report.figures.style import (
    COLUMN,
    INK,
    LINE_COLOURS,
    PAGE,
    STATUS_COLOURS,
    STATUS_MARKERS,
    drawing,
    grouped,
    legible,
)
from argmaxable.report.published import UNNUMBERED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Panels in a figure that still fits a page.
MOST_PANELS = 8
# The curve is a mean over this share of the classes.
_SHARE_AVERAGED = 0.02


@dataclass(frozen=True, eq=False)
class Effort:
    """Class ids, steps and statuses (n each, in class order) of a model's verdicts."""

    name: str
    classes: NDArray[np.int64]
    steps: NDArray[np.int64]
    statuses: NDArray[Any]

    def having(self, status: Status) -> NDArray[np.bool_]:
        return np.asarray(self.statuses == status)


def effort_of(name: str, verdicts: Iterable[Verdict]) -> Effort:
    """The effort behind verdicts; raises InputError when there are none, or their classes have no numbers."""
    rows = sorted((verdict.class_id, verdict.steps, verdict.status) for verdict in verdicts)
    if not rows:
        raise InputError(f"{name}: no class has a verdict yet, so there are no steps to draw.")
    if rows[-1][0] >= UNNUMBERED:
        raise InputError(f"{name}: its verdicts were published without the classes' numbers.")
    classes, steps, statuses = zip(*rows, strict=True)
    return Effort(name, np.array(classes), np.array(steps), np.array(statuses, dtype=object))


def steps_over_classes(efforts: Sequence[Effort], *, title: str | None = None) -> Figure:
    """A panel for each model: the steps each class needed over its number, and their running mean.

    Easy and hard classes over the vocabulary (Figures 11 and 12), models side by side on one scale. Raises
    InputError without models, or for more than eight.
    """
    _require_some(efforts, MOST_PANELS)
    columns = min(2, len(efforts))
    rows = math.ceil(len(efforts) / columns)
    heading = title or "steps to settle each class"
    with drawing(COLUMN if columns == 1 else PAGE, 0.8 + 1.55 * rows, heading) as figure:
        panels = figure.subplots(rows, columns, sharey=True, squeeze=False)
        most = _most_steps(efforts)
        panels[0, 0].set_yscale("symlog", linthresh=1)  # logarithmic above one step, with room for none
        panels[0, 0].set(ylim=(-0.35, max(most, 1) * 1.6))
        panels[0, 0].set_yticks(_step_ticks(most), minor=False)
        panels[0, 0].set_yticks([], minor=True)
        panels[0, 0].yaxis.set_major_formatter(grouped)
        for axes, effort in zip(panels.flat, efforts, strict=False):
            _draw_panel(axes, effort)
        for axes in panels.flat[len(efforts) :]:
            axes.set_axis_off()
        for axes in panels[:, 0]:
            axes.set_ylabel("steps")
        handles = {
            name: handle
            for axes in panels.flat
            for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(handles.values(), handles, loc="outside lower center", ncols=len(handles))
    return figure


def _step_ticks(most: int) -> list[int]:
    """0, 1, 2, 5, 10, … up to the largest number of steps; powers of ten alone where these are many."""
    marks = (1,) if most >= 300 else (1, 2, 5)
    ticks = (mark * 10**power for power in range(len(str(most))) for mark in marks)
    return [0, *(tick for tick in ticks if tick <= most)]


def _draw_panel(axes: Any, effort: Effort) -> None:
    for status in Status:
        ids = effort.having(status)
        if ids.any():
            # As an image in vector formats too: tens of thousands of shapes make files of megabytes.
            axes.scatter(
                effort.classes[ids], effort.steps[ids], s=7 if status is not Status.ARGMAXABLE else 4,
                marker=STATUS_MARKERS[status], color=STATUS_COLOURS[status], linewidths=0, label=status.value,
                alpha=0.5, rasterized=True,
            )  # fmt: skip
    axes.plot(effort.classes, _running_mean(effort.steps), color=INK, linewidth=1, label="running mean")
    axes.set(xlabel="class index", title=legible(effort.name))
    axes.xaxis.set_major_formatter(grouped)
    axes.locator_params(axis="x", nbins=5)


def _running_mean(steps: NDArray[np.int64]) -> NDArray[np.float64]:
    width = max(1, round(len(steps) * _SHARE_AVERAGED))
    sums = np.convolve(steps, np.ones(width), mode="same")
    return np.asarray(sums / np.convolve(np.ones(len(steps)), np.ones(width), mode="same"))


def steps_needed(efforts: Sequence[Effort], *, title: str | None = None) -> Figure:
    """A curve for each model: the share of its classes that needed more than so many steps.

    Models of one ensemble, or teachers and students, in one view (Figure 9). Raises InputError as above.
    """
    _require_some(efforts, MOST_PANELS)
    with drawing(COLUMN, 2.5 + 0.16 * len(efforts), title) as figure:
        axes = figure.add_subplot()
        styles = ("-", "--", ":", "-.")
        for number, effort in enumerate(efforts):
            steps, shares = share_needing_more(effort.steps)
            axes.step(
                steps, 100 * shares, where="post", color=LINE_COLOURS[number % len(LINE_COLOURS)],
                linestyle=styles[number % len(styles)], label=legible(effort.name),
            )  # fmt: skip
        most = _most_steps(efforts)
        axes.set_xscale("symlog", linthresh=1)
        axes.set(xlabel="steps", xlim=(0, max(most, 1) * 1.1), xticks=_step_ticks(most))
        # Logarithmic down to the share of one class, and then on to none.
        axes.set_yscale("symlog", linthresh=100 / max(len(effort.steps) for effort in efforts))
        axes.set(ylabel="classes that need more (%)", ylim=(0, 100))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(grouped)
        axes.grid(which="major")
        figure.legend(loc="outside lower center", ncols=1)
    return figure


def share_needing_more(steps: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """0, 1, … up to the largest number of steps, and the share of classes that needed more than each."""
    counts = np.bincount(steps)
    return np.arange(len(counts)), (len(steps) - counts.cumsum()) / len(steps)


def _most_steps(efforts: Sequence[Effort]) -> int:
    return max(int(effort.steps.max()) for effort in efforts)


def _require_some(efforts: Sequence[Effort], most: int) -> None:
    if not efforts:
        raise InputError("steps need at least one run.")
    if len(efforts) > most:
        raise InputError(f"steps of up to {most} models fit into a figure, found {len(efforts)}.")
