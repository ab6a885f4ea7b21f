"""What the store asks of a database, whichever it is; sqlite.py and postgresql.py answer."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from sqlalchemy import Connection, Engine

from argmaxable.core.errors import StoreError
from argmaxable.store.migrations import newest_version, require_current, version_of
from argmaxable.store.rows import Batch, VerdictKind

# How long to wait for a run that seems to be in use. A killed process lets go at once on this machine,
# but a server notices only when it has finished what it was doing; and whoever asks whether a run is in
# use holds its lock for a moment.
_PATIENCE_SECONDS = 2.0
_POLL_SECONDS = 0.05

# Only possible by hand: this program respects the lock.
DELETED = "the run was deleted while it was worked on. Run the same command again to start over."


@dataclass(frozen=True)
class OwnCheck:
    """What the database says about itself: how it was asked ("" where it can't be), and what is wrong."""

    how: str
    problems: tuple[str, ...]


class RunLock(ABC):
    """One process's lock on a run, which lets it write; it ends with the process, however that ends."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[Connection]:
        """A transaction that is only committed while the lock is held; Ctrl-C waits for its end."""

    @abstractmethod
    def release(self) -> None: ...


class Database(ABC):
    """An open database with up-to-date tables, perhaps for reading only."""

    name: str
    engine: Engine
    read_only: bool

    @abstractmethod
    def reading(self) -> AbstractContextManager[Connection]:
        """A transaction that sees the database as it was when it began."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[Connection]:
        """A transaction, committed at the end unless an exception leaves it."""

    @abstractmethod
    def try_to_lock(self, key: bytes) -> RunLock | None:
        """The lock on the run with this key, None while another process has it."""

    @abstractmethod
    def locked(self, keys: list[bytes]) -> set[bytes]:
        """Which of these runs some process is working on."""

    @abstractmethod
    def insert(self, connection: Connection, batch: Batch) -> Counter[VerdictKind]:
        """Write the rows that are not there yet; returns the kinds of verdicts that were added."""

    @abstractmethod
    def own_check(self) -> OwnCheck:
        """The database's own check of its files."""

    @abstractmethod
    def give_back_space(self) -> None:
        """Let the operating system have what deleted runs took, where that does not happen by itself."""

    @abstractmethod
    def explain(self, error: Exception) -> str | None:
        """What went wrong and what to do about it; None for an exception that is not the database's."""

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn the database's exceptions into a StoreError: theirs show SQL, and may show passwords."""
        try:
            yield
        except Exception as error:
            said = self.explain(error)
            if said is None:
                raise
            raise StoreError(f"{self.name}: {said}") from None

    def _is_current(self) -> bool:
        """Whether the tables are those of schema.py; raises StoreError if they must be and are not."""
        with self.reading() as connection:
            version = version_of(connection, self.name)
        if self.read_only:
            require_current(version, self.name)
        return version == newest_version()

    def lock(self, key: bytes) -> RunLock | None:
        """`try_to_lock` with patience."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while (lock := self.try_to_lock(key)) is None and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        return lock

    def close(self) -> None:
        self.engine.dispose()
