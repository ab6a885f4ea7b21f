"""argmaxable runs: the stored runs, newest first; also deletes them."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import click
from rich.cells import cell_len

from argmaxable.cli import options
from argmaxable.cli.parameters import Argument, Option
from argmaxable.cli.stored_runs import find_run, opened, set_run_number
from argmaxable.core.errors import InputError
from argmaxable.core.labels import visible
from argmaxable.report.stored_runs import as_record, local_time
from argmaxable.report.stored_sets import as_record as set_record
from argmaxable.store import RunSummary, SetRunSummary, State

if TYPE_CHECKING:
    from argmaxable.store import Store

_HEADINGS = ("run", "model", "domain", "state", "classes", "never", "undecided", "seconds", "started")
_SET_HEADINGS = ("sets", "model", "kind", "domain", "state", "asked", "never", "undecided", "started")
_NUMBERS = ("run", "classes", "never", "undecided", "seconds", "asked")


def runs(
    chosen: Annotated[
        list[str] | None,
        Argument(metavar="RUN", help="Run numbers, sets:NUMBER, or model names for their newest runs."),
    ] = None,
    name: Annotated[str | None, Option(help="Only models with this text in their name.")] = None,
    state: Annotated[State | None, Option(help="Only runs in this state.")] = None,
    task: Annotated[str | None, Option(help="Only models of this task.")] = None,
    family: Annotated[str | None, Option(help="Only models of this family.")] = None,
    limit: Annotated[int | None, Option(help="Show at most this many runs.")] = None,
    delete: Annotated[bool, Option("--delete", help="Delete the runs named, after asking.")] = False,
    yes: Annotated[bool, Option("--yes", help="Delete without asking.")] = False,
    db: options.Database = None,
    as_json: options.Json = False,
) -> None:
    """List stored runs, newest first, or delete some.

    \b
    Examples:
      argmaxable runs
      argmaxable runs --name opus-mt --state interrupted
      argmaxable runs --delete 3 4 sets:1

    \b
    Exit codes: 0 done, 2 bad input.
    """
    if chosen and (name or state or task or family or limit):
        raise InputError("pass RUN or filters, not both.")
    if limit is not None and limit < 1:
        raise InputError(f"--limit must be 1 or more, found {limit}.")
    if delete and not chosen:
        raise InputError("which runs to delete? Name them: argmaxable runs --delete RUN...")
    with opened(db, read_only=not delete) as store:
        numbers = [set_run_number(named) for named in chosen or ()]
        sets = [store.sets.run(number) for number in dict.fromkeys(numbers) if number is not None]
        if chosen:
            chosen = [named for named in chosen if set_run_number(named) is None]
            found = list({run.run_id: run for run in (find_run(store, named) for named in chosen)}.values())
        else:
            found = store.runs(name=name, state=state, task=task, family=family, limit=limit)
            if not (task or family):  # sets have neither
                sets = [run for run in store.sets.runs() if _fits(run, name, state)][:limit]
        if delete and not _may_delete(found, sets, is_sure=yes):
            click.echo("Nothing was deleted.")
        elif delete:
            _delete(store, found, sets, as_json=as_json)
        elif as_json:
            records = {"runs": [as_record(run) for run in found], "sets": [set_record(run) for run in sets]}
            click.echo(json.dumps(records))
        elif found or sets:
            click.echo("\n".join(_both(found, sets)))
        else:
            click.echo(f"No runs in {store.where}{' match' if name or state or task or family else ' yet'}.")


def _fits(run: SetRunSummary, name: str | None, state: State | None) -> bool:
    is_named = name is None or name.lower() in run.facts.name.lower()
    return is_named and (state is None or run.state is state)


def _both(found: Sequence[RunSummary], sets: Sequence[SetRunSummary]) -> list[str]:
    """The runs, then the questions about sets."""
    runs = listing(found, width=_terminal_width()) if found else []
    return [*runs, *([""] if found and sets else []), *(set_listing(sets) if sets else [])]


def _may_delete(found: Sequence[RunSummary], sets: Sequence[SetRunSummary], *, is_sure: bool) -> bool:
    """Whether the user is sure. Nobody can be asked through a pipe."""
    if is_sure:
        return True
    if not sys.stdin.isatty():
        raise InputError("can't ask for confirmation: stdin is not a terminal. Pass --yes.")
    click.echo("\n".join(_both(found, sets)))
    try:
        return click.confirm(f"Delete {_counted(len(found) + len(sets))} with all verdicts and proofs?")
    except click.Abort:
        raise click.exceptions.Exit(3) from None


def _delete(
    store: Store, found: Sequence[RunSummary], sets: Sequence[SetRunSummary], *, as_json: bool
) -> None:
    deleted = store.delete([run.run_id for run in found]) if found else 0
    deleted += store.sets.delete([run.run_id for run in sets]) if sets else 0
    if as_json:
        click.echo(json.dumps({"deleted": deleted}))
    else:
        click.echo(f"Deleted {_counted(deleted)}.")


def _counted(number: int) -> str:
    return f"{number:,} {'run' if number == 1 else 'runs'}"


def listing(found: Sequence[RunSummary], *, width: int | None) -> list[str]:
    """A line for each run below a heading; two lines each where that is wider than the terminal."""
    lines = _aligned([_HEADINGS, *map(_cells, found)])
    if width is None or max(map(cell_len, lines)) <= width:
        return lines
    return [line for run in found for line in _stacked(*_cells(run))]


def set_listing(found: Sequence[SetRunSummary]) -> list[str]:
    """A line for each question about sets below a heading."""
    return _aligned([_SET_HEADINGS, *map(_set_cells, found)])


def _aligned(cells: Sequence[tuple[str, ...]]) -> list[str]:
    """Lines with their columns one below the other; the first is the heading."""
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(map(_padded, row, widths, cells[0])).rstrip() for row in cells]


def _padded(cell: str, width: int, heading: str) -> str:
    blank = " " * (width - cell_len(cell))
    return blank + cell if heading in _NUMBERS else cell + blank


def _stacked(run: str, model: str, domain: str, state: str, *counts: str) -> tuple[str, str]:
    classes, never, undecided, seconds, started = counts
    told = f"{classes} classes, {never} never, {undecided} undecided, {seconds} s, {started}"
    return f"{run}  {model}", f"{' ' * len(run)}  {domain}, {state}; {told}"


def _cells(run: RunSummary) -> tuple[str, ...]:
    counts = run.counts
    return (
        str(run.run_id),
        visible(run.facts.name),
        str(run.domain),
        run.state.value,
        f"{counts.wanted:,}",
        f"{counts.unargmaxable:,}",
        f"{counts.undecided + counts.open:,}",
        f"{run.cost.seconds:,.1f}",
        local_time(run.started),
    )


def _set_cells(run: SetRunSummary) -> tuple[str, ...]:
    open_ = run.wanted - run.feasible - run.infeasible
    return (
        run.name,
        visible(run.facts.name),
        run.test.kind.value,
        str(run.domain),
        run.state.value,
        f"{run.wanted:,}",
        f"{run.infeasible:,}",
        f"{open_:,}",
        local_time(run.started),
    )


def _terminal_width() -> int | None:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
