"""The store in a SQLite file.

Write-ahead logging lets others read while a run is written. Runs are claimed by locking a file beside
the database, which the operating system unlocks when the process ends.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from sqlalchemy import Connection, create_engine, event
from sqlalchemy.exc import DBAPIError

from argmaxable.errors import StoreError
from argmaxable.store.database import Claim, Database
from argmaxable.store.migrations import STEPS, migrate, version_of
from argmaxable.store.place import FilePlace
from argmaxable.store.rows import Batch, EvidenceRow, Kind, VerdictRow
from argmaxable.store.schema import EVIDENCE, VERDICTS

# Other runs write into the same file; a transaction of theirs takes a second at most.
_BUSY_SECONDS = 60.0

_ADVICE = {
    "SQLITE_FULL": "the disk is full. What was committed before is safe; free some space and run the "
    "same command to go on.",
    "SQLITE_IOERR": "reading or writing failed: is the disk full, or gone? What was committed before is "
    "safe; the same command goes on.",
    "SQLITE_READONLY": "can't be written to. Choose another file with --db, or keep nothing with --no-db.",
    "SQLITE_CANTOPEN": "can't be opened. Check that the folder exists and may be written to, choose "
    "another file with --db, or keep nothing with --no-db.",
    "SQLITE_PERM": "may not be opened. Choose another file with --db, or keep nothing with --no-db.",
    "SQLITE_NOTADB": "is not a SQLite database. Choose another file with --db.",
    "SQLITE_CORRUPT": "is damaged. Restore a copy, or save what can be read with `sqlite3 FILE .recover`; "
    "then choose another file with --db.",
    "SQLITE_BUSY": "is locked by another program. Close it and try again.",
    "SQLITE_LOCKED": "is locked by another program. Close it and try again.",
    "SQLITE_TOOBIG": "a piece of evidence is larger than SQLite can hold. Use PostgreSQL with --db.",
}
_GONE = (
    "was deleted or replaced while it was in use. Nothing more can be kept in it; run the same command again."
)


class SQLite(Database):
    """An open SQLite file."""

    def __init__(self, place: FilePlace) -> None:
        self._path = place.path
        self.name = place.name
        self._make_folder()
        self.engine = create_engine(f"sqlite:///{self._path}", connect_args={"timeout": _BUSY_SECONDS})
        event.listen(self.engine, "connect", _set_up)
        event.listen(self.engine, "begin", _begin)
        try:
            with self.explained():
                self._prepare()
        except BaseException:
            self.close()
            raise
        self._identity = self._file_identity()

    def _make_folder(self) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"{self._path.parent}: can't make this folder ({error.strerror}). "
                "Choose another file with --db, or keep nothing with --no-db."
            ) from None

    def _prepare(self) -> None:
        """Bring the tables up to date; one process at a time, because switching the log needs it."""
        with self.engine.connect() as connection:
            if version_of(connection, self.name) == len(STEPS):
                return
        with FileLock(self._beside("tables"), timeout=_BUSY_SECONDS):
            with closing(self.engine.raw_connection()) as outside_transactions:
                outside_transactions.cursor().execute("PRAGMA journal_mode = WAL")
            with self.writing() as connection:
                migrate(connection, self.name)

    def _beside(self, what: str) -> Path:
        return self._path.with_name(f"{self._path.name}.{what}.lock")

    def _file_identity(self) -> tuple[int, int] | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self.explained(), self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        with self.explained(), self.engine.connect().execution_options(writes=True) as connection:
            with connection.begin():
                yield connection
                self._require_same_file()

    def _require_same_file(self) -> None:
        # SQLite itself would go on writing into a file that has no name any more.
        if hasattr(self, "_identity") and self._file_identity() != self._identity:
            raise StoreError(f"{self.name}: {_GONE}")

    def try_to_claim(self, key: bytes) -> Claim | None:
        with self.explained():
            lock = FileLock(self._beside(key.hex()[:16]), timeout=0)
            try:
                lock.acquire()
            except Timeout:
                return None
            return _FileClaim(self, lock)

    def claimed(self, keys: list[bytes]) -> set[bytes]:
        return {key for key in keys if self._is_claimed(key)}

    def _is_claimed(self, key: bytes) -> bool:
        path = self._beside(key.hex()[:16])
        if not path.exists():
            return False
        claim = self.try_to_claim(key)
        if claim is None:
            return True
        claim.release()
        return False

    def insert(self, connection: Connection, batch: Batch) -> Counter[Kind]:
        evidence = batch.evidence_rows()
        if evidence:
            connection.exec_driver_sql(_insert(EVIDENCE.name, EvidenceRow._fields), evidence)
        added: Counter[Kind] = Counter()
        for kind, rows in batch.verdicts.items():
            # By kind, because SQLite tells how many rows were new but not which.
            done = connection.exec_driver_sql(_insert(VERDICTS.name, VerdictRow._fields), rows)
            added[kind] = done.rowcount
        return added

    def explain(self, error: BaseException) -> str | None:
        cause = error.orig if isinstance(error, DBAPIError) else error
        if isinstance(cause, sqlite3.Error):
            code = "_".join(getattr(cause, "sqlite_errorname", "").split("_")[:2])
            return _ADVICE.get(code, f"the database failed ({cause}).")
        if isinstance(cause, OSError | Timeout):
            return f"can't be locked ({cause.strerror or 'in use'}). {_ADVICE['SQLITE_CANTOPEN']}"
        return None


class _FileClaim(Claim):
    def __init__(self, database: SQLite, lock: Any) -> None:
        self._database = database
        self._lock = lock

    def writing(self) -> AbstractContextManager[Connection]:
        return self._database.writing()

    def release(self) -> None:
        # Still locked while it is removed: whoever waits for this file sees that and makes a new one.
        with suppress(OSError):
            Path(self._lock.lock_file).unlink()
        self._lock.release()


def _set_up(connection: sqlite3.Connection, _: object) -> None:
    connection.isolation_level = None  # transactions begin where `_begin` says, not where Python guesses
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = FULL")


def _begin(connection: Connection) -> None:
    # A transaction that turns into a writing one half-way can't wait for others: it fails.
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _insert(table: str, columns: tuple[str, ...]) -> str:
    marks = ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks}) ON CONFLICT DO NOTHING"
