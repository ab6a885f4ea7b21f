"""Zip archives that every program unpacks alike: .npz, .keras and PyTorch's files.

An archive says everything twice, in a header before each member and in the directory at its end. Programs
differ in which of the two they believe, in which of two members of one name they take, and in how they find
the directory. Here both must agree, and the members must lie one after the other with nothing in between
(https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT).
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from argmaxable.models.ambiguity import ambiguous, twice

# What zipfile raises for damaged archives: for names and offsets ValueError or OSError, for what looks
# encrypted RuntimeError, for methods that nobody knows NotImplementedError, which is one of these.
BROKEN_ZIP = (zipfile.BadZipFile, ValueError, OSError, RuntimeError, EOFError)
_END, _END_64, _LOCATOR = b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"
_CENTRAL, _LOCAL = b"PK\x01\x02", b"PK\x03\x04"
# Of the end: two disks, the entries on this one and in all, size and start of the directory, the comment's
# length. The first of the two for large archives says the same with more bits; the second where the first is.
_END_LAYOUT = struct.Struct("<4s4H2LH")
_END_64_LAYOUT, _LOCATOR_LAYOUT = struct.Struct("<4sQ2H2L4Q"), struct.Struct("<4sLQL")
# Of a member: versions, flags, method, time and date, checksum, packed size, size, lengths of name and extra
# fields; in the directory also of a comment, then disk, attributes and where the local header begins.
_CENTRAL_LAYOUT = struct.Struct("<4s6H3L5H2L")
_LOCAL_LAYOUT = struct.Struct("<4s5H3L2H")
_EXTRA_LAYOUT = struct.Struct("<2H")
_LONGEST_COMMENT = 2**16 - 1
# Stands for a number that does not fit and is found elsewhere.
_ELSEWHERE, _ELSEWHERE_SHORT = 2**32 - 1, 2**16 - 1
_LARGE_SIZES, _OTHER_NAME = 0x0001, 0x7075  # kinds of extra fields
_SIZES_FOLLOW = 0x08
# Flags that both headers must share: encrypted, sizes follow, the name is UTF-8.
_SHARED_FLAGS = 0x01 | _SIZES_FOLLOW | 0x800
# Those, and two that tell how hard the compressor tried.
_KNOWN_FLAGS = _SHARED_FLAGS | 0x06
_FOLDER = 0x10  # of the attributes that DOS gave files
# The lengths of a checksum and two sizes that follow: with or without a signature, of 4 or of 8 bytes.
_TRAILERS = (12, 16, 20, 24)


@dataclass(frozen=True)
class _Directory:
    """Where an archive lists its members, and how many there should be."""

    start: int
    end: int
    entries: int


@dataclass(frozen=True)
class _Member:
    """A member as the directory describes it; `start` is where its local header begins."""

    name: bytes
    flags: int
    method: int
    checksum: int
    packed: int
    size: int
    start: int

    def __str__(self) -> str:
        return repr(self.name.decode(errors="backslashreplace")[:80])


def require_one_reading(file: IO[bytes], *, is_whole_file: bool = True, heeds_case: bool = True) -> None:
    """Raise AmbiguousError unless all programs see the same members in the archive.

    `is_whole_file`: nothing may precede the archive. `heeds_case`: names that differ in case only are
    different ones. Raises BadZipFile where the file is not an archive, or is damaged.
    """
    try:
        directory = _directory(file)
        members = sorted(_members(file, directory), key=lambda member: member.start)
        _require_different_names(members, heeds_case)
        starts = [*(member.start for member in members), directory.start]
        if is_whole_file and starts[0] != 0:
            raise ambiguous(f"{starts[0]} bytes precede the first member of the archive")
        for member, following in zip(members, starts[1:], strict=True):
            _require_adjacent(member, _end_of(file, member), following)
    except struct.error as error:
        raise zipfile.BadZipFile("it ends too early") from error


def member_names(path: Path) -> list[str]:
    """The names of an archive's members, as Python reads them; none where it is damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except (*BROKEN_ZIP, struct.error):
        return []


def _require_different_names(members: list[_Member], heeds_case: bool) -> None:
    for names in (
        [member.name.decode(errors="backslashreplace") for member in members],
        [member.name.decode("utf-8" if member.flags & 0x800 else "cp437", "replace") for member in members],
    ):
        repeated = twice(names if heeds_case else [name.casefold() for name in names])
        if repeated is not None:
            raise ambiguous(f"two members of the archive are called {repeated[:80]!r}")
    for member in members:
        if b"\0" in member.name:
            raise ambiguous(f"a member is called {member}, and some programs end a name at a zero byte")


def _require_adjacent(member: _Member, end: int, following: int) -> None:
    gap = following - end
    if gap < 0:
        raise ambiguous(f"the member {member} of the archive overlaps what follows it")
    if gap and not (member.flags & _SIZES_FOLLOW and gap in _TRAILERS):
        raise ambiguous(f"{gap} bytes after the member {member} of the archive belong to no member")


# ---------------------------------------------------------------------- the directory


