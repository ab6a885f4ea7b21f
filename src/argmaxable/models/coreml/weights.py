"""The constants of a Core ML program, which lie in weights/weight.bin where the program says."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.core.head import FLOAT_DTYPES
from argmaxable.models.binary_file import SHRUNK, read_values
from argmaxable.models.coreml.program import ProgramTensor
from argmaxable.models.dequantise import cast

if TYPE_CHECKING:
    from argmaxable.models.graph.products import Stored

# Before each array: a mark, its type, its size and its place.
_ENTRY = struct.Struct("<IIQQ")
_MARK = 0xDEADBEEF
_TYPES = {
    1: "float16",
    2: "float32",
    3: "uint8",
    4: "int8",
    5: "bfloat16",
    6: "int16",
    7: "uint16",
    14: "int32",
}
# ONNX's numbers of float types, which the graph's casts are written in.
CASTS = {"fp16": 10, "fp32": 1, "fp64": 11}
_NAMES = {10: "float16", 1: "float32", 11: "float64"}


@dataclass(frozen=True)
class MilConstant:
    """A constant: its type and shape, and where its entry is, or its values where the program has them."""

    tensor: ProgramTensor
    offset: int | None
    numbers: tuple[float, ...] | None = None


@dataclass(frozen=True)
class MilWeights:
    """Gives the values of constants, cast as the program does it."""

    constants: Mapping[str, MilConstant]
    path: Path

    def __call__(self, stored: Stored) -> NDArray[Any]:
        """The values, as floats and without rounding of our own; raises LoadError."""
        constant = self.constants[stored.name]
        if constant.numbers is not None:
            values = _listed(constant, constant.numbers, stored.name)
        elif not self.path.is_file():
            raise LoadError(
                f"has its weights in {self.path.name}, which is not there. Fetch the whole package."
            )
        else:
            values = _array(self.path, constant, stored.name)
        for number in stored.casts:
            values = cast(values, _NAMES[number])
        return values


def _listed(constant: MilConstant, numbers: tuple[float, ...], name: str) -> NDArray[Any]:
    dtype = FLOAT_DTYPES.get(constant.tensor.dtype)
    if dtype is None:
        raise LoadError(f"the constant {name[:80]!r} is of type {constant.tensor.dtype}, not of floats.")
    return np.array(numbers, np.float64).astype(dtype).reshape(constant.tensor.shape)


def _array(path: Path, constant: MilConstant, name: str) -> NDArray[Any]:
    tensor = constant.tensor
    size = path.stat().st_size
    if constant.offset is None or constant.offset + _ENTRY.size > size:
        raise LoadError(
            f"the constant {name[:80]!r} goes beyond the end of weight.bin. Fetch the package again."
        )
    with path.open("rb") as file:
        file.seek(constant.offset)
        mark, type_, length, start = _ENTRY.unpack(file.read(_ENTRY.size))
    dtype = FLOAT_DTYPES.get(tensor.dtype)
    if mark != _MARK or _TYPES.get(type_) != tensor.dtype or dtype is None:
        raise LoadError(
            f"the constant {name[:80]!r} is stored as {_TYPES.get(type_, 'something else')}, expected "
            f"{tensor.dtype}, one of {', '.join(FLOAT_DTYPES)}. Use the model before it was compressed."
        )
    if length != math.prod(tensor.shape) * dtype.itemsize or start + length > size:
        raise LoadError(
            f"the constant {name[:80]!r} of shape {tensor.shape[:8]} has {length:,} bytes. Is it damaged?"
        )
    return read_values(path, dtype, start, tensor.shape, SHRUNK)
