"""A weight matrix that stays as its file stores it: rows become floats when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


@dataclass(frozen=True, eq=False)
class StoredRows:
    """So much of an array as a head needs: shape, dtype, rows by index; everything else makes it whole.

    `read` gives the rows of a slice or of an array of ids, `nbytes` is what they take as they are stored.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    nbytes: int
    read: Callable[[slice | NDArray[np.intp]], NDArray[Any]]
    ndim = 2

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple):
            rows, *rest = key
            picked = self[rows]
            return picked[(*([] if picked.ndim == 1 else [slice(None)]), *rest)]
        if isinstance(key, slice):
            return self.read(slice(*key.indices(len(self))))
        ids = np.asarray(key)
        if ids.dtype == bool:
            ids = np.flatnonzero(ids)
        if not ids.ndim:
            return self.read(ids.reshape(1))[0]
        return self.read(ids)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self.read(slice(0, len(self), 1)), dtype)

    def astype(self, dtype: DTypeLike, *, copy: bool = True) -> NDArray[Any]:
        return np.asarray(self, dtype)

    @property
    def T(self) -> NDArray[Any]:
        return np.asarray(self).T