def _directory(file: IO[bytes]) -> _Directory:
    """The directory, which must lie where the end of the archive says, and end where that begins."""
    size = file.seek(0, io.SEEK_END)
    first = max(0, size - _END_LAYOUT.size - _LONGEST_COMMENT)
    file.seek(first)
    tail = file.read()
    place = tail.rfind(_END)
    if place < 0:
        raise zipfile.BadZipFile("it has no end record")
    _, _, _, here, entries, length, start, comment = _END_LAYOUT.unpack_from(tail, place)
    if place + _END_LAYOUT.size + comment != len(tail):
        raise ambiguous("data follows the end of the archive")
    end = first + place
    declared = (here, entries, length, start)
    large = _large_directory(file, end)
    if large is not None:
        end, numbers = large
        limits = (_ELSEWHERE_SHORT, _ELSEWHERE_SHORT, _ELSEWHERE, _ELSEWHERE)
        if any(
            small not in (number, limit)
            for small, number, limit in zip(declared, numbers, limits, strict=True)
        ):
            raise ambiguous("the two records at the end of the archive contradict each other")
        declared = numbers
    here, entries, length, start = declared
    if here != entries or start + length != end:
        raise ambiguous(f"the directory of the archive is not where its end says, at byte {start}")
    file.seek(start)
    if file.read().count(_END) != 1:
        raise ambiguous("it has two end records, each of which may be that of the archive")
    return _Directory(start, end, entries)


def _large_directory(file: IO[bytes], end: int) -> tuple[int, tuple[int, int, int, int]] | None:
    """Where the end of a large archive begins, and its numbers; None where there is no such end."""
    if end < _LOCATOR_LAYOUT.size:
        return None
    file.seek(end - _LOCATOR_LAYOUT.size)
    signature, _, place, _ = _LOCATOR_LAYOUT.unpack(file.read(_LOCATOR_LAYOUT.size))
    if signature != _LOCATOR:
        return None
    if place != end - _LOCATOR_LAYOUT.size - _END_64_LAYOUT.size:
        raise ambiguous("the end of the archive says of a second one that it is elsewhere")
    file.seek(place)
    signature, *_, here, entries, length, start = _END_64_LAYOUT.unpack(file.read(_END_64_LAYOUT.size))
    if signature != _END_64:
        raise zipfile.BadZipFile("its end refers to another that is not there")
    return place, (here, entries, length, start)


def _require_ordinary(member: _Member, disk: int, attributes: int) -> None:
    """Refuse what only some programs heed: PyTorch, for one, leaves the bytes of a "folder" as they were."""
    if attributes & _FOLDER and member.size:
        raise ambiguous(f"the member {member} of the archive is marked as a folder, but has bytes")
    if disk or member.flags & ~_KNOWN_FLAGS:
        raise ambiguous(
            f"the member {member} of the archive is on another disk, or encoded in an unusual way"
        )


def _members(file: IO[bytes], directory: _Directory) -> Iterator[_Member]:
    file.seek(directory.start)
    data = file.read(directory.end - directory.start)
    place = found = 0
    while place < len(data):
        (
            signature,
            _,
            _,
            flags,
            method,
            _,
            _,
            checksum,
            packed,
            size,
            *lengths,
            disk,
            _,
            attributes,
            start,
        ) = _CENTRAL_LAYOUT.unpack_from(data, place)
        if signature != _CENTRAL:
            raise zipfile.BadZipFile("its directory is damaged")
        place += _CENTRAL_LAYOUT.size
        name = data[place : place + lengths[0]]
        extra = data[place + lengths[0] : place + lengths[0] + lengths[1]]
        place += sum(lengths)
        packed, size, start = _numbers(extra, size, packed, start)
        member = _Member(name, flags, method, checksum, packed, size, start)
        _require_ordinary(member, disk, attributes)
        yield member
        found += 1
    if found != directory.entries:
        raise ambiguous(f"the archive declares {directory.entries} members and lists {found}")


# ---------------------------------------------------------------------- members


def _end_of(file: IO[bytes], member: _Member) -> int:
    """Where the bytes of a member end, if its local header says the same as the directory."""
    file.seek(member.start)
    signature, _, flags, method, _, _, checksum, packed, size, *lengths = _LOCAL_LAYOUT.unpack(
        file.read(_LOCAL_LAYOUT.size)
    )
    if signature != _LOCAL:
        raise zipfile.BadZipFile(f"the member {member} is not where its directory says")
    name, extra = (file.read(length) for length in lengths)
    packed, size, _ = _numbers(extra, size, packed, member.start)
    here = replace(member, name=name, flags=flags, method=method, checksum=checksum, packed=packed, size=size)
    if flags & _SIZES_FOLLOW and (checksum, packed, size) == (0, 0, 0):
        here = replace(here, checksum=member.checksum, packed=member.packed, size=member.size)
    if replace(here, flags=flags & _SHARED_FLAGS) != replace(member, flags=member.flags & _SHARED_FLAGS):
        raise ambiguous(f"the header and the directory of the archive contradict each other about {member}")
    if member.method == zipfile.ZIP_STORED and member.packed != member.size:
        raise ambiguous(f"the member {member} is not compressed but has two sizes")
    return int(member.start + _LOCAL_LAYOUT.size + sum(lengths) + member.packed)


def _numbers(extra: bytes, size: int, packed: int, start: int) -> tuple[int, int, int]:
    """Packed size, size and start of a member, some of which may be in its extra fields."""
    large = b""
    kinds = []
    while len(extra) >= _EXTRA_LAYOUT.size:
        kind, length = _EXTRA_LAYOUT.unpack_from(extra)
        value, extra = extra[_EXTRA_LAYOUT.size :][:length], extra[_EXTRA_LAYOUT.size + length :]
        kinds.append(kind)
        large = value if kind == _LARGE_SIZES else large
    if kinds.count(_LARGE_SIZES) > 1 or _OTHER_NAME in kinds:
        raise ambiguous("a member of the archive has two sizes or two names")
    numbers = iter(number for (number,) in struct.iter_unpack("<Q", large[: len(large) // 8 * 8]))
    size, packed, start = (
        next(numbers, number) if number == _ELSEWHERE else number for number in (size, packed, start)
    )
    return packed, size, start
