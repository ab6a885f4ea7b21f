"""The program of a Core ML model (MIL.proto): its operations and constants, parsed without a library."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous, twice
from argmaxable.models.protobuf import (
    BYTES,
    NUMBER,
    NUMBERS,
    Data,
    Field,
    Parts,
    dictionary,
    inside,
    number_in,
    parts_of,
    required,
    signed,
    signed_numbers,
    single,
    text,
)

# Fields of the messages that are looked into, by number, with their wire types.
_MODEL = {1: NUMBER, 502: BYTES}
# Other kinds of models, by the number of their field.
_OTHERS = {
    **{
        200: "a pipeline",
        201: "a pipeline",
        202: "a pipeline",
        400: "a linear classifier",
        402: "made of trees",
    },
    **{303: "a regressor", 401: "a support vector machine", 404: "a classifier by nearest neighbours"},
}
_PROGRAM = {2: BYTES}
_FUNCTION = {1: BYTES, 2: BYTES, 3: BYTES}
_BLOCK = {2: BYTES, 3: BYTES}
_OPERATION = {1: BYTES, 2: BYTES, 3: BYTES, 4: BYTES, 5: BYTES}
_ARGUMENT = {1: BYTES}
_BINDING = {1: BYTES, 2: BYTES}
_VALUE = {2: BYTES, 3: BYTES, 5: BYTES}
_NAMED = {1: BYTES, 2: BYTES}
_TYPE = {1: BYTES}
_TENSOR = {1: NUMBER, 3: BYTES}
_DIMENSION = {1: BYTES, 2: BYTES}
_SIZE = {1: NUMBER}
_IMMEDIATE = {1: BYTES, 3: BYTES}
_LIST = {1: BYTES}
_NUMBERS = {1: BYTES, 2: BYTES, 3: BYTES, 4: BYTES, 5: BYTES, 6: BYTES, 7: BYTES}
_BLOB = {1: BYTES, 2: NUMBER}
# Numbers of data types, numpy's names of them, and the bytes that a number takes.
TYPES = {
    **{1: ("bool", 1), 10: ("float16", 2), 11: ("float32", 4), 12: ("float64", 8), 13: ("bfloat16", 2)},
    **{
        21: ("int8", 1),
        22: ("int16", 2),
        23: ("int32", 4),
        24: ("int64", 8),
        31: ("uint8", 1),
        32: ("uint16", 2),
    },
}
_TEXT = 2
_FLOATS, _INTS, _BOOLS, _TEXTS, _LONGS = 1, 2, 3, 4, 5
_LONGEST_LIST = 64
_MOST_OPERATIONS = 2**18


@dataclass(frozen=True)
class ProgramTensor:
    """A type and a shape, in which −1 is a length not known; what is not a tensor has no type."""

    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class ProgramValue:
    """A constant: its type, its values where they are few, texts, or where its bytes are in the weights."""

    tensor: ProgramTensor
    numbers: tuple[float, ...] | None = None
    texts: tuple[str, ...] | None = None
    offset: int | None = None


Argument = str | ProgramValue


@dataclass(frozen=True)
class ProgramStep:
    """One operation: inputs by the names of its parameters, outputs with their types."""

    kind: str
    inputs: Mapping[str, tuple[Argument, ...]]
    outputs: tuple[tuple[str, ProgramTensor | None], ...]
    value: ProgramValue | None = None


@dataclass(frozen=True)
class MilProgram:
    """The steps of the function "main", what it is given, and its outputs."""

    steps: tuple[ProgramStep, ...]
    inputs: Mapping[str, ProgramTensor | None] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()


def parse_model(data: Data) -> MilProgram:
    """The program of a model; raises LoadError, also for models of another kind."""
    parts = parts_of(data, 0, len(data), _MODEL | dict.fromkeys(_OTHERS, BYTES))
    program = single(parts, 502, "the program")
    if program is None:
        kind = next(
            (words for number, words in _OTHERS.items() if parts[number]), "of a kind that is not known"
        )
        raise LoadError(f"it is {kind}, neither a program nor a neural network")
    functions = dictionary(data, inside(data, program, _PROGRAM)[2], "the program: the function")
    if "main" not in functions:
        raise LoadError(
            f"it has no function called main (it has {', '.join(sorted(functions)[:6]) or 'none'})"
        )
    function = inside(data, functions["main"], _FUNCTION)
    blocks = dictionary(data, function[3], "the function: the block")
    opset = text(data, required(function, 2, "the function's set of operations"))
    if opset not in blocks:
        raise LoadError(f"it has no block for its set of operations, {opset[:40]!r}")
    return _Parser(data).block(inside(data, blocks[opset], _BLOCK), function[1])


class _Parser:
    """Parses one file."""

    def __init__(self, data: Data) -> None:
        self.data = data

    def block(self, parts: Parts, given: list[Field]) -> MilProgram:
        if len(parts[3]) > _MOST_OPERATIONS:
            raise LoadError(f"it has more than {_MOST_OPERATIONS:,} operations")
        steps = tuple(map(self._step, parts[3]))
        inputs = dict(map(self._named, given))
        repeated = twice([*inputs, *(name for step in steps for name, _ in step.outputs)])
        if repeated is not None:
            raise ambiguous(f"two values are called {repeated[:80]!r}")
        return MilProgram(steps, inputs, tuple(text(self.data, each) for each in parts[2]))

    def _step(self, field_: Field) -> ProgramStep:
        parts = inside(self.data, field_, _OPERATION)
        kind = text(self.data, required(parts, 1, "an operation's type"))
        arguments = dictionary(self.data, parts[2], f"a {kind[:80]}: the input")
        attributes = dictionary(self.data, parts[5], f"a {kind[:80]}: the attribute")
        value = attributes.get("val")
        return ProgramStep(
            kind if not parts[4] else f"{kind} with branches",
            {name: self._argument(each) for name, each in arguments.items()},
            tuple(map(self._named, parts[3])),
            None if value is None or kind != "const" else self._value(value),
        )

    def _argument(self, field_: Field) -> tuple[Argument, ...]:
        found: list[Argument] = []
        for each in inside(self.data, field_, _ARGUMENT)[1]:
            parts = inside(self.data, each, _BINDING)
            name, value = single(parts, 1, "a name"), single(parts, 2, "a value")
            if (name is None) == (value is None):
                raise ambiguous("an input is a name and a value at once, or neither")
            if name is not None:
                found.append(text(self.data, name))
            elif value is not None:
                found.append(self._value(value))
        return tuple(found)

    def _named(self, field_: Field) -> tuple[str, ProgramTensor | None]:
        parts = inside(self.data, field_, _NAMED)
        type_ = single(parts, 2, "a value's type")
        name = text(self.data, required(parts, 1, "a value's name"))
        if "\0" in name or not name:
            raise LoadError("a value has no name")
        return name, None if type_ is None else self._type(type_)

    def _type(self, field_: Field) -> ProgramTensor | None:
        tensor = single(inside(self.data, field_, _TYPE), 1, "a tensor's type")
        if tensor is None:
            return None
        parts = inside(self.data, tensor, _TENSOR)
        dtype = single(parts, 1, "a data type")
        number = 0 if dtype is None else signed(self.data, dtype, 32)
        name = "text" if number == _TEXT else TYPES.get(number, ("", 0))[0]
        return ProgramTensor(name, tuple(self._length(each) for each in parts[3]))

    def _length(self, field_: Field) -> int:
        parts = inside(self.data, field_, _DIMENSION)
        constant, unknown = single(parts, 1, "a length"), single(parts, 2, "a length")
        if constant is None or unknown is not None:
            return -1
        size = single(inside(self.data, constant, _SIZE), 1, "a length")
        length = 0 if size is None else signed(self.data, size, 64)
        if length < 0:
            raise LoadError("a tensor has a negative length")
        return length

    def _value(self, field_: Field) -> ProgramValue:
        parts = inside(self.data, field_, _VALUE)
        type_ = single(parts, 2, "a constant's type")
        tensor = None if type_ is None else self._type(type_)
        shown = tensor or ProgramTensor("", ())
        immediate, blob = single(parts, 3, "a constant's values"), single(parts, 5, "a constant's place")
        if immediate is not None and blob is not None:
            raise ambiguous("a constant has its values in two places")
        if blob is not None:
            offset = single(inside(self.data, blob, _BLOB), 2, "a constant's place")
            return ProgramValue(shown, offset=0 if offset is None else number_in(self.data, offset))
        if immediate is None:
            return ProgramValue(shown)
        kinds = inside(self.data, immediate, _IMMEDIATE)
        inner, listed = (single(kinds, number, "a constant's values") for number in (1, 3))
        if inner is not None and listed is not None:
            raise ambiguous("a constant is a tensor and a list at once")
        if listed is not None:
            return ProgramValue(shown, texts=self._names(listed))
        return ProgramValue(shown) if inner is None else self._numbers(inner, shown)

    def _names(self, field_: Field) -> tuple[str, ...] | None:
        """A list of names, or of numbers, as classes have."""
        values = [self._value(each) for each in inside(self.data, field_, _LIST)[1]]
        names = [
            each.texts[0]
            if each.texts and len(each.texts) == 1
            else str(int(each.numbers[0]))
            if each.numbers and len(each.numbers) == 1
            else None
            for each in values
        ]
        return tuple(name for name in names if name is not None) if None not in names else None

    def _numbers(self, field_: Field, tensor: ProgramTensor) -> ProgramValue:
        """The values of a short constant that stand in the program itself."""
        parts = inside(self.data, field_, _NUMBERS)
        filled = [(number, each) for number, found in parts.items() for each in found]
        if len(filled) > 1:
            raise ambiguous("a constant has values of two kinds")
        count = math.prod(tensor.shape)
        if not filled or not 0 <= count <= _LONGEST_LIST:
            texts = self._texts(filled[0][1]) if filled and filled[0][0] == _TEXTS else None
            return ProgramValue(tensor, texts=texts)
        number, each = filled[0]
        if number == _TEXTS:
            return ProgramValue(tensor, texts=self._texts(each))
        numbers: tuple[float, ...] | None = None
        if number == _FLOATS:
            packed = b"".join(self._bytes(one) for one in inside(self.data, each, {1: 8 + 5})[1])
            numbers = tuple(value for (value,) in struct.iter_unpack("<f", packed[: len(packed) // 4 * 4]))
        elif number in (_INTS, _BOOLS, _LONGS):
            found = inside(self.data, each, {1: NUMBERS})[1]
            numbers = tuple(signed_numbers(self.data, found, 64 if number == _LONGS else 32))
        elif number == 7 and tensor.dtype == "float16":
            data = b"".join(self._bytes(one) for one in inside(self.data, each, {1: BYTES})[1])
            numbers = tuple(value for (value,) in struct.iter_unpack("<e", data[: len(data) // 2 * 2]))
        return ProgramValue(tensor, numbers if numbers is not None and len(numbers) == count else None)

    def _bytes(self, field_: Field) -> bytes:
        return bytes(self.data[field_.start : field_.end])

    def _texts(self, field_: Field) -> tuple[str, ...]:
        return tuple(text(self.data, each) for each in inside(self.data, field_, {1: BYTES})[1])
