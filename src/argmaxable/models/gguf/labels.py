"""The names of a GGUF file's classes: its tokens, as a person would write them, or a classifier's labels.

The file says of each token whether it is text in the tokenizer's own writing, or literal (control tokens and
those added by hand), or only fills a gap: converters write [PAD32000] where a row has no token.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from argmaxable.models.finding import Labels
from argmaxable.models.labels.readable import (
    BYTE_LEVEL,
    PLAIN,
    SENTENCEPIECE,
    guess_kind,
    readable_token,
    readable_tokens,
)

if TYPE_CHECKING:
    from argmaxable.models.gguf.header import GGUFHeader

_TOKENS, _TYPES = "tokenizer.ggml.tokens", "tokenizer.ggml.token_type"
_CLASSES = "classifier.output_labels"
# The ends of the keys whose arrays are read here.
ARRAYS = (_TOKENS, _TYPES, f".{_CLASSES}")

# How the tokens of each tokenizer.ggml.model are written; converters give BERT's the ▁ of SentencePiece.
_KINDS = {
    "bert": SENTENCEPIECE, "gemma4": SENTENCEPIECE, "gpt2": BYTE_LEVEL, "hybriddna": BYTE_LEVEL,
    "llama": SENTENCEPIECE, "plamo2": PLAIN, "t5": SENTENCEPIECE,
}  # fmt: skip
# Values of tokenizer.ggml.pre that make "gpt2" write ▁ too.
_SPACES_AS_SENTENCEPIECE = ("gemma4", "granite-embed-multi-311m", "sarvam-moe")
_LITERAL, _UNUSED = (2, 3, 4), 5  # of token_type: unknown, control and user-defined tokens; unused ones
_PADDING = re.compile(r"▁?\[PAD\d+\]")
# Only the last rows of its vocabulary, the codes of sounds, are in its output layer.
_LAST_TOKENS = "qwen3tts"
# RWKV writes the bytes of a token as Python does.
_ESCAPE = re.compile(rb"\\(?:x([0-9a-f]{2})|(.))", re.DOTALL)
_ESCAPED = {b"t": b"\t", b"n": b"\n", b"r": b"\r"}


def class_labels(header: GGUFHeader) -> Labels | None:
    """The labels of a classifier's output layer, or None if the file has none."""
    key = f"{header.architecture}.{_CLASSES}"
    names = _strings(header, key)
    return Labels(readable_tokens(names, PLAIN), f"the file's {key}") if names else None


def token_labels(header: GGUFHeader, classes: int) -> Labels | None:
    """The tokens as labels for an output layer of so many classes, or None if the file has none.

    Padding after the last token gets no label; a gap before it is called <unused 5>.
    """
    tokens, stored = _strings(header, _TOKENS), header.metadata.get(_TYPES)
    types = stored if isinstance(stored, tuple) and len(stored) == len(tokens) else (None,) * len(tokens)
    if header.architecture == _LAST_TOKENS:
        tokens, types = tokens[-classes:], types[-classes:]
    used = [
        not (kind == _UNUSED and _PADDING.fullmatch(token)) for token, kind in zip(tokens, types, strict=True)
    ]
    count = max((number + 1 for number, is_used in enumerate(used) if is_used), default=0)
    if not count:
        return None
    names = _readable(header, tokens[:count])
    for number in range(count):
        if not used[number]:
            names[number] = f"<unused {number}>"
        elif types[number] in _LITERAL:
            names[number] = readable_token(tokens[number], PLAIN)
    return Labels(tuple(names), f"the file's {_TOKENS}", may_be_padded=True)


def _readable(header: GGUFHeader, tokens: Sequence[str]) -> list[str]:
    model, pre = (header.metadata.get(f"tokenizer.ggml.{key}") for key in ("model", "pre"))
    if model == "rwkv":
        return [_unescaped(token) for token in tokens]
    if model == "gpt2" and pre in _SPACES_AS_SENTENCEPIECE:
        return list(readable_tokens(tokens, SENTENCEPIECE))
    return list(readable_tokens(tokens, _KINDS.get(str(model)) or guess_kind(tokens)))


def _unescaped(token: str) -> str:
    """The text of RWKV's token; as it is stored, where its bytes are only a part of a character."""
    raw = _ESCAPE.sub(_byte_of, token.encode())
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return token


def _byte_of(found: re.Match[bytes]) -> bytes:
    number, character = found.groups()
    return bytes.fromhex(number.decode()) if number else _ESCAPED.get(character, character)


def _strings(header: GGUFHeader, key: str) -> tuple[str, ...]:
    values = header.metadata.get(key)
    return tuple(value for value in values if isinstance(value, str)) if isinstance(values, tuple) else ()
