"""CSV as RFC 4180 has it, for programs; and as a spreadsheet or a terminal can be trusted with.

Labels come from untrusted files. A spreadsheet would run one that begins like a formula, and a terminal would
obey one with control characters.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TextIO

from argmaxable.core.labels import visible_text

Cell = str | int | float | bool | None

# What spreadsheets take for the beginning of a formula, in full width too; blanks before it do not help.
_FORMULA = tuple("=+-@＝＋－＠")
_BLANKS = " \t\r\n\v\f\u00a0\u3000"
# The column that says in which others an apostrophe was put before the text.
ESCAPED = "escaped"


@dataclass(frozen=True)
class CsvStyle:
    """`is_safe`: for spreadsheets, which take text with an apostrophe before it as it is. `is_shown`: for a
    terminal, with every character that can't be seen written out."""

    is_safe: bool = False
    is_shown: bool = False


PLAIN = CsvStyle()


def write_table(
    columns: Sequence[str], rows: Iterable[Sequence[Cell]], stream: TextIO, style: CsvStyle = PLAIN
) -> None:
    """A heading, then the rows; the stream must not translate line ends.

    A safe table has one more column, `escaped`, with the names of the row's columns that have an apostrophe
    more than the data: nothing is lost.
    """
    writer = csv.writer(stream)
    writer.writerow([*columns, *([ESCAPED] if style.is_safe else [])])
    for row in rows:
        fields = [_field(cell, style) for cell in row]
        writer.writerow(_escaped(columns, row, fields) if style.is_safe else fields)


def _escaped(columns: Sequence[str], row: Sequence[Cell], fields: Sequence[str]) -> list[str]:
    risky = [_is_formula(cell) for cell in row]
    names = [name for name, is_risky in zip(columns, risky, strict=True) if is_risky]
    return [*(f"'{text}" if bad else text for text, bad in zip(fields, risky, strict=True)), " ".join(names)]


def without_apostrophes(fields: dict[str, str]) -> dict[str, str]:
    """A row of a table, safe or not, as it was before `write_table`."""
    names = fields.get(ESCAPED, "").split()
    return {name: text[1:] if name in names and text[:1] == "'" else text for name, text in fields.items()}


def _is_formula(cell: Cell) -> bool:
    return isinstance(cell, str) and cell.lstrip(_BLANKS).startswith(_FORMULA)


def _field(cell: Cell, style: CsvStyle) -> str:
    """Numbers in full, nothing for a missing one, text as it is."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, str):
        # A line feed too: after one a label could pass for a row of its own.
        return visible_text(cell).replace("\n", "\\u{a}") if style.is_shown else cell
    return repr(cell) if isinstance(cell, float) else str(cell)
