"""Whether results can be written where they are to go: told before the work, not after it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from argmaxable.core.errors import InputError


def require_file_place(option: str, target: Path | None) -> None:
    """Raise InputError unless a file of this name can be written; None names none."""
    if target is None:
        return
    if target.is_dir():
        raise InputError(f"{option} {target}: this is a folder. Name a file.")
    if not target.parent.is_dir():
        raise InputError(f"{option} {target}: there is no folder {target.parent}.")
    _require_writable(option, target, target.parent)


def require_folder_place(option: str, target: Path | None) -> None:
    """The same for a folder, which need not be there yet, nor those that it is in."""
    if target is None:
        return
    there = next(folder for folder in (target, *target.absolute().parents) if folder.exists())
    if not there.is_dir():
        raise InputError(f"{option} {target}: {there} is a file. Name a folder.")
    _require_writable(option, target, there)


def _require_writable(option: str, target: Path, folder: Path) -> None:
    """By writing: permissions don't tell it of every user and file system."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(
            f"{option} {target}: can't write into {folder}: {error.strerror or error}."
        ) from error
