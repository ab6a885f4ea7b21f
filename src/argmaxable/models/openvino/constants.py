"""The constants of an OpenVINO model, which lie in a .bin file at the places that the network names."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.core.head import FLOAT_DTYPES
from argmaxable.models.binary_file import SHRUNK, read_values
from argmaxable.models.dequantise import cast, dequantised

if TYPE_CHECKING:
    from argmaxable.models.graph.products import Stored
    from argmaxable.models.openvino.network import NetworkLayer

# OpenVINO's names of element types: numpy's, and the bits that a number takes.
_TYPES = {
    **{"f64": ("float64", 64), "f32": ("float32", 32), "f16": ("float16", 16), "bf16": ("bfloat16", 16)},
    **{
        f"{kind[0]}{bits}": (f"{kind}{bits}", bits) for kind in ("int", "uint") for bits in (4, 8, 16, 32, 64)
    },
    **{"boolean": ("bool", 8), "nf4": ("nf4", 4), "f8e4m3": ("float8_e4m3fn", 8)},
    **{"f8e5m2": ("float8_e5m2", 8)},
}
# ONNX's numbers of float types, which the graph's casts are written in.
CAST_TYPES = {"f32": 1, "f16": 10, "f64": 11, "bf16": 16}
_NAMES = {number: _TYPES[name][0] for name, number in CAST_TYPES.items()}
_WHOLE = frozenset(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64))
# Lists of axes and shapes are this short.
_LONGEST_LIST = 64


@dataclass(frozen=True)
class Constant:
    """A stored array: numpy's name of its type, its shape, and the place of its bytes."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    length: int


def type_name(type_: str) -> str:
    """numpy's name of an element type, or an empty name."""
    return _TYPES.get(type_, ("", 0))[0]


def constant_of(layer: NetworkLayer, size: int) -> Constant:
    """Where the constant of a Const layer is, in a file of this size; raises LoadError."""
    what = f"constant {layer.name[:80]!r}"
    shape = layer.integers("shape")
    place = [layer.integers(name) for name in ("offset", "size")]
    if any(len(numbers) != 1 for numbers in place):
        raise LoadError(f"{what} has no place in the .bin file")
    (start,), (length,) = place
    type_ = layer.attributes.get("element_type", "")
    dtype, bits = _TYPES.get(type_, ("", 0))
    if not dtype:
        raise LoadError(f"{what} has an element type that is not known: {type_[:80]!r}")
    if min((*shape, start), default=0) < 0 or length != -(-math.prod(shape) * bits // 8):
        raise LoadError(f"{what} has {length:,} bytes, which do not fit {dtype} of shape {shape[:8]}")
    if start + length > size:
        raise LoadError(f"{what} goes beyond the end of the .bin file, which has {size:,} bytes")
    if len(layer.outputs) != 1 or layer.outputs[0].shape != shape:
        raise LoadError(f"{what} has another shape at its output than the one that is stored")
    return Constant(dtype, shape, start, length)


@dataclass(frozen=True)
class ConstantsFile:
    """Gives the values of constants, cast and dequantised as the graph does it."""

    constants: dict[str, Constant]
    path: Path

    def __call__(self, stored: Stored) -> NDArray[Any]:
        """The values, as floats and without rounding of our own; raises LoadError."""
        values = self._array(stored.name)
        if stored.scale or stored.zero_point:
            scale, zero_point = (
                self._array(name) if name else None for name in (stored.scale, stored.zero_point)
            )
            values = dequantised(values, scale, zero_point, stored.axis)
        for number in stored.casts:
            values = cast(values, _NAMES[number])
        if values.dtype.name not in FLOAT_DTYPES:
            raise LoadError(
                f"the constant {stored.name!r} has type {values.dtype.name}; expected "
                f"{', '.join(FLOAT_DTYPES)}. Use the model before its weights were compressed."
            )
        return values

    def numbers(self, name: str) -> tuple[float, ...] | None:
        """The values of a short list of numbers; None of a longer one, or of another type."""
        constant = self.constants[name]
        is_known = constant.dtype in _WHOLE or constant.dtype in FLOAT_DTYPES
        if not is_known or math.prod(constant.shape) > _LONGEST_LIST:
            return None
        values: list[float] = self._array(name).reshape(-1).tolist()
        return tuple(values)

    def _array(self, name: str) -> NDArray[Any]:
        constant = self.constants[name]
        if constant.dtype not in FLOAT_DTYPES and constant.dtype not in _WHOLE:
            raise LoadError(f"the constant {name!r} is of type {constant.dtype}, which is not supported.")
        dtype = FLOAT_DTYPES.get(
            constant.dtype, np.dtype(constant.dtype if constant.dtype in _WHOLE else "u1")
        )
        return read_values(self.path, dtype, constant.start, constant.shape, SHRUNK)
