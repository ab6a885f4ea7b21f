"""argmaxable regions: how many rankings a head of a given size can put out at all."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

import click
from numpy.typing import NDArray

from argmaxable.cli.parameters import Option
from argmaxable.theory.regions import regions_table

# A table of more has numbers of thousands of digits, and takes gigabytes.
_MOST = 1000


class _Format(StrEnum):
    TABLE = "table"
    LATEX = "latex"
    CSV = "csv"


def regions(
    classes: Annotated[int, Option(min=1, max=_MOST, help="Rows: classes up to this number.")] = 10,
    dims: Annotated[int, Option(min=1, max=_MOST, help="Columns: features up to this number.")] = 10,
    bias: Annotated[bool, Option("--bias", help="Count for heads with a bias.")] = False,
    layout: Annotated[
        _Format,
        Option("--format", help="csv has one row for each C: C, then the counts for d = 1, 2, …"),
    ] = _Format.TABLE,
) -> None:
    """Count the rankings that a head of a given size can produce.

    For 10 classes and features this is Table 2 of Grivas et al. 2022, or with --bias its Table 3.

    \b
    Examples:
      argmaxable regions --classes 10 --dims 10
      argmaxable regions --classes 10 --dims 10 --bias --format latex

    \b
    Exit codes: 0, or 2 for bad input.
    """
    click.echo("\n".join(_LAYOUTS[layout](regions_table(classes, dims, bias=bias), bias)))


def _as_table(counts: NDArray[Any], bias: bool) -> list[str]:
    """Columns of equal alignment under the numbers of features."""
    lines = [["C \\ d", *map(str, range(1, counts.shape[1] + 1))]]
    lines += [[str(number), *map(str, row)] for number, row in enumerate(counts, start=1)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]


def _as_csv(counts: NDArray[Any], bias: bool) -> list[str]:
    return [",".join(map(str, [number, *row])) for number, row in enumerate(counts, start=1)]


def _as_latex(counts: NDArray[Any], bias: bool) -> list[str]:
    """A table for booktabs; from d = C − 1 on, printed bold, every ranking is feasible."""
    dims = counts.shape[1]
    rows = [
        " & ".join(
            [str(number)] + [rf"\textbf{{{n}}}" if d == number - 1 else str(n) for d, n in enumerate(row, 1)]
        )
        for number, row in enumerate(counts, start=1)
    ]
    return [
        rf"\begin{{tabular}}{{r|{'r' * dims}}}",
        r"\toprule",
        " & ".join([r"$|C| \backslash d$", *map(str, range(1, dims + 1))]) + r" \\",
        r"\midrule",
        *(rf"{row} \\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
        f"% feasible rankings of |C| classes, d features, {'with' if bias else 'no'} bias; bold: d = |C| - 1",
    ]


_LAYOUTS: dict[_Format, Callable[[NDArray[Any], bool], list[str]]] = {
    _Format.TABLE: _as_table,
    _Format.LATEX: _as_latex,
    _Format.CSV: _as_csv,
}
