"""Verdicts as rows for other programs: JSON Lines and CSV, written as they are read, however many.

Evidence has no place in a row; a proof bundle carries it. `argmaxable import` reads the CSV back.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TextIO

from argmaxable.report.csv_table import PLAIN, Cell, CsvStyle, write_table
from argmaxable.report.published import UNNUMBERED

if TYPE_CHECKING:
    from argmaxable.core.verdict import Verdict

Row = dict[str, Cell]

# The columns and the type of what is in them; parquet.py translates it.
COLUMNS: dict[str, type] = {
    "model": str,
    "class": int,
    "label": str,
    "status": str,
    "lower": float,
    "upper": float,
    "method": str,
    "strength": str,
    "tie_group": int,
    "steps": int,
    "rows": int,
    "seconds": float,
    "radius": float,
    "reason": str,
}


def as_rows(model: str, verdicts: Iterable[Verdict]) -> Iterator[Row]:
    """A row for each verdict, with the COLUMNS in their order.

    A bound that is infinite says nothing and is missing. Classes that tie have the group's first class
    as their `tie_group`: to list all members for each of them would take the square of their number.
    """
    for verdict in verdicts:
        yield {
            "model": model,
            "class": known_class(verdict),
            "label": verdict.label,
            "status": verdict.status.value,
            "lower": finite(verdict.lower),
            "upper": finite(verdict.upper),
            "method": verdict.method.value,
            "strength": None if verdict.strength is None else verdict.strength.value,
            "tie_group": verdict.tie_group[0] if verdict.tie_group else None,
            "steps": verdict.steps,
            "rows": verdict.rows,
            "seconds": finite(verdict.seconds),
            "radius": finite(verdict.radius),
            "reason": verdict.reason or None,
        }


def finite(number: float | None) -> float | None:
    """The number, None where it says nothing."""
    return number if number is not None and math.isfinite(number) else None


def known_class(verdict: Verdict) -> int | None:
    """The class's number, None where only its label was published."""
    return verdict.class_id if verdict.class_id < UNNUMBERED else None


def write_jsonl(rows: Iterable[Row], stream: TextIO) -> None:
    """A JSON object a line, in ASCII: lone surrogates, which a label may hold, have no other form."""
    for row in rows:
        stream.write(json.dumps(row) + "\n")


def write_csv(rows: Iterable[Row], stream: TextIO, style: CsvStyle = PLAIN) -> None:
    """CSV as RFC 4180 has it, a heading first; the stream must not translate line ends."""
    write_table(list(COLUMNS), (list(row.values()) for row in rows), stream, style)
