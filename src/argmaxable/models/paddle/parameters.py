"""The parameters of a PaddlePaddle model: a .pdiparams file, in which tensors lie one after the other.

The file has no names. Its tensors are those of the program's persistable variables in the order of their
names, so a tensor is believed only if the whole file agrees with the program in types, shapes and length.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from numpy.typing import NDArray

from argmaxable.core.errors import AmbiguousError, LoadError
from argmaxable.core.head import FLOAT_DTYPES
from argmaxable.models.binary_file import SHRUNK, read_values
from argmaxable.models.dequantise import cast
from argmaxable.models.paddle.program import Program, TensorType, Variable, tensor_type

if TYPE_CHECKING:
    from argmaxable.models.graph.products import Stored

# PaddlePaddle's numbers of types: numpy's names and the bytes that a number takes.
_TYPES = {
    **{0: ("bool", 1), 1: ("int16", 2), 2: ("int32", 4), 3: ("int64", 8)},
    **{4: ("float16", 2), 5: ("float32", 4), 6: ("float64", 8)},
    **{20: ("uint8", 1), 21: ("int8", 1), 22: ("bfloat16", 2), 23: ("complex64", 8), 24: ("complex128", 16)},
    **{32: ("float8_e4m3fn", 1), 33: ("float8_e5m2", 1)},
}
# ONNX's numbers of float types, which the graph's casts are written in.
CAST_TYPES = {1: "float32", 10: "float16", 11: "float64", 16: "bfloat16"}
# VarType: tensors, and what is persistable without being stored (feed, fetch, reader, raw).
_LOD_TENSOR, _NOT_STORED = 7, frozenset({9, 10, 15, 17})
# A version of 4 bytes, a number of LoD levels of 8, another version of 4, the length of the description.
_BEGIN = struct.Struct("<IQIi")
# A type and at most nine dimensions take 100 bytes.
_LONGEST_DESCRIPTION = 1024


@dataclass(frozen=True)
class Parameter:
    """A stored tensor: numpy's name of its type, its shape, and the place of its bytes."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    length: int


def locate_parameters(path: Path, program: Program) -> dict[str, Parameter]:
    """Where the program's parameters are in the file, by name; raises LoadError. No values are read."""
    variables = sorted(filter(_is_stored, program.variables.values()), key=lambda each: each.name)
    size = path.stat().st_size
    with path.open("rb") as file:
        found, place = {}, 0
        for variable in variables:
            found[variable.name] = _parameter(file, place, size, variable)
            place = found[variable.name].start + found[variable.name].length
    if place != size:
        raise LoadError(
            f"its parameters end at byte {place:,} of {path.name}, which has {size:,} bytes. Does the file "
            "belong to this program? Fetch both again."
        )
    return found


def _is_stored(variable: Variable) -> bool:
    if not variable.is_persistable or variable.kind in _NOT_STORED:
        return False
    if variable.kind != _LOD_TENSOR or variable.tensor is None:
        raise LoadError(f"the parameter {variable.name[:80]!r} is not a tensor, which can't be read here.")
    return True


def _parameter(file: IO[bytes], place: int, size: int, variable: Variable) -> Parameter:
    what = f"the parameter {variable.name[:80]!r} at byte {place:,} of {Path(file.name).name}"
    file.seek(place)
    begin = file.read(_BEGIN.size)
    if len(begin) < _BEGIN.size:
        raise LoadError(f"{what} is missing: the file is cut short, or another model's. Fetch it again.")
    version, levels, tensor_version, length = _BEGIN.unpack(begin)
    if version or levels or tensor_version or not 0 < length <= _LONGEST_DESCRIPTION:
        raise LoadError(f"{what} does not begin as a tensor does. The file is damaged; fetch it again.")
    stored = _described(file.read(length), what)
    if stored != variable.tensor or any(each < 0 for each in stored.shape) or stored.number not in _TYPES:
        raise LoadError(
            f"{what} is {_words(stored)}, but the program declares {_words(variable.tensor)}. Does the file "
            "belong to this program? Fetch both again."
        )
    dtype, width = _TYPES[stored.number]
    start, length = place + _BEGIN.size + length, math.prod(stored.shape) * width
    if start + length > size:
        raise LoadError(f"{what} goes beyond the end of the file, which is cut short. Fetch it again.")
    return Parameter(dtype, stored.shape, start, length)


def _described(description: bytes, what: str) -> TensorType:
    try:
        return tensor_type(description, 0, len(description))
    except AmbiguousError:
        raise
    except LoadError as error:
        raise LoadError(
            f"{what} has no readable type: {error}. The file is damaged; fetch it again."
        ) from error


def _words(tensor: TensorType | None) -> str:
    if tensor is None:
        return "no tensor"
    name = _TYPES.get(tensor.number, (f"type {tensor.number}", 0))[0]
    return f"{name} of shape {tensor.shape[:8]}"


@dataclass(frozen=True)
class ParameterReader:
    """Gives the values of parameters, cast as the graph does it."""

    parameters: Mapping[str, Parameter]
    path: Path

    def __call__(self, stored: Stored) -> NDArray[Any]:
        """The values, as floats and without rounding of our own; raises LoadError."""
        parameter = self.parameters[stored.name]
        if parameter.dtype not in FLOAT_DTYPES:
            raise LoadError(
                f"the parameter {stored.name!r} has type {parameter.dtype}; expected "
                f"{', '.join(FLOAT_DTYPES)}. Quantised weights mean nothing without their scales: use the "
                "float model they come from."
            )
        dtype = FLOAT_DTYPES[parameter.dtype]
        values = read_values(self.path, dtype, parameter.start, parameter.shape, SHRUNK)
        for number in stored.casts:
            values = cast(values, CAST_TYPES[number])
        return values
