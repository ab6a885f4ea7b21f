"""Why a PostgreSQL server refuses a connection.

libpq gives no SQLSTATE for a connection that failed, and its text is in the server's language. But it tells
whether the server asked for a password, and another database can be asked which ones there are.
"""

from __future__ import annotations

from sqlalchemy import NullPool, create_engine, text
from sqlalchemy.exc import DBAPIError

from argmaxable.store.location import ServerLocation

# Classes of SQLSTATE.
_NOT_AUTHORISED, _NO_SUCH_DATABASE = "28", "3D"
# A server makes both of these by itself.
_ALWAYS_THERE = ("postgres", "template1")


def state_of_refusal(error: DBAPIError, location: ServerLocation) -> str | None:
    """The class of the SQLSTATE that the server must have had in mind; None when it says so itself, or when
    it can't be told."""
    cause = error.orig
    connection = getattr(cause, "pgconn", None)
    if connection is None or getattr(cause, "sqlstate", None) is not None:
        return None
    # Translations of the message leave the file's name as it is.
    if "pg_hba.conf" in str(cause):
        return _NOT_AUTHORISED
    if _lets_in_elsewhere(location):
        return _NO_SUCH_DATABASE
    return _NOT_AUTHORISED if connection.used_password or connection.needs_password else None


def _lets_in_elsewhere(location: ServerLocation) -> bool:
    """Whether the server lets this user into another database, and knows none of the name asked for."""
    wanted = location.url.database or location.url.username
    for name in _ALWAYS_THERE:
        engine = create_engine(location.url.set(database=name), poolclass=NullPool)
        query = text("SELECT count(*) FROM pg_database WHERE datname = :wanted")
        try:
            with engine.connect() as connection:
                return not connection.scalar(query, {"wanted": wanted})
        except DBAPIError:
            continue
    return False
