"""The store in a PostgreSQL database.

Rows travel by COPY into a temporary table and from there to where they belong, which is many times
faster than inserting them. A run is locked by an advisory lock, which the server gives up when the
connection ends; its lock's holder writes through that very connection.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.exc import DBAPIError

from argmaxable.core.errors import StoreError
from argmaxable.core.signals import uninterrupted
from argmaxable.store.database import DELETED, Database, OwnCheck, RunLock
from argmaxable.store.location import ServerLocation
from argmaxable.store.migrations import migrate
from argmaxable.store.refusals import state_of_refusal
from argmaxable.store.rows import Batch, EvidenceRow, VerdictKind, VerdictRow
from argmaxable.store.schema import EVIDENCE, VERDICTS

# The driver logs what it raises as well. Without a handler Python would print that beside our own message.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

# A server that does not answer should be an error before anybody wonders what is going on.
_CONNECT_SECONDS = "10"
# Advisory locks are numbers shared with everyone who uses the database; "argmaxab" in ASCII.
_TABLES_LOCK = int.from_bytes(b"argmaxab")

_SAFE = "What was committed is safe: run the same command again to resume."
_AWAY = f"the server can't be reached, or refuses. Check the URL and that it is running. {_SAFE}"
_ADVICE = {
    "08": _AWAY,
    "28": "the server refuses this user or password. In a URL, special characters of a password are "
    "written as %40 (@), %3A (:), %2F (/).",
    "3D": "the server has no database of this name. Make it with: createdb NAME",
    "42501": "this user may not do that: grant CREATE on the schema and TEMPORARY on the database, and "
    "SELECT, INSERT, UPDATE and DELETE on the tables.",
    "23503": DELETED,
    "25006": "the database is read-only. Name a writable one, or store nothing with --no-db.",
    "53100": f"the server's disk is full. Free some space. {_SAFE}",
    "53300": "the server has too many connections. Close some and try again.",
    "57": f"the server was stopped, or cancelled the query. {_SAFE}",
    "XX001": "the database is damaged: ask who runs the server.",
    "XX002": "the database is damaged: ask who runs the server.",
}


class PostgreSQL(Database):
    """An open PostgreSQL database; where it is only read, the server itself refuses to write."""

    def __init__(self, location: ServerLocation, *, read_only: bool = False) -> None:
        self.read_only = read_only
        self._driver_error, self._secrets = _driver_error(), location.secrets
        self.name = location.name
        self.engine = _engine(location)
        if read_only:
            event.listen(self.engine, "connect", _refuse_writing)
        try:
            self._greet(location)
            self._prepare()
        except BaseException:
            self.close()
            raise

    def _greet(self, location: ServerLocation) -> None:
        """Connect for the first time; a refusal names what the server refuses."""
        with self.explained():
            try:
                self.engine.connect().close()
            except DBAPIError as error:
                state = state_of_refusal(error, location)
                if state is None:
                    raise
                raise StoreError(f"{self.name}: {_ADVICE[state]}") from None

    def _prepare(self) -> None:
        if self._is_current():
            return
        with self.writing() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _TABLES_LOCK})
            migrate(connection, self.name)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with (
            self.explained(),
            self.engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection,
            connection.begin(),
        ):
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        with self.explained(), self.engine.connect() as connection, connection.begin():
            yield connection

    def try_to_lock(self, key: bytes) -> RunLock | None:
        with self.explained():
            connection = self.engine.connect()
            try:
                with connection.begin():
                    query = text("SELECT pg_try_advisory_lock(:key)")
                    is_mine = connection.scalar(query, {"key": _lock_number(key)})
            except BaseException:
                connection.close()
                raise
            if is_mine:
                return _LockedConnection(self, connection)
            connection.close()
            return None

    def locked(self, keys: list[bytes]) -> set[bytes]:
        if not keys:
            return set()
        with self.reading() as connection:
            # The halves of a 64-bit lock, as the manual describes pg_locks.
            held = connection.execute(
                text(
                    "SELECT classid::bigint AS high, objid::bigint AS low FROM pg_locks WHERE locktype = "
                    "'advisory' AND granted AND objsubid = 1 AND database = "
                    "(SELECT oid FROM pg_database WHERE datname = current_database())"
                )
            ).all()
        numbers = {(row.high << 32) + row.low for row in held}
        return {key for key in keys if _lock_number(key) % 2**64 in numbers}

    def insert(self, connection: Connection, batch: Batch) -> Counter[VerdictKind]:
        evidence = batch.evidence_rows()
        if evidence:
            self._copy(connection, EVIDENCE.name, EvidenceRow._fields, evidence, returning="")
        rows = [row for rows in batch.verdicts.values() for row in rows]
        if not rows:
            return Counter()
        added = self._copy(
            connection, VERDICTS.name, VerdictRow._fields, rows, returning="RETURNING class_id"
        )
        new = {row.class_id for row in added}
        return Counter(
            {kind: sum(row.class_id in new for row in rows) for kind, rows in batch.verdicts.items()}
        )

    def _copy(
        self,
        connection: Connection,
        table: str,
        columns: tuple[str, ...],
        rows: Iterable[tuple[Any, ...]],
        *,
        returning: str,
    ) -> list[Any]:
        names, new = ", ".join(columns), f"new_{table}"
        connection.exec_driver_sql(
            f"CREATE TEMPORARY TABLE IF NOT EXISTS {new} ON COMMIT DELETE ROWS "
            f"AS SELECT {names} FROM {table} WITH NO DATA"
        )
        driver: Any = connection.connection.driver_connection
        with driver.cursor().copy(f"COPY {new} ({names}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        done = connection.exec_driver_sql(
            f"INSERT INTO {table} ({names}) SELECT {names} FROM {new} ON CONFLICT DO NOTHING {returning}"
        )
        added = list(done) if returning else []
        connection.exec_driver_sql(f"TRUNCATE {new}")  # the transaction may have another batch
        return added

    def own_check(self) -> OwnCheck:
        """None that a client could ask for: pg_amcheck is for whoever runs the server."""
        return OwnCheck("", ())

    def give_back_space(self) -> None:
        """The server's own vacuum does."""

    def explain(self, error: Exception) -> str | None:
        cause = error.orig if isinstance(error, DBAPIError) else error
        if not isinstance(cause, self._driver_error):
            return None
        state = getattr(cause, "sqlstate", None)
        for prefix, advice in _ADVICE.items():
            if state is not None and state.startswith(prefix):
                return advice
        said = str(cause).partition("\n")[0]
        for secret in self._secrets:
            said = said.replace(secret, "***")
        # Without a state it is the driver that speaks: of connecting, or of a connection that broke.
        return f"{_AWAY} ({said})" if state is None else f"the database failed ({said})."


