"""Flat indices of faiss (IndexFlatIP, IndexFlatL2), alone or with ids of their own (IndexIDMap).

Such a file is a header, then all vectors in float32, as faiss's `write_index` has them. Other indices
compress vectors or search only some of them: what they return is not the argmax of a linear layer.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.models.finding import Finding, Labels, TensorInfo
from argmaxable.models.item_vectors import ItemVectors, Metric, finding_of_items

if TYPE_CHECKING:
    from argmaxable.models.registry import ReadOptions

_FLAT = {b"IxFI", b"IxF2", b"IxFl"}
_WITH_IDS = {b"IxMp", b"IxM2"}
# Dimension, number of vectors, two numbers without meaning, is_trained, metric.
_HEADER = struct.Struct("<iqqqBi")
_METRICS = {0: Metric.INNER_PRODUCT, 1: Metric.L2}
_DAMAGED = "The file is cut short or damaged; write it again."


@dataclass(frozen=True)
class _Header:
    size: int
    count: int
    metric: Metric


def find(path: Path, options: ReadOptions) -> Finding:
    """The vectors of a flat index as a head; raises LoadError."""
    if options.tensor is not None:
        raise LoadError("a faiss index has one matrix: leave out tensor= (--tensor).")
    with path.open("rb") as file:
        code = file.read(4)
        header = _read_header(file, code) if code in _WITH_IDS else None
        code = file.read(4) if header is not None else code
        if code not in _FLAT:
            raise LoadError(
                f"is a faiss index of the kind {code!r}; only flat ones (IndexFlatIP, IndexFlatL2, "
                "also in an "
                "IndexIDMap) rank by exact scores. Save the vectors with numpy.save instead."
            )
        flat = _read_header(file, code)
        start = _skip_vectors(file, flat)
        labels = None if header is None else _read_ids(file, flat, header)
        if file.read(1):
            raise LoadError(f"has bytes after its end, which no faiss index has. {_DAMAGED}")
    shape = (flat.count, flat.size)

    def read() -> NDArray[Any]:
        values = np.fromfile(path, "<f4", flat.count * flat.size, offset=start)
        if len(values) != flat.count * flat.size:  # the file shrank since
            raise LoadError(f"ends after {len(values)} numbers. {_DAMAGED}")
        return values.reshape(shape)

    weight = TensorInfo("vectors", shape, "float32")
    why = f"the vectors of a flat index, {flat.metric.name.lower().replace('_', ' ')}"
    return finding_of_items(ItemVectors("faiss", weight, why, read, labels), flat.metric, options)


def _read_header(file: IO[bytes], code: bytes) -> _Header:
    raw = file.read(_HEADER.size)
    if len(raw) < _HEADER.size:
        raise LoadError(f"ends inside its header. {_DAMAGED}")
    size, count, _, _, _, metric = _HEADER.unpack(raw)
    if metric not in _METRICS:
        raise LoadError(
            f"is a faiss index with metric {metric}; inner product (0) and L2 (1) are the ones whose first "
            "result is the argmax of a linear layer."
        )
    if (code, metric) in ((b"IxFI", 1), (b"IxF2", 0)):
        raise LoadError(f"is called {code.decode()} but says metric {metric}. {_DAMAGED}")
    if size < 1 or count < 1:
        raise LoadError(f"declares {count} vectors of {size} numbers; expected at least one of each.")
    return _Header(size, count, _METRICS[metric])


def _left(file: IO[bytes]) -> int:
    return os.fstat(file.fileno()).st_size - file.tell()


def _read_count(file: IO[bytes], what: str, expected: int, width: int) -> None:
    """The number of entries before a block of them, which must be as many and all there."""
    raw = file.read(8)
    count = int.from_bytes(raw, "little")
    if len(raw) < 8 or count != expected or _left(file) < expected * width:
        raise LoadError(
            f"has {count} {what}, expected {expected}, and {_left(file)} bytes of them. {_DAMAGED}"
        )


def _skip_vectors(file: IO[bytes], header: _Header) -> int:
    _read_count(file, "numbers", header.count * header.size, 4)
    start = file.tell()
    file.seek(4 * header.count * header.size, os.SEEK_CUR)
    return start


def _read_ids(file: IO[bytes], flat: _Header, outer: _Header) -> Labels:
    if flat != outer:
        raise LoadError(f"is an IndexIDMap around an index of another shape or metric. {_DAMAGED}")
    _read_count(file, "ids", flat.count, 8)
    ids = np.frombuffer(file.read(8 * flat.count), "<i8")
    return Labels(tuple(map(str, ids.tolist())), "the ids of the index")
