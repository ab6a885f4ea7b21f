"""What the small files beside a vocabulary say about it: tokenizer_config.json, added_tokens.json,
special_tokens_map.json and config.json. These declare tokens that were added behind the vocabulary, tokens
that are marks of the model rather than text, and which tokenizer numbers them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from argmaxable.core.errors import AmbiguousError, LoadError
from argmaxable.models.ambiguity import parse_json

_CONFIG, _TOKENIZER_CONFIG = "config.json", "tokenizer_config.json"
_ADDED, _SPECIAL = "added_tokens.json", "special_tokens_map.json"
# The largest tokenizer_config.json in use has 0.2 MB.
_LARGEST_FILE = 16 * 2**20
_DIGITS = 10
# Sentinels of a T5 unless it says otherwise.
_EXTRA_IDS = 100


@dataclass(frozen=True)
class TokenizerSettings:
    """What is declared beside a vocabulary; empty where nothing is.

    `added` are tokens by number, `special` the special ones among all tokens, `extra_ids` how many sentinels
    a T5 has and `language_codes` the name of the list of languages an M2M-100 has.
    """

    tokenizer_class: str = ""
    model_type: str = ""
    added: tuple[tuple[int, str], ...] = ()
    special: frozenset[str] = frozenset()
    extra_ids: int = _EXTRA_IDS
    language_codes: str = ""


def settings_beside(folder: Path) -> TokenizerSettings:
    """What the files in a folder declare; those that are damaged or not there declare nothing.

    Raises AmbiguousError where one of them has a key twice.
    """
    tokenizer, config = _object(folder / _TOKENIZER_CONFIG), _object(folder / _CONFIG)
    decoder = tokenizer.get("added_tokens_decoder")
    listed = decoder if isinstance(decoder, dict) else {}
    added: dict[int, str | None] = {
        number: token for token, number in _object(folder / _ADDED).items() if isinstance(number, int)
    }
    added |= {int(key): _content(token) for key, token in listed.items() if _is_number(key)}
    named = [*_named_tokens(tokenizer), *_named_tokens(_object(folder / _SPECIAL))]
    declared = [
        _content(token) for token in listed.values() if isinstance(token, dict) and token.get("special")
    ]
    extra = tokenizer.get("extra_ids")
    return TokenizerSettings(
        tokenizer_class=_text(tokenizer.get("tokenizer_class")),
        model_type=_text(config.get("model_type")),
        added=tuple((number, token) for number, token in added.items() if token is not None and number >= 0),
        special=frozenset(token for token in (*named, *declared) if token),
        extra_ids=extra if isinstance(extra, int) and 0 <= extra <= _LARGEST_FILE else _EXTRA_IDS,
        language_codes=_text(tokenizer.get("language_codes")),
    )


def _named_tokens(settings: Mapping[str, Any]) -> Iterator[str | None]:
    """The tokens with a role, such as bos_token, and those listed without one."""
    for key, value in settings.items():
        if key.endswith("_token"):
            yield _content(value)
        elif key in ("additional_special_tokens", "extra_special_tokens"):
            values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
            yield from map(_content, values)


def _is_number(key: str) -> bool:
    return key.isascii() and key.isdigit() and len(key) < _DIGITS


def _content(token: object) -> str | None:
    """A token, which is written as a text or as an object with that and how it is matched."""
    content = token.get("content") if isinstance(token, dict) else token
    return content if isinstance(content, str) else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _object(path: Path) -> dict[str, Any]:
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_FILE:
            return {}
        value = parse_json(path.read_bytes(), path.name)
    except AmbiguousError:
        raise
    except (OSError, LoadError):
        return {}
    return value if isinstance(value, dict) else {}
