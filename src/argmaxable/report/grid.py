"""A grid of cells as Markdown, LaTeX or CSV. Text in it comes from untrusted files: whatever a format
gives a meaning to is escaped, so that a label stays a label.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from argmaxable.core.labels import visible
from argmaxable.report.csv_table import PLAIN, Cell, CsvStyle, write_table

# What GitHub's Markdown reads as markup. An underscore inside a word is not, a colon only in the name of an
# emoji or an address, "#" only at the beginning of a word, ">" only of a line.
_MARKDOWN = re.compile(
    r"""
      [\\`*\[<|~$]
    | (?<![^\W_]) _ | _ (?![^\W_])
    | & (?= [\#A-Za-z])
    | : (?= [\w+-]+ : | //) | (?<= www) \.
    | (?<! \S) \# | \A >
    """,
    re.VERBOSE,
)
_LATEX = str.maketrans(
    {char: f"\\{char}" for char in "{}$&#_%"}
    | {
        "\\": r"\textbackslash{}",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "`": r"\textasciigrave{}",
        "'": r"\textquotesingle{}",
        '"': r"{\char34}",
        "±": r"$\pm$",
        # A row that starts with a bracket would be read as an argument of the \\ before it.
        "[": "{[}",
    }
)
# Two hyphens would be set as one dash.
_LATEX_DASH = re.compile("-(?=-)")


class GridFormat(StrEnum):
    """Ways to write a grid."""

    MARKDOWN = "markdown"
    LATEX = "latex"
    CSV = "csv"


@dataclass(frozen=True)
class Column:
    """`heading` is for people, `key` for machines. Floats are shown with `digits` after the point, or
    else with four digits in all. People see a column of zeros only with `when_zero`.
    """

    heading: str
    key: str
    is_number: bool = False
    digits: int | None = None
    when_zero: bool = True


@dataclass(frozen=True)
class Grid:
    """Columns, and for each row a cell in every column."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


def render(grid: Grid, form: GridFormat, style: CsvStyle = PLAIN) -> str:
    """The grid as text, its last line ended; `style` is for CSV."""
    return _csv(grid, style) if form is GridFormat.CSV else _WRITERS[form](grid)


def for_people(grid: Grid) -> Grid:
    """The grid without columns that would say nothing."""
    kept = [
        place
        for place, column in enumerate(grid.columns)
        if column.when_zero or any(row[place] for row in grid.rows)
    ]
    return Grid(
        tuple(grid.columns[place] for place in kept),
        tuple(tuple(row[place] for place in kept) for row in grid.rows),
    )


def as_cells(grid: Grid, escape: Callable[[str], str]) -> list[list[str]]:
    """Each row as text for people: numbers grouped, whatever can't be seen made visible."""
    return [
        [_shown(cell, column, escape) for cell, column in zip(row, grid.columns, strict=True)]
        for row in grid.rows
    ]


def _shown(cell: Cell, column: Column, escape: Callable[[str], str]) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, str):
        return escape(visible(cell))
    if isinstance(cell, int):
        return f"{cell:,}"
    return f"{cell:.4g}" if column.digits is None else f"{cell:,.{column.digits}f}"


def as_text(grid: Grid) -> list[str]:
    """The grid for a terminal: columns in line, numbers to the right."""
    shown = for_people(grid)
    lines = [[column.heading for column in shown.columns], *as_cells(shown, str)]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if column.is_number else cell.ljust(width)
            for cell, width, column in zip(line, widths, shown.columns, strict=True)
        ).rstrip()
        for line in lines
    ]


def in_markdown(text: str) -> str:
    """The text as Markdown that shows just that."""
    return _MARKDOWN.sub(lambda found: f"\\{found[0]}", text)


def in_latex(text: str) -> str:
    """The text as LaTeX that sets just that."""
    return _LATEX_DASH.sub("-{}", text.translate(_LATEX))


def _markdown(whole: Grid) -> str:
    grid = for_people(whole)
    headings = [in_markdown(column.heading) for column in grid.columns]
    rules = ["---:" if column.is_number else "---" for column in grid.columns]
    lines = [headings, rules, *as_cells(grid, in_markdown)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _latex(whole: Grid) -> str:
    grid = for_people(whole)
    sides = "".join("r" if column.is_number else "l" for column in grid.columns)
    headings = [in_latex(column.heading) for column in grid.columns]
    return "\n".join(
        [
            r"% needs \usepackage{booktabs}",
            rf"\begin{{tabular}}{{{sides}}}",
            r"\toprule",
            _latex_line(headings),
            r"\midrule",
            *(_latex_line(cells) for cells in as_cells(grid, in_latex)),
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def _latex_line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _csv(grid: Grid, style: CsvStyle) -> str:
    text = io.StringIO(newline="")
    write_table([column.key for column in grid.columns], grid.rows, text, style)
    return text.getvalue()


_WRITERS: dict[GridFormat, Callable[[Grid], str]] = {
    GridFormat.MARKDOWN: _markdown,
    GridFormat.LATEX: _latex,
}
