"""The table of header of a GGUF file: its metadata and where each tensor lies.

The gguf package reads it too, but makes two arrays of every single token (6 s for 49152 of them) and loops
as long as a damaged count tells it to. Here arrays nobody wants are skipped and every read is checked.
"""

from __future__ import annotations

import math
import mmap
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous

Number = int | float
Value = Number | str | tuple[str, ...] | tuple[Number, ...]

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_STRING, _ARRAY = 8, 9
# The numbers of GGUF, all little-endian, by the id of their type.
_NUMBERS = {
    number: struct.Struct(f"<{letter}")
    for number, letter in {
        0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d",
    }.items()
}  # fmt: skip
_COUNT, _TYPE = _NUMBERS[10], _NUMBERS[4]
_DEFAULT_ALIGNMENT = 32
_MOST_DIMENSIONS = 4  # GGML_MAX_DIMS
# Strings, keys, tensors and wanted numbers a header may hold. The largest vocabulary known, Gemma 3's, comes
# with merges and types to 1.1 million; a file of gigabytes that declares more would keep us busy for minutes.
_MOST_ITEMS = 2**22


@dataclass(frozen=True)
class StoredTensor:
    """Where a tensor lies. `shape` is as GGUF stores it, columns first; `start`, and `limit`, where the model
    ends, count from the file's start."""

    path: Path
    name: str
    shape: tuple[int, ...]
    type_id: int
    start: int
    limit: int

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class GGUFHeader:
    """Metadata (of the arrays only the wanted ones) and tensors by name."""

    metadata: Mapping[str, Value]
    tensors: Mapping[str, StoredTensor]

    @property
    def architecture(self) -> str:
        return str(self.metadata.get("general.architecture", "unknown"))


@dataclass(frozen=True)
class FileRegion:
    """The bytes of a file that are a GGUF: all, or a member of an archive."""

    start: int
    end: int


def read_header(path: Path, wanted: tuple[str, ...], region: FileRegion | None = None) -> GGUFHeader:
    """The header of a GGUF file with those arrays whose keys end as wanted; raises LoadError."""
    with path.open("rb") as file:
        whole = FileRegion(0, os.fstat(file.fileno()).st_size) if region is None else region
        file.seek(whole.start)
        if file.read(len(_MAGIC)) != _MAGIC:
            raise LoadError("does not begin with GGUF, as every GGUF file does. Is it a Git LFS pointer?")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                return _Reader(data, whole).header(path, wanted)
            except (struct.error, _Unreadable) as error:
                reason = "it ends within its header" if isinstance(error, struct.error) else error
                raise LoadError(
                    f"is not a readable GGUF file: {reason}. It may be cut short or damaged; fetch it again."
                ) from error


class _Unreadable(Exception):
    """What is wrong with a header, in words."""


def _alignment(alignment: Value) -> int:
    # For anything but a power of two, llama.cpp and the gguf package round differently.
    if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
        raise _Unreadable(f"general.alignment is {alignment!r}, expected a power of two")
    return alignment


def _require_known(version: int) -> None:
    if version in _VERSIONS:
        return
    if int.from_bytes(version.to_bytes(4, "little"), "big") in _VERSIONS:
        raise LoadError(
            "is a big-endian GGUF file; only little-endian ones can be read. Convert a copy with "
            "gguf-convert-endian FILE little, from the gguf package."
        )
    raise LoadError(
        f"is a GGUF file of version {version}; versions 2 and 3 can be read. Convert the model again."
    )


