"""How commands write CSV: as data into a pipe, so that it harms no spreadsheet otherwise, and no terminal."""

from __future__ import annotations

import os
import stat
import sys
from typing import Annotated

from argmaxable.cli.parameters import Option
from argmaxable.report.csv_table import CsvStyle

Safe = Annotated[
    bool | None,
    Option(
        "--safe/--no-safe",
        help="Make CSV safe for spreadsheets: an apostrophe before text that looks like a formula, "
        "and a column 'escaped' that names the columns (default unless stdout is a pipe).",
    ),
]


def csv_style(safe: bool | None, *, is_printed: bool = True) -> CsvStyle:
    """The style that was asked for; `is_printed` unless it goes into a file of its own."""
    is_safe = not _is_piped() if safe is None else safe
    return CsvStyle(is_safe=is_safe, is_shown=is_printed and sys.stdout.isatty())


def _is_piped() -> bool:
    """Whether a program reads what is printed."""
    try:
        mode = os.fstat(sys.stdout.fileno()).st_mode
    except (OSError, ValueError):  # no file at all: somebody captures it
        return True
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