class _LockedConnection(RunLock):
    def __init__(self, database: PostgreSQL, connection: Connection) -> None:
        self._database = database
        self._connection = connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        if self._connection.invalidated:  # SQLAlchemy would connect again, but the lock is gone
            raise StoreError(f"{self._database.name}: the connection broke. {_SAFE}")
        # Half of the driver's work would break the connection and its lock, or leave a transaction open.
        with uninterrupted(), self._database.explained(), self._connection.begin():
            yield self._connection

    def release(self) -> None:
        try:
            with suppress(StoreError), self.writing() as connection:
                connection.execute(text("SELECT pg_advisory_unlock_all()"))
        finally:
            with self._database.explained():
                self._connection.close()


def _engine(location: ServerLocation) -> Engine:
    given = {} if "connect_timeout" in location.url.query else {"connect_timeout": _CONNECT_SECONDS}
    return create_engine(
        location.url, connect_args=given, isolation_level="READ COMMITTED", pool_pre_ping=True
    )


def _refuse_writing(connection: Any, _: object) -> None:
    connection.read_only = True


def _driver_error() -> type[Exception]:
    try:
        import psycopg
    except ImportError:
        raise StoreError(
            "PostgreSQL needs the package psycopg: pip install 'argmaxable[postgres]'. Without --db runs "
            "are stored in a file."
        ) from None
    return psycopg.Error


def _lock_number(key: bytes) -> int:
    return int.from_bytes(key[:8], signed=True)
