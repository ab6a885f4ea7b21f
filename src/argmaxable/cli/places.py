"""Whether results can be written where they are to go: told before the work, not after it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from argmaxable.core.errors import InputError


def require_file_place(option: str, target: Path | None) -> None:
    """Raise InputError unless a file of this name can be written; its folder need not be there yet."""
    if target is None:
        return
    if target.is_dir():
        raise InputError(f"{option} {target}: this is a folder. Name a file.")
    _require_writable(option, target, target.absolute().parent)


def require_folder_place(option: str, target: Path | None) -> None:
    """The same for a folder."""
    if target is not None:
        _require_writable(option, target, target.absolute())


def _require_writable(option: str, target: Path, wanted: Path) -> None:
    """By writing into the folder, or where it would be made: permissions don't tell everything."""
    folder = next(each for each in (wanted, *wanted.parents) if each.exists())
    if not folder.is_dir():
        raise InputError(f"{option} {target}: {folder} is a file. Name a folder.")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(
            f"{option} {target}: can't write into {folder}: {error.strerror or error}."
        ) from error
