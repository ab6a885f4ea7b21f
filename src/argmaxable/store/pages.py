"""Pages of a large run, cut out by the database: it searches, sorts and counts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, case, func, or_, select

from argmaxable.core.errors import NotFoundError
from argmaxable.core.verdict import Status
from argmaxable.store.damaged_rows import damage_reported, kinds_of, require_kinds
from argmaxable.store.evidence import Shelf
from argmaxable.store.queries import ClassEntry, Named, Page, SortKey, VerdictQuery
from argmaxable.store.reading import PARAMETERS, verdict_columns, verdicts_of
from argmaxable.store.schema import VERDICTS
from argmaxable.store.texts import from_column, to_column

# Beyond this no database has a class or a row, and some can't be asked for one.
_BEYOND = 2**62
_MOST_DIGITS = 18
_NAME_COLUMNS = (VERDICTS.c.class_id, VERDICTS.c.label, VERDICTS.c.status)
_NAME_KINDS = kinds_of(_NAME_COLUMNS)
_CODE_POINT = re.compile(r"[Uu]\+([0-9A-Fa-f]{2,6})")


def page(connection: Connection, run_id: int, wanted: VerdictQuery) -> Page:
    """The verdicts that fit, in the order asked for, from its first row on."""
    fitting = _fitting(run_id, wanted)
    query = select(*verdict_columns(without=("point",))).where(*fitting).order_by(*_order(wanted))
    total = connection.scalars(select(func.count()).select_from(VERDICTS).where(*fitting)).one()
    query = query.limit(min(wanted.size, _BEYOND)).offset(min(wanted.first, _BEYOND))
    with damage_reported(run_id):
        rows = connection.execute(query).all()
    return Page(tuple(verdicts_of(connection, run_id, rows, Shelf())), total)


def entry(connection: Connection, run_id: int, class_id: int, *, most_fellows: int) -> ClassEntry:
    """All that is stored about one class; raises NotFoundError when that is nothing."""
    row = _row(connection, run_id, class_id)
    if row is None:
        raise NotFoundError(f"run {run_id} has no verdict about a class {class_id}.")
    (verdict,) = verdicts_of(connection, run_id, [row], Shelf())
    fellows, count = _fellows(connection, run_id, row, most_fellows)
    return ClassEntry(
        verdict,
        *_places(connection, run_id, class_id),
        *_places(connection, run_id, class_id, VERDICTS.c.status == row.status),
        fellows,
        count,
    )


def named(connection: Connection, run_id: int, classes: Iterable[int]) -> dict[int, Named]:
    """Those of the classes that have a verdict."""
    wanted = sorted({class_id for class_id in classes if 0 <= class_id < _BEYOND})
    found = []
    for first in range(0, len(wanted), PARAMETERS):
        part = VERDICTS.c.class_id.in_(wanted[first : first + PARAMETERS])
        found += _names(connection, run_id, part)
    return {each.class_id: each for each in found}


# ---------------------------------------------------------------------- a page


def _fitting(run_id: int, wanted: VerdictQuery) -> list[ColumnElement[bool]]:
    tests = [VERDICTS.c.run_id == run_id]
    if wanted.status is not None:
        tests.append(VERDICTS.c.status == wanted.status.value)
    if wanted.method is not None:
        tests.append(VERDICTS.c.method == wanted.method.value)
    if wanted.search.strip():
        tests.append(_found(wanted.search.strip()))
    return tests


def _found(text: str) -> ColumnElement[bool]:
    ways = [VERDICTS.c.label.icontains(to_column(text), autoescape=True)]
    if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS:
        ways.append(VERDICTS.c.class_id == int(text))
    code = _CODE_POINT.fullmatch(text)
    if code is not None and int(code[1], 16) < 0x110000:
        ways.append(VERDICTS.c.label == to_column(chr(int(code[1], 16))))
    return or_(*ways)


def _order(wanted: VerdictQuery) -> tuple[ColumnElement[Any], ...]:
    is_unargmaxable = VERDICTS.c.status == Status.UNARGMAXABLE.value
    column: ColumnElement[Any] = {
        SortKey.CLASS: VERDICTS.c.class_id,
        SortKey.LABEL: VERDICTS.c.label,
        # What was proven closest to zero: the lead of a class that can win, the lag of one that can't.
        SortKey.MARGIN: case((is_unargmaxable, VERDICTS.c.upper), else_=VERDICTS.c.lower),
        SortKey.AHEAD: VERDICTS.c.ahead,
        SortKey.STEPS: VERDICTS.c.steps,
    }[wanted.order]
    return (column.desc() if wanted.is_descending else column.asc()).nulls_last(), VERDICTS.c.class_id


# ---------------------------------------------------------------------- a class


def _row(connection: Connection, run_id: int, class_id: int) -> Row[Any] | None:
    if not 0 <= class_id < _BEYOND:
        return None
    query = select(*verdict_columns()).where(VERDICTS.c.run_id == run_id, VERDICTS.c.class_id == class_id)
    with damage_reported(run_id):
        return connection.execute(query).one_or_none()


def _places(
    connection: Connection, run_id: int, class_id: int, *tests: ColumnElement[bool]
) -> tuple[int | None, int | None]:
    """The classes before and after this one, of those that pass the tests."""
    number, mine = VERDICTS.c.class_id, (VERDICTS.c.run_id == run_id, *tests)
    before = select(func.max(number)).where(*mine, number < class_id)
    after = select(func.min(number)).where(*mine, number > class_id)
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
    query = select(*_NAME_COLUMNS).where(VERDICTS.c.run_id == run_id, test).order_by(VERDICTS.c.class_id)
    with damage_reported(run_id):
        rows = list(connection.execute(query.limit(most)))
        for row in rows:
            require_kinds(row, _NAME_KINDS)
        return [Named(row.class_id, from_column(row.label), Status(row.status)) for row in rows]
