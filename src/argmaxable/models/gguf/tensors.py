"""Reading the tensors of GGUF files. Only this module imports `gguf`, and only for quantised ones.

Floating-point weights stay memory-mapped in their own dtype, and so do large quantised ones; others become
float32 a few rows at a time, with the reference formulas of the gguf package, so that little more than the
result is in memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.core.head import FLOAT_DTYPES
from argmaxable.core.stored_rows import StoredRows
from argmaxable.models.ambiguity import ambiguous
from argmaxable.models.finding import TensorInfo
from argmaxable.models.quantised_rows import held, rows_from

if TYPE_CHECKING:
    from argmaxable.models.gguf.header import StoredTensor

# GGML's types that are not quantisations, by number.
_FLOATS = {0: "float32", 1: "float16", 28: "float64", 30: "bfloat16"}
_AS_A_PIECE = ", or the first piece of a file that was cut into several (join them: cat FILE.part* > FILE)"


def info(tensor: StoredTensor) -> TensorInfo:
    return TensorInfo(tensor.name, tensor.shape[::-1], type_name(tensor))


def type_name(tensor: StoredTensor) -> str:
    if tensor.type_id in _FLOATS:
        return _FLOATS[tensor.type_id]
    try:
        return str(_gguf().GGMLQuantizationType(tensor.type_id).name)
    except (LoadError, ValueError):  # without the package, floats beside it can still be read
        return f"unknown type {tensor.type_id}"


def _gguf() -> ModuleType:
    try:
        import gguf
    except ModuleNotFoundError as error:
        raise LoadError(
            f"reading quantised GGUF files needs the package {error.name}: pip install 'argmaxable[gguf]'"
        ) from error
    return gguf


def is_quantised(tensor: StoredTensor) -> bool:
    return tensor.type_id not in _FLOATS


def _block(tensor: StoredTensor) -> tuple[int, int]:
    """How many values a block of the tensor's type holds and its size in bytes; raises LoadError."""
    if tensor.type_id in _FLOATS:
        return 1, FLOAT_DTYPES[_FLOATS[tensor.type_id]].itemsize
    gguf = _gguf()
    try:
        quantisation = gguf.GGMLQuantizationType(tensor.type_id)
        values, size = gguf.GGML_QUANT_SIZES[quantisation]
        gguf.quants.dequantize(np.zeros((1, size), np.uint8), quantisation)
    except (ValueError, KeyError, NotImplementedError) as error:
        raise LoadError(
            f"tensor {info(tensor)} has a type that the installed gguf package can't turn into floats. "
            "Update gguf, or convert the model to F16."
        ) from error
    return values, size


def require_readable(tensor: StoredTensor) -> None:
    """Refuse a type without a formula, and data that end outside the file."""
    values, size = _block(tensor)
    if tensor.shape[0] % values:
        raise LoadError(f"tensor {info(tensor)} has rows that are not a multiple of its blocks of {values}.")
    end = tensor.start + tensor.elements // values * size
    if end > tensor.limit:
        raise LoadError(
            f"tensor {info(tensor)} should end at byte {end}, but {tensor.path.name} has {tensor.limit}. It "
            f"is cut short or damaged{_AS_A_PIECE if tensor.path.suffix != '.gguf' else ''}; fetch it again."
        )


def require_apart(tensors: Iterable[StoredTensor]) -> None:
    """Refuse tensors of one file that share bytes; of an unknown type only the first byte is known."""
    stored = (tensor for tensor in tensors if tensor.elements)
    placed = sorted(stored, key=lambda tensor: (str(tensor.path), tensor.start))
    for left, right in pairwise(placed):
        if left.path == right.path and right.start < left.start + max(1, stored_bytes(left)):
            raise ambiguous(f"tensors {left.name[:80]!r} and {right.name[:80]!r} lie in overlapping bytes")


def stored_bytes(tensor: StoredTensor) -> int:
    """How many bytes a tensor takes; 0 where its type is unknown."""
    if tensor.type_id in _FLOATS:
        return tensor.elements * FLOAT_DTYPES[_FLOATS[tensor.type_id]].itemsize
    try:
        gguf = _gguf()
        values, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(tensor.type_id)]
    except (LoadError, ValueError, KeyError):
        return 0
    return int(tensor.elements // values * size)


def read_vector(tensor: StoredTensor) -> NDArray[Any]:
    return np.asarray(read_matrix(tensor, transposed=False)).reshape(-1)


def read_matrix(tensor: StoredTensor, *, transposed: bool) -> NDArray[Any] | StoredRows:
    """The matrix: mapped, or quantised and made floats at once, or row by row where that would be large."""
    rows, columns = tensor.elements // tensor.shape[0], tensor.shape[0]
    if tensor.type_id in _FLOATS:
        dtype = FLOAT_DTYPES[_FLOATS[tensor.type_id]]
        stored = np.memmap(tensor.path, dtype, "r", offset=tensor.start, shape=(rows, columns))
        return np.ascontiguousarray(stored.T) if transposed else stored
    quantised = quantised_rows(tensor)
    if transposed:
        return np.ascontiguousarray(quantised.T)
    return held(quantised)


def quantised_rows(tensor: StoredTensor) -> StoredRows:
    """The rows of a quantised matrix, which stay in their file until they are asked for."""
    gguf = _gguf()
    quantisation = gguf.GGMLQuantizationType(tensor.type_id)
    rows, columns = tensor.elements // tensor.shape[0], tensor.shape[0]
    values, size = _block(tensor)
    row_bytes = columns // values * size
    stored = np.memmap(tensor.path, np.uint8, "r", offset=tensor.start, shape=(rows, row_bytes))

    def formula(block: NDArray[np.uint8]) -> NDArray[np.float32]:
        return np.asarray(gguf.quants.dequantize(block, quantisation))

    return rows_from([stored], columns, np.dtype(np.float32), formula)


def finite_vector(tensor: StoredTensor, features: int) -> NDArray[np.float64] | None:
    if tensor.shape != (features,):
        return None
    require_readable(tensor)
    with np.errstate(invalid="ignore"):  # a signalling NaN, refused in the next line
        vector = read_vector(tensor).astype(np.float64)
    return vector if np.isfinite(vector).all() else None
