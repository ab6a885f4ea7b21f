"""The layout of a .traineddata file: a table of offsets, and the components it lists, one after the other.

Read off Tesseract's `TessdataManager` (src/ccutil/tessdatamanager.cpp).
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from dataclasses import dataclass

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous
from argmaxable.models.binary_file import BinaryReader

LSTM, UNICHARSET, RECODER = 17, 21, 22  # numbers of components
# Tesseract's own limit (kMaxNumTessdataEntries); a larger number means other byte order there.
_MOST_COMPONENTS = 1000
_ABSENT = -1
_LONGEST_LINE = 254  # what fits into Tesseract's own buffer
DAMAGED = "The file is cut short or damaged; fetch it again."


@dataclass(frozen=True)
class ComponentPlace:
    """Where a component lies in the file."""

    start: int
    end: int


class TessdataReader(BinaryReader):
    """Reads numbers and texts up to the end of one component."""

    def __init__(self, data: mmap.mmap, place: ComponentPlace) -> None:
        super().__init__(data, DAMAGED)
        self.position = place.start
        self._end = place.end

    @property
    def left(self) -> int:
        return self._end - self.position

    def number(self, layout: str, what: str) -> int:
        (value,) = self.numbers(layout, what)
        return int(value)

    def line(self) -> bytes:
        """A line of a character set, without its end."""
        start, end = self.position, min(self._end, self.position + _LONGEST_LINE + 1)
        found = self.data.find(b"\n", start, end)
        if found < 0 and end < self._end:
            raise LoadError(f"a line of the character set has over {_LONGEST_LINE} bytes. {DAMAGED}")
        self.position = end if found < 0 else found + 1
        return self.data[start : end if found < 0 else found]

    def text(self, what: str) -> str:
        """A text behind its length."""
        size = self.number("I", what)
        start = self.skip(size, what)
        try:
            return self.data[start : start + size].decode()
        except UnicodeDecodeError as error:
            raise LoadError(f"{what} is not UTF-8. {DAMAGED}") from error


def components(data: mmap.mmap) -> Mapping[int, ComponentPlace]:
    """Where the components of a file are, by their numbers; raises LoadError."""
    reader = TessdataReader(data, ComponentPlace(0, len(data)))
    count = reader.number("I", "the number of components")
    if not 0 < count <= _MOST_COMPONENTS:
        raise LoadError(
            f"is not a .traineddata file of little-endian numbers: it declares {count} components, expected "
            f"at most {_MOST_COMPONENTS}. Archives and big-endian files can't be read."
        )
    table = reader.numbers(f"{count}q", "the table of components")
    present = [(number, offset) for number, offset in enumerate(table) if offset != _ABSENT]
    ends = [*(offset for _, offset in present), len(data)][1:]
    found, position = {}, reader.position
    # Tesseract reads the components one after the other, wherever the table says that they begin.
    for (number, offset), end in zip(present, ends, strict=True):
        if offset != position or end < offset:
            raise ambiguous(
                f"component {number} is said to begin at {offset}, but the last ended at {position}"
            )
        found[number] = ComponentPlace(offset, end)
        position = end
    return found
