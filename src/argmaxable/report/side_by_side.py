"""Several runs beside a first one: which classes each of them can no longer predict, in a table and words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from argmaxable.core.labels import visible
from argmaxable.report import changes
from argmaxable.report.comparison import Comparison, Pair
from argmaxable.report.csv_table import Cell
from argmaxable.report.grid import Column, Grid
from argmaxable.store import RunSummary

# Classes listed in text; --json has all of them.
_MOST_LISTED = 40


@dataclass(frozen=True, eq=False)
class Side:
    """A run, the format its weights are stored in, the labels of classes that only just win (None: not
    asked), and what changed since the first run (None for that one)."""

    run: RunSummary
    weights: str
    thin: tuple[str, ...] | None = None
    comparison: Comparison | None = None

    @property
    def changed(self) -> tuple[Pair, ...]:
        return () if self.comparison is None else self.comparison.changed

    @property
    def became_unargmaxable(self) -> bool:
        return self.comparison is not None and bool(self.comparison.newly_unargmaxable)


def sides_grid(sides: Sequence[Side]) -> Grid:
    """A row for each run."""
    columns = (
        Column("model", "model"),
        Column("weights", "weights"),
        Column("C", "classes", is_number=True),
        Column("domain", "domain"),
        Column("never predicted", "unargmaxable", is_number=True),
        Column("of these tied", "tied", is_number=True, when_zero=False),
        Column("new", "new", is_number=True),
        Column("predicted again", "recovered", is_number=True),
        Column("only just win", "only_just", is_number=True, when_zero=False),
        Column("undecided", "undecided", is_number=True, when_zero=False),
    )
    return Grid(columns, tuple(map(_row, sides)))


def _row(side: Side) -> tuple[Cell, ...]:
    run, comparison = side.run, side.comparison
    return (
        run.facts.name,
        side.weights,
        run.facts.classes,
        str(run.domain),
        run.counts.unargmaxable,
        run.counts.tied,
        None if comparison is None else len(comparison.newly_unargmaxable),
        None if comparison is None else len(comparison.recovered),
        None if side.thin is None else len(side.thin),
        run.counts.undecided + run.counts.open,
    )


def describe_pair(base: Side, other: Side) -> list[str]:
    """Two runs: what `report/changes.py` tells, and the classes that only just win."""
    assert other.comparison is not None
    return [*changes.describe(base.run, other.run, other.comparison), *_thin(base, other)]


def describe_sides(sides: Sequence[Side]) -> list[str]:
    """For each run but the first: the classes that became unargmaxable, and those that only just win."""
    base, *others = sides
    lines: list[str] = []
    for other in others:
        assert other.comparison is not None
        new = [verdict.label for verdict in other.comparison.newly_unargmaxable]
        lines += ["", f"{visible(other.run.facts.name)}: {_new(new)}", *_thin(base, other)]
    return lines


def _new(labels: list[str]) -> str:
    if not labels:
        return "no class became unargmaxable."
    noun = "class" if len(labels) == 1 else "classes"
    return f"{len(labels):,} {noun} became unargmaxable: {_listed(labels)}"


def _thin(base: Side, other: Side) -> Iterator[str]:
    if other.thin is None:
        return
    before = set(base.thin or ())
    new = [label for label in other.thin if label not in before]
    if not new:
        yield "No further class only just wins."
        return
    verb = "class only just wins" if len(new) == 1 else "classes only just win"
    yield f"{len(new):,} {verb} now, not by more than the rounding errors of logits: {_listed(new)}"


def _listed(labels: list[str]) -> str:
    shown = "  ".join(visible(label) for label in labels[:_MOST_LISTED])
    return shown + (f"  … and {len(labels) - _MOST_LISTED:,} more" if len(labels) > _MOST_LISTED else "")


def pair_record(base: Side, other: Side) -> dict[str, Any]:
    """The object that `compare --json` prints for two runs, and for each further one."""
    assert other.comparison is not None
    record = changes.as_record(base.run, other.run, other.comparison)
    record |= {"weights": {"before": base.weights, "after": other.weights}}
    return record if other.thin is None else record | {"only_just": list(other.thin)}
