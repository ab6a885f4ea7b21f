"""A PostgreSQL database for reading only."""

from __future__ import annotations

from typing import Any

from sqlalchemy import event

from argmaxable.serve.reader import require_current
from argmaxable.store.postgresql import PostgreSQL


class PostgreSQLForReading(PostgreSQL):
    """The server itself refuses to write in any transaction of this one."""

    def _prepare(self) -> None:
        event.listen(self.engine, "connect", _read_only)
        with self.reading() as connection:
            require_current(connection, self.name)


def _read_only(connection: Any, _: object) -> None:
    connection.read_only = True
