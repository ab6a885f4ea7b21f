"""What the committed JSON files say, for the claims of the pages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from experiments.harness.cells import Cell

ROOT = Path(__file__).parent.parent.parent


@cache
def record(path: str) -> Any:
    """A file of the repository."""
    return json.loads((ROOT / path).read_text(encoding="utf-8"))


@cache
def _cells(name: str) -> tuple[Cell, ...]:
    return tuple(Cell(**cell) for cell in record(f"experiments/results/{name}.json")["cells"])


def cells(name: str, **settings: Any) -> list[Cell]:
    """The cells of an experiment that have these settings, in their order; there must be some."""
    found = [
        cell
        for cell in _cells(name)
        if all(cell.settings.get(key) == value for key, value in settings.items())
    ]
    if not found:
        raise LookupError(f"{name} has no cell with {settings}.")
    return found


def found(name: str, key: str, **settings: Any) -> list[Any]:
    """One thing that these cells found."""
    return [cell.found[key] for cell in cells(name, **settings)]


def mean(name: str, key: str, **settings: Any) -> float:
    """The same, on average."""
    return fmean(found(name, key, **settings))


def span(values: Sequence[float]) -> tuple[float, float]:
    """The least and the greatest."""
    return min(values), max(values)


def setting(name: str, key: str, **settings: Any) -> Any:
    """A setting that all these cells share."""
    values = {json.dumps(cell.settings[key]) for cell in cells(name, **settings)}
    if len(values) != 1:
        raise LookupError(f"{name} has several values of {key}: {', '.join(sorted(values))}.")
    return json.loads(values.pop())


def benchmark(name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = record(f"benchmarks/results/{name}.json")
    return found


def quoted(*values: float, source: str) -> tuple[float, ...]:
    """Numbers that a publication reports: no file here has them, so that the source is all there is."""
    if not source:
        raise ValueError("A quoted number needs its source.")
    return values


def significant(value: float, digits: int) -> float:
    """A value that a sentence gives roughly ("about 3,750")."""
    return float(f"{value:.{digits}g}")
