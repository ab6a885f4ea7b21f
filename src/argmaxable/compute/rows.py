"""Rows of a head in float32, as the batched products take them: held in memory, or converted block by block
from the head's own dtype whenever they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.arrays import Ids, Matrix32, Vector32

# Numbers converted at a time: 2 MB of float32, and a few copies while they are made.
_BLOCK_ENTRIES = 1 << 19


@dataclass(frozen=True, eq=False)
class StreamedRows:
    """Rows that are made when they are asked for, and forgotten."""

    shape: tuple[int, int]
    convert: Callable[[Ids | slice], Matrix32]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, ids: Ids | slice) -> Matrix32:
        return self.convert(ids)


Rows = Matrix32 | StreamedRows


def hold(rows: StreamedRows) -> Matrix32:
    """All rows at once, in memory."""
    held = np.empty(rows.shape, np.float32)
    for block in row_slices(rows):
        held[block] = rows[block]
    return held


def hold_if_it_fits(rows: StreamedRows, limit: int) -> Rows:
    """The rows in memory if they take no more bytes than that, else as they are."""
    return hold(rows) if fits(rows.shape, limit) else rows


def fits(shape: tuple[int, int], limit: int) -> bool:
    """Whether float32 rows of this shape take no more bytes than that."""
    return 4 * int(np.prod(shape)) <= limit


def row_slices(rows: Rows) -> Iterator[slice]:
    """Slices of rows small enough to convert at a time."""
    count, width = rows.shape
    step = max(1, _BLOCK_ENTRIES // max(1, width))
    return (slice(first, min(first + step, count)) for first in range(0, count, step))


def scores_at(rows: Rows, points: Vector32) -> Vector32:
    """The product of every row with one point, or with several that are columns."""
    if isinstance(rows, np.ndarray):
        return np.asarray(rows @ points)
    scores = np.empty((len(rows), *points.shape[1:]), np.float32)
    for block in row_slices(rows):
        scores[block] = rows[block] @ points
    return scores


def lengths(rows: Rows) -> NDArray[np.float64]:
    """Norms of all rows, roughly."""
    squares = np.empty(rows.shape[0], np.float32)
    with np.errstate(over="ignore"):
        for block in row_slices(rows):
            some = rows[block]
            squares[block] = np.einsum("ij,ij->i", some, some)
    return np.sqrt(squares.astype(np.float64))
