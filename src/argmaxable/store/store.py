"""The store: finds a plan's run or begins one, and reads stored runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Row

from argmaxable.core.domain import Domain
from argmaxable.core.errors import StoreError
from argmaxable.core.head import Facts
from argmaxable.core.result import Cost, Record
from argmaxable.core.verdict import Algorithm, Status, Verdict
from argmaxable.store import identity, pages, reading, writing
from argmaxable.store.damaged_rows import damage_reported
from argmaxable.store.database import Database, RunLock
from argmaxable.store.evidence import Shelf
from argmaxable.store.location import FileLocation, find_location
from argmaxable.store.plan import Plan, PublishedVerdict, RunSummary, State
from argmaxable.store.queries import ClassEntry, Named, Page, VerdictQuery
from argmaxable.store.rows import Batch
from argmaxable.store.run import Run
from argmaxable.store.set_store import SetStore
from argmaxable.store.soundness import Soundness, check_soundness
from argmaxable.store.sqlite import SQLite
from argmaxable.store.summaries import cost_from, now, summary_of


class Store:
    """A database of runs; a context manager that closes it. All methods raise StoreError, those that
    write always do so in a store that was opened for reading only."""

    def __init__(self, where: str | None = None, *, read_only: bool = False) -> None:
        self._database = _open(where, read_only=read_only)

    @property
    def where(self) -> str:
        """The file or the URL without its password, for people."""
        return self._database.name

    @property
    def sets(self) -> SetStore:
        """The questions about sets of labels."""
        return SetStore(self._database)

    # ------------------------------------------------------------------ writing

    def begin(self, plan: Plan, *, centre: NDArray[np.float64], overwrite: bool = False) -> Run:
        """The plan's run, found again or begun, for this process alone until it is closed.

        `overwrite` forgets what an earlier run of the plan found. `centre` is the head's (see
        `check.centre_of`), stored because own-direction witnesses refer to it.
        """
        plan = identity.tidied(plan)
        key = identity.run_key(plan)
        lock = self._lock(key)
        try:
            row, spent, stored = self._find_or_make(lock, plan, key, centre, overwrite=overwrite)
        except BaseException:
            lock.release()
            raise
        is_finished = row.state == State.FINISHED
        if is_finished:  # nothing to write: others may have it too
            lock.release()
        return Run(
            self._database,
            None if is_finished else lock,
            run_id=row.id,
            is_finished=is_finished,
            centre=stored,
            spent=spent,
            earlier=lambda: self.verdicts(row.id, shelf=Shelf()),
        )

    def _find_or_make(
        self, lock: RunLock, plan: Plan, key: bytes, centre: NDArray[np.float64], *, overwrite: bool
    ) -> tuple[Row[Any], Cost, NDArray[np.float64]]:
        """The run's row, what it cost so far, and the centre stored with it."""
        with lock.writing() as connection:
            row = writing.find_run(connection, key)
            if row is not None and overwrite:
                writing.remove_run(connection, row.id)
                row = None
            if row is None:
                model_id = writing.put_model(connection, plan, identity.model_key(plan))
                writing.put_run(
                    *(connection, self._database, plan),
                    model_id=model_id, key=key, centre=centre, state=State.RUNNING,
                )  # fmt: skip
            else:
                writing.fill_in_model(connection, row.model_id, plan)
                if row.state != State.FINISHED:
                    writing.set_run(connection, row.id, state=State.RUNNING.value)
            row = writing.find_run(connection, key)
            assert row is not None
            with damage_reported(row.id):
                return row, cost_from(row.cost), reading.vector(connection, row.id, row.centre)

    def add_published(
        self,
        name: str,
        *,
        origin: str,
        family: str,
        task: str,
        rows: Iterable[PublishedVerdict],
        domain: Domain,
        features: int = 0,
        bias: bool = False,
    ) -> int:
        """Store somebody else's verdicts about a model; returns the run's number, an earlier one's when
        the same verdicts are there already."""
        verdicts = tuple(rows)
        facts = Facts(name, sha256="", classes=len(verdicts), features=features, bias=bias, dtype="")
        plan = identity.tidied(
            Plan(facts, None, domain, Algorithm.AUTO, 0, 0, origin=origin, task=task, family=family)
        )
        key = identity.published_key(plan, verdicts)
        with self._database.writing() as connection:
            row = writing.find_run(connection, key)
            if row is not None:
                return int(row.id)
            model_id = writing.put_model(connection, plan, identity.published_model_key(plan))
            run_id = writing.put_run(
                *(connection, self._database, plan),
                model_id=model_id, key=key, centre=np.zeros(0), state=State.IMPORTED,
            )  # fmt: skip
            batch = Batch(run_id)
            for verdict in verdicts:
                batch.add_published(verdict)
            writing.add_verdicts(connection, self._database, batch, finished=now())
        return run_id

    def delete(self, run_ids: Sequence[int]) -> int:
        """Delete runs with all that belongs to them, or none when one is missing or being worked on;
        returns how many."""
        with self._database.reading() as connection:
            rows = [reading.run_row(connection, run_id) for run_id in sorted(set(run_ids))]
        locked = self._database.locked([row.key for row in rows])
        for row in rows:
            if row.key in locked:
                raise _in_use(row)
        with self._database.writing() as connection:
            for row in rows:
                writing.remove_run(connection, row.id)
                writing.remove_unused_model(connection, row.model_id)
        self._database.give_back_space()
        return len(rows)

    def _lock(self, key: bytes) -> RunLock:
        lock = self._database.lock(key)
        if lock is not None:
            return lock
        with self._database.reading() as connection:
            raise _in_use(writing.find_run(connection, key))

    # ------------------------------------------------------------------ reading

    def run(self, run_id: int) -> RunSummary:
        """The summary of a run; raises NotFoundError when there is none."""
        return self._summaries(lambda connection: [reading.run_row(connection, run_id)])[0]

    def runs(
        self,
        *,
        name: str | None = None,
        state: State | None = None,
        task: str | None = None,
        family: str | None = None,
        limit: int | None = None,
    ) -> list[RunSummary]:
        """Summaries of the runs that fit, newest first; `name` is a part of the model's name."""
        query = partial(reading.run_rows, name=name, state=state, task=task, family=family, limit=limit)
        return [run for run in self._summaries(query) if state is None or run.state is state][:limit]

    def _summaries(self, query: Callable[[Connection], Sequence[Row[Any]]]) -> list[RunSummary]:
        """Of a run whose process was killed the row says that it is running, but nobody has its lock."""
        with self._database.reading() as connection:
            rows = query(connection)
        running = [row.key for row in rows if row.state == State.RUNNING]
        dead = set(running) - self._database.locked(running)
        if dead:  # or come to an end just now: look again
            with self._database.reading() as connection:
                rows = query(connection)
        return [summary_of(row, is_alive=row.key not in dead) for row in rows]

    def read(self, run_id: int) -> Record:
        """A run with all the verdicts it has so far and their evidence."""
        with self._database.reading() as connection:
            row = reading.run_row(connection, run_id)
            verdicts = reading.verdicts(connection, run_id, status=None, with_evidence=True, shelf=Shelf())
            summary = summary_of(row)
            return Record(
                facts=summary.facts, domain=summary.domain, verdicts=tuple(verdicts), cost=summary.cost,
                centre=reading.vector(connection, run_id, row.centre),
                is_complete=summary.state in (State.FINISHED, State.IMPORTED),
                domain_source=summary.domain_source,
            )  # fmt: skip

    def verdicts(
        self,
        run_id: int,
        *,
        status: Status | None = None,
        with_evidence: bool = True,
        shelf: Shelf | None = None,
    ) -> Iterator[Verdict]:
        """A run's verdicts in class order, read as they are asked for.

        Without evidence they still say which classes they are tied with. Verdicts share evidence within a
        page, with a shelf across all pages.
        """
        with self._database.reading() as connection:
            reading.run_row(connection, run_id)
            yield from reading.verdicts(
                connection, run_id, status=status, with_evidence=with_evidence, shelf=shelf
            )

    # ------------------------------------------------------------------ looking around

    def page(self, run_id: int, wanted: VerdictQuery) -> Page:
        """The verdicts that fit, in the order asked for, from its first row on."""
        with self._database.reading() as connection:
            return pages.page(connection, run_id, wanted)

    def entry(self, run_id: int, class_id: int, *, most_fellows: int) -> ClassEntry:
        """All that is stored about one class; raises NotFoundError when that is nothing."""
        with self._database.reading() as connection:
            return pages.entry(connection, run_id, class_id, most_fellows=most_fellows)

    def named(self, run_id: int, classes: Iterable[int]) -> dict[int, Named]:
        """Those of the classes that have a verdict."""
        with self._database.reading() as connection:
            return pages.named(connection, run_id, classes)

    def check(self) -> Soundness:
        """Whether all that is stored can be read and agrees with itself: the database's check, and ours."""
        return check_soundness(self._database)

    # ------------------------------------------------------------------ closing

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _in_use(row: Row[Any] | None) -> StoreError:
    which, look = ("this run", "runs") if row is None else (f"run {row.id}", f"show {row.id}")
    return StoreError(
        f"{which} is being worked on by another process: watch it with `argmaxable {look}`, or wait until "
        "it is done."
    )


def _open(where: str | None, *, read_only: bool) -> Database:
    location = find_location(where)
    if isinstance(location, FileLocation):
        return SQLite(location, read_only=read_only)
    from argmaxable.store.postgresql import PostgreSQL

    return PostgreSQL(location, read_only=read_only)
