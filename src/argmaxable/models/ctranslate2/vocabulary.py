"""The labels of a CTranslate2 model: the vocabulary file beside it that CTranslate2 itself would load."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import parse_json
from argmaxable.models.finding import Labels
from argmaxable.models.labels.readable import guess_kind, readable_tokens

_CONFIG = "config.json"
# Keys of config.json that name marks of the model, and the mark for unknown words where there is no key.
_MARKS = ("unk_token", "bos_token", "eos_token", "decoder_start_token")
_UNKNOWN = "<unk>"
# The largest vocabularies in use have 5 MB; parsed JSON takes about ten times its size.
_LARGEST_FILE = 128 * 2**20


def read_config(folder: Path) -> dict[str, Any]:
    """What config.json says, or nothing if there is none; raises LoadError."""
    path = folder / _CONFIG
    if not path.is_file():
        return {}
    config = parse_json(_bytes_of(path), _CONFIG)
    if not isinstance(config, dict):
        raise LoadError(f"{_CONFIG} beside it is not a JSON object. Fetch it again.")
    return config


def labels_beside(
    folder: Path, stems: Sequence[str], config: dict[str, Any], classes: int
) -> tuple[Labels | None, list[str]]:
    """Labels from the first vocabulary with one of these names, and why there are none if it does not fit."""
    files = (folder / f"{stem}{suffix}" for stem in stems for suffix in (".json", ".txt"))
    path = next((each for each in files if each.is_file()), None)
    if path is None:
        return None, []
    try:
        tokens = _from_json(path) if path.suffix == ".json" else _from_text(path)
        tokens = _with_unknown(tokens, config.get("unk_token"), classes)
    except (LoadError, OSError) as error:
        return None, [f"{path.name} was not used for labels: {error}"]
    marks = {token for key in _MARKS if isinstance(token := config.get(key), str)}
    special = frozenset(number for number, token in enumerate(tokens) if token in marks)
    return Labels(readable_tokens(tokens, guess_kind(tokens)), path.name, special=special), []


def _from_json(path: Path) -> list[str]:
    tokens = parse_json(_bytes_of(path), path.name)
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise LoadError("it is not a JSON list of strings.")
    return tokens


def _from_text(path: Path) -> list[str]:
    """One token on each line; a carriage return belongs to the line end if every line has one."""
    text = _bytes_of(path).decode(errors="backslashreplace")
    lines = text.removesuffix("\n").split("\n") if text else []
    return [line[:-1] for line in lines] if all(line.endswith("\r") for line in lines) else lines


def _with_unknown(tokens: list[str], unknown: object, classes: int) -> list[str]:
    """The tokens, with the one for unknown words behind them if only it is missing, as CTranslate2 has it."""
    mark = unknown if isinstance(unknown, str) else _UNKNOWN
    if len(tokens) + 1 == classes and mark not in tokens:
        return [*tokens, mark]
    if len(tokens) != classes:
        raise LoadError(f"it has {len(tokens):,} tokens for {classes:,} classes.")
    return tokens


def _bytes_of(path: Path) -> bytes:
    if path.stat().st_size > _LARGEST_FILE:
        raise LoadError(f"{path.name} has {path.stat().st_size:,} bytes, expected at most {_LARGEST_FILE:,}.")
    return path.read_bytes()
