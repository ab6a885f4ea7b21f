"""The form in which measured numbers stand on a page: tables, paragraphs, sizes, durations."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"


def result(name: str) -> Any:
    """What a benchmark wrote."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def table(header: str, rows: Iterator[tuple[str, ...]]) -> str:
    """Markdown; the header's cells are parted by |."""
    cells = header.split("|")
    lines = [cells, ["---"] * len(cells), *rows]
    return "\n".join(
        f"| {' | '.join(cell.strip() for cell in line)} |".replace("|  |", "| |") for line in lines
    )


def paragraph(*sentences: str, indent: str = "") -> str:
    """The sentences in lines of a page's width."""
    return textwrap.fill(
        " ".join(sentences), 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def size(head: dict[str, Any]) -> str:
    return f"{head['classes']:,} × {head['features']:,}"


def duration(seconds: float) -> str:
    for limit, unit, name in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"{seconds / unit:.3g} {name}" if unit == 1 else f"{seconds / unit:.0f} {name}"
    return f"{seconds / 86_400:.0f} days"
