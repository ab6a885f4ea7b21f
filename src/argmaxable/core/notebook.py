"""Verdicts as a data frame and as a small HTML table, for those who work in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from argmaxable.core.errors import InputError
from argmaxable.core.labels import visible
from argmaxable.core.verdict import Status, Verdict, farthest_first

if TYPE_CHECKING:
    import pandas

_ROWS_SHOWN = 10
_LONGEST_LABEL = 60


def as_frame(verdicts: Sequence[Verdict]) -> pandas.DataFrame:
    """A data frame with a row for each verdict; raises InputError without pandas."""
    try:
        import pandas
    except ModuleNotFoundError as error:
        raise InputError("to_frame() needs pandas: pip install pandas.") from error
    columns = {
        "class_id": [verdict.class_id for verdict in verdicts],
        "label": [verdict.label for verdict in verdicts],
        "status": [verdict.status.value for verdict in verdicts],
        "lower": [verdict.lower for verdict in verdicts],
        "upper": [verdict.upper for verdict in verdicts],
        "ahead": [verdict.ahead for verdict in verdicts],
        "method": [verdict.method.value for verdict in verdicts],
        "strength": [verdict.strength and verdict.strength.value for verdict in verdicts],
        "is_tied": [verdict.is_tied for verdict in verdicts],
    }
    return pandas.DataFrame(columns)


def as_html(summary: str, verdicts: Sequence[Verdict]) -> str:
    """The summary over a table of the first unargmaxable classes. Labels come from files: all is escaped."""
    never = farthest_first(verdict for verdict in verdicts if verdict.status is Status.UNARGMAXABLE)
    parts = [f"<p>{escape(summary)}</p>"]
    if never:
        parts += ["<table><thead><tr><th>class</th><th>can never be predicted</th>"]
        parts += ["<th>margin at most</th></tr></thead><tbody>", *map(_row, never[:_ROWS_SHOWN])]
        parts += ["</tbody></table>"]
    if len(never) > _ROWS_SHOWN:
        parts += [f"<p>and {len(never) - _ROWS_SHOWN:,} more</p>"]
    return "".join(parts)


def _row(verdict: Verdict) -> str:
    cells = (verdict.class_id, visible(verdict.label[:_LONGEST_LABEL]), f"{verdict.upper:.3g}")
    return "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in cells) + "</tr>"
