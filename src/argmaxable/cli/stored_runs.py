"""Stored runs as the user names them: the database that holds them, and which of them is meant."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from argmaxable.core.errors import InputError
from argmaxable.core.labels import visible

if TYPE_CHECKING:
    from argmaxable.store import RunSummary, Store

# Of a run's number: databases hold no more.
_MOST_DIGITS = 9


def opened(where: str | None, *, read_only: bool = True) -> Store:
    """The database of runs, to be used in a `with` statement; made where it is missing unless only read."""
    # Late: SQLAlchemy takes a third of a second that other commands need not spend.
    from argmaxable.store import open_store

    return open_store(where, read_only=read_only)


def find_run(store: Store, named: str) -> RunSummary:
    """The run of that number, or the newest one of the model of that name."""
    if named.isdecimal() and named.isascii() and len(named) <= _MOST_DIGITS:
        return store.run(int(named))
    for run in store.runs(name=named):
        if run.facts.name == named:
            return run
    known = {run.facts.name for run in store.runs()}
    near = get_close_matches(named, known, n=3) or sorted(name for name in known if named in name)[:3]
    meant = f" Did you mean {' or '.join(visible(name) for name in near)}?" if near else ""
    raise InputError(
        f"no run of a model named {visible(named)} in {store.where}.{meant} `argmaxable runs` lists all."
    )


def set_run_number(named: str) -> int | None:
    """The number of a stored question about sets, `sets:3`; None for anything else."""
    kind, _, number = named.partition(":")
    is_number = number.isascii() and number.isdecimal() and len(number) <= _MOST_DIGITS
    return int(number) if kind == "sets" and is_number else None


def require_evidence(run: RunSummary) -> None:
    """Raise InputError for a run of published verdicts, which come without evidence."""
    from argmaxable.store import State  # late, as above

    if run.state is State.IMPORTED:
        raise InputError(
            f"run {run.run_id} holds published verdicts without evidence, so there are no proofs to export. "
            "Export it as csv, jsonl or parquet."
        )
