"""argmaxable compare: what changed between two stored runs."""

from __future__ import annotations

import json
from functools import partial
from typing import Annotated

import typer

from argmaxable.cli import options
from argmaxable.cli.stored_runs import find_run, opened
from argmaxable.core.errors import EvidenceError, InputError
from argmaxable.report.changes import as_record, changes_grid, contradictions, describe
from argmaxable.report.comparison import Comparison
from argmaxable.report.comparison import compare as compare_verdicts
from argmaxable.report.grid import GridFormat, render
from argmaxable.store import RunSummary


def compare(
    before: Annotated[str, typer.Argument(metavar="RUN", help="Run number, or a model's name.")],
    after: Annotated[str, typer.Argument(metavar="RUN", help="The run to compare it with.")],
    form: Annotated[
        GridFormat | None, typer.Option("--format", help="Write the classes that changed as a table.")
    ] = None,
    db: options.Database = None,
    as_json: options.Json = False,
) -> None:
    """Tell which classes changed from one stored run to another.

    One model before and after fine-tuning or quantisation, or over two domains. Classes are matched by
    label where both runs have labels, otherwise by number.

    \b
    Examples:
      argmaxable compare 3 4
      argmaxable compare model.onnx model.int8.onnx --json
      argmaxable compare 3 4 --format csv > changes.csv

    \b
    Exit codes: 0 compared, 2 bad input.
    """
    if as_json and form is not None:
        raise InputError("--json and --format exclude each other.")
    with opened(db) as store:
        first, second = find_run(store, before), find_run(store, after)
        comparison = compare_verdicts(
            *(partial(store.verdicts, run.run_id, with_evidence=False) for run in (first, second))
        )
    if as_json:
        typer.echo(json.dumps(as_record(first, second, comparison)))
    elif form is not None:
        typer.echo(render(changes_grid(comparison.changed), form), nl=False)
    else:
        typer.echo("\n".join(describe(first, second, comparison)))
    _require_consistent(first, second, comparison)


def _require_consistent(first: RunSummary, second: RunSummary, comparison: Comparison) -> None:
    found = contradictions(first, second, comparison)
    if found:
        before, after = found[0].before, found[0].after
        raise EvidenceError(
            f"the runs contradict each other: class {before.class_id} can't be {before.status.value} and "
            f"{after.status.value} over the same domain. Please report this with both bundles."
        )
