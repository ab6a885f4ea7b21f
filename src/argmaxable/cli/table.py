"""argmaxable table: stored runs as a table for a paper or a page."""

from __future__ import annotations

from typing import Annotated

import click

from argmaxable.cli import options
from argmaxable.cli.csv_options import Safe, csv_style
from argmaxable.cli.parameters import Argument, Option
from argmaxable.cli.stored_runs import find_run, opened
from argmaxable.core.errors import InputError
from argmaxable.report.grid import GridFormat, render
from argmaxable.report.tables import family_table, model_table
from argmaxable.store import RunSummary


def table(
    chosen: Annotated[
        list[str] | None,
        Argument(metavar="RUN", help="Run numbers or model names (default: the newest run of each model)."),
    ] = None,
    form: Annotated[GridFormat, Option("--format", help="How to write it.")] = GridFormat.MARKDOWN,
    summary: Annotated[bool, Option("--summary", help="A row for each family, summed.")] = False,
    family: Annotated[str | None, Option(help="Only models of this family.")] = None,
    task: Annotated[str | None, Option(help="Only models of this task.")] = None,
    safe: Safe = None,
    db: options.Database = None,
) -> None:
    """Write stored runs as a table for a paper.

    Shows what each model is, how many classes it can never predict, and the effort.

    The columns are those of Tables 4 to 8 of Grivas et al. 2022, with --summary those of its Table 1.

    \b
    Examples:
      argmaxable table 3 4 5
      argmaxable table --family opus --format latex > opus.tex
      argmaxable table --summary --format csv

    \b
    Exit codes: 0 written, 2 bad input.
    """
    if chosen and (family or task):
        raise InputError("pass RUN or filters, not both.")
    with opened(db) as store:
        if chosen:
            found = [find_run(store, named) for named in chosen]
        else:
            found = _newest_of_each(store.runs(family=family, task=task))
        if not found:
            raise InputError(f"no runs to write a table of in {store.where}.")
    grid = family_table(found) if summary else model_table(found)
    click.echo(render(grid, form, csv_style(safe)), nl=False)


def _newest_of_each(runs: list[RunSummary]) -> list[RunSummary]:
    """The first run of each model in a list with the newest first, in order of their names."""
    newest: dict[str, RunSummary] = {}
    for run in runs:
        newest.setdefault(run.facts.name, run)
    return [newest[name] for name in sorted(newest)]
