"""argmaxable store: the state of a database of runs."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import click

from argmaxable.cli import options
from argmaxable.cli.parameters import Argument
from argmaxable.cli.stored_runs import opened
from argmaxable.core.labels import visible_text

if TYPE_CHECKING:
    from argmaxable.store.soundness import Soundness

_NO_OWN_CHECK = "The server's files were not checked: its administrator can do that with pg_amcheck."


class _Action(StrEnum):
    CHECK = "check"


def store(
    action: Annotated[_Action, Argument(metavar="ACTION", help="check")],
    db: options.Database = None,
    as_json: options.Json = False,
) -> None:
    """Check that a database of runs is sound.

    Tests whether everything can be read and is consistent.

    SQLite checks its own file (integrity_check and foreign_key_check); the files of a PostgreSQL server can
    be checked by its administrator. Then every run is read with its evidence, and its verdicts are counted.
    Nothing is written. To re-check the proofs, export a bundle and run `argmaxable check`.

    \b
    Examples:
      argmaxable store check
      argmaxable store check --db runs.db --json

    \b
    Exit codes: 0 sound, 1 damaged, 2 bad input.
    """
    with opened(db) as database:
        found, where = database.check(), database.where
    click.echo(json.dumps(_record(found, where)) if as_json else "\n".join(_lines(found, where)))
    raise click.exceptions.Exit(0 if found.is_sound else 1)


def _record(found: Soundness, where: str) -> dict[str, object]:
    return {
        "database": where,
        "sound": found.is_sound,
        "runs": found.runs,
        "verdicts": found.verdicts,
        "own_check": found.own.how or None,
        "problems": [*found.own.problems, *found.problems],
    }


def _lines(found: Soundness, where: str) -> list[str]:
    read = f"{where}: read {found.runs:,} runs with {found.verdicts:,} verdicts and their evidence."
    problems = [visible_text(problem) for problem in (*found.own.problems, *found.problems)]
    own = [] if found.own.how else [_NO_OWN_CHECK]
    if found.is_sound:
        return [read, *own, "No damage found."]
    advice = "Restore a copy of the database, or verify the models of these runs again with --overwrite."
    return [read, *own, "Damage found:", *(f"  {problem}" for problem in problems), advice]
