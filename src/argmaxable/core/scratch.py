"""Temporary folders, removed at the end; those of killed runs are removed by whoever needs one next.

Beside each folder lies a lock file, which its process holds as long as it lives. A folder whose lock is free
was left behind. The lock comes before the folder and goes after it, so a process may be killed at any moment.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from filelock import BaseFileLock

_PREFIX = "argmaxable-"
_SUFFIX = ".lock"


@contextmanager
def scratch_folder(home: Path | None = None) -> Iterator[Path]:
    """An empty folder that only this user can read, removed at the end of the block.

    `home` is where it lies, the system's temporary folder unless given. What killed processes left there is
    removed before and after.
    """
    home = temporary_home() if home is None else home
    remove_left_behind(home)
    folder = home / f"{_PREFIX}{secrets.token_hex(4)}"
    lock = _lock(Path(f"{folder}{_SUFFIX}"))
    lock.acquire()
    try:
        folder.mkdir(mode=0o700)
        yield folder
    finally:
        _remove(folder, lock)
        remove_left_behind(home)


def remove_left_behind(home: Path | None = None) -> None:
    """Remove the folders that killed processes of this user left behind."""
    for path in (temporary_home() if home is None else home).glob(f"{_PREFIX}*{_SUFFIX}"):
        if not _is_our_file(path):
            continue
        lock = _lock(path)
        with suppress(OSError):  # still in use
            lock.acquire(timeout=0)
            _remove(path.with_suffix(""), lock)


def temporary_home() -> Path:
    """The system's temporary folder.

    `tempfile.gettempdir` tries it out with a file of its own, which a process that is killed just then leaves
    behind. So it is asked only where the usual folder can't be used.
    """
    usual = os.fsdecode(tempfile.tempdir or os.environ.get("TMPDIR") or "/tmp")
    if os.path.isdir(usual) and os.access(usual, os.W_OK | os.X_OK):
        return Path(os.path.abspath(usual))
    return Path(tempfile.gettempdir())


def let_go(lock: BaseFileLock) -> None:
    """Remove the lock's file and release it."""
    # Still locked while it is removed: whoever waits for this file sees that and makes a new one.
    with suppress(OSError):
        Path(lock.lock_file).unlink()
    lock.release()


def _remove(folder: Path, lock: BaseFileLock) -> None:
    """Remove a folder whose lock is held, then its lock; what can't be removed yet stays for the next run."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        lock.release()
    else:
        let_go(lock)


def _lock(path: Path) -> BaseFileLock:
    from filelock import FileLock  # late: most runs have no such folder, and find none

    return FileLock(path, mode=0o600, thread_local=False)


def _is_our_file(path: Path) -> bool:
    """Whether this user made it; others may put whatever they like into a common temporary folder."""
    try:
        status = path.lstat()
    except OSError:
        return False
    is_own = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
    return is_own and stat.S_ISREG(status.st_mode)
