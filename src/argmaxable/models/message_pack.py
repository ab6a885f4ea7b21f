"""MessagePack (https://github.com/msgpack/msgpack): one value, whose strings of bytes stay in the file.

Every declared length is compared with the bytes that are there before it is believed.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous
from argmaxable.models.binary_file import BinaryReader, mapped

DAMAGED = "The file is cut short or damaged; fetch it again."
# Values in a file, however nested. A model of a hundred layers has about 5,000.
_MOST_VALUES = 2**20
_DEEPEST = 32
_LONGEST_KEY = 2**12
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_NUMBERS = {0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
            0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}  # fmt: skip
# First bytes of values whose length follows, and the number of bytes it takes.
_BYTES, _TEXTS = {0xC4: 1, 0xC5: 2, 0xC6: 4}, {0xD9: 1, 0xDA: 2, 0xDB: 4}
_EXTENSIONS, _FIXED_EXTENSIONS = {0xC7: 1, 0xC8: 2, 0xC9: 4}, {0xD4 + each: 2**each for each in range(5)}
# The kind of value that is itself MessagePack, as Flax's arrays are.
_NESTED = 1
_LISTS, _MAPS = {0xDC: 2, 0xDD: 4}, {0xDE: 2, 0xDF: 4}


@dataclass(frozen=True)
class StoredBytes:
    """Where a string of bytes lies in its file."""

    start: int
    size: int


@dataclass(frozen=True)
class Extension:
    """A value of a kind that a program has given a number: of kind 1 what its bytes hold, else the bytes."""

    code: int
    value: Any


def read_message(path: Path, expected: str, *, with_extensions: bool = False) -> Any:
    """The value that a file holds: numbers, texts, lists, dictionaries, None, and `StoredBytes`.

    `with_extensions` also takes values of kind 1, whose bytes must be MessagePack, and others unread.

    Raises LoadError when the file is not one whole value, AmbiguousError where a dictionary has a key twice.
    """
    with mapped(path, expected) as data:
        decoder = _Decoder(data, DAMAGED)
        decoder.takes_extensions = with_extensions
        value = decoder.value(0)
        if decoder.left:
            raise LoadError(f"has {decoder.left} bytes after its end, expected none. {DAMAGED}")
        return value


class _Decoder(BinaryReader):
    """Decodes one value after the other."""

    values = 0
    takes_extensions = False

    def value(self, depth: int) -> Any:
        self.values += 1
        if self.values > _MOST_VALUES or depth > _DEEPEST:
            raise LoadError(
                f"holds more than {_MOST_VALUES} values, or values nested more than {_DEEPEST} deep, as no "
                f"model does. {DAMAGED}"
            )
        (first,) = self.numbers("B", "a value")
        if first < 0x80 or first >= 0xE0:
            return first if first < 0x80 else first - 0x100
        if first < 0xA0:
            inside = self._map if first < 0x90 else self._list
            return inside(first & 0x0F, depth)
        if first < 0xC0:
            return self._text(first & 0x1F)
        return self._long_value(first, depth)

    def _long_value(self, first: int, depth: int) -> Any:
        """A value whose first byte says its kind alone."""
        if first in _CONSTANTS:
            return _CONSTANTS[first]
        if first in _NUMBERS:
            layout = struct.Struct(_NUMBERS[first])
            return layout.unpack_from(self.data, self.skip(layout.size, "a number"))[0]
        if first in _BYTES:
            size = self._length(_BYTES[first])
            return StoredBytes(self.skip(size, "a string of bytes"), size)
        if first in _TEXTS:
            return self._text(self._length(_TEXTS[first]))
        if first in _LISTS:
            return self._list(self._length(_LISTS[first]), depth)
        if first in _MAPS:
            return self._map(self._length(_MAPS[first]), depth)
        if self.takes_extensions and (first in _EXTENSIONS or first in _FIXED_EXTENSIONS):
            size = _FIXED_EXTENSIONS.get(first) or self._length(_EXTENSIONS[first])
            return self._extension(size, depth)
        raise LoadError(f"a value begins with the byte {first:#x}, which is unknown. {DAMAGED}")

    def _extension(self, size: int, depth: int) -> Extension:
        (code,) = self.numbers("b", "the kind of a value")
        if code != _NESTED:
            return Extension(code, StoredBytes(self.skip(size, "a value"), size))
        end = self.position + size
        value = self.value(depth + 1)
        if self.position != end:
            raise LoadError(f"a value does not end where it says. {DAMAGED}")
        return Extension(code, value)

    def _length(self, nbytes: int) -> int:
        start = self.skip(nbytes, "a length")
        return int.from_bytes(self.data[start : start + nbytes], "big")

    def _text(self, size: int) -> str:
        start = self.skip(size, "a text")
        try:
            return self.data[start : start + size].decode()
        except UnicodeDecodeError as error:
            raise LoadError(f"a text is not UTF-8 ({error.reason}). {DAMAGED}") from error

    def _list(self, count: int, depth: int) -> list[Any]:
        return [self.value(depth + 1) for _ in range(count)]

    def _map(self, count: int, depth: int) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for _ in range(count):
            key = self._key(depth)
            if key in found:
                raise ambiguous(f"the key {key[:80]!r} occurs twice in one dictionary")
            found[key] = self.value(depth + 1)
        return found

    def _key(self, depth: int) -> str | bytes:
        key = self.value(depth + 1)
        if isinstance(key, StoredBytes) and key.size <= _LONGEST_KEY:
            return self.data[key.start : key.start + key.size]
        if not isinstance(key, str):
            raise LoadError(f"the key of a dictionary is neither a text nor bytes. {DAMAGED}")
        return key