class _Reader:
    """A position in a mapped file that moves on with every read, never beyond the end."""

    def __init__(self, data: mmap.mmap, region: FileRegion) -> None:
        self._data = data
        self._region = region
        self._position = region.start + len(_MAGIC)
        self._items_left = _MOST_ITEMS

    def header(self, path: Path, wanted: tuple[str, ...]) -> GGUFHeader:
        _require_known(self._number(_TYPE))
        tensor_count, key_count = self._number(_COUNT), self._number(_COUNT)
        self._spend(tensor_count + key_count)
        metadata = self._metadata(key_count, wanted)
        tensors = [self._tensor(path) for _ in range(tensor_count)]
        alignment = _alignment(metadata.get("general.alignment", _DEFAULT_ALIGNMENT))
        first, limit = self._region.start, self._region.end
        start = first - (first - self._position) // alignment * alignment
        by_name: dict[str, StoredTensor] = {}
        for name, shape, type_id, offset in tensors:
            if name in by_name:
                raise ambiguous(f"two tensors are called {name[:80]!r}")
            if offset % alignment:
                raise ambiguous(
                    f"tensor {name[:80]!r} begins at byte {offset}, not a multiple of its alignment, "
                    f"{alignment}"
                )
            by_name[name] = StoredTensor(path, name, shape, type_id, start + offset, limit)
        return GGUFHeader(metadata, by_name)

    def _metadata(self, count: int, wanted: tuple[str, ...]) -> dict[str, Value]:
        metadata: dict[str, Value] = {}
        seen: set[str] = set()  # also the keys of arrays nobody wants
        for _ in range(count):
            key = self._name()
            value = self._value(self._number(_TYPE), keep=key.endswith(wanted))
            if key in seen:
                raise ambiguous(f"the key {key[:80]!r} of its metadata occurs twice")
            seen.add(key)
            if value is not None:
                metadata[key] = value
        return metadata

    def _value(self, type_id: int, *, keep: bool) -> Value | None:
        if type_id in _NUMBERS:
            return self._read(_NUMBERS[type_id])
        if type_id == _STRING:
            return self._string()
        if type_id == _ARRAY:
            return self._array(keep=keep)
        raise _Unreadable(f"type {type_id} of a value is unknown")

    def _array(self, *, keep: bool) -> tuple[str, ...] | tuple[Number, ...] | None:
        type_id, count = self._number(_TYPE), self._number(_COUNT)
        if type_id in _NUMBERS:
            return self._numbers(_NUMBERS[type_id], count, keep=keep)
        if type_id != _STRING:  # the format allows arrays of arrays, but no writer makes them
            raise _Unreadable(f"type {type_id} of an array's elements is unknown")
        self._spend(count)
        return self._strings(count, keep=keep)

    def _numbers(self, layout: struct.Struct, count: int, *, keep: bool) -> tuple[Number, ...] | None:
        start = self._skip(count * layout.size)
        if not keep:
            return None
        self._spend(count)
        return tuple(value for (value,) in layout.iter_unpack(self._data[start : self._position]))

    def _strings(self, count: int, *, keep: bool) -> tuple[str, ...] | None:
        # A vocabulary has a hundred thousand of them: no call for each.
        data, position, strings = self._data, self._position, []
        for _ in range(count):
            (length,) = _COUNT.unpack_from(data, position)
            position += _COUNT.size + length
            if position > self._region.end:
                break
            if keep:
                strings.append(data[position - length : position].decode(errors="backslashreplace"))
        self._skip(position - self._position)
        return tuple(strings) if keep else None

    def _tensor(self, path: Path) -> tuple[str, tuple[int, ...], int, int]:
        name = self._name()
        dimensions = self._number(_TYPE)
        if dimensions > _MOST_DIMENSIONS:
            raise _Unreadable(f"tensor {name!r} has {dimensions} dimensions, more than {_MOST_DIMENSIONS}")
        shape = tuple(self._number(_COUNT) for _ in range(dimensions))
        return name, shape, self._number(_TYPE), self._number(_COUNT)

    def _name(self) -> str:
        """A key, or the name of a tensor, which programs in C end at a zero byte."""
        name = self._string()
        if "\0" in name:
            raise ambiguous(f"the name {name[:80]!r} has a zero byte, at which some programs end it")
        return name

    def _string(self) -> str:
        start = self._skip(self._number(_COUNT))
        # Some vocabularies hold tokens that are no UTF-8; their bytes stay recognisable.
        return self._data[start : self._position].decode(errors="backslashreplace")

    def _number(self, layout: struct.Struct) -> int:
        return int(self._read(layout))

    def _read(self, layout: struct.Struct) -> Number:
        (value,) = layout.unpack_from(self._data, self._position)
        self._position += layout.size
        number: Number = value
        return number

    def _skip(self, size: int) -> int:
        """Move on by so many bytes and return where they begin."""
        start = self._position
        if size > self._region.end - start:
            raise _Unreadable(f"{size} bytes are declared where {self._region.end - start} are left")
        self._position += size
        return start

    def _spend(self, items: int) -> None:
        self._items_left -= items
        if self._items_left < 0:
            raise _Unreadable(f"it declares more than {_MOST_ITEMS} strings and tensors")
