"""Kept runs for reading only: nothing is made, brought up to date or written, and pages of a large run
are cut out by the database.

The files that SQLite itself keeps beside a database (-wal, -shm) may appear, as whenever it is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from sqlalchemy import ColumnElement, Connection, Row, case, event, func, null, or_, select

from argmaxable.errors import StoreError
from argmaxable.serve.choice import Choice, Order
from argmaxable.store.database import Database
from argmaxable.store.evidence import Part, Shelf
from argmaxable.store.legible import legible
from argmaxable.store.migrations import STEPS, version_of
from argmaxable.store.place import FilePlace, find_place
from argmaxable.store.plan import RunSummary
from argmaxable.store.rows import VerdictRow, verdict_of
from argmaxable.store.schema import EVIDENCE, RUNS, VERDICTS
from argmaxable.store.sqlite import SQLite
from argmaxable.store.store import Store
from argmaxable.store.texts import from_column, to_column
from argmaxable.verdict import Status, Verdict

# Numbers of classes asked for in one query: SQLite before 3.32 takes 999 parameters.
_PARAMETERS = 900
# Beyond these no database has a class or a run, and some can't be asked for one.
_BEYOND, _BEYOND_RUNS = 2**62, 2**31
_CODE_POINT = re.compile(r"[Uu]\+([0-9A-Fa-f]{2,6})")


class NotFoundError(StoreError):
    """A run that is not there, or a class that a run says nothing about."""


@dataclass(frozen=True, eq=False)
class Page:
    """Some verdicts out of the `total` that fit, with certificates but without witnesses."""

    verdicts: tuple[Verdict, ...]
    total: int


@dataclass(frozen=True)
class Named:
    """What a reference to a class shows of it."""

    class_id: int
    label: str
    status: Status


@dataclass(frozen=True, eq=False)
class Entry:
    """A verdict with all its evidence and its place in the run.

    `fellows` are some of the other classes that the very same mixture beats, `fellow_count` says how many
    there are.
    """

    verdict: Verdict
    before: int | None
    after: int | None
    fellows: tuple[Named, ...]
    fellow_count: int


class Reader(Store):
    """A store that is only read. All methods raise StoreError."""

    def __init__(self, where: str | None = None) -> None:
        self._database = _open(where)

    def run(self, run_id: int) -> RunSummary:
        """The summary of a run; raises NotFoundError."""
        try:
            return super().run(run_id)
        except StoreError as error:
            if self._has(run_id):
                raise
            raise NotFoundError(str(error)) from error

    def _has(self, run_id: int) -> bool:
        if not 0 < run_id < _BEYOND_RUNS:
            return False
        with self._database.reading() as connection:
            return connection.scalars(select(RUNS.c.id).where(RUNS.c.id == run_id)).first() is not None

    def page(self, run_id: int, choice: Choice) -> Page:
        """The verdicts that fit, in the order asked for, from the choice's place on."""
        fitting = _fitting(run_id, choice)
        columns = _columns(without=("point",))
        query = select(*columns).where(*fitting).order_by(*_order(choice))
        with self._database.reading() as connection:
            total = connection.scalars(select(func.count()).select_from(VERDICTS).where(*fitting)).one()
            rows = connection.execute(query.limit(choice.size).offset(choice.first)).all()
            return Page(tuple(_verdicts(connection, run_id, rows)), total)

    def entry(self, run_id: int, class_id: int, *, most_fellows: int) -> Entry:
        """All that is kept about one class."""
        with self._database.reading() as connection:
            row = _row(connection, run_id, class_id)
            if row is None:
                raise NotFoundError(f"run {run_id} has no verdict about a class {class_id}.")
            (verdict,) = _verdicts(connection, run_id, [row])
            before, after = _places(connection, run_id, class_id)
            fellows, count = _fellows(connection, run_id, row, most_fellows)
        return Entry(verdict, before, after, fellows, count)

    def named(self, run_id: int, classes: Iterable[int]) -> dict[int, Named]:
        """Those of the classes that have a verdict."""
        wanted = sorted({class_id for class_id in classes if 0 <= class_id < _BEYOND})
        found = []
        with self._database.reading() as connection:
            for first in range(0, len(wanted), _PARAMETERS):
                part = VERDICTS.c.class_id.in_(wanted[first : first + _PARAMETERS])
                found += _names(connection, run_id, part)
        return {each.class_id: each for each in found}


# ---------------------------------------------------------------------- databases that are only read


def _open(where: str | None) -> Database:
    place = find_place(where)
    if isinstance(place, FilePlace):
        return _SQLiteForReading(place)
    from argmaxable.serve.postgresql_reader import PostgreSQLForReading

    return PostgreSQLForReading(place)


class _SQLiteForReading(SQLite):
    def _make_folder(self) -> None:
        if not self._path.is_file():
            raise StoreError(
                f"{self.name}: there is no database. `argmaxable verify MODEL` makes one; or name another "
                "with --db."
            )

    def _prepare(self) -> None:
        event.listen(self.engine, "do_connect", _read_only)
        with self.reading() as connection:
            require_current(connection, self.name)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with super().reading() as connection:
            connection.detach()  # the next one opens the file that is there then: it may be another
            yield connection

    def claimed(self, keys: list[bytes]) -> set[bytes]:
        try:
            return super().claimed(keys)
        except StoreError:  # somebody else's locks, which we may not touch: the rows are believed
            return set(keys)


