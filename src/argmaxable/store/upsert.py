"""INSERT that heeds rows which are there already; SQLAlchemy spells it for each database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Connection, Table

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite


def insert_into(connection: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """The statement of the connection's database; the other one's is not imported, for that takes long."""
    if connection.dialect.name == "sqlite":
        from sqlalchemy.dialects import sqlite

        return sqlite.insert(table)
    from sqlalchemy.dialects import postgresql

    return postgresql.insert(table)
