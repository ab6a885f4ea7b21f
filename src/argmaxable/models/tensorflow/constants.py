"""The values of a graph's constants: inside the graph's own file, or in a checkpoint."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.core.head import FLOAT_DTYPES
from argmaxable.models.ambiguity import ambiguous
from argmaxable.models.dequantise import cast
from argmaxable.models.protobuf import Field, signed_numbers
from argmaxable.models.tensorflow.types import CAST_NAMES, TYPES

if TYPE_CHECKING:
    from argmaxable.models.graph.products import Stored
    from argmaxable.models.tensorflow.bundle import TensorBundle
    from argmaxable.models.tensorflow.graph_def import TensorPlace

# Lists of axes and shapes are this short.
_LONGEST_LIST = 64
_CONTENT, _FLOAT, _DOUBLE, _INT, _LONG, _BOOLEAN, _HALF = 4, 5, 6, 7, 10, 11, 13
# The fields in which numbers of each type are when they are not bytes as a whole.
_FIELDS = {
    **{"float32": _FLOAT, "float64": _DOUBLE, "float16": _HALF, "bfloat16": _HALF, "bool": _BOOLEAN},
    **{"int64": _LONG} | dict.fromkeys(("int32", "int16", "int8", "uint8", "uint16"), _INT),
}
# More bytes of numbers, each written by itself, than any bias has.
_LARGEST_LIST = 2**24


@dataclass(frozen=True)
class GraphConstant:
    """A constant: numpy's name of its type, its shape where it is used, and where its values are: a place in
    the graph's file, or keys of the checkpoint, of which all must hold the same."""

    dtype: str
    shape: tuple[int, ...]
    place: TensorPlace | None = None
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class GraphConstants:
    """Gives the values of constants, cast as the graph does it."""

    constants: Mapping[str, GraphConstant]
    path: Path
    bundle: TensorBundle | None

    def __call__(self, stored: Stored) -> NDArray[Any]:
        """The values, as floats and without rounding of our own; raises LoadError."""
        values = self._array(stored.name)
        for number in stored.casts:
            values = cast(values, CAST_NAMES[number])
        if values.dtype.name not in FLOAT_DTYPES:
            raise LoadError(
                f"the constant {stored.name!r} has type {values.dtype.name}; expected "
                f"{', '.join(FLOAT_DTYPES)}. Use the model before it was quantised."
            )
        return values

    def numbers(self, name: str) -> tuple[float, ...] | None:
        """The values of a short list of numbers inside the graph; None of any other."""
        constant = self.constants[name]
        if constant.place is None or math.prod(constant.shape) > _LONGEST_LIST or constant.dtype == "bool":
            return None
        values: list[float] = self._array(name).reshape(-1).tolist()
        return tuple(values)

    def _array(self, name: str) -> NDArray[Any]:
        constant = self.constants[name]
        if constant.place is not None:
            return _inside(self.path, constant.place, name).reshape(constant.shape)
        arrays = [self._stored(key) for key in constant.keys]
        if any(each.tobytes() != arrays[0].tobytes() for each in arrays[1:]):
            raise ambiguous(
                f"the variable {name[:80]!r} is stored as {' and as '.join(constant.keys)}, with different "
                "values"
            )
        return arrays[0].reshape(constant.shape)

    def _stored(self, key: str) -> NDArray[Any]:
        if self.bundle is None:
            raise LoadError(f"its variables are not there ({key[:80]!r}). Fetch the folder 'variables' too.")
        return self.bundle.read(key)


def _inside(path: Path, place: TensorPlace, name: str) -> NDArray[Any]:
    """The values of a constant inside the graph's file."""
    dtype, width = TYPES[place.dtype]
    count = math.prod(place.shape)
    ((number, found),) = place.values.items() or ((0, ()),)
    numpy_type = FLOAT_DTYPES.get(dtype, np.dtype(dtype))
    size = sum(field.end - field.start for field in found)
    is_listed = number in (_INT, _LONG, _BOOLEAN, _HALF)
    if (is_listed and size > _LARGEST_LIST) or (not is_listed and size > max(count, 1) * width):
        raise LoadError(
            f"the constant {name[:80]!r} has {size:,} bytes for {count:,} numbers of type {dtype}."
        )
    with path.open("rb") as file:
        data = b"".join(_bytes(file, field) for field in found)
    if number in (_CONTENT, _FLOAT, _DOUBLE):
        if number != _CONTENT and _FIELDS.get(dtype) != number:
            raise LoadError(f"the constant {name[:80]!r} has no values of its own type, {dtype}.")
        values = _of_bytes(data, numpy_type)
    elif is_listed and _FIELDS.get(dtype) == number:
        values = _of_numbers(data, numpy_type, is_half=number == _HALF)
    else:
        raise LoadError(f"the constant {name[:80]!r} has no values of its own type, {dtype}.")
    if number == _CONTENT and values.size == count:
        return values.reshape(place.shape)
    if not values.size or values.size > count:
        raise LoadError(
            f"the constant {name[:80]!r} has {values.size:,} values for the shape {place.shape[:8]}."
        )
    # The last one stands for all that follow.
    filled = np.full(count, values[-1])
    filled[: values.size] = values
    return filled.reshape(place.shape)


def _bytes(file: Any, field: Field) -> bytes:
    file.seek(field.start)
    data: bytes = file.read(field.end - field.start)
    if len(data) < field.end - field.start:
        raise LoadError("was cut short while it was read. Try again.")
    return data


def _of_bytes(data: bytes, dtype: np.dtype[Any]) -> NDArray[Any]:
    if len(data) % dtype.itemsize:
        raise LoadError(f"a constant of type {dtype.name} has {len(data):,} bytes.")
    bits = np.frombuffer(data, f"<u{dtype.itemsize}")
    return bits.astype(f"=u{dtype.itemsize}", copy=False).view(dtype)


def _of_numbers(data: bytes, dtype: np.dtype[Any], *, is_half: bool) -> NDArray[Any]:
    """Numbers that protobuf writes one by one, halves as the number that their bits are."""
    whole = np.array(signed_numbers(data, [Field(0, True, 0, 0, len(data))], 64), np.int64)
    if is_half:
        return whole.astype(np.uint16).view(dtype)
    return whole.astype(dtype)
