"""Questions about sets of labels in a database: begun, resumed, found again, read, deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

from sqlalchemy import Connection, Row, Select, delete, func, insert, select, update

from argmaxable.core.errors import NotFoundError, StoreError
from argmaxable.core.feasibility import Feasibility
from argmaxable.core.label_sets import LabelSets, Members, SetClaim
from argmaxable.core.verdict import Algorithm
from argmaxable.store import identity, writing
from argmaxable.store.damaged_rows import damage_reported
from argmaxable.store.database import DELETED, Database, RunLock
from argmaxable.store.plan import Plan, SetPlan, SetRunSummary, State
from argmaxable.store.schema import SET_RUNS, SETS
from argmaxable.store.set_rows import (
    insert_sets,
    read_claims,
    require_sound,
    set_run_columns,
    set_runs,
    set_summary_of,
)
from argmaxable.store.summaries import now, versions

_BEYOND = 2**31


class SetStore:
    """The questions about sets that a database holds. All methods raise StoreError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, plan: SetPlan, *, overwrite: bool = False) -> SetRun:
        """The plan's run, found again or begun, for this process alone until it is closed."""
        key = identity.set_run_key(plan)
        lock = self._database.lock(key)
        if lock is None:
            raise StoreError("another process is asking about these sets: wait until it is done.")
        try:
            with lock.writing() as connection:
                row = self._find_or_make(connection, plan, key, overwrite=overwrite)
                known = read_claims(connection, row.id)
        except BaseException:
            lock.release()
            raise
        return SetRun(lock, plan, row, known)

    def _find_or_make(
        self, connection: Connection, plan: SetPlan, key: bytes, *, overwrite: bool
    ) -> Row[Any]:
        query = select(SET_RUNS).where(SET_RUNS.c.key == key)
        row = connection.execute(query).one_or_none()
        if row is not None and overwrite:
            connection.execute(delete(SET_RUNS).where(SET_RUNS.c.id == row.id))
            row = None
        if row is None:
            values = {
                "model_id": writing.put_model(connection, _as_plan(plan), identity.set_model_key(plan)),
                "key": key, "versions": versions(), "state": State.RUNNING.value, "started": now(),
                "seconds": 0.0, "feasible": 0, "infeasible": 0, "undecided": 0,
            }  # fmt: skip
            connection.execute(insert(SET_RUNS).values(**values, **set_run_columns(plan)))
        elif row.state != State.FINISHED:
            _set(connection, row.id, state=State.RUNNING.value)
        return connection.execute(query).one()

    def run(self, run_id: int) -> SetRunSummary:
        """The summary of a question; raises NotFoundError when there is none."""
        found = self._summaries(set_runs().where(SET_RUNS.c.id == run_id)) if 0 < run_id < _BEYOND else []
        if not found:
            raise NotFoundError(f"sets:{run_id} does not exist. `argmaxable runs` lists all.")
        return found[0]

    def runs(self) -> list[SetRunSummary]:
        """Summaries of all questions about sets, newest first."""
        return self._summaries(set_runs().order_by(SET_RUNS.c.id.desc()))

    def _summaries(self, query: Select[Any]) -> list[SetRunSummary]:
        with self._database.reading() as connection, damage_reported(None):
            rows = [require_sound(row) for row in connection.execute(query)]
        running = [row.key for row in rows if row.state == State.RUNNING]
        dead = set(running) - self._database.locked(running)
        with damage_reported(None):
            return [set_summary_of(row, is_alive=row.key not in dead) for row in rows]

    def read(self, run_id: int) -> LabelSets:
        """What was found so far, with its evidence."""
        summary = self.run(run_id)
        with self._database.reading() as connection:
            claims = read_claims(connection, run_id)
        return LabelSets(
            facts=summary.facts, domain=summary.domain, test=summary.test, claims=claims,
            seconds=summary.seconds, is_complete=summary.state is State.FINISHED,
        )  # fmt: skip

    def delete(self, run_ids: Sequence[int]) -> int:
        """Delete questions with all that belongs to them; returns how many."""
        wanted = sorted({self.run(run_id).run_id for run_id in run_ids})
        with self._database.reading() as connection:
            rows = connection.execute(select(SET_RUNS).where(SET_RUNS.c.id.in_(wanted))).all()
        if self._database.locked([row.key for row in rows]):
            raise StoreError("another process is asking about these sets: wait until it is done.")
        with self._database.writing() as connection:
            for row in rows:
                connection.execute(delete(SET_RUNS).where(SET_RUNS.c.id == row.id))
                writing.remove_unused_model(connection, row.model_id)
        self._database.give_back_space()
        return len(rows)

    def problems(self) -> list[str]:
        """What does not agree with itself, of all questions, read with all their evidence."""
        found: list[str] = []
        try:
            summaries = self.runs()
        except StoreError as error:
            return [str(error)]
        for summary in summaries:
            try:
                sets = self.read(summary.run_id)
            except StoreError as error:
                found.append(f"{summary.name}: {error}")
                continue
            for status in Feasibility:
                said, held = getattr(summary, status.value), len(sets.having(status))
                if said != held:
                    found.append(f"{summary.name} says that {said:,} sets are {status}, and holds {held:,}.")
        return found


class SetRun:
    """One question about sets for writing, a context manager. Left without `finish`, it is marked as
    interrupted, and the same plan resumes it."""

    def __init__(self, lock: RunLock, plan: SetPlan, row: Row[Any], known: Sequence[SetClaim]) -> None:
        self.run_id: int = row.id
        self.is_finished = row.state == State.FINISHED
        self.seconds: float = row.seconds
        self._lock, self._plan, self._claims = lock, plan, tuple(known)

    @cached_property
    def known(self) -> Mapping[Members, SetClaim]:
        """What the earlier part found."""
        return {claim.members: claim for claim in self._claims}

    def record(self, claims: Sequence[SetClaim], seconds: float) -> None:
        """Commit the answers about these sets, all or nothing; `seconds` is what all took so far."""
        places = {members: number for number, members in enumerate(self._plan.sets)}
        with self._lock.writing() as connection:
            insert_sets(connection, self.run_id, [(places[claim.members], claim) for claim in claims])
            held = select(SETS.c.status, func.count()).where(SETS.c.run_id == self.run_id)
            counts = {row[0]: row[1] for row in connection.execute(held.group_by(SETS.c.status))}
            _set(
                connection, self.run_id, seconds=seconds,
                **{status.value: counts.get(status.value, 0) for status in Feasibility},
            )  # fmt: skip
        self.seconds = seconds

    def finish(self) -> None:
        """Close the question for good."""
        with self._lock.writing() as connection:
            _set(connection, self.run_id, state=State.FINISHED.value, finished=now())
        self.is_finished = True

    def close(self) -> None:
        """Let go of it, marked as interrupted unless it is finished."""
        try:
            if not self.is_finished:
                with suppress(StoreError), self._lock.writing() as connection:
                    _set(connection, self.run_id, state=State.INTERRUPTED.value)
        finally:
            self._lock.release()

    def __enter__(self) -> SetRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _set(connection: Connection, run_id: int, **values: Any) -> None:
    if not connection.execute(update(SET_RUNS).where(SET_RUNS.c.id == run_id).values(**values)).rowcount:
        raise StoreError(DELETED)


def _as_plan(plan: SetPlan) -> Plan:
    """The model of a question, as `put_model` takes it."""
    return identity.tidied(
        Plan(plan.facts, plan.labels, plan.domain, Algorithm.AUTO, 0, 0, origin=plan.origin)
    )
