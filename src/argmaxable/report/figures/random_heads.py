"""Random heads: how many classes they lose, and how hard the others are to find, against the number of
features (Figure 10 of Grivas et al. 2022).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from argmaxable.core.errors import InputError
from argmaxable.core.verdict import Algorithm, Status
from argmaxable.models.random_heads import Distribution, random_head
from argmaxable.questions.argmax import verify
from argmaxable.report.figures.style import PAGE, STATUS_COLOURS, drawing
from argmaxable.run.plan import ONE_PROCESS, Engine

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The paper's. A class that isn't found in so many steps is left out of their mean, and counted by itself.
_PATIENCE = 2500


@dataclass(frozen=True)
class Measured:
    """A random head: how many of its classes are proven unargmaxable, how many of the others are not found by
    2,500 reflections, and the mean number of `steps` that find the rest (0 where the first try does)."""

    classes: int
    features: int
    seed: int
    distribution: Distribution
    unargmaxable: int
    not_found: int
    steps: float


def measure_random_heads(
    classes: int,
    dims: Sequence[int],
    *,
    seeds: int = 3,
    distribution: Distribution = Distribution.UNIFORM,
    engine: Engine = ONE_PROCESS,
) -> list[Measured]:
    """Verify random heads without bias, so many for each number of features; the paper draws from [−1, 1].

    One process is as quick as several while the heads have a few hundred classes. Raises InputError where
    there is nothing to measure.
    """
    if not dims or seeds < 1 or classes < 2:
        raise InputError(
            "random heads need at least one number of features, one seed and two classes; "
            f"found {len(dims)}, {seeds} and {classes}."
        )
    return [
        _measure(classes, features, seed, distribution, engine) for features in dims for seed in range(seeds)
    ]


def _measure(classes: int, features: int, seed: int, distribution: Distribution, engine: Engine) -> Measured:
    head = random_head(classes, features, seed=seed, distribution=distribution)
    result = verify(head, engine=engine)
    others = [verdict.class_id for verdict in result.argmaxable]
    again = verify(head, only=others, method=Algorithm.REFLECTION, patience=_PATIENCE, engine=engine)
    # Never empty: without bias the longest of several rows wins at itself.
    steps = [verdict.steps for verdict in again.verdicts if verdict.status is Status.ARGMAXABLE]
    return Measured(
        classes=classes, features=features, seed=seed, distribution=distribution,
        unargmaxable=len(result.unargmaxable), not_found=len(others) - len(steps),
        steps=float(np.mean(steps)),
    )  # fmt: skip


def random_heads(measured: Sequence[Measured], *, title: str | None = None) -> Figure:
    """Unargmaxable classes and reflections needed against the number of features: a dot for each head, a line
    through the means. Classes are on a logarithmic axis that is linear from 1 to 0, so that one of 10,000 is
    seen. Raises InputError without heads."""
    if not measured:
        raise InputError("random heads: nothing was measured.")
    classes = ", ".join(f"{number:,}" for number in sorted({each.classes for each in measured}))
    drawn = " and ".join(sorted({each.distribution.value for each in measured}))
    with drawing(PAGE, 2.5, title or f"random heads, {classes} classes, {drawn} weights") as figure:
        left, right = figure.subplots(1, 2)
        unargmaxable = [each.unargmaxable for each in measured]
        _draw(left, measured, unargmaxable, "unargmaxable classes", Status.UNARGMAXABLE)
        steps = [each.steps for each in measured]
        _draw(right, measured, steps, "mean steps to find the others", Status.ARGMAXABLE)
        left.set_yscale("symlog", linthresh=1)
        for axes in (left, right):
            axes.set_ylim(bottom=0)
            axes.yaxis.set_major_formatter("{x:,g}")
        not_found = sum(each.not_found for each in measured)
        if not_found:
            right.set_title(f"without {not_found:,} not found in {_PATIENCE:,} steps", fontsize=7)
    return figure


def _draw(
    axes: Any, measured: Sequence[Measured], values: Sequence[float], name: str, status: Status
) -> None:
    dims, colour = sorted({each.features for each in measured}), STATUS_COLOURS[status]
    axes.scatter(
        [each.features for each in measured], values, s=10, color=colour, linewidths=0, clip_on=False
    )
    axes.plot(dims, [_mean(measured, values, features) for features in dims], color=colour)
    axes.set(xlabel="features", ylabel=name, xscale="log")
    axes.set_xticks(dims, labels=_apart(dims), minor=False)
    axes.set_xticks([], minor=True)


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
