"""Labels of classes as text that is safe and clear to print: nothing in them stays unseen."""

from __future__ import annotations

import unicodedata

# Drawn as nothing (Unicode's Default_Ignorable_Code_Point) or as a blank, whatever their category says:
# joiners and variation selectors are marks, the fillers letters, the blank Braille cell a symbol.
_BLANK = frozenset(
    {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0}.union(
        range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0)
    )
)


def visible(label: str) -> str:
    r"""The label with every character that can't be seen written as \u{…}; quoted where it has outer spaces.

    A combining mark is shown with the letter it belongs to, and escaped where it has none. No control
    character survives, so labels of untrusted files can't steer a terminal.
    """
    shown = _escaped(label)
    return f"'{shown}'" if shown != shown.strip(" ") or not shown else shown


def visible_text(text: str) -> str:
    """Text of our own that may quote such a label: as it is, but for characters that can't be seen."""
    return "\n".join(map(_escaped, text.split("\n")))


def _escaped(text: str) -> str:
    return "".join(
        char if _is_seen(char, text[place - 1 : place]) else f"\\u{{{ord(char):x}}}"
        for place, char in enumerate(text)
    )


def _is_seen(char: str, before: str) -> bool:
    category = unicodedata.category(char)
    if category[0] == "M":
        return bool(before) and unicodedata.category(before)[0] in "LMNPS" and ord(char) not in _BLANK
    return char == " " or (category[0] not in "CZ" and ord(char) not in _BLANK)
