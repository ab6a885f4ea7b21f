"""Tables as Markdown writes them."""

from __future__ import annotations

from collections.abc import Sequence


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, text_columns: int = 1) -> str:
    """The rows under their columns, the first so many of them text and the others numbers; "" without rows.

    Raises ValueError for a row that does not fit the columns.
    """
    if not rows:
        return ""
    for row in rows:
        if len(row) != len(columns):
            raise ValueError(f"a row has {len(row)} entries for {len(columns)} columns: {row}.")
    rule = [*["---"] * text_columns, *["---:"] * (len(columns) - text_columns)]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in (columns, rule, *rows))
