"""How many classes each model can never predict: Figure 6 of Grivas et al. 2022, from stored runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from argmaxable.core.errors import InputError
from argmaxable.core.verdict import Status
from argmaxable.report.figures.style import INK, PAGE, STATUS_COLOURS, drawing, grouped, legible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from argmaxable.store import RunSummary

_TIED = "#E69F00"


@dataclass(frozen=True)
class RunBar:
    """A model's classes that are dominated, at best tied with identical ones, or not decided, of so many."""

    name: str
    domain: str
    dominated: int
    tied: int
    undecided: int
    verified: int

    @property
    def unargmaxable(self) -> int:
        return self.dominated + self.tied


def bars_of(runs: Sequence[RunSummary], names: Sequence[str] | None = None) -> list[RunBar]:
    """A bar for each run, the most unargmaxable classes first; `names` instead of the models' own."""
    bars = [
        RunBar(
            name=name, domain=str(run.domain), dominated=run.counts.unargmaxable - run.counts.tied,
            tied=run.counts.tied, undecided=run.counts.undecided + run.counts.open,
            verified=run.counts.wanted,
        )
        for name, run in zip(names or [run.facts.name for run in runs], runs, strict=True)
    ]  # fmt: skip
    return sorted(bars, key=lambda bar: (-bar.unargmaxable, -bar.undecided, bar.name))


def unargmaxable_counts(
    runs: Sequence[RunSummary], *, names: Sequence[str] | None = None, title: str | None = None
) -> Figure:
    """A bar for each run with its numbers of unargmaxable and undecided classes; InputError without runs."""
    if not runs:
        raise InputError("counts need at least one run.")
    bars = bars_of(runs, names)
    domains = {bar.domain for bar in bars}
    places = range(len(bars))
    parts = (
        ("unargmaxable", STATUS_COLOURS[Status.UNARGMAXABLE], [bar.dominated for bar in bars]),
        ("unargmaxable by a tie with identical classes", _TIED, [bar.tied for bar in bars]),
        ("undecided", STATUS_COLOURS[Status.UNDECIDED], [bar.undecided for bar in bars]),
    )
    heading = (
        title or f"unargmaxable classes in {sum(bar.unargmaxable > 0 for bar in bars)} of {len(bars)} runs"
    )
    with drawing(PAGE, 0.95 + 0.19 * len(bars), heading) as figure:
        axes = figure.add_subplot()
        ends = [0] * len(bars)
        for name, colour, lengths in parts:
            if any(lengths):
                axes.barh(places, lengths, left=ends, height=0.66, color=colour, label=name)
                ends = [end + length for end, length in zip(ends, lengths, strict=True)]
        for place, bar, end in zip(places, bars, ends, strict=True):
            told = _told(bar) if len(domains) == 1 else f"{_told(bar)}; {bar.domain}"
            axes.annotate(
                told, (end, place), xytext=(3, 0), textcoords="offset points", va="center", color=INK,
                fontsize=7,
            )  # fmt: skip
        known = f"; domain: {bars[0].domain}" if len(domains) == 1 else ""
        axes.set(xlabel=f"classes{known}", xlim=(0, (1.28 if known else 2.1) * max(*ends, 1)))
        axes.xaxis.set_major_formatter(grouped)
        axes.set_yticks(places, [legible(bar.name) for bar in bars])
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(bars) - 0.5, -0.5)
        if any(ends):
            figure.legend(loc="outside lower center", ncols=len(parts))
    return figure


def _told(bar: RunBar) -> str:
    if not bar.unargmaxable and not bar.undecided:
        return f"none of {bar.verified:,}"
    told = f"{bar.unargmaxable:,} of {bar.verified:,}"
    return f"{told}, {bar.undecided:,} undecided" if bar.undecided else told
