"""The pieces of a SentencePiece model, read from its protobuf without the sentencepiece package.

Of the model only field 1, the repeated piece, matters here, and of a piece its text and its type.
"""

from __future__ import annotations

from typing import NamedTuple

from argmaxable.core.errors import AmbiguousError, LoadError
from argmaxable.models.ambiguity import ambiguous
from argmaxable.models.protobuf import fields

_PIECE = _TEXT = 1
_TYPE = 3
# Types of pieces that stand for no text: the unknown one, and controls such as <s>.
_SPECIAL = (b"\x02", b"\x03")


class Piece(NamedTuple):
    """A piece's text, and whether the file declares it a mark of the model rather than text."""

    text: str
    is_special: bool


def pieces(data: bytes) -> list[Piece]:
    """Every piece, in the order of their ids; raises LoadError."""
    try:
        found = [_piece(data, piece.start, piece.end) for piece in fields(data) if piece.number == _PIECE]
    except AmbiguousError:
        raise
    except (LoadError, UnicodeDecodeError) as error:
        raise LoadError(f"is not a SentencePiece model, or is damaged: {error}. Fetch it again.") from error
    if not found:
        raise LoadError("holds no pieces; expected a SentencePiece model.")
    return found


def _piece(data: bytes, start: int, end: int) -> Piece:
    text, is_special = None, False
    parts = list(fields(data, start, end))
    if any(sum(part.number == number for part in parts) > 1 for number in (_TEXT, _TYPE)):
        raise ambiguous(f"the piece at byte {start:,} has two texts or two types")
    for field in parts:
        if field.number == _TEXT and field.is_delimited:
            text = data[field.start : field.end].decode()
        elif field.number == _TYPE:
            is_special = data[field.start : field.end] in _SPECIAL
    if text is None:
        raise LoadError(f"no text in the piece at byte {start:,}")
    return Piece(text, is_special)
