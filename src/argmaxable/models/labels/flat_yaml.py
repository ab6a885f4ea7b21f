"""The part of YAML in which vocabularies are written: `token: 7` lines, and one list under a key.

Marian writes the first, PaddleOCR's inference.yml holds the second. Keys are always text here, as they
must be for tokens: YAML itself would read `no: 17` as a truth value and `0x1: 5` as a number. What goes
beyond (nesting, anchors, text over several lines) is refused, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous

# Far longer than any token; keeps the work on a line of garbage small.
_LONGEST_SCALAR = 10_000
_DOUBLE_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
# PyYAML takes these three for line breaks, doubles and indents them here; double quotes escape them.
_SINGLE_QUOTED = re.compile("'((?:[^'\x85\u2028\u2029]|'')*)'")
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")
_NAMED_ESCAPES = {
    **{"0": "\0", "a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b"},
    **{" ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029"},
}
# A plain scalar can't begin with these; -, ? and : only when no space follows.
_INDICATORS = (*",[]{}#&*!|>%@`", "- ", "? ", ": ")


def numbered_keys(text: str) -> Iterator[tuple[str, int]]:
    """Every `key: number` of a flat mapping, in order; raises LoadError on any other line."""
    for number, line in _entries(text):
        key, colon, value = line.rpartition(":")
        digits = value.strip(" ")
        if not (colon and digits.isascii() and digits.isdigit() and len(digits) < 20):
            raise LoadError(
                f"line {number} is {line[:60]!r}; expected a token and its number, as in 'word: 7'."
            )
        yield scalar(key.strip(" "), number), int(digits)


def list_under(text: str, keys: Sequence[str]) -> list[str]:
    """The items of the list that follows the first of these keys; raises LoadError when there is none."""
    wanted = {f"{key}:" for key in keys}
    found = sum(line.strip(" ") in wanted for _, line in _lines(text))
    if found > 1:
        raise ambiguous(f"it has {found} lists under {' or '.join(map(repr, keys))}")
    lines = _lines(text)
    if not any(line.strip(" ") in wanted for _, line in lines):
        raise LoadError(f"has no list under {' or '.join(map(repr, keys))}.")
    items: list[str] = []
    depth: int | None = None
    for number, line in lines:
        item = line.lstrip(" ")
        if not (item == "-" or item.startswith("- ")) or depth not in (None, len(line) - len(item)):
            break
        depth = len(line) - len(item)
        items.append(scalar(item[1:].strip(" "), number))
    return items


def scalar(text: str, line: int) -> str:
    """The string that a plain, 'quoted' or "quoted" scalar stands for."""
    if len(text) > _LONGEST_SCALAR:
        raise LoadError(f"line {line} holds {len(text):,} characters, too many for a label.")
    if text.startswith('"') and (found := _DOUBLE_QUOTED.fullmatch(text)):
        return _ESCAPE.sub(lambda escape: _unescaped(escape, line), found[1])
    if text.startswith("'") and (found := _SINGLE_QUOTED.fullmatch(text)):
        return found[1].replace("''", "'")
    if text.startswith(('"', "'", *_INDICATORS)):
        raise LoadError(
            f"line {line}: {text[:60]!r} is more YAML than is read here (one plain or quoted word per line). "
            "Save the labels as JSON or as text, one per line."
        )
    return text


def _unescaped(escape: re.Match[str], line: int) -> str:
    digits = escape[1] or escape[2] or escape[3]
    code = int(digits, 16) if digits else 0
    char = chr(code) if digits and code <= 0x10FFFF else _NAMED_ESCAPES.get(escape[4] or "", "")
    if not char:
        raise LoadError(f"line {line}: {escape[0]!r} is not a YAML escape.")
    return char


def _entries(text: str) -> Iterator[tuple[int, str]]:
    """Numbered lines; a long key, written "? key" with ": 7" on the next line, is joined with its number."""
    lines = _lines(text)
    for number, line in lines:
        if line.startswith("? "):
            _, value = next(lines, (0, ""))
            line = line[2:] + value if value.startswith(":") else line
        yield number, line


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Numbered lines that say something: comments and document marks left out."""
    # Only "\n" separates: str.splitlines would also split at characters that are tokens.
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.removesuffix("\r")
        if line.strip(" ") and not line.lstrip(" ").startswith("#") and line not in ("---", "..."):
            yield number, line
