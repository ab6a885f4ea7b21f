"""Rows as a Parquet file, the only module that knows pyarrow."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from argmaxable.core.errors import InputError
from argmaxable.report.rows import COLUMNS, Row

# Rows written at a time: a few MB, and row groups that readers like.
_BATCH = 65_536


def write_parquet(rows: Iterable[Row], path: str | os.PathLike[str]) -> None:
    """Write the rows as they come in; raises InputError without pyarrow and OSError from the disk."""
    pyarrow, parquet = _pyarrow()
    types = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64()}
    schema = pyarrow.schema([(name, types[kind]) for name, kind in COLUMNS.items()])
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for columns in _batches(rows):
            writer.write_table(pyarrow.table(columns, schema))


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise InputError(
            "writing Parquet needs pyarrow: pip install 'argmaxable[parquet]', or use --format csv or jsonl."
        ) from error
    return pyarrow, parquet


def _batches(rows: Iterable[Row]) -> Iterator[dict[str, list[Any]]]:
    source = iter(rows)
    while batch := list(islice(source, _BATCH)):
        columns: dict[str, list[Any]] = {name: [row[name] for row in batch] for name in COLUMNS}
        for name in ("model", "label"):
            columns[name] = [_encodable(text) for text in columns[name]]
        yield columns


def _encodable(text: str) -> str:
    """Parquet's text is UTF-8, which has no lone surrogates; they become escapes, as in our CSV."""
    return text.encode("utf-8", "backslashreplace").decode()
