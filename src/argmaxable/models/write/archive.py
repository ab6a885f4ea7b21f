"""Zip archives with one member changed: stored members in place, with their checksums; compressed ones by
writing the archive anew with the same members, names, dates and order."""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import Path
from typing import IO

from argmaxable.core.errors import InputError
from argmaxable.models.write.edit import Patch

_LOCAL_HEADER, _CENTRAL_HEADER = 30, 46
_CENTRAL_SIGNATURE, _DESCRIPTOR_SIGNATURE = b"PK\x01\x02", b"PK\x07\x08"
_HAS_DESCRIPTOR = 0x08


def data_start(file: IO[bytes], info: zipfile.ZipInfo) -> int:
    """Where a stored member's bytes begin in the archive."""
    file.seek(info.header_offset)
    header = file.read(_LOCAL_HEADER)
    name, extra = struct.unpack("<HH", header[26:30])
    return int(info.header_offset + _LOCAL_HEADER + name + extra)


def member_patches(path: Path, member: str, inside: list[Patch]) -> list[Patch]:
    """Patches for the archive, given ones for the bytes of a stored member; checksums included."""
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        info = archive.getinfo(member)
        start = data_start(file, info)
        file.seek(start)
        data = bytearray(file.read(info.file_size))
        for patch in inside:
            data[patch.start : patch.start + len(patch.data)] = patch.data
        checksum = struct.pack("<I", zlib.crc32(data))
        places = [_local_checksum(file, info, start), _central_checksum(file, archive, info)]
    moved = [Patch(start + patch.start, patch.data) for patch in inside]
    return [*moved, *(Patch(place, checksum) for place in places)]


def _local_checksum(file: IO[bytes], info: zipfile.ZipInfo, start: int) -> int:
    if not info.flag_bits & _HAS_DESCRIPTOR:
        place = info.header_offset + 14
    else:
        file.seek(start + info.file_size)
        signed = file.read(4) == _DESCRIPTOR_SIGNATURE
        place = start + info.file_size + (4 if signed else 0)
    file.seek(place)
    if file.read(4) != struct.pack("<I", info.CRC):
        raise InputError(
            f"the archive's member {info.filename!r} has a checksum of an unknown kind: not changed."
        )
    return place


def _central_checksum(file: IO[bytes], archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> int:
    place = archive.start_dir
    for other in archive.infolist():
        file.seek(place)
        header = file.read(_CENTRAL_HEADER)
        if header[:4] != _CENTRAL_SIGNATURE:
            break
        if other.header_offset == info.header_offset:
            return place + 16
        place += _CENTRAL_HEADER + sum(struct.unpack("<HHH", header[28:34]))
    raise InputError("the archive's directory is not where it should be: not changed. Save the file again.")


def rewrite(source: Path, target: Path, contents: dict[str, bytes]) -> None:
    """The archive with these members' contents replaced and everything else the same."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        new.comment = old.comment
        for info in old.infolist():
            data = contents[info.filename] if info.filename in contents else old.read(info)
            new.writestr(info, data, compress_type=info.compress_type)
