"""Random heads: how many classes they lose, and how hard the others are to find, against the number of
features (Figure 10 of Grivas et al. 2022).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.errors import InputError
from argmaxable.figures.style import PAGE, STATUS_COLOURS, drawing, grouped
from argmaxable.random_heads import Distribution, random_head
from argmaxable.run.session import Algorithm
from argmaxable.verdict import Status
from argmaxable.verify import verify

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# The paper's: a class that is not found counts as so many steps.
_PATIENCE = 2500


@dataclass(frozen=True)
class Measured:
    """A random head: its proven share of unargmaxable classes, and the mean number of reflections that find
    the others (at most 2,500 each)."""

    classes: int
    features: int
    seed: int
    distribution: Distribution
    share: float
    steps: float


def measure_random_heads(
    classes: int,
    dims: Sequence[int],
    *,
    seeds: int = 3,
    distribution: Distribution = Distribution.UNIFORM,
    workers: int = 1,
) -> list[Measured]:
    """Verify random heads without bias, so many for each number of features; the paper draws from [−1, 1].

    One process is as quick as several while the heads have a few hundred classes.
    """
    if not dims or seeds < 1:
        raise InputError("random heads need at least one number of features and one seed.")
    return [
        _measure(classes, features, seed, distribution, workers) for features in dims for seed in range(seeds)
    ]


def _measure(classes: int, features: int, seed: int, distribution: Distribution, workers: int) -> Measured:
    head = random_head(classes, features, seed=seed, distribution=distribution)
    result = verify(head, workers=workers)
    found = [verdict.class_id for verdict in result.argmaxable]
    again = (
        verify(head, only=found, method=Algorithm.REFLECTION, patience=_PATIENCE, workers=workers)
        if found
        else result
    )
    return Measured(
        classes=classes, features=features, seed=seed, distribution=distribution,
        share=len(result.unargmaxable) / classes,
        steps=float(
            np.mean([v.steps if v.status is Status.ARGMAXABLE else _PATIENCE for v in again.verdicts])
        ),
    )  # fmt: skip


def random_heads(measured: Sequence[Measured], *, title: str | None = None) -> Figure:
    """Share unargmaxable and reflections needed against the number of features: a dot for each head, a line
    through the means. Raises InputError without heads."""
    if not measured:
        raise InputError("random heads: nothing was measured.")
    classes = ", ".join(f"{number:,}" for number in sorted({each.classes for each in measured}))
    drawn = " and ".join(sorted({each.distribution.value for each in measured}))
    dims = sorted({each.features for each in measured})
    with drawing(PAGE, 2.5, title or f"random heads, {classes} classes, {drawn} weights") as figure:
        left, right = figure.subplots(1, 2)
        views = (
            (left, [100 * each.share for each in measured], "unargmaxable classes (%)", Status.UNARGMAXABLE),
            (right, [each.steps for each in measured], "mean steps to find the others", Status.ARGMAXABLE),
        )
        for axes, values, name, status in views:
            colour = STATUS_COLOURS[status]
            axes.scatter([each.features for each in measured], values, s=10, color=colour, linewidths=0)
            axes.plot(dims, [_mean(measured, values, features) for features in dims], color=colour)
            axes.set(xlabel="features", ylabel=name, xscale="log")
            axes.set_xticks(dims, labels=_apart(dims), minor=False)
            axes.set_xticks([], minor=True)
            axes.set_ylim(bottom=0)
            axes.yaxis.set_major_formatter(grouped)
    return figure


def _mean(measured: Sequence[Measured], values: Sequence[float], features: int) -> float:
    return float(
        np.mean([value for each, value in zip(measured, values, strict=True) if each.features == features])
    )


def _apart(dims: Sequence[int]) -> list[str]:
    """The numbers as ticks of a logarithmic axis, but for those too close to the one before."""
    labels, last = [], 0.0
    for number in dims:
        is_apart = number >= last * 1.18
        labels.append(f"{number:,}" if is_apart else "")
        last = number if is_apart else last
    return labels