def _read_only(_: object, __: object, arguments: list[str], options: dict[str, Any]) -> None:
    arguments[0] = f"file:{quote(arguments[0])}?mode=ro"
    options["uri"] = True


def require_current(connection: Connection, where: str) -> None:
    """Raise StoreError unless the tables are those of this version; bringing them up to date is for
    commands that write."""
    version = version_of(connection, where)
    if version == 0:
        raise StoreError(f"{where}: the database is empty. `argmaxable verify MODEL --db …` fills it.")
    if version < len(STEPS):
        raise StoreError(
            f"{where}: written by an older argmaxable (the tables are version {version}, this one has "
            f"{len(STEPS)}). `argmaxable runs --db …` brings it up to date."
        )


# ---------------------------------------------------------------------- queries


def _columns(*, without: tuple[str, ...] = ()) -> list[ColumnElement[Any]]:
    return [null().label(name) if name in without else VERDICTS.c[name] for name in VerdictRow._fields]


def _row(connection: Connection, run_id: int, class_id: int) -> Row[Any] | None:
    if not 0 <= class_id < _BEYOND:
        return None
    query = select(*_columns()).where(VERDICTS.c.run_id == run_id, VERDICTS.c.class_id == class_id)
    return connection.execute(query).one_or_none()


def _fitting(run_id: int, choice: Choice) -> list[ColumnElement[bool]]:
    tests = [VERDICTS.c.run_id == run_id]
    if choice.status is not None:
        tests.append(VERDICTS.c.status == choice.status.value)
    if choice.method is not None:
        tests.append(VERDICTS.c.method == choice.method.value)
    if choice.search.strip():
        tests.append(_found(choice.search.strip()))
    return tests


def _found(text: str) -> ColumnElement[bool]:
    """Labels with the text in them, the class of that number, the character of that code point."""
    ways = [VERDICTS.c.label.icontains(to_column(text), autoescape=True)]
    if text.isascii() and text.isdecimal() and int(text) < _BEYOND:
        ways.append(VERDICTS.c.class_id == int(text))
    code = _CODE_POINT.fullmatch(text)
    if code is not None and int(code[1], 16) < 0x110000:
        ways.append(VERDICTS.c.label == to_column(chr(int(code[1], 16))))
    return or_(*ways)


def _order(choice: Choice) -> tuple[ColumnElement[Any], ...]:
    is_lost = VERDICTS.c.status == Status.UNARGMAXABLE.value
    column: ColumnElement[Any] = {
        Order.CLASS: VERDICTS.c.class_id,
        Order.LABEL: VERDICTS.c.label,
        # What was proven closest to zero: the lead of a class that can win, the lag of one that can't.
        Order.MARGIN: case((is_lost, VERDICTS.c.upper), else_=VERDICTS.c.lower),
        Order.STEPS: VERDICTS.c.steps,
    }[choice.order]
    return (column.desc() if choice.is_down else column.asc()).nulls_last(), VERDICTS.c.class_id


def _verdicts(connection: Connection, run_id: int, rows: Iterable[Row[Any]]) -> list[Verdict]:
    found = [VerdictRow._make(row) for row in rows]
    digests = {digest for row in found for digest in (row.point, row.certificate, row.tie_group) if digest}
    shelf = Shelf()
    pieces: dict[bytes, tuple[Part, ...]] = {}
    query = select(EVIDENCE).where(EVIDENCE.c.run_id == run_id, EVIDENCE.c.digest.in_(digests))
    for row in connection.execute(query) if digests else ():
        part = Part(row.part, row.dtype, row.shape, row.data)
        pieces[row.digest] = (*pieces.get(row.digest, ()), part)
    shelf.put(pieces)
    with legible(run_id):
        return [verdict_of(row, shelf) for row in found]


def _places(connection: Connection, run_id: int, class_id: int) -> tuple[int | None, int | None]:
    """The classes before and after this one."""
    number, mine = VERDICTS.c.class_id, VERDICTS.c.run_id == run_id
    before = select(func.max(number)).where(mine, number < class_id)
    after = select(func.min(number)).where(mine, number > class_id)
    return connection.scalars(before).one(), connection.scalars(after).one()


def _fellows(connection: Connection, run_id: int, row: Row[Any], most: int) -> tuple[tuple[Named, ...], int]:
    if row.certificate is None or row.status != Status.UNARGMAXABLE.value:
        return (), 0
    is_fellow = (VERDICTS.c.certificate == row.certificate) & (VERDICTS.c.class_id != row.class_id)
    same = select(func.count()).select_from(VERDICTS).where(VERDICTS.c.run_id == run_id, is_fellow)
    return tuple(_names(connection, run_id, is_fellow, most)), connection.scalars(same).one()


def _names(
    connection: Connection, run_id: int, test: ColumnElement[bool], most: int | None = None
) -> list[Named]:
    columns = (VERDICTS.c.class_id, VERDICTS.c.label, VERDICTS.c.status)
    query = select(*columns).where(VERDICTS.c.run_id == run_id, test).order_by(VERDICTS.c.class_id)
    with legible(run_id):
        return [
            Named(row.class_id, from_column(row.label), Status(row.status))
            for row in connection.execute(query.limit(most))
        ]
