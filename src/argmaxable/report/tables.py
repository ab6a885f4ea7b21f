"""Stored runs as the tables of Grivas et al. 2022: a row for each model (their Tables 4 to 8), or the
models of a family summed (their Table 1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from argmaxable.core.result import Cost
from argmaxable.report.csv_table import Cell
from argmaxable.report.grid import Column, Grid
from argmaxable.store import RunSummary, State

_UNDECIDED = Column("undecided", "undecided", is_number=True, when_zero=False)


def model_table(runs: Sequence[RunSummary]) -> Grid:
    """A row for each run; classes without a verdict yet count as undecided."""
    columns = (
        Column("model", "model"),
        Column("C", "classes", is_number=True),
        Column("d", "features", is_number=True),
        Column("bias", "bias"),
        Column("domain", "domain"),
        Column("needed LP", "needed_lp", is_number=True),
        Column("unargmaxable", "unargmaxable", is_number=True),
        _UNDECIDED,
        Column("mean steps", "mean_steps", is_number=True, digits=1),
        Column("seconds", "seconds", is_number=True, digits=1),
    )
    return Grid(columns, tuple(_model_row(run) for run in runs))


def _model_row(run: RunSummary) -> tuple[Cell, ...]:
    facts, counts, cost = run.facts, run.counts, run.cost
    # Those who publish verdicts need not tell all of this.
    is_known, is_untold = facts.features > 0, run.state is State.IMPORTED and cost == Cost()
    return (
        facts.name,
        facts.classes,
        facts.features if is_known else None,
        facts.bias if is_known else None,
        str(run.domain),
        counts.solved,
        counts.unargmaxable,
        _undecided(run),
        None if is_untold else cost.mean_steps,
        None if is_untold else cost.seconds,
    )


def family_table(runs: Sequence[RunSummary]) -> Grid:
    """A row for each family in order of appearance, and one for all where there are several."""
    columns = (
        Column("family", "family"),
        Column("models", "models", is_number=True),
        Column("with unargmaxable", "models_with_unargmaxable", is_number=True),
        Column("min C", "min_classes", is_number=True),
        Column("max C", "max_classes", is_number=True),
        Column("min d", "min_features", is_number=True),
        Column("max d", "max_features", is_number=True),
        Column("with bias", "models_with_bias", is_number=True),
        Column("needed LP", "needed_lp", is_number=True),
        Column("unargmaxable", "unargmaxable", is_number=True),
        _UNDECIDED,
        Column("seconds", "seconds", is_number=True, digits=1),
    )
    families: dict[str, list[RunSummary]] = {}
    for run in runs:
        families.setdefault(run.family or "other", []).append(run)
    rows = [_family_row(name, members) for name, members in families.items()]
    if len(families) > 1:
        rows.append(_family_row("all", runs))
    return Grid(columns, tuple(rows))


def _family_row(name: str, runs: Sequence[RunSummary]) -> tuple[Cell, ...]:
    classes = [run.facts.classes for run in runs]
    features = [run.facts.features for run in runs if run.facts.features]
    return (
        name,
        len(runs),
        _how_many(run.counts.unargmaxable > 0 for run in runs),
        min(classes),
        max(classes),
        min(features, default=None),
        max(features, default=None),
        _how_many(run.facts.bias for run in runs),
        sum(run.counts.solved for run in runs),
        sum(run.counts.unargmaxable for run in runs),
        sum(map(_undecided, runs)),
        sum(run.cost.seconds for run in runs),
    )


def _how_many(statements: Iterable[bool]) -> int:
    return sum(1 for is_true in statements if is_true)


def _undecided(run: RunSummary) -> int:
    return run.counts.undecided + run.counts.open
