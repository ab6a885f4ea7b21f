"""Vectors in a column of a Parquet file, one for each item. The library that reads it runs in a process of
its own (`columns`), with a limit on memory and time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous, twice
from argmaxable.models.finding import Finding, Labels, TensorInfo
from argmaxable.models.item_vectors import ItemVectors, Metric, finding_of_items
from argmaxable.models.keras.hdf5 import ask, is_installed
from argmaxable.models.parquet import columns

if TYPE_CHECKING:
    from argmaxable.models.registry import ReadOptions

# Columns of labels, the likeliest first.
_LABELS = ("label", "name", "title", "word", "token", "text", "item_id", "item", "id")
# pyarrow takes 600 MB of address space before it reads anything.
_MEMORY = 2 << 30
_SECONDS = 60
# What is read, what is handed over, a copy in order; embeddings hardly compress.
_BYTES_A_BYTE = 16
_DAMAGED = "It may be cut short or damaged; write it again."


def find(path: Path, options: ReadOptions) -> Finding:
    """The column of vectors as a head; raises LoadError."""
    outline = json.loads(_ask(path, None))
    name = _column(outline, options.tensor)
    raw = _ask(path, name)
    width, rows = int.from_bytes(raw[:8], "little"), int(outline["rows"])
    dtype = np.dtype(outline["vectors"][name])
    if not rows or not width or len(raw) - 8 != rows * width * dtype.itemsize:
        raise LoadError(f"column {name!r} has {len(raw) - 8} bytes for {rows} vectors of {width}. {_DAMAGED}")

    def read() -> NDArray[Any]:
        return np.frombuffer(raw, dtype.newbyteorder("<"), offset=8).reshape(rows, width)

    weight = TensorInfo(name, (rows, width), dtype.name)
    why = "chosen by name" if options.tensor else "the only column of vectors"
    items = ItemVectors("parquet", weight, why, read, _labels(path, outline, rows))
    return finding_of_items(items, Metric.INNER_PRODUCT, options)


def _column(outline: Mapping[str, Any], wanted: str | None) -> str:
    repeated = twice(outline["names"])
    if repeated is not None:
        raise ambiguous(f"two columns are called {repeated[:80]!r}", "Write the table again.")
    vectors = list(outline["vectors"])
    if wanted in vectors or (wanted is None and len(vectors) == 1):
        return wanted or str(vectors[0])
    asked = "" if wanted is None else f"column {wanted!r} has none. "
    raise LoadError(
        f"{asked}Columns with vectors of floats: {', '.join(vectors) or 'none'} (all columns: "
        f"{', '.join(outline['names'])}). Choose one with tensor= (--tensor)."
    )


def _labels(path: Path, outline: Mapping[str, Any], rows: int) -> Labels | None:
    name = next((name for name in _LABELS if name in outline["labels"]), None)
    if name is None:
        return None
    try:
        names = json.loads(_ask(path, name))
    except LoadError:  # some are missing
        return None
    return Labels(tuple(names), f"the column {name}") if len(names) == rows else None


def _ask(path: Path, column: str | None) -> bytes:
    if not is_installed("pyarrow"):
        raise LoadError("reading Parquet files needs the package pyarrow: pip install 'argmaxable[parquet]'")
    memory = _MEMORY + _BYTES_A_BYTE * path.stat().st_size
    question = {"path": os.fspath(path.resolve()), "column": column, "memory": memory, "seconds": _SECONDS}
    return ask(columns.__file__, question, "Parquet")
