"""Kraken's text recognisers: Core ML files with their network (VGSL) and characters in the metadata.

Kraken itself runs them, in PyTorch. Class 0 is CTC's blank; the codec says which numbers a character has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from argmaxable.core.errors import AmbiguousError, LoadError
from argmaxable.models.ambiguity import parse_json
from argmaxable.models.finding import Labels

_NETWORK, _CODEC = "vgsl", "codec"
_BLANK = "<blank>"
# An output layer that is also given a feature that is always 1.
_AUGMENTED = re.compile(r"O(\{[^}]*\})?\d[lsc]a\d+")


def is_kraken(metadata: Mapping[str, str]) -> bool:
    return _NETWORK in metadata


def require_plain(metadata: Mapping[str, str]) -> None:
    """Raise LoadError where the output layer has a constant feature, which the file does not store."""
    if _AUGMENTED.search(metadata[_NETWORK]):
        raise LoadError(
            "its output layer has an additional input that is always 1 (VGSL O…a), which is not supported"
        )


def labels_of(metadata: Mapping[str, str], classes: int) -> tuple[Labels | None, list[str]]:
    """The characters of the classes, or the reason why there are none."""
    codes = _codes(metadata.get(_CODEC, ""))
    if codes is None:
        return None, ["no labels: the model has no codec that gives each character a number of its own"]
    if sorted(codes) != list(range(1, classes)):
        reason = f"the codec has {len(codes)} numbers for {classes} classes, one of which is the blank"
        return None, [f"no labels: {reason}"]
    names = (_BLANK, *(codes[number] for number in range(1, classes)))
    return Labels(names, "the codec in the model's metadata", special=frozenset({0}), is_inside=True), []


def _codes(text: str) -> dict[int, str] | None:
    """Characters by their number; None where some have several, or share one. Raises AmbiguousError."""
    try:
        codec = parse_json(text, "the codec")
    except AmbiguousError:
        raise
    except LoadError:
        return None
    if not isinstance(codec, dict):
        return None
    found: dict[int, str] = {}
    for character, numbers in codec.items():
        match numbers:
            case [int(number)] if number not in found and not isinstance(number, bool):
                found[number] = character
            case _:
                return None
    return found
