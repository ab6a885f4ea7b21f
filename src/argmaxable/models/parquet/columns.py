"""The program that reads Parquet files, in a process of its own. With `report/parquet.py` it is the only
one that imports `pyarrow`, a native library that a damaged file may crash or make ask for any amount of
memory.

On stdin it gets one question in JSON: the file, and the column wanted. Without a column it answers with an
outline in JSON: rows, columns of vectors with their width, columns of texts or numbers; with one by its
values, as bytes or JSON; if it fails, with the reason.
"""

from __future__ import annotations

import json
import sys
from typing import Any


class _UnfitError(Exception):
    """A column can be read but is not what a head needs."""


_MISSING = "missing values. Drop those rows and write the table again"
_FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}


def main() -> int:
    """Answer the question on stdin; the exit status is 0, or FAILED or UNFIT when the answer is a reason."""
    question = json.load(sys.stdin)
    sys.path[:] = question["sys_path"]
    from argmaxable.models.keras.hdf5_reader import FAILED, UNFIT, limit_oneself

    try:
        limit_oneself(question["memory"], question["seconds"])
        import pyarrow as pa
        import pyarrow.parquet as pq

        pa.set_cpu_count(1)
        file, column = pq.ParquetFile(question["path"], memory_map=True), question["column"]
        answer = json.dumps(_outline(file)).encode() if column is None else _values(file, column)
    except _UnfitError as error:
        sys.stdout.write(str(error))
        return UNFIT
    except MemoryError:
        sys.stdout.write("it asks for more memory than its size explains")
        return FAILED
    except Exception as error:  # the library raises all kinds for damaged files
        sys.stdout.write((str(error) or repr(error)).splitlines()[0])
        return FAILED
    sys.stdout.buffer.write(answer)
    return 0


def _outline(file: Any) -> dict[str, Any]:
    vectors, labels = {}, []
    for field in file.schema_arrow:
        inner = getattr(field.type, "value_type", None)
        if inner is not None and str(inner) in _FLOATS:
            vectors[field.name] = _FLOATS[str(inner)]
        elif str(field.type) in ("string", "large_string") or str(field.type).startswith(("int", "uint")):
            labels.append(field.name)
    return {
        "rows": file.metadata.num_rows,
        "names": file.schema_arrow.names,
        "vectors": vectors,
        "labels": labels,
    }


def _values(file: Any, column: str) -> bytes:
    """Vectors as their width (8 bytes) and their numbers, other columns as a JSON list of texts."""
    import numpy as np

    # A name also selects the fields of a group of that name.
    array = file.read(columns=[column], use_threads=False).column(column).combine_chunks()
    inner = getattr(array.type, "value_type", None)
    if inner is None:
        if array.null_count:
            raise _UnfitError(f"column {column!r} has {_MISSING}")
        return json.dumps([str(value) for value in array.to_pylist()]).encode()
    if array.null_count or array.flatten().null_count:
        raise _UnfitError(f"column {column!r} has {_MISSING}")
    flat = array.flatten().to_numpy(zero_copy_only=False)
    lengths = (
        {array.type.list_size} if hasattr(array.type, "list_size") else set(array.value_lengths().to_pylist())
    )
    if len(lengths) != 1:
        raise _UnfitError(f"column {column!r} has vectors of {len(lengths)} different lengths")
    numbers: bytes = flat.astype(flat.dtype.newbyteorder("<")).tobytes()
    return np.int64(lengths.pop()).tobytes() + numbers


if __name__ == "__main__":
    sys.exit(main())
