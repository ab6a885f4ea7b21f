"""Indices of hnswlib, as `save_index` writes them: the vectors and labels of its lowest level.

A file says neither how it compares (ip, l2, cosine) nor that it is one, so the user does: `--tensor l2`. The
search is approximate. What is proven is about exact search over the same vectors.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous
from argmaxable.models.finding import Finding, Labels, TensorInfo
from argmaxable.models.item_vectors import ItemVectors, Metric, finding_of_items

if TYPE_CHECKING:
    from argmaxable.models.registry import ReadOptions

# offsetLevel0, max_elements, count, bytes an element, label_offset, offsetData; maxlevel, entry point; maxM,
# maxM0, M; mult; ef_construction.
_HEADER = struct.Struct("<6QiI3QdQ")
# The third byte of an element's links says whether it was deleted.
_MARK = 2
_DAMAGED = "The file is cut short or damaged, or not an index of hnswlib; save it again."
_SPACES = ", ".join(Metric)


@dataclass(frozen=True)
class _Level:
    """The lowest level: elements one after the other, each its links, its vector, its label."""

    count: int
    stride: int
    data: int
    label: int

    @property
    def size(self) -> int:
        return (self.label - self.data) // 4


def find(path: Path, options: ReadOptions) -> Finding:
    """The vectors of an index as a head, without those that were deleted; raises LoadError."""
    if options.tensor not in tuple(Metric):
        raise LoadError(
            f"an index of hnswlib does not say how it compares, found tensor={options.tensor!r}. Pass its "
            f"space as tensor= (--tensor): {_SPACES}."
        )
    level = _read_level(path)
    elements = np.memmap(path, np.uint8, "r", _HEADER.size, (level.count, level.stride))
    alive = np.flatnonzero((elements[:, _MARK] & 1) == 0)
    if not len(alive):
        raise LoadError("every element of the index is deleted: nothing can be found in it.")
    numbers = _column(elements, level.label, "<u8")[:, 0]
    _require_different(numbers)
    labels = numbers[alive]
    weight = TensorInfo("vectors", (len(alive), level.size), "float32")
    gone = level.count - len(alive)
    notes = ("hnswlib searches approximately; verdicts are about exact search over these vectors.",)
    items = ItemVectors(
        "hnswlib", weight, f"the vectors of the index, compared by {options.tensor}",
        lambda: _column(elements[alive], level.data, "<f4", level.size),
        Labels(tuple(map(str, labels.tolist())), "the labels of the index"),
        notes + ((f"{gone} deleted elements are left out.",) if gone else ()),
    )  # fmt: skip
    return finding_of_items(items, Metric(options.tensor), options)


def _require_different(labels: NDArray[np.uint64]) -> None:
    """A label stands for one element: of two the library gives one when asked for it, and finds both."""
    values, counts = np.unique(labels, return_counts=True)
    if (counts > 1).any():
        raise ambiguous(f"two elements have the label {values[counts > 1][0]}")


def _read_level(path: Path) -> _Level:
    with path.open("rb") as file:
        raw = file.read(_HEADER.size)
        present = os.fstat(file.fileno()).st_size - _HEADER.size
    if len(raw) < _HEADER.size:
        raise LoadError(f"ends inside its header. {_DAMAGED}")
    offset, most, count, stride, label, data, _, _, _, links, *_ = _HEADER.unpack(raw)
    # An element begins with its links: their number, and room for as many as it may have.
    fits = offset == 0 and data == 4 * links + 4 and data < label and (label - data) % 4 == 0
    if not fits or stride != label + 8 or not 1 <= count <= most:
        raise LoadError(
            f"declares {count} of {most} elements of {stride} bytes, vectors at {data}, labels at {label}. "
            f"{_DAMAGED}"
        )
    if count * stride > present:
        raise LoadError(f"declares {count * stride} bytes of elements but {present} are there. {_DAMAGED}")
    return _Level(count, stride, data, label)


def _column(elements: NDArray[np.uint8], start: int, dtype: str, count: int = 1) -> NDArray[Any]:
    """Numbers that each element has at an offset (elements × count)."""
    width = np.dtype(dtype).itemsize * count
    return np.ascontiguousarray(elements[:, start : start + width]).view(dtype)
