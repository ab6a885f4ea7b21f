"""Protobuf messages with some of their bytes replaced by more or fewer: every length around them is
corrected, everything else is copied as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from argmaxable.models.protobuf import Data, fields, varint

_DELIMITED = 2


@dataclass(frozen=True)
class Splice:
    """The value of a field, from start to end, and what takes its place."""

    start: int
    end: int
    data: bytes


def delimited(number: int, content: bytes) -> bytes:
    """A field that holds a text, bytes or a message."""
    return varint(number << 3 | _DELIMITED) + varint(len(content)) + content


def respliced(data: Data, splices: Sequence[Splice]) -> bytes:
    """The message with the splices in place."""
    return _copied(data, 0, len(data), sorted(splices, key=lambda splice: splice.start))


def _copied(data: Data, start: int, end: int, splices: Sequence[Splice]) -> bytes:
    if not splices:
        return bytes(data[start:end])
    parts = []
    for field in fields(data, start, end):
        inside = [each for each in splices if field.start <= each.start and each.end <= field.end]
        whole = next((each for each in inside if (each.start, each.end) == (field.start, field.end)), None)
        if not inside:
            parts.append(bytes(data[field.begin : field.end]))
        elif field.is_delimited:
            value = whole.data if whole else _copied(data, field.start, field.end, inside)
            parts.append(delimited(field.number, value))
        else:
            parts.append(varint(field.number << 3) + inside[0].data)
    return b"".join(parts)
