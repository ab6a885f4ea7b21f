"""Copies files out of a wheel as data: nothing is installed, linked or run.

A wheel is a zip archive, which may lie about sizes and paths; both are checked.
"""

from __future__ import annotations

import shutil
import stat
import zipfile
import zlib
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path, PurePosixPath

from argmaxable.core.errors import LoadError

_MOST_LISTED = 8
# Flag bit 0 of a zip member: it is encrypted.
_ENCRYPTED = 1


def require_plain(path: str) -> str:
    """The path, if it leads to a place below and is written without detours; raises LoadError."""
    parts = path.split("/")
    if "" in parts or "." in parts or ".." in parts or "\\" in path or "\0" in path or ":" in parts[0]:
        raise LoadError(f"{path!r} is not a path inside a package: expected names joined by single slashes.")
    return path


def unpack(wheel: Path, inside: str, folder: Path, *, limit: int) -> None:
    """Write the file `inside` and the files beside it into a new folder, or the folder `inside` as a whole.

    Afterwards `folder` holds an entry with the last name of `inside`. Raises LoadError when the wheel has
    no such path, is damaged, or what is to be written has more than `limit` bytes.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = _members(archive, inside)
            size = sum(member.file_size for member in members)
            if size > limit:
                raise LoadError(
                    f"unpacking needs {size:,} bytes, more than the limit of {limit:,}. "
                    "Raise it with #limit=…GB."
                )
            for member in members:
                name = PurePosixPath(require_plain(member.filename))
                _write(archive, member, folder / name.relative_to(PurePosixPath(inside).parent))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise LoadError(f"the wheel is damaged ({error}). Delete it from the cache and try again.") from error


def _members(archive: zipfile.ZipFile, inside: str) -> list[zipfile.ZipInfo]:
    files = [entry for entry in archive.infolist() if not entry.is_dir()]
    beside = PurePosixPath(inside).parent
    if any(entry.filename == inside for entry in files):
        chosen = [entry for entry in files if PurePosixPath(entry.filename).parent == beside]
    else:
        chosen = [entry for entry in files if entry.filename.startswith(f"{inside}/")]
    if not chosen:
        raise LoadError(f"the wheel has no {inside}. {_advice(files, inside)}")
    for entry in chosen:
        _require_ordinary(entry)
    if len({entry.filename for entry in chosen}) < len(chosen):
        raise LoadError("the wheel holds two files of the same name; which of them is meant is not clear.")
    return chosen


def _advice(files: Sequence[zipfile.ZipInfo], inside: str) -> str:
    names = [entry.filename for entry in files]
    near = [name for name in names if PurePosixPath(name).name == PurePosixPath(inside).name]
    near += [name for name in get_close_matches(inside, names, n=_MOST_LISTED) if name not in near]
    if near:
        return f"Did you mean {', '.join(near[:_MOST_LISTED])}?"
    largest = sorted(files, key=lambda entry: -entry.file_size)[:_MOST_LISTED]
    return f"Its largest files: {', '.join(entry.filename for entry in largest)}."


def _require_ordinary(entry: zipfile.ZipInfo) -> None:
    if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG):
        raise LoadError(f"the wheel's entry {entry.filename} is a link or a device, expected a file.")
    # Of other methods zipfile unpacks a whole chunk at once, however large that becomes.
    if entry.flag_bits & _ENCRYPTED or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise LoadError(f"the wheel's file {entry.filename} is encrypted, or packed as no wheel should be.")


def _write(archive: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    # "x": nothing is ever overwritten, and no link followed. zipfile reads no more bytes than the entry
    # declares, and checks their CRC.
    with archive.open(member) as source, target.open("xb") as copy:
        shutil.copyfileobj(source, copy)
        if copy.tell() != member.file_size:
            raise zipfile.BadZipFile(f"{member.filename} is shorter than it says")
