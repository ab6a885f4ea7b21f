"""Tokens as a person would write them, instead of as a tokenizer's file stores them.

A label is the text a token puts on the page: a token that starts a word has a plain space in front,
whether the file writes it Ġword (byte-level BPE) or ▁word (SentencePiece). Where there is no such text
the stored form stays, because dropping the mark would give two tokens one label: byte tokens (<0x0A>),
WordPiece continuations (##ing beside ing), subword-nmt's (wo@@). Invisible characters are left for
`argmaxable.core.labels.visible` to escape when a label is printed, so that labels remain text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

BYTE_LEVEL = "byte-level"
SENTENCEPIECE = "sentencepiece"
WORDPIECE = "wordpiece"
PLAIN = "plain"
KINDS = (BYTE_LEVEL, SENTENCEPIECE, WORDPIECE, PLAIN)

# Bytes that GPT-2's table leaves alone; the others, in order, become the characters from U+0100 on.
_KEPT_BYTES = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_MOVED_BYTES = [byte for byte in range(256) if byte not in _KEPT_BYTES]
_BYTE_OF = {chr(byte): byte for byte in _KEPT_BYTES} | {
    chr(0x100 + place): byte for place, byte in enumerate(_MOVED_BYTES)
}
_UNDECODED = re.compile("[\udc80-\udcff]")


def readable_token(token: str, kind: str) -> str:
    """The text a token stands for; `kind` is one of KINDS, the tokenizer's way of writing spaces.

    Bytes that are not text by themselves, being part of a character, are shown as <0xE2>. Tokens that
    the tokenizer did not make (special ones) may not follow its rules and then stay as they are.
    """
    if kind not in KINDS:
        raise ValueError(f"kind of token {kind!r}; expected one of {', '.join(KINDS)}.")
    if kind == BYTE_LEVEL:
        return _text_of_bytes(token)
    text = token.replace("▁", " ") if kind == SENTENCEPIECE else token
    # JSON can hold half a surrogate pair, which no file or terminal accepts.
    return text.encode("utf-8", "backslashreplace").decode()


def readable_tokens(tokens: Sequence[str], kind: str) -> tuple[str, ...]:
    """`readable_token` of each; of those that would look alike, all but the literal one stay as stored."""
    names = [readable_token(token, kind) for token in tokens]
    shared = {name for name, count in Counter(names).items() if count > 1}
    return tuple(
        readable_token(token, PLAIN) if name in shared else name
        for token, name in zip(tokens, names, strict=True)
    )


def guess_kind(tokens: Sequence[str]) -> str:
    """How a vocabulary writes spaces, told from the tokens themselves.

    Tokenizers with such marks have them on 10 to 60 % of the tokens. ▁ is rare otherwise; Ġ is also a
    letter of Maltese, so it must be more frequent to count.
    """
    starts = Counter(token[:1] for token in tokens)
    if starts["Ġ"] * 20 > len(tokens):
        return BYTE_LEVEL
    if starts["▁"] * 100 > len(tokens):
        return SENTENCEPIECE
    return WORDPIECE if any(token.startswith("##") and len(token) > 2 for token in tokens) else PLAIN


def _text_of_bytes(token: str) -> str:
    try:
        raw = bytes(map(_BYTE_OF.__getitem__, token))
    except KeyError:  # a token added by hand, e.g. <｜begin▁of▁sentence｜> or a run of spaces
        return readable_token(token, PLAIN)
    return text_of_bytes(raw)


def text_of_bytes(raw: bytes) -> str:
    """Bytes as text; those that are no text by themselves, being part of a character, are shown as <0xE2>."""
    text = raw.decode("utf-8", "surrogateescape")
    return _UNDECODED.sub(lambda found: f"<0x{ord(found[0]) - 0xDC00:02X}>", text)
