"""Tensors as ranges of an archive: what is stored where, and the values of those that are asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.core.head import FLOAT_DTYPES
from argmaxable.models.dequantise import cast, times

if TYPE_CHECKING:
    from argmaxable.models.graph.products import Stored
    from argmaxable.models.pytorch.archive import Member

_WHOLE = ("uint8", "int8", "int16", "int32", "int64", "bool")
_DTYPES: dict[str, np.dtype[Any]] = {
    **FLOAT_DTYPES,
    **{name: np.dtype(name) for name in _WHOLE},
    **{name: np.dtype(getattr(ml_dtypes, name)) for name in ("float8_e4m3fn", "float8_e5m2")},
}
# ONNX's numbers of float types, which the graph's casts are written in.
CAST_TYPES = {"float32": 1, "float16": 10, "float64": 11, "bfloat16": 16}
_NAMES = {number: name for name, number in CAST_TYPES.items()}


@dataclass(frozen=True)
class ArchivedTensor:
    """A strided view of a member: numpy's name of its type, and lengths counted in numbers."""

    member: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def span(self) -> int:
        """How many numbers there are from the first to the last, both included."""
        if not self.size:
            return 0
        return 1 + sum((n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True))


def stored_tensor(
    member: str, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...], offset: int, nbytes: int
) -> ArchivedTensor:
    """A tensor in a member of the given size; raises LoadError where it does not lie inside."""
    tensor = ArchivedTensor(member, dtype, shape, strides, offset)
    if dtype not in _DTYPES:
        return tensor  # nothing is read of it
    if len(shape) != len(strides) or min((*shape, *strides, offset), default=0) < 0:
        raise LoadError(f"a tensor in {member[:80]!r} has shape {shape[:8]} and strides {strides[:8]}")
    # Strides may repeat numbers, so that a few pose as a tensor of any size.
    if tensor.size > tensor.span or (offset + tensor.span) * _DTYPES[dtype].itemsize > nbytes:
        raise LoadError(
            f"a tensor of shape {shape[:8]} does not lie inside {member[:80]!r}, which has {nbytes:,} bytes"
        )
    return tensor


@dataclass(frozen=True)
class StoredValues:
    """Gives the values of constants: tensors of an archive, and numbers that stand in the program itself."""

    path: Path
    members: Mapping[str, Member]
    tensors: Mapping[str, ArchivedTensor]
    numbers: Mapping[str, float]

    def __call__(self, stored: Stored) -> NDArray[Any]:
        """The values, cast and multiplied as the graph does it, without rounding of our own."""
        if stored.scale or stored.zero_point:
            raise LoadError(f"the constant {stored.name!r} is quantised, which is not supported.")
        values = self.array(stored.name)
        for number in stored.casts:
            if number not in _NAMES:
                raise LoadError(f"the constant {stored.name!r} is cast to whole numbers.")
            values = cast(values, _NAMES[number])
        if values.dtype.name not in FLOAT_DTYPES:
            raise LoadError(
                f"the constant {stored.name!r} has type {values.dtype.name}; expected "
                f"{', '.join(FLOAT_DTYPES)}. Use the model before its weights were quantised."
            )
        return times(values, stored.factor)

    def array(self, name: str) -> NDArray[Any]:
        """The values of a tensor as stored; 8-bit floats as float16, which holds them all."""
        if name in self.numbers:
            return np.array(self.numbers[name], np.float64)
        with self.path.open("rb") as file:
            return self._read(file, self.tensors[name])

    def single_numbers(self) -> dict[str, float]:
        """The values of all tensors that hold one number."""
        found: dict[str, float] = {}
        with self.path.open("rb") as file:
            for name, tensor in self.tensors.items():
                if tensor.size == 1 and tensor.dtype in _DTYPES:
                    found[name] = float(self._read(file, tensor).reshape(()))
        return found

    def _read(self, file: IO[bytes], tensor: ArchivedTensor) -> NDArray[Any]:
        if tensor.dtype not in _DTYPES:
            raise LoadError(f"a tensor of type {tensor.dtype!r} is not supported.")
        dtype = _DTYPES[tensor.dtype]
        file.seek(self.members[tensor.member].start + tensor.offset * dtype.itemsize)
        data = file.read(tensor.span * dtype.itemsize)
        if len(data) < tensor.span * dtype.itemsize:
            raise LoadError(f"{self.path.name} was cut short while it was read. Try again.")
        bits = np.frombuffer(data, f"<u{dtype.itemsize}")
        flat: NDArray[Any] = bits.astype(bits.dtype.newbyteorder("="), copy=False).view(dtype)
        strides = [stride * dtype.itemsize for stride in tensor.strides]
        if tensor.size:
            flat = np.lib.stride_tricks.as_strided(flat, tensor.shape, strides, writeable=False)
        values = np.ascontiguousarray(flat).reshape(tensor.shape)
        return values.astype(np.float16) if tensor.dtype.startswith("float8") else values
