"""Reading FlatBuffers, the container of TensorFlow Lite, without trusting a single offset in them.

A table begins with the distance back to its vtable, which lists where each field lies; strings, vectors and
other tables are reached through one more offset (https://flatbuffers.dev/internals). Whatever leads outside
the buffer raises `Damaged`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_OFFSET = struct.Struct("<I")
_TO_VTABLE = struct.Struct("<i")
_VTABLE_ENTRY = struct.Struct("<H")
_VTABLE_HEADER = 4  # its own size and the table's, two bytes each


class Damaged(Exception):
    """The bytes are no FlatBuffer: an offset or a length leads outside of them."""


@dataclass(frozen=True)
class Table:
    """A table at a position of a buffer. Fields are numbered in the order of their schema."""

    buffer: memoryview
    position: int

    def number(self, field: int, layout: str, default: int | float = 0) -> int | float:
        """The field's number, laid out as the struct module writes it (e.g. "<i"), or the default."""
        place = self._place(field)
        return default if place is None else self._unpack(struct.Struct(layout), place)

    def integer(self, field: int, layout: str = "<i", default: int = 0) -> int:
        return int(self.number(field, layout, default))

    def table(self, field: int) -> Table | None:
        target = self._target(field)
        return None if target is None else Table(self.buffer, target)

    def tables(self, field: int) -> Tables:
        """The field's vector of tables, empty where the field is missing."""
        start, count = self._vector(field, _OFFSET.size)
        return Tables(self.buffer, start, count)

    def array(self, field: int, dtype: Any) -> NDArray[Any]:
        """The field's vector of numbers, not copied; empty where the field is missing."""
        start, count = self._vector(field, np.dtype(dtype).itemsize)
        return np.frombuffer(self.buffer, dtype, count, start if count else 0)

    def text(self, field: int, longest: int) -> str:
        """The field's string, cut where it is longer than anybody wants to read."""
        data = self.array(field, np.uint8)[:longest].tobytes()
        return data.decode(errors="backslashreplace")

    def _vector(self, field: int, itemsize: int) -> tuple[int, int]:
        """Where the field's vector begins and how many elements it has, all of them inside the buffer."""
        target = self._target(field)
        if target is None:
            return 0, 0
        count = int(self._unpack(_OFFSET, target))
        start = target + _OFFSET.size
        if count * itemsize > len(self.buffer) - start:
            raise Damaged(f"a vector of {count} elements at byte {start} ends outside")
        return start, count

    def _target(self, field: int) -> int | None:
        place = self._place(field)
        return None if place is None else place + int(self._unpack(_OFFSET, place))

    def _place(self, field: int) -> int | None:
        """Where the field lies, or None when the table leaves it out."""
        vtable = self.position - int(self._unpack(_TO_VTABLE, self.position))
        entry = _VTABLE_HEADER + field * _VTABLE_ENTRY.size
        if entry + _VTABLE_ENTRY.size > self._unpack(_VTABLE_ENTRY, vtable):
            return None
        offset = int(self._unpack(_VTABLE_ENTRY, vtable + entry))
        return self.position + offset if offset else None

    def _unpack(self, layout: struct.Struct, position: int) -> int | float:
        if not 0 <= position <= len(self.buffer) - layout.size:
            raise Damaged(f"an offset leads to byte {position} of {len(self.buffer)}")
        (value,) = layout.unpack_from(self.buffer, position)
        number: int | float = value
        return number


@dataclass(frozen=True)
class Tables:
    """A vector of tables, each found when it is asked for."""

    buffer: memoryview
    start: int
    count: int

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Table:
        if not 0 <= index < self.count:
            raise Damaged(f"table {index} of {self.count} is referred to")
        place = self.start + index * _OFFSET.size
        return Table(self.buffer, place + int(_OFFSET.unpack_from(self.buffer, place)[0]))

    def __iter__(self) -> Iterator[Table]:
        return (self[index] for index in range(self.count))


def root(buffer: memoryview, identifier: bytes) -> Table:
    """The outermost table; raises Damaged unless the buffer carries the four-letter identifier."""
    if bytes(buffer[_OFFSET.size : 2 * _OFFSET.size]) != identifier:
        raise Damaged(f"bytes 4 to 7 are not {identifier.decode()}")
    return Table(buffer, int(_OFFSET.unpack_from(buffer, 0)[0]))
