"""Any Python text in a column of text, and back.

PostgreSQL refuses NUL, neither database takes half a surrogate pair, and labels may hold both. These
are written as SUB (U+001A, "substitute") and four hexadecimal digits, and so is SUB itself; all other
text stays as it is, so that people can search the tables.
"""

from __future__ import annotations

import re

_REFUSED = re.compile("[\x00\x1a\ud800-\udfff]")
_WRITTEN = re.compile("\x1a([0-9a-f]{4})")


def to_column(text: str) -> str:
    """The text without characters that a database refuses."""
    return _REFUSED.sub(lambda found: f"\x1a{ord(found[0]):04x}", text)


def from_column(text: str) -> str:
    """Inverse of `to_column`."""
    return _WRITTEN.sub(lambda found: chr(int(found[1], 16)), text)
