"""The pieces of a SentencePiece model, read from its protobuf without the sentencepiece package.

Of the model only field 1, the repeated piece, matters here, and of a piece only field 1, its text.
"""

from __future__ import annotations

from argmaxable.errors import LoadError
from argmaxable.load.protobuf import fields

_PIECE = _TEXT = 1


def pieces(data: bytes) -> list[str]:
    """The text of every piece, in the order of their ids; raises LoadError."""
    try:
        found = [_text(data, piece.start, piece.end) for piece in fields(data) if piece.number == _PIECE]
    except (LoadError, UnicodeDecodeError) as error:
        raise LoadError(f"is no SentencePiece model, or damaged: {error}. Fetch it again.") from error
    if not found:
        raise LoadError("holds no pieces; expected a SentencePiece model.")
    return found


def _text(data: bytes, start: int, end: int) -> str:
    for field in fields(data, start, end):
        if field.number == _TEXT and field.is_delimited:
            return data[field.start : field.end].decode()
    raise LoadError(f"no text in the piece at byte {start:,}")
