"""Protobuf's wire format: just enough to walk through a message without decoding it.

A message is a row of fields, each a varint key (number × 8 + wire type) and a value. A field that may occur
once and occurs twice is refused: protobuf takes the last, other programs the first.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous, twice

Data = bytes | mmap.mmap

_VARINT, _EIGHT_BYTES, _DELIMITED, _FOUR_BYTES = 0, 1, 2, 5
# Wire types of the fields that are looked at: whole numbers, texts and messages, floats of four and eight
# bytes; lists of numbers may be written one by one or as bytes.
NUMBER, BYTES, FLOAT, DOUBLE = _VARINT, _DELIMITED, _FOUR_BYTES, _EIGHT_BYTES
NUMBERS, FLOATS, DOUBLES = 8 + NUMBER, 8 + FLOAT, 8 + DOUBLE
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


# ---------------------------------------------------------------------- messages

Parts = dict[int, list[Field]]


def parts_of(data: Data, start: int, end: int, wire_types: Mapping[int, int]) -> Parts:
    """The fields of a message that are looked at, by number; raises LoadError."""
    found: Parts = {number: [] for number in wire_types}
    for field in fields(data, start, end):
        if field.number in wire_types:
            kind, expected = data[field.begin] & 7, wire_types[field.number]
            # protobuf would leave out a field of another type
            if kind != expected & 7 and not (expected > 7 and kind == _DELIMITED):
                raise LoadError(f"field {field.number} at byte {field.begin:,} has an unusual wire type")
            found[field.number].append(field)
    return found


def inside(data: Data, field: Field, wire_types: Mapping[int, int]) -> Parts:
    """The same of the message in a field."""
    return parts_of(data, field.start, field.end, wire_types)


def single(parts: Parts, number: int, what: str) -> Field | None:
    """The one field of this number, or None; raises AmbiguousError where there are two."""
    if len(parts[number]) > 1:
        raise ambiguous(f"{what} is there twice")
    return parts[number][0] if parts[number] else None


def required(parts: Parts, number: int, what: str) -> Field:
    """The one field of this number; raises LoadError."""
    field = single(parts, number, what)
    if field is None:
        raise LoadError(f"{what} is missing")
    return field


def signed(data: Data, field: Field, bits: int) -> int:
    """A whole number as protobuf reads it: the lowest bits, in two's complement."""
    return _in_bits(number_in(data, field), bits)


def signed_numbers(data: Data, found: Sequence[Field], bits: int) -> list[int]:
    """A list of whole numbers, each in a field of its own or several together."""
    numbers = []
    for field in found:
        place = field.start
        while place < field.end:
            number, place = _varint(data, place)
            numbers.append(_in_bits(number, bits))
        if place != field.end:
            raise LoadError(f"the numbers at byte {field.start:,} do not end where they should")
    return numbers


def text(data: Data, field: Field) -> str:
    """The text in a field; raises LoadError."""
    try:
        value = bytes(data[field.start : field.end]).decode()
    except UnicodeDecodeError as error:
        raise LoadError(f"the text at byte {field.start:,} is not UTF-8") from error
    if "\0" in value:  # where programs in C end a name
        raise ambiguous(f"the text at byte {field.start:,} has a zero byte")
    return value


def dictionary(data: Data, found: Sequence[Field], what: str) -> dict[str, Field]:
    """A map from texts to messages; raises AmbiguousError where a key occurs twice."""
    entries = [inside(data, field, {1: BYTES, 2: BYTES}) for field in found]
    keys = [text(data, key) if (key := single(entry, 1, "a key")) else "" for entry in entries]
    repeated = twice(keys)
    if repeated is not None:
        raise ambiguous(f"{what} has {repeated[:80]!r} twice")
    return {key: required(entry, 2, f"{what} {key[:80]!r}") for key, entry in zip(keys, entries, strict=True)}


def _in_bits(number: int, bits: int) -> int:
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number


# ---------------------------------------------------------------------- numbers


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
