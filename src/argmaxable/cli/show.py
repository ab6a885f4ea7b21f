"""argmaxable show: the summary of a stored run."""

from __future__ import annotations

import json

import click

from argmaxable.cli import options
from argmaxable.cli.stored_runs import find_run, opened, set_run_number
from argmaxable.core.verdict import Status
from argmaxable.report import stored_runs, stored_sets, text
from argmaxable.report.answer import domain_line
from argmaxable.report.sets import describe_sets, sets_record


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
      argmaxable show sets:1

    \b
    Exit codes: 0 shown, 2 bad input.
    """
    number = set_run_number(run)
    if number is not None:
        _show_sets(number, db, everything=everything, as_json=as_json)
        return
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


def _show_sets(number: int, db: str | None, *, everything: bool, as_json: bool) -> None:
    with opened(db) as store:
        summary, found = store.sets.run(number), store.sets.read(number)
    if as_json:
        click.echo(json.dumps(stored_sets.as_record(summary) | sets_record(found)))
    else:
        lines = describe_sets(found, summary.domain_source, everything=everything)
        domain = domain_line(summary.domain, summary.domain_source)
        click.echo("\n".join([stored_sets.set_headline(summary), "", *lines, domain]))
