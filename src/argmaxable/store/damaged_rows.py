"""Damaged rows end in a clear error: a database is untrusted input, whoever wrote it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import NoneType
from typing import Any

from sqlalchemy import ColumnElement

from argmaxable.core.errors import DomainError, StoreError

Kinds = tuple[tuple[type, ...], ...]


@contextmanager
def damage_reported(run_id: int | None) -> Iterator[None]:
    """Turn what goes wrong while rows of a run (None: of any) are decoded into a StoreError about it."""
    try:
        yield
    except (
        ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, DomainError,
    ) as error:  # fmt: skip
        if isinstance(error, StoreError):
            raise
        which = "the list of runs" if run_id is None else f"run {run_id}"
        raise StoreError(
            f"{which} can't be read ({error}): the database is damaged or was changed by something else. "
            "`argmaxable store check` lists all damage. Verify the model again with --overwrite."
        ) from error


def kinds_of(columns: Iterable[ColumnElement[Any]]) -> Kinds:
    """The types that values of these columns have in Python. SQLite itself would store any in any column."""
    return tuple(_kinds(column) for column in columns)


def _kinds(column: ColumnElement[Any]) -> tuple[type, ...]:
    kind = column.type.python_type
    return (*((int, float) if kind is float else (kind,)), *((NoneType,) if _may_be_null(column) else ()))


def _may_be_null(column: ColumnElement[Any]) -> bool:
    return bool(getattr(column, "nullable", True))


def require_kinds(row: Sequence[Any], kinds: Kinds) -> None:
    """Raise ValueError unless every value is of its column's type."""
    if not all(map(isinstance, row, kinds)):
        wrong = next(value for value, kind in zip(row, kinds, strict=True) if not isinstance(value, kind))
        raise ValueError(f"a column holds {str(wrong)[:40]!r}, which is not of its type")
