"""The runs that figures are about: named, listed in a file, or all of a database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from argmaxable.cli.stored_runs import find_run, opened
from argmaxable.core.errors import InputError
from argmaxable.core.labels import visible

if TYPE_CHECKING:
    from argmaxable.report.figures import Effort, FigureGroup
    from argmaxable.store import RunSummary, Store


def find_groups(
    named: Sequence[str],
    listing: Path | None,
    where: str | None,
    *,
    with_efforts: bool,
    is_lenient: bool = False,
) -> list[FigureGroup]:
    """The runs named on the command line, in a list, or the newest of each head in a database.

    Raises InputError when there are none, or their steps can't be told, unless `is_lenient`.
    """
    from argmaxable.report.figures.listing import Listed, is_database, read_listing

    if named and listing:
        raise InputError("pass RUN or --runs, not both.")
    listed = [Listed(run, "", None) for run in named]
    if listing is not None and is_database(listing):
        where = str(listing)
    elif listing is not None:
        listed = read_listing(listing)
    with opened(where) as store:
        found = [(each.group, find_run(store, each.run), each.name) for each in listed]
        found = found or [(run.family, run, None) for run in _newest_of_each_head(store.runs())]
        if not found and not is_lenient:
            raise InputError(f"no finished runs to draw in {store.where}: verify a model first.")
        return _grouped(store, found, with_efforts=with_efforts, is_lenient=is_lenient)


def _grouped(
    store: Store,
    found: Sequence[tuple[str, RunSummary, str | None]],
    *,
    with_efforts: bool,
    is_lenient: bool,
) -> list[FigureGroup]:
    from argmaxable.report.figures import FigureGroup

    names = _names(found)
    by_group: dict[str, list[tuple[RunSummary, str]]] = {}
    for (group, run, _), name in zip(found, names, strict=True):
        by_group.setdefault(group, []).append((run, name))
    return [
        FigureGroup(
            name=group,
            runs=tuple(run for run, _ in members),
            names=tuple(name for _, name in members),
            efforts=tuple(_read_efforts(store, members, is_lenient)) if with_efforts else (),
        )
        for group, members in by_group.items()
    ]


def _names(found: Sequence[tuple[str, RunSummary, str | None]]) -> list[str]:
    """As listed, or the models' own, with the run's number where several are the same."""
    plain = [name or run.facts.name for _, run, name in found]
    return [
        f"{name} (run {run.run_id})" if plain.count(name) > 1 else name
        for name, (_, run, _) in zip(plain, found, strict=True)
    ]


def _read_efforts(
    store: Store, members: Iterable[tuple[RunSummary, str]], is_lenient: bool
) -> Iterable[Effort]:
    from argmaxable.report.figures import effort_of

    for run, name in members:
        try:
            yield effort_of(name, store.verdicts(run.run_id, with_evidence=False))
        except InputError as error:
            if not is_lenient:
                raise
            click.echo(f"No figure of steps: {visible(str(error))}", err=True)


def _newest_of_each_head(runs: Iterable[RunSummary]) -> list[RunSummary]:
    """The newest whole run of each head over each domain, in order of the models' names."""
    from argmaxable.store import State

    newest: dict[tuple[str, str], RunSummary] = {}
    for run in runs:
        if run.state in (State.FINISHED, State.IMPORTED):
            newest.setdefault((run.facts.sha256 or run.facts.name, str(run.domain)), run)
    return sorted(newest.values(), key=lambda run: (run.facts.name, run.run_id))
