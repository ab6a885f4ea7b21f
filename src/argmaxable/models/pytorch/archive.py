"""The zip archives of PyTorch: checkpoints, TorchScript and torch.export all store their tensors unpacked,
in one folder, so that each is a range of the file. Only TorchScript's code is compressed.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from argmaxable.core.errors import AmbiguousError, LoadError
from argmaxable.models.ambiguity import ambiguous
from argmaxable.models.zip_archive import BROKEN_ZIP, require_one_reading

# A tensor takes about 200 bytes of pickle, so this is far above any model.
LARGEST_PICKLE = 8 * 2**20
_NAMES_SHOWN = 8
# Before the bytes of a member: 26 bytes, the lengths of its name and extra fields, and those.
_LENGTHS = struct.Struct("<26x2H")


@dataclass(frozen=True)
class Member:
    """Where the bytes of an archive's member are in the file; `packed` is how many they are if compressed."""

    start: int
    size: int
    packed: int | None = None


def archive_members(path: Path, *, compressed: str | None = None) -> dict[str, Member]:
    """The members of an archive by their names in its one folder; raises LoadError.

    None may be compressed but those whose names begin with `compressed`.
    """
    try:
        with path.open("rb") as file:
            require_one_reading(file, heeds_case=False)  # PyTorch looks members up without heeding it
        with zipfile.ZipFile(path) as archive, path.open("rb") as file:
            infos = archive.infolist()
            starts = []
            for info in infos:
                file.seek(info.header_offset)
                lengths = _LENGTHS.unpack(file.read(_LENGTHS.size))
                starts.append(info.header_offset + _LENGTHS.size + sum(lengths))
    except AmbiguousError:
        raise
    except (*BROKEN_ZIP, struct.error) as error:
        raise LoadError(unreadable(error)) from error
    roots = {info.filename.partition("/")[0] for info in infos}
    if len(roots) > 1:
        raise ambiguous(
            f"the archive holds {len(roots)} folders, each of which may be the model's: {shown(roots)}"
        )
    return {
        info.filename.partition("/")[2]: _member(info, start, compressed)
        for info, start in zip(infos, starts, strict=True)
    }


def _member(info: zipfile.ZipInfo, start: int, compressed: str | None) -> Member:
    if info.compress_type == zipfile.ZIP_STORED:
        return Member(start, info.file_size)
    name = info.filename.partition("/")[2]
    if compressed is None or not name.startswith(compressed) or info.compress_type != zipfile.ZIP_DEFLATED:
        raise LoadError(
            f"has compressed members, e.g. {name!r}, which PyTorch never writes. Save the model again."
        )
    return Member(start, info.file_size, info.compress_size)


def read_member(path: Path, member: Member, largest: int) -> bytes:
    """The bytes of a member that may be read whole; raises LoadError where it has more than `largest`."""
    if member.size > largest:
        raise LoadError(
            unreadable(f"a member without a tensor has {member.size:,} bytes, expected at most {largest:,}")
        )
    with path.open("rb") as file:
        file.seek(member.start)
        if member.packed is None:
            return file.read(member.size)
        packed = file.read(member.packed)
    try:
        data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, largest + 1)
    except zlib.error as error:
        raise LoadError(unreadable(error)) from error
    if len(data) != member.size:
        raise ambiguous(f"a member of the archive has {len(data):,} bytes but declares {member.size:,}")
    return data


def unreadable(reason: object) -> str:
    """The sentence for a file that is damaged."""
    return f"is not a readable PyTorch file: {reason}. It may be cut short or damaged; fetch it again."


def asks_for(names: Iterable[str]) -> str:
    """The sentence for a pickle that names functions or classes which are not known to be harmless."""
    return (
        f"asks for {', '.join(names)}, which is neither a tensor nor a plain container. Building that could "
        "run code, so the file was refused. Save the model's state_dict alone, or as .safetensors."
    )


def shown(names: Iterable[str]) -> str:
    """The first names, in order, for errors."""
    return ", ".join(repr(name) for name in sorted(names)[:_NAMES_SHOWN])
