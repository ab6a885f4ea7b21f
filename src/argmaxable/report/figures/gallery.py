"""The whole set of figures: those about small heads, and those about one's own stored runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.core.boxes import Everywhere
from argmaxable.questions.argmax import verify
from argmaxable.report.figures.braid import braid, construction, slices
from argmaxable.report.figures.counts import unargmaxable_counts
from argmaxable.report.figures.effort import MOST_PANELS, Effort, steps_needed, steps_over_classes
from argmaxable.report.figures.examples import ARGMAXABLE_CLASS, UNARGMAXABLE_CLASS, ball_of_classes
from argmaxable.report.figures.hull import hull
from argmaxable.report.figures.plif import plif
from argmaxable.report.figures.random_heads import measure_random_heads, random_heads
from argmaxable.report.figures.reflections import reflections
from argmaxable.report.figures.regions import decision_regions
from argmaxable.run.plan import ONE_PROCESS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from argmaxable.store import RunSummary

# What is drawn unless somebody asks for another: seconds of work, and the whole story in it.
HULL_CLASSES, RANDOM_CLASSES, RANDOM_SEEDS, PLIF_BINS, SEED = 40, 300, 3, 10, 1
RANDOM_DIMS = (2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30)


@dataclass(frozen=True, eq=False)
class FigureGroup:
    """Runs to be seen side by side: a family, an ensemble, teachers and students.

    `efforts` may be fewer than the runs: those whose verdicts tell about steps.
    """

    name: str
    runs: tuple[RunSummary, ...]
    names: tuple[str, ...]
    efforts: tuple[Effort, ...]


def all_figures(groups: Sequence[FigureGroup], *, title: str | None = None) -> Iterator[tuple[str, Figure]]:
    """Every figure with a name for its file, one after the other; those about runs are headed `title`."""
    yield "decision-regions", decision_regions(UNARGMAXABLE_CLASS)
    yield "decision-regions-bias", decision_regions(ARGMAXABLE_CLASS)
    for features in (2, 3):
        yield f"hull-{features}d", random_hull(features)
    yield "reflections", reflections()
    yield "braid", braid()
    yield "braid-bias", braid(bias=True)
    yield "slices", slices()
    yield "construction", construction()
    yield "random-heads", random_heads(measure_random_heads(RANDOM_CLASSES, RANDOM_DIMS, seeds=RANDOM_SEEDS))
    yield "plif", random_plif()
    yield from run_figures(groups, title=title)


def random_hull(
    features: int, *, classes: int = HULL_CLASSES, seed: int = SEED, title: str | None = None
) -> Figure:
    """The hull of a random head, about half of whose classes are vertices."""
    return hull(
        verify(ball_of_classes(classes, features, seed=seed), Everywhere(), engine=ONE_PROCESS), title=title
    )


def random_plif(bins: int = PLIF_BINS, *, seed: int = SEED, title: str | None = None) -> Figure:
    """A PLIF on [−4, 4] with random slopes whose mean is 1."""
    slopes = np.random.default_rng(seed).gamma(1.5, 1 / 1.5, bins)
    return plif(np.linspace(-4.0, 4.0, bins + 1), slopes, title=title)


def run_figures(groups: Sequence[FigureGroup], *, title: str | None = None) -> Iterator[tuple[str, Figure]]:
    """The figures of the set that are about runs: counts of all, steps of each group in pages of eight."""
    runs = [run for group in groups for run in group.runs]
    names = [name for group in groups for name in group.names]
    if runs:
        yield "counts", unargmaxable_counts(runs, names=names, title=title)
    stems: set[str] = set()
    for group in groups:
        heading = ": ".join(part for part in (title, group.name) if part) or None
        for first in range(0, len(group.efforts), MOST_PANELS):
            page = group.efforts[first : first + MOST_PANELS]
            stem = _unused(_stem(group.name), stems)
            yield f"steps{stem}", steps_over_classes(page, title=heading)
            yield f"steps-needed{stem}", steps_needed(page, title=heading)


def _stem(name: str) -> str:
    """The end of a file's name, made of letters, digits and hyphens."""
    words = re.findall(r"\w+", name)
    return f"-{'-'.join(words)}" if words else ""


def _unused(stem: str, used: set[str]) -> str:
    number, candidate = 1, stem
    while candidate in used:
        number += 1
        candidate = f"{stem}-{number}"
    used.add(candidate)
    return candidate
