"""What the outputs of Tesseract's softmax stand for: characters, parts of characters, or no character.

A recoder (`UnicharCompress`) gives each character of the character set one code or more. Outputs are codes.
"""

from __future__ import annotations

from collections.abc import Sequence

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous, twice
from argmaxable.models.finding import Labels
from argmaxable.models.tesseract.file import DAMAGED, TessdataReader

NULL = "<null>"
_SPACE = "NULL"  # how a character set spells a space, and nothing else
_LONGEST_CODE = 9
# The largest character sets in use have 15,000 characters.
_MOST_CHARACTERS = 2**20
Codes = Sequence[tuple[int, ...]]


def read_characters(reader: TessdataReader) -> list[str]:
    """The characters of a character set, by their numbers; raises LoadError."""
    first = reader.line()
    count = int(first) if first.strip().isdigit() and len(first) < 9 else -1
    if not 0 < count <= _MOST_CHARACTERS:
        raise LoadError(f"the character set declares {first[:20]!r} characters. {DAMAGED}")
    return _checked([reader.line() for _ in range(count)])


def _checked(lines: Sequence[bytes]) -> list[str]:
    names = []
    for line in lines:
        words = line.split()
        if not words:
            raise LoadError(f"a line of the character set is empty. {DAMAGED}")
        try:
            names.append(words[0].decode())
        except UnicodeDecodeError as error:
            raise LoadError(f"a character is not UTF-8. {DAMAGED}") from error
    if (repeated := twice(names)) is not None:
        raise ambiguous(f"the character set has {repeated[:40]!r} twice")
    return [" " if name == _SPACE else name for name in names]


def read_codes(reader: TessdataReader) -> Codes:
    """The codes of each character, after which one for no character may follow; raises LoadError."""
    count = reader.number("I", "the number of codes")
    if count > _MOST_CHARACTERS:
        raise LoadError(
            f"declares codes for {count} characters, expected at most {_MOST_CHARACTERS}. {DAMAGED}"
        )
    codes = []
    for _ in range(count):
        _, length = reader.numbers("bI", "a code")
        if not 0 < length <= _LONGEST_CODE:
            raise LoadError(f"a code has {length} parts, expected 1 to {_LONGEST_CODE}. {DAMAGED}")
        codes.append(reader.numbers(f"{length}i", "a code"))
    return codes


def output_labels(characters: Sequence[str], codes: Codes, null: int, outputs: int) -> Labels:
    """The name of every output; raises LoadError where codes and outputs don't fit."""
    largest = max((part for code in codes for part in code), default=-1)
    smallest = min((part for code in codes for part in code), default=0)
    if (
        smallest < 0
        or largest >= outputs
        or not 0 <= null < outputs
        or not 0 <= len(codes) - len(characters) <= 1
    ):
        raise LoadError(
            f"codes from {smallest} to {largest} of {len(codes)} characters, with {null} for none, don't fit "
            f"a softmax of {outputs} outputs and a set of {len(characters)} characters. {DAMAGED}"
        )
    whole: dict[int, str] = {}
    parts: dict[int, list[str]] = {}
    for character, code in zip(characters, codes, strict=False):
        if len(code) == 1:
            whole[code[0]] = character  # of two characters Tesseract writes the last
        else:
            for part in dict.fromkeys(code):
                parts.setdefault(part, []).append(character)
    names = [_name(number, null, whole, parts) for number in range(outputs)]
    return Labels(tuple(names), "the file's character set", special=frozenset({null}), is_inside=True)


def _name(number: int, null: int, whole: dict[int, str], parts: dict[int, list[str]]) -> str:
    if number == null:
        return NULL
    if number in whole:
        return whole[number]
    if number not in parts:
        return f"<unused {number}>"
    first, *more = parts[number]
    return f"code {number}: part of {first}" + (f" and {len(more)} more" if more else "")
