"""The values of an ONNX model's constants, from the model itself or from a file beside it.

With `reader`, which translates the graph, these are the only modules that import `onnx`.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx.checker import ValidationError

from argmaxable.core.errors import LoadError
from argmaxable.models.dequantise import cast, dequantised, times
from argmaxable.models.onnx.outline import PLACE

if TYPE_CHECKING:
    from argmaxable.models.graph.products import Stored

# numpy's names for the types whose values can be read; strings and complex numbers are not weights.
TYPES = {
    number: helper.tensor_dtype_to_np_dtype(number).name
    for name, number in TensorProto.DataType.items()
    if name not in ("UNDEFINED", "STRING", "COMPLEX64", "COMPLEX128")
}
_FLOATS = ("float16", "bfloat16", "float32", "float64")
# numpy's names of types of which several numbers share a byte.
_BITS = {"int4": 4, "uint4": 4, "float4_e2m1fn": 4, "int2": 2, "uint2": 2}


def is_same(left: TensorProto, right: TensorProto, path: Path) -> bool:
    """Whether two tensors have the same values, wherever in the file they lie."""
    if left.dims != right.dims or left.data_type != right.data_type:
        return False
    return left == right or (
        _is_placed(left) and _is_placed(right) and _bytes(left, path) == _bytes(right, path)
    )


@dataclass(frozen=True)
class ConstantReader:
    """Gives the values of stored constants: dequantised, cast and multiplied as the graph does it."""

    tensors: Mapping[str, TensorProto]
    path: Path

    def __call__(self, stored: Stored) -> NDArray[Any]:
        """The values, as floats and without rounding of our own; raises LoadError."""
        values = self._array(stored.name)
        if stored.scale or stored.zero_point:
            scale = self._array(stored.scale) if stored.scale else None
            zero_point = self._array(stored.zero_point) if stored.zero_point else None
            values = dequantised(values, scale, zero_point, stored.axis)
        for number in stored.casts:
            if TYPES.get(number) not in _FLOATS:
                raise LoadError(
                    f"tensor {stored.name!r} is cast to {TYPES.get(number)}, no type for weights."
                )
            values = cast(values, TYPES[number])
        if values.dtype.name not in _FLOATS:
            raise LoadError(
                f"tensor {stored.name!r} has type {values.dtype.name}; expected {', '.join(_FLOATS)}. "
                "Quantised weights mean nothing without their scales: use the float model they come from."
            )
        return times(values, stored.factor)

    def _array(self, name: str) -> NDArray[Any]:
        tensor = self.tensors[name]
        try:
            if tensor.data_type not in TYPES or any(length < 0 for length in tensor.dims):
                raise ValueError(
                    f"type {tensor.data_type} of shape {tuple(tensor.dims)} is not an array of numbers"
                )
            if _is_placed(tensor):
                return _array_in(tensor, self.path)
            if tensor.HasField("raw_data"):
                _require_size(tensor, len(tensor.raw_data))
            if tensor.external_data:
                tensor = _bounded(tensor, self.path.parent)
            array: NDArray[Any] = numpy_helper.to_array(tensor, base_dir=str(self.path.parent))
        except (ValueError, TypeError, ValidationError) as error:
            raise LoadError(
                f"tensor {name!r} (shape {tuple(tensor.dims)}) can't be read: {error}. The model, or the "
                "data file that belongs beside it, is missing, cut short or damaged; fetch it again."
            ) from error
        return array


def _is_placed(tensor: TensorProto) -> bool:
    return any(entry.key == PLACE for entry in tensor.external_data)


def _bytes(tensor: TensorProto, path: Path) -> bytes:
    """The bytes of a tensor that were left in the model's file."""
    start, length = _place(tensor)
    with path.open("rb") as file:
        file.seek(start)
        return file.read(length)


def _place(tensor: TensorProto) -> tuple[int, int]:
    """Where in the model's file the bytes of a tensor begin, and how many they are."""
    start, length = next(entry.value for entry in tensor.external_data if entry.key == PLACE).split()
    return int(start), int(length)


def _array_in(tensor: TensorProto, path: Path) -> NDArray[Any]:
    """The values of a tensor that were left in the model's file, without a second copy of them."""
    _require_size(tensor, _place(tensor)[1])
    data = _bytes(tensor, path)
    if sys.byteorder == "little" and TYPES[tensor.data_type] not in _BITS:
        return np.frombuffer(data, helper.tensor_dtype_to_np_dtype(tensor.data_type)).reshape(tensor.dims)
    # Numbers of 4 bits, two to a byte, are left to onnx.
    packed = TensorProto(data_type=tensor.data_type, dims=tensor.dims, raw_data=data)
    return numpy_helper.to_array(packed)


def _size(tensor: TensorProto) -> int:
    """How many bytes a tensor's numbers take in a file."""
    bits = _BITS.get(TYPES[tensor.data_type], 8 * helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize)
    return int(-(-math.prod(tensor.dims) * bits // 8))


def _require_size(tensor: TensorProto, length: int) -> None:
    if length != _size(tensor):
        raise ValueError(f"its shape takes {_size(tensor):,} bytes, and it has {length:,}")


def _bounded(tensor: TensorProto, folder: Path) -> TensorProto:
    """An external tensor that asks for the bytes of its shape, which its file must have."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    for key in ("offset", "length"):  # Python would also read "1_0" and " 10"
        if not (entries.get(key, "0").isascii() and entries.get(key, "0").isdigit()):
            raise ValueError(f"{entries[key]!r} is not a number of bytes")
    offset = int(entries.get("offset", 0))
    needed = _size(tensor)
    if int(entries.get("length", needed)):
        _require_size(tensor, int(entries.get("length", needed)))
    file = folder / entries.get("location", "")
    available = os.path.getsize(file) - offset if file.is_file() else needed  # a missing one onnx reports
    if needed > available:
        raise ValueError(
            f"{needed:,} bytes needed from byte {offset:,} of {file.name}, which has {available:,}"
        )
    entries |= {"offset": str(offset), "length": str(needed)}
    bounded = TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
    bounded.data_location = TensorProto.EXTERNAL
    for key in ("location", "offset", "length"):
        bounded.external_data.add(key=key, value=entries.get(key, ""))
    return bounded
