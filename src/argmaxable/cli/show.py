"""argmaxable show: the summary of a kept run."""

from __future__ import annotations

import json

import typer

from argmaxable.cli import options
from argmaxable.cli.stored_runs import find_run, opened
from argmaxable.core.verdict import Status
from argmaxable.report import stored_runs as kept
from argmaxable.report import text


def show(
    run: options.KeptRun,
    db: options.Database = None,
    as_json: options.Json = False,
) -> None:
    """Show what a kept run found, or has found so far.

    \b
    Examples:
      argmaxable show 3
      argmaxable show model.onnx --json

    \b
    Exit codes: 0 shown, 2 bad input.
    """
    with opened(db) as store:
        found = find_run(store, run)
        findings = kept.KeptFindings(
            found,
            *(
                tuple(store.verdicts(found.run_id, status=status, with_evidence=False))
                for status in (Status.UNARGMAXABLE, Status.UNDECIDED)
            ),
        )
    if as_json:
        typer.echo(json.dumps(text.as_record(findings) | kept.as_record(found)))
    else:
        typer.echo("\n".join([kept.headline(found), "", *text.summary(findings)]))
