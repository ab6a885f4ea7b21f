"""Reading stored runs: summaries in one query, verdicts page by page in class order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Connection, Row, Select, null, select

from argmaxable.core.errors import NotFoundError
from argmaxable.core.verdict import Status, Verdict
from argmaxable.store.damaged_rows import damage_reported, kinds_of, require_kinds
from argmaxable.store.evidence import Part, Parts, Shelf
from argmaxable.store.plan import State
from argmaxable.store.rows import VerdictRow, verdict_of
from argmaxable.store.schema import EVIDENCE, MODELS, RUNS, VERDICTS
from argmaxable.store.texts import to_column

# Verdicts in one page: with a point of 8,192 features each, evidence of 64 MB at most is held.
_PAGE = 1000
# Digests or class numbers asked for in one query: SQLite before 3.32 takes 999 parameters.
PARAMETERS = 900
# Numbers from here on fit no column, and no database is asked for them.
_BEYOND = 2**31
_NOT_DONE = (State.RUNNING.value, State.INTERRUPTED.value)
_RUN_COLUMNS = [*RUNS.c, *(column for column in MODELS.c if column.name not in ("id", "key"))]
_RUN_KINDS = kinds_of(_RUN_COLUMNS)
_VERDICT_KINDS = kinds_of(VERDICTS.c[name] for name in VerdictRow._fields)
_EVIDENCE_KINDS = kinds_of(EVIDENCE.c)


def run_row(connection: Connection, run_id: int) -> Row[Any]:
    """A run with its model; raises NotFoundError when there is none."""
    query = _runs().where(RUNS.c.id == run_id)
    row = _sound(connection, query, run_id) if 0 < run_id < _BEYOND else None
    if not row:
        raise NotFoundError(f"run {run_id} does not exist. `argmaxable runs` lists all runs.")
    return row[0]


def run_rows(
    connection: Connection,
    *,
    name: str | None,
    state: State | None,
    task: str | None,
    family: str | None,
    limit: int | None,
) -> list[Row[Any]]:
    """Runs with their models, newest first. Whether one that is not done is running, only its lock
    tells: asked for these, all that are not done come back."""
    query = _runs().order_by(RUNS.c.id.desc())
    if name is not None:
        query = query.where(MODELS.c.name.icontains(to_column(name), autoescape=True))
    if state is not None:
        query = query.where(RUNS.c.state.in_(_NOT_DONE if state in _NOT_DONE else (state.value,)))
    if task is not None:
        query = query.where(MODELS.c.task == to_column(task))
    if family is not None:
        query = query.where(MODELS.c.family == to_column(family))
    most = None if limit is None or state in _NOT_DONE else min(limit, _BEYOND)
    return _sound(connection, query.limit(most), None)


def _runs() -> Select[Any]:
    return select(*_RUN_COLUMNS).join(MODELS, RUNS.c.model_id == MODELS.c.id)


def _sound(connection: Connection, query: Select[Any], run_id: int | None) -> list[Row[Any]]:
    """Rows of runs with their models, every value of its column's type."""
    with damage_reported(run_id):
        rows = list(connection.execute(query))
        for row in rows:
            require_kinds(row, _RUN_KINDS)
    return rows


def verdicts(
    connection: Connection, run_id: int, *, status: Status | None, with_evidence: bool, shelf: Shelf | None
) -> Iterator[Verdict]:
    """A run's verdicts in class order, a page at a time.

    Verdicts of a page share the evidence that they shared when they were written; a given shelf holds it
    from page to page, for a caller who holds all the verdicts anyway.
    """
    query = _verdicts(run_id, status, with_evidence=with_evidence)
    # One query, read as it goes. A query for each page would be for the database's planner to get wrong:
    # before a large run is in its statistics, PostgreSQL sorts all that is left for every page.
    with connection.execute(query, execution_options={"yield_per": _PAGE}) as result:
        while True:
            with damage_reported(run_id):
                page = result.fetchmany(_PAGE)
            if not page:
                return
            yield from verdicts_of(connection, run_id, page, Shelf() if shelf is None else shelf)


def verdicts_of(connection: Connection, run_id: int, rows: Iterable[Row[Any]], shelf: Shelf) -> list[Verdict]:
    """The verdicts of rows that have the columns of `verdict_columns`; their evidence is put on the shelf."""
    with damage_reported(run_id):
        found = [VerdictRow._make(row) for row in rows]
        for row in found:
            require_kinds(row, _VERDICT_KINDS)
        _fill(shelf, connection, run_id, _digests(found))
        return [verdict_of(row, shelf) for row in found]


def _digests(rows: list[VerdictRow]) -> set[bytes | None]:
    return {digest for row in rows for digest in (row.point, row.certificate, row.tie_group)}


def verdict_columns(*, without: Sequence[str] = ()) -> list[ColumnElement[Any]]:
    """The columns of a `VerdictRow`, some of them empty."""
    return [null().label(name) if name in without else VERDICTS.c[name] for name in VerdictRow._fields]


def _verdicts(run_id: int, status: Status | None, *, with_evidence: bool) -> Select[Any]:
    columns = verdict_columns(without=() if with_evidence else ("point", "certificate"))
    query = select(*columns).where(VERDICTS.c.run_id == run_id).order_by(VERDICTS.c.class_id)
    return query if status is None else query.where(VERDICTS.c.status == status.value)


def vector(connection: Connection, run_id: int, digest: bytes) -> NDArray[np.float64]:
    """One vector of a run's evidence."""
    shelf = Shelf()
    with damage_reported(run_id):
        _fill(shelf, connection, run_id, {digest})
        return shelf.vector(digest)


def _fill(shelf: Shelf, connection: Connection, run_id: int, wanted: Iterable[bytes | None]) -> None:
    """Put on the shelf what is wanted and not there yet."""
    missing = [digest for digest in wanted if digest is not None and digest not in shelf]
    for first in range(0, len(missing), PARAMETERS):
        query = select(EVIDENCE).where(
            EVIDENCE.c.run_id == run_id, EVIDENCE.c.digest.in_(missing[first : first + PARAMETERS])
        )
        pieces: dict[bytes, Parts] = {}
        for row in connection.execute(query):
            require_kinds(row, _EVIDENCE_KINDS)
            part = Part(row.part, row.dtype, row.shape, row.data)
            pieces[row.digest] = (*pieces.get(row.digest, ()), part)
        shelf.put(pieces)
