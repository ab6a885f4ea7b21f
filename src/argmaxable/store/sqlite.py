"""The store in a SQLite file.

Write-ahead logging lets others read while a run is written. A run is locked by a file beside the
database, which the operating system unlocks when the process ends.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import cast

from filelock import BaseFileLock, FileLock, Timeout
from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event
from sqlalchemy.exc import DBAPIError

from argmaxable.core.errors import StoreError
from argmaxable.core.scratch import let_go
from argmaxable.core.signals import uninterrupted
from argmaxable.store.database import DELETED, Database, OwnCheck, RunLock
from argmaxable.store.location import FileLocation
from argmaxable.store.migrations import migrate
from argmaxable.store.rows import Batch, EvidenceRow, VerdictKind, VerdictRow
from argmaxable.store.schema import EVIDENCE, VERDICTS

# Other runs write into the same file; a transaction of theirs takes seconds at most.
_BUSY_SECONDS = 60.0

_ELSEWHERE = "choose another file with --db, or store nothing with --no-db."
_SAFE = "What was committed is safe: run the same command again to resume."
_ADVICE = {
    "SQLITE_FULL": f"the disk is full. Free some space. {_SAFE}",
    "SQLITE_IOERR": f"reading or writing failed: is the disk full, or gone? {_SAFE}",
    "SQLITE_READONLY": f"the file or its folder is not writable: {_ELSEWHERE}",
    "SQLITE_CANTOPEN": f"the file can't be opened or is not writable: {_ELSEWHERE}",
    "SQLITE_PERM": f"the file may not be opened: {_ELSEWHERE}",
    "SQLITE_NOTADB": f"the file is not a SQLite database: {_ELSEWHERE}",
    "SQLITE_CORRUPT": "the database is damaged. Restore a copy, or save what can be read with "
    "`sqlite3 FILE .recover`, and choose another file with --db.",
    "SQLITE_BUSY": "another program has the database locked. Close it and try again.",
    "SQLITE_LOCKED": "another program has the database locked. Close it and try again.",
    "SQLITE_CONSTRAINT": DELETED,
    "SQLITE_TOOBIG": "a piece of evidence is larger than SQLite can hold: use PostgreSQL with --db.",
}
_CUT_OFF = (
    "a run was cut off and left a log (-wal) beside the file, which can't be read from a read-only "
    "place. Copy both into a writable folder."
)
_GONE = "the file was deleted or replaced while it was in use. Run the same command again to begin a new one."


class SQLite(Database):
    """An open SQLite file.

    Of one that is only read, SQLite may still put its own files (-wal, -shm) beside it, where it can.
    """

    def __init__(self, location: FileLocation, *, read_only: bool = False) -> None:
        self.read_only = read_only
        # Links resolved: two names of one file must lead to the same locks.
        self._path = location.path.resolve()
        self._identity: tuple[int, int] | None = None
        self.name = location.name
        if read_only:
            self._require_file()
        else:
            self._make_folder()
        self.engine = _engine_for_reading(self._path) if read_only else _engine(self._path)
        event.listen(self.engine, "connect", _set_up)
        event.listen(self.engine, "begin", _begin)
        try:
            with self.explained():
                self._prepare()
                self._identity = _identity_of(self._path)
        except BaseException:
            self.close()
            raise

    def _require_file(self) -> None:
        if not self._path.is_file():
            raise StoreError(
                f"{self.name}: there is no database. `argmaxable verify MODEL` makes one; or name another "
                "with --db."
            )

    def _make_folder(self) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"{self.name}: its folder can't be made ({error.strerror}): {_ELSEWHERE}"
            ) from None

    def _prepare(self) -> None:
        """Bring the tables up to date; one process at a time, because switching the log needs it."""
        if self._is_current():
            return
        lock = FileLock(self._beside("tables"), timeout=_BUSY_SECONDS)
        lock.acquire()
        try:
            # To be said before there is a table: deleted runs should give their space back.
            self._tell("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL")
            with self.writing() as connection:
                migrate(connection, self.name)
        finally:
            let_go(lock)

    def _tell(self, pragmas: str) -> None:
        """What can't be said within a transaction."""
        with closing(self.engine.raw_connection()) as connection:
            driver = cast("sqlite3.Connection", connection.driver_connection)
            driver.executescript(pragmas)  # to the end; `execute` would vacuum a single page

    def _beside(self, what: str) -> Path:
        return self._path.with_name(f"{self._path.name}.{what}.lock")

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self.explained(), self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        with (
            self.explained(),
            self.engine.connect().execution_options(writes=True) as connection,
            connection.begin(),
        ):
            yield connection
            # SQLite itself would go on writing into a file that has no name any more.
            if self._identity is not None and _identity_of(self._path) != self._identity:
                raise StoreError(f"{self.name}: {_GONE}")

    def try_to_lock(self, key: bytes) -> RunLock | None:
        lock = FileLock(self._beside(key.hex()[:16]), timeout=0)
        with self.explained():
            try:
                lock.acquire()
            except Timeout:
                return None
        return _LockedFile(self, lock)

    def locked(self, keys: list[bytes]) -> set[bytes]:
        try:
            return {key for key in keys if self._is_locked(key)}
        except StoreError:
            if not self.read_only:
                raise
            return set(keys)  # somebody else's locks, which we may not touch: the rows are believed

    def _is_locked(self, key: bytes) -> bool:
        if not self._beside(key.hex()[:16]).exists():
            return False
        lock = self.try_to_lock(key)
        if lock is not None:
            lock.release()
        return lock is None

    def insert(self, connection: Connection, batch: Batch) -> Counter[VerdictKind]:
        evidence = batch.evidence_rows()
        if evidence:
            connection.exec_driver_sql(_insert(EVIDENCE.name, EvidenceRow._fields), evidence)
        added: Counter[VerdictKind] = Counter()
        for kind, rows in batch.verdicts.items():
            # By kind, because SQLite tells how many rows were new but not which.
            done = connection.exec_driver_sql(_insert(VERDICTS.name, VerdictRow._fields), rows)
            added[kind] = done.rowcount
        return added

    def own_check(self) -> OwnCheck:
        with self.reading() as connection:
            found = connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
            orphans = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
        problems = [str(each) for each in found if each != "ok"]
        problems += [f"{row[0]} has a row without its {row[2]}" for row in orphans]
        return OwnCheck("PRAGMA integrity_check and foreign_key_check", tuple(problems))

    def give_back_space(self) -> None:
        with self.explained():
            self._tell("PRAGMA incremental_vacuum")

    def explain(self, error: Exception) -> str | None:
        cause = error.orig if isinstance(error, DBAPIError) else error
        if isinstance(cause, sqlite3.Error):
            # Extended codes have a third part, e.g. SQLITE_IOERR_WRITE.
            code = "_".join(getattr(cause, "sqlite_errorname", "").split("_")[:2])
            if self.read_only and code in ("SQLITE_CANTOPEN", "SQLITE_READONLY") and _has_log(self._path):
                return _CUT_OFF
            return _ADVICE.get(code, f"the database failed ({cause}).")
        if isinstance(cause, UnicodeDecodeError):  # in a message that quotes what is damaged
            return _ADVICE["SQLITE_CORRUPT"]
        if isinstance(cause, OSError):
            return f"no file can be locked beside it ({cause.strerror or 'in use'}): {_ELSEWHERE}"
        return None


