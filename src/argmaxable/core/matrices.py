"""Matrices that a domain is made of: from the user, from a file, and as JSON that keeps every bit."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from argmaxable.core.arrays import Matrix
from argmaxable.core.errors import DomainError

_DTYPES = {"float32": "<f4", "float64": "<f8"}


def finite_matrix(values: ArrayLike, whole: str, row: str) -> Matrix:
    """A read-only matrix of finite numbers; `whole` and `row` name it and its rows in errors
    (DomainError)."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DomainError(f"{whole} needs a matrix of numbers, a row for each {row}: {error}") from error
    if array.ndim != 2 or not array.size:
        raise DomainError(
            f"{whole} needs a matrix with a row for each {row} and a column for each feature, found shape "
            f"{array.shape}."
        )
    if not np.isfinite(array).all():
        number = int(np.argmax(~np.isfinite(array).all(axis=1)))
        raise DomainError(f"{row} {number} of {whole} holds NaN or infinite values.")
    array.flags.writeable = False
    return array


def read_arrays(path: str, what: str) -> Any:
    """What numpy.load finds in a file, nothing executed; raises DomainError."""
    try:
        return np.load(path, allow_pickle=False)
    except OSError as error:
        raise DomainError(f"{path} can't be read ({error.strerror or error}).") from error
    except (ValueError, EOFError) as error:
        raise DomainError(f"{path} is not {what}: {error}") from error


def matrix_record(matrix: Matrix, name: str) -> dict[str, Any]:
    """Shape, dtype and the numbers (under `name`) in base64: float32 where that holds them exactly."""
    with np.errstate(over="ignore", under="ignore"):
        single = matrix.astype(np.float32)
    array = single if (single == matrix).all() else matrix
    data = array.astype(array.dtype.newbyteorder("<")).tobytes()
    text = base64.b64encode(data).decode("ascii")
    return {"shape": list(array.shape), "dtype": array.dtype.name, name: text}


def matrix_from_record(record: dict[str, Any], name: str) -> Matrix:
    """Inverse of `matrix_record`; may raise KeyError, TypeError or ValueError."""
    dtype: np.dtype[Any] = np.dtype(_DTYPES[record["dtype"]])
    rows, columns = (int(side) for side in record["shape"])
    data = base64.b64decode(record[name], validate=True)
    if len(data) != rows * columns * dtype.itemsize:
        raise ValueError(f"the {name} do not fit their shape")
    return np.frombuffer(data, dtype).reshape(rows, columns).astype(np.float64)
