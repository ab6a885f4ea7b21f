"""INSERT statements that can say what to do with existing rows, which SQLAlchemy spells for each database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Connection, Table

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite


def insert_into(connection: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """An INSERT in the dialect of the connection. The other dialect is not imported: that takes long."""
    if connection.dialect.name == "sqlite":
        from sqlalchemy.dialects import sqlite

        return sqlite.insert(table)
    from sqlalchemy.dialects import postgresql

    return postgresql.insert(table)
