"""Matrices that are stored quantised: their rows become floats when they are asked for, a few at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.stored_rows import StoredRows

# Values dequantised at a time: 4 MB of float32, and a few times that inside the formulas.
_BLOCK_VALUES = 2**20
# Bytes of floats from which a quantised matrix stays as it is: every pass over it then dequantises it anew.
_LARGEST_HELD = 2**30


def rows_from(
    parts: Sequence[NDArray[Any]], columns: int, dtype: np.dtype[Any], formula: Callable[..., NDArray[Any]]
) -> StoredRows:
    """Rows that `formula` makes from the same rows of each of the stored arrays."""
    step = max(1, _BLOCK_VALUES // max(1, columns))

    def read(ids: slice | NDArray[np.intp]) -> NDArray[Any]:
        chosen = [part[ids] for part in parts]
        matrix = np.empty((len(chosen[0]), columns), dtype)
        # Damaged scales overflow; whoever builds the head refuses what is not finite.
        with np.errstate(all="ignore"):
            for start in range(0, len(matrix), step):
                block = slice(start, start + step)
                matrix[block] = formula(*(np.asarray(each[block]) for each in chosen))
        return matrix

    return StoredRows((len(parts[0]), columns), dtype, sum(part.nbytes for part in parts), read)


def held(rows: StoredRows) -> NDArray[Any] | StoredRows:
    """The whole matrix, or its rows as they are stored where it would be large."""
    size = rows.shape[0] * rows.shape[1] * rows.dtype.itemsize
    return rows if size > _LARGEST_HELD else np.asarray(rows)
