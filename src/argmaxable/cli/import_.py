"""argmaxable import: published verdicts, to set beside ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import click

from argmaxable.cli import options
from argmaxable.cli.parameters import Argument, Option
from argmaxable.cli.stored_runs import opened
from argmaxable.core.domains import parse_domain
from argmaxable.core.labels import visible
from argmaxable.report.published import published_models
from argmaxable.report.stored_runs import as_record


def import_(
    path: Annotated[Path, Argument(metavar="FILE.csv", help="Table with a row for each verdict.")],
    name: Annotated[str | None, Option(help="Name of the model, if the table has none.")] = None,
    origin: Annotated[str | None, Option(help="Who published it (default: the file's name).")] = None,
    family: Annotated[str | None, Option(help="Family of the model, if the table has none.")] = None,
    task: Annotated[str | None, Option(help="Task of the model, if the table has none.")] = None,
    domain: Annotated[
        str, Option(help="Domain of the verdicts: everywhere, box:R, box:LO:HI or ball:R.")
    ] = "box:100",
    db: options.Database = None,
    as_json: options.Json = False,
) -> None:
    """Import published verdicts, for comparison.

    They are claims without evidence.

    The table has the columns model, class or label, status, and perhaps more (docs/runs.md); what
    `export --format csv` writes is one. The original tool's results.csv is read too, with models.csv and
    experiments.csv beside it.

    \b
    Examples:
      argmaxable import published.csv --origin "Grivas et al. 2022"
      argmaxable import results.csv.gz --family opus

    \b
    Exit codes: 0 imported, 2 bad input.
    """
    over = parse_domain(domain)
    imported = []
    with opened(db, read_only=False) as store:
        for model, verdicts in published_models(path, name=name):
            run_id = store.add_published(
                model.name,
                origin=path.name if origin is None else origin,
                family=model.family or family or "",
                task=model.task or task or "",
                rows=verdicts,
                domain=over,
                features=model.features,
                bias=bool(model.bias),
            )
            imported.append(store.run(run_id))
    if as_json:
        click.echo(json.dumps({"imported": [as_record(run) for run in imported]}))
        return
    for run in imported:
        click.echo(f"run {run.run_id}: {visible(run.facts.name)}, {run.counts.wanted:,} verdicts over {over}")
