"""argmaxable show: the summary of a stored run."""

from __future__ import annotations

import json

import click

from argmaxable.cli import options
from argmaxable.cli.stored_runs import find_run, opened
from argmaxable.core.verdict import Status
from argmaxable.report import stored_runs, text


def show(
    run: options.StoredRun,
    db: options.Database = None,
    everything: options.All = False,
    as_json: options.Json = False,
) -> None:
    """Show what a stored run found, or has found so far.

    \b
    Examples:
      argmaxable show 3
      argmaxable show model.onnx --json

    \b
    Exit codes: 0 shown, 2 bad input.
    """
    with opened(db) as store:
        found = find_run(store, run)
        findings = stored_runs.KeptFindings(
            found,
            *(
                tuple(store.verdicts(found.run_id, status=status, with_evidence=False))
                for status in (Status.UNARGMAXABLE, Status.UNDECIDED)
            ),
        )
    if as_json:
        click.echo(json.dumps(text.as_record(findings) | stored_runs.as_record(found)))
    else:
        click.echo(
            "\n".join([stored_runs.headline(found), "", *text.summary(findings, everything=everything)])
        )
