"""The pieces of a SentencePiece model, read from its protobuf without the sentencepiece package.

A protobuf message is a row of fields, each a varint key (number × 8 + wire type) and a value. Of the
model only field 1, the repeated piece, matters here, and of a piece only field 1, its text.
"""

from __future__ import annotations

from collections.abc import Iterator

from argmaxable.errors import LoadError

_VARINT, _EIGHT_BYTES, _DELIMITED, _FOUR_BYTES = 0, 1, 2, 5
_PIECE = 1  # field number both of a model's pieces and of a piece's text
# protobuf writes 64-bit numbers in at most ten groups of seven bits.
_LONGEST_VARINT = 10


def pieces(data: bytes) -> list[str]:
    """The text of every piece, in the order of their ids; raises LoadError."""
    found = [_text(piece) for number, piece in _fields(data) if number == _PIECE]
    if not found:
        raise LoadError("holds no pieces; expected a SentencePiece model.")
    return found


def _text(piece: bytes) -> str:
    text = next((value for number, value in _fields(piece) if number == _PIECE), None)
    if text is None:
        raise LoadError("holds a piece without text; expected a SentencePiece model.")
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise LoadError(f"holds a piece that is not UTF-8: {error}. Is it a SentencePiece model?") from error


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and value of each delimited field; the others are stepped over."""
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        kind = key & 7
        if kind == _VARINT:
            _, place = _varint(data, place)
            continue
        if kind == _DELIMITED:
            length, place = _varint(data, place)
        elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
            length = 8 if kind == _EIGHT_BYTES else 4
        else:
            raise LoadError(f"is no SentencePiece model: wire type {kind} at byte {place}.")
        if place + length > len(data):
            raise LoadError(f"is cut short: a field of {length:,} bytes at byte {place} of {len(data):,}.")
        if kind == _DELIMITED:
            yield key >> 3, data[place : place + length]
        place += length


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """The number at a place, and the place after it."""
    number = 0
    for shift, byte in enumerate(data[place : place + _LONGEST_VARINT]):
        number |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return number, place + shift + 1
    raise LoadError(f"is no SentencePiece model, or cut short: no number at byte {place}.")