class _LockedFile(RunLock):
    def __init__(self, database: SQLite, lock: BaseFileLock) -> None:
        self._database = database
        self._lock = lock

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        # Half of the driver's work would break the connection and its lock, or leave a transaction open.
        with uninterrupted(), self._database.writing() as connection:
            yield connection

    def release(self) -> None:
        let_go(self._lock)


def _engine(path: Path) -> Engine:
    url = URL.create("sqlite", database=str(path))
    return create_engine(url, connect_args={"timeout": _BUSY_SECONDS})


def _engine_for_reading(path: Path) -> Engine:
    query = {"uri": "true", "mode": "ro"} | ({"immutable": "1"} if _is_immutable(path) else {})
    url = URL.create("sqlite", database=path.as_uri(), query=query)
    # No pool: each transaction opens the file that is there then, which may have taken another's place.
    return create_engine(url, connect_args={"timeout": _BUSY_SECONDS}, poolclass=NullPool)


def _is_immutable(path: Path) -> bool:
    """Whether nobody can write here, so that SQLite can do without the files it puts beside a database.

    A log with something in it must be read, and for that SQLite needs these files.
    """
    may_write = os.access(path.parent, os.W_OK, effective_ids=os.access in os.supports_effective_ids)
    return not may_write and not _has_log(path)


def _has_log(path: Path) -> bool:
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


def _identity_of(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


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
