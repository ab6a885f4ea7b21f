"""Whether all that a store holds can be read and agrees with itself; proofs are for `argmaxable check`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, select

from argmaxable.core.errors import StoreError
from argmaxable.core.verdict import Verdict
from argmaxable.store import reading
from argmaxable.store.damaged_rows import damage_reported
from argmaxable.store.database import Database, OwnCheck
from argmaxable.store.plan import RunSummary, State
from argmaxable.store.schema import RUNS
from argmaxable.store.set_store import SetStore
from argmaxable.store.summaries import summary_of

# Said of one run at most.
_MOST_PROBLEMS = 5


@dataclass(frozen=True)
class Soundness:
    """What a check of a store found: what the database says about itself, and what we found in its rows."""

    own: OwnCheck
    runs: int
    verdicts: int
    problems: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        return not (self.own.problems or self.problems)


def check_soundness(database: Database) -> Soundness:
    """Let the database check itself, then read every run with all its evidence."""
    try:
        own = database.own_check()
    except StoreError as error:  # damage that the database can't get past
        own = OwnCheck("its own check", (str(error),))
    problems: list[str] = []
    verdicts = 0
    run_ids = _run_ids(database, problems)
    for run_id in run_ids:
        try:
            with database.reading() as connection:
                count, found = _check_run(connection, run_id)
        except StoreError as error:
            problems.append(str(error))
        else:
            verdicts += count
            problems += found
    problems += SetStore(database).problems()
    return Soundness(own, len(run_ids), verdicts, tuple(problems))


def _run_ids(database: Database, problems: list[str]) -> list[int]:
    try:
        with database.reading() as connection, damage_reported(None):
            return [int(number) for number in connection.scalars(select(RUNS.c.id).order_by(RUNS.c.id))]
    except StoreError as error:
        problems.append(str(error))
        return []


def _check_run(connection: Connection, run_id: int) -> tuple[int, list[str]]:
    row = reading.run_row(connection, run_id)
    run = summary_of(row)
    reading.vector(connection, run_id, row.centre)
    counts: Counter[str] = Counter()
    outside = 0
    for verdict in reading.verdicts(connection, run_id, status=None, with_evidence=True, shelf=None):
        counts.update(_kinds_of(verdict))
        outside += not 0 <= verdict.class_id < run.facts.classes
    return counts["all"], list(_disagreements(run, counts, outside))[:_MOST_PROBLEMS]


def _kinds_of(verdict: Verdict) -> list[str]:
    return ["all", verdict.status.value, *(["tied"] if verdict.is_tied else [])]


def _disagreements(run: RunSummary, counts: Counter[str], outside: int) -> Iterator[str]:
    for kind in ("argmaxable", "unargmaxable", "undecided", "tied"):
        said = getattr(run.counts, kind)
        if said != counts[kind]:
            yield f"run {run.run_id} says that {said:,} classes are {kind}, and holds {counts[kind]:,}."
    if run.state is State.FINISHED and run.counts.open:
        yield f"run {run.run_id} is finished, and {run.counts.open:,} classes have no verdict."
    # Published verdicts may have no class numbers.
    if outside and run.state is not State.IMPORTED:
        yield f"run {run.run_id} holds {outside:,} verdicts of classes that its model does not have."
