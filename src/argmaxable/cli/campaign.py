"""argmaxable campaign: verify the models listed in a file, and write a page about them."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import click

from argmaxable.cli import options
from argmaxable.cli.option_groups import Only, takes_groups
from argmaxable.cli.parameters import Argument, Option
from argmaxable.cli.places import require_file_place
from argmaxable.cli.progress import progress_bar
from argmaxable.core.errors import InputError
from argmaxable.core.labels import visible
from argmaxable.workflow.campaign.index import index_page, write_index
from argmaxable.workflow.campaign.plan import Campaign, CampaignModel, read_campaign
from argmaxable.workflow.campaign.run import ModelOutcome, Resources, run_campaign

_EPILOG = """\b
Examples:
  argmaxable campaign campaigns/packages.toml --index gallery.md
  argmaxable campaign campaigns/acl2022.toml --match Helsinki --workers 8

\b
Exit codes: 0 every class of every model is decided, 2 bad campaign file,
3 some model failed, has undecided classes or was not reached. Finished runs
are not computed twice.
"""


@takes_groups
def campaign(
    file: Annotated[Path, Argument(metavar="FILE", help="Campaign: a TOML file (docs/campaigns.md).")],
    match: Annotated[
        list[str] | None,
        Option(help="Only models with this text in their name or family; repeatable."),
    ] = None,
    index: Annotated[Path | None, Option(help="Write a page of Markdown about the models.")] = None,
    models: Annotated[
        Path | None, Option(help="Where paths in the campaign start (default: at its own folder).")
    ] = None,
    *,
    work: Annotated[options.EngineOptions, Only("workers", "ray")],
    time_limit: Annotated[
        float | None, Option(help="Continue with the next model after this many seconds.")
    ] = None,
    cache_dir: options.CacheDir = None,
    stored: options.StoreOptions,
    as_json: Annotated[
        bool, Option("--json", help="Print a JSON object for each model instead of text.")
    ] = False,
) -> None:
    """Verify the models listed in FILE, one after another.

    If a model fails, the campaign continues.
    """
    require_file_place("--index", index)
    plan = read_campaign(file, models=models)
    entries = matching(plan, match or [])
    resources = Resources(work.engine(), time_limit, cache_dir)
    outcomes: list[ModelOutcome] = []
    try:
        with stored.opened() as store, progress_bar() as progress:
            running = run_campaign(
                entries, store=store, overwrite=stored.overwrite, resources=resources, progress=progress
            )
            for number, entry in enumerate(entries, start=1):
                counter = f"[{number}/{len(entries)}]"
                click.echo(f"{counter} {visible(entry.name)} …", err=True)
                outcome = next(running, None)
                if outcome is None:
                    break
                outcomes.append(outcome)
                click.echo(json.dumps(as_record(outcome)) if as_json else f"{counter} {describe(outcome)}")
    finally:
        if index is not None and outcomes:
            write_index(index_page(plan, outcomes, machine=machine(work.workers)), index)
    if not as_json:
        click.echo("\n".join(closing(entries, outcomes)))
    settled = sum(outcome.is_settled for outcome in outcomes)
    raise click.exceptions.Exit(0 if settled == len(entries) else 3)


campaign.__doc__ = f"{inspect.cleandoc(campaign.__doc__ or '')}\n\n{_EPILOG}"


def matching(plan: Campaign, texts: Sequence[str]) -> list[CampaignModel]:
    """The models whose name or family has one of the texts in it; all of them without any."""
    chosen = [
        entry
        for entry in plan.entries
        if not texts or any(text in entry.name or text in entry.request.family for text in texts)
    ]
    if not chosen:
        raise InputError(f"--match {' or '.join(texts)}: no model or family has this in its name.")
    return chosen


def describe(outcome: ModelOutcome) -> str:
    """The outcome in a line."""
    name, answer = visible(outcome.entry.name), outcome.answer
    if answer is None:
        return f"{name}: failed: {visible(outcome.error)}"
    never = f"{answer.unargmaxable:,} of {answer.verified:,} classes can never be predicted"
    left = f", {answer.undecided:,} undecided" if answer.undecided else ""
    cost = "known already" if answer.was_known else f"{answer.cost.seconds:.1f} s"
    return f"{name}: {never}{left} ({cost})"


def closing(entries: Sequence[CampaignModel], outcomes: Sequence[ModelOutcome]) -> list[str]:
    """What is left to say at the end: failures once more, with the traceback of errors of ours."""
    failed = [outcome for outcome in outcomes if outcome.answer is None]
    lines = ["", f"{len(outcomes) - len(failed):,} of {len(entries):,} models verified."]
    if failed:
        lines.append(f"{len(failed):,} failed:")
    for outcome in failed:
        lines.append(f"  {visible(outcome.entry.name)}: {visible(outcome.error)}")
        if outcome.details:
            lines += [outcome.details.rstrip(), "  This is a bug; please report it with the lines above."]
    if len(outcomes) < len(entries):
        lines.append("Interrupted: run the same command again to resume.")
    return lines


def as_record(outcome: ModelOutcome) -> dict[str, Any]:
    """The object that --json prints for a model."""
    entry, answer = outcome.entry, outcome.answer
    record: dict[str, Any] = {
        "name": entry.name,
        "family": entry.request.family,
        "task": entry.request.task,
        "origin": entry.source,
        "cites": entry.cites,
        "inferred": entry.is_inferred,
    }
    if answer is None:
        return record | {"error": outcome.error}
    return record | {
        "run": answer.run_id,
        "known": answer.was_known,
        "classes": answer.facts.classes,
        "features": answer.facts.features,
        "bias": answer.facts.bias,
        "domain": str(answer.domain),
        "verified": answer.verified,
        "unargmaxable": answer.unargmaxable,
        "tied": answer.tied,
        "undecided": answer.undecided,
        "complete": answer.is_complete,
        "seconds": round(answer.cost.seconds, 3),
        "solves": answer.cost.solves,
        "unargmaxable_labels": answer.labels,
    }


def machine(workers: int | None) -> str:
    """On what the times were measured, in words that don't tell which machine it was."""
    cores = os.cpu_count() or 1
    processes = "" if workers is None else f", {workers} {'process' if workers == 1 else 'processes'}"
    return f"a machine with {cores} {'core' if cores == 1 else 'cores'}{processes}"
