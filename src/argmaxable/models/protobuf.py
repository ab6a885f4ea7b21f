"""Protobuf's wire format: just enough to walk through a message without decoding it.

A message is a row of fields, each a varint key (number × 8 + wire type) and a value.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import NamedTuple

from argmaxable.core.errors import LoadError

Data = bytes | mmap.mmap

_VARINT, _EIGHT_BYTES, _DELIMITED, _FOUR_BYTES = 0, 1, 2, 5
# protobuf writes 64-bit numbers in at most ten groups of seven bits.
_LONGEST_VARINT = 10
_LARGEST_KEY = 2**32


class Field(NamedTuple):
    """A field's number and places: where it begins, where its value starts and ends.

    Texts, bytes and messages are delimited; other values are numbers.
    """

    number: int
    is_delimited: bool
    begin: int
    start: int
    end: int


def fields(data: Data, start: int = 0, end: int | None = None) -> Iterator[Field]:
    """The fields of the message between two places; raises LoadError where there is none."""
    end = len(data) if end is None else end
    place = start
    while place < end:
        begin = place
        key, place = _varint(data, place)
        if not 8 <= key < _LARGEST_KEY:  # programs differ in what they make of the bits above
            raise LoadError(f"no field has the key {key} at byte {begin:,}")
        kind = key & 7
        if kind == _DELIMITED:
            length, place = _varint(data, place)
        elif kind == _VARINT:
            length = _varint(data, place)[1] - place
        elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
            length = 8 if kind == _EIGHT_BYTES else 4
        else:
            raise LoadError(f"unknown wire type {kind} at byte {begin:,}")
        if place + length > end:
            raise LoadError(f"a field of {length:,} bytes at byte {begin:,} goes beyond the end at {end:,}")
        yield Field(key >> 3, kind == _DELIMITED, begin, place, place + length)
        place += length


def number_in(data: Data, field: Field) -> int:
    """The value of a field that is a varint."""
    return _varint(data, field.start)[0]


def varint(number: int) -> bytes:
    """A number as protobuf writes it."""
    groups = bytearray()
    while number >= 0x80:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*groups, number])


def _varint(data: Data, place: int) -> tuple[int, int]:
    """The number at a place, and the place after it."""
    number = 0
    for shift, byte in enumerate(data[place : place + _LONGEST_VARINT]):
        number |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return number, place + shift + 1
    raise LoadError(f"no number at byte {place:,}")
