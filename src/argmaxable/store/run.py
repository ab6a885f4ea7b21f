"""A run being worked on: verdicts are committed as they come in, and nobody else may write any."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select, update

from argmaxable.core.errors import StoreError
from argmaxable.core.result import Cost
from argmaxable.core.verdict import Verdict
from argmaxable.store.database import DELETED, Database, RunLock
from argmaxable.store.plan import State
from argmaxable.store.rows import batch_of
from argmaxable.store.schema import RUNS
from argmaxable.store.summaries import cost_column, now
from argmaxable.store.writing import add_verdicts, set_ahead, set_run

# Verdicts that are turned into rows at a time: the first phase may settle a million at once.
_BATCH = 20_000


class Run:
    """A journal (see run/journal.py) that lasts; a context manager that lets go of the run.

    Left without `finish`, the run is marked as interrupted and the same plan resumes it.
    """

    def __init__(
        self,
        database: Database,
        lock: RunLock | None,
        *,
        run_id: int,
        is_finished: bool,
        centre: NDArray[np.float64],
        spent: Cost,
        earlier: Callable[[], Iterator[Verdict]],
    ) -> None:
        self.run_id = run_id
        self.is_finished = is_finished
        self.centre = centre
        self.spent = spent
        self._database = database
        self._lock = lock
        self._earlier = earlier

    @cached_property
    def known(self) -> Mapping[int, Verdict]:
        """Verdicts of the earlier part, by class; read when first asked for."""
        return {verdict.class_id: verdict for verdict in self._earlier()}

    def record(self, verdicts: Sequence[Verdict], cost: Cost) -> None:
        """Commit these verdicts, their evidence and the cost so far, all or nothing. Raises StoreError."""
        with self._held_lock().writing() as connection:
            for first in range(0, len(verdicts), _BATCH):
                batch = batch_of(self.run_id, verdicts[first : first + _BATCH])
                add_verdicts(connection, self._database, batch)
            set_run(connection, self.run_id, cost=cost_column(cost))

    def place(self, verdicts: Sequence[Verdict]) -> None:
        """Store how far off these classes are, where that is known: it is found out when the run ends."""
        ahead = {each.class_id: each.ahead for each in verdicts if each.ahead is not None}
        with self._held_lock().writing() as connection:
            set_ahead(connection, self.run_id, ahead)

    def finish(self, cost: Cost) -> None:
        """Close the run for good; raises StoreError when wanted classes have no verdict."""
        with self._held_lock().writing() as connection:
            row = connection.execute(select(RUNS).where(RUNS.c.id == self.run_id)).one_or_none()
            if row is None:
                raise StoreError(DELETED)
            missing = row.wanted - row.argmaxable - row.unargmaxable - row.undecided
            if missing:
                raise StoreError(f"run {self.run_id} can't be finished: {missing} classes have no verdict.")
            set_run(
                connection, self.run_id, cost=cost_column(cost), state=State.FINISHED.value, finished=now()
            )
        self.is_finished = True

    def close(self) -> None:
        """Let go of the run, marked as interrupted unless it is finished."""
        if self._lock is None:
            return
        lock, self._lock = self._lock, None
        try:
            # A database that has gone away tells by the lock that nobody works on the run.
            with suppress(StoreError), lock.writing() as connection:
                connection.execute(
                    update(RUNS)
                    .where(RUNS.c.id == self.run_id, RUNS.c.state == State.RUNNING.value)
                    .values(state=State.INTERRUPTED.value)
                )
        finally:
            lock.release()

    def _held_lock(self) -> RunLock:
        if self._lock is None:
            raise StoreError(f"run {self.run_id} is finished or was closed: nothing can be added to it.")
        return self._lock

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
