"""The program of a PaddlePaddle model: a ProgramDesc (framework.proto), parsed without a library.

A field that may occur once and occurs twice is refused: protobuf takes the last, other programs the first.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous, twice
from argmaxable.models.protobuf import Data, Field, fields, number_in

T = TypeVar("T")
Value = bool | int | float | str | tuple[int, ...]

# Wire types: whole numbers, texts and messages, and floats of four bytes.
_NUMBER, _BYTES, _FLOAT = 0, 2, 5
# Fields of the messages that are looked into, by number, with their wire types.
_PROGRAM = {1: _BYTES}
_BLOCK = {3: _BYTES, 4: _BYTES}
_VARIABLE = {1: _BYTES, 2: _BYTES, 3: _NUMBER}
_TYPE = {1: _NUMBER, 3: _BYTES}
_LOD_TENSOR = {1: _BYTES}
_TENSOR = {1: _NUMBER, 2: _NUMBER}
_OPERATION = {1: _BYTES, 2: _BYTES, 3: _BYTES, 4: _BYTES}
_SLOT = {1: _BYTES, 2: _BYTES}
_ATTRIBUTE = {
    **{1: _BYTES, 2: _NUMBER, 3: _NUMBER, 4: _FLOAT, 5: _BYTES},
    **{6: _NUMBER, 10: _NUMBER, 13: _NUMBER, 15: _NUMBER},
}
# AttrType: the types whose values are read.
_INT, _REAL, _STRING, _INTS, _BOOLEAN, _LONG, _LONGS = 0, 1, 2, 3, 6, 9, 11

Parts = dict[int, list[Field]]


class NotUnderstood(Exception):
    """An operation, or an attribute of it, is not translated; never leaves this folder."""


@dataclass(frozen=True)
class TensorType:
    """PaddlePaddle's number of a data type, and a shape; −1 is a length not known in advance."""

    number: int
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Variable:
    """A variable of the program; `kind` is its VarType, `tensor` what is declared of a tensor."""

    name: str
    kind: int
    tensor: TensorType | None
    is_persistable: bool


@dataclass(frozen=True)
class Operation:
    """One operation. Inputs and outputs are lists of variables by slot, such as "X" and "Out".

    An attribute whose value is of a type not read here is None.
    """

    kind: str
    inputs: Mapping[str, tuple[str, ...]]
    outputs: Mapping[str, tuple[str, ...]]
    attributes: Mapping[str, Value | None]

    def attribute(self, name: str, default: T) -> T:
        """An attribute's value, of the same type as its default; raises NotUnderstood for any other."""
        value: object = self.attributes.get(name, default)
        if not isinstance(value, type(default)) or isinstance(value, bool) != isinstance(default, bool):
            raise NotUnderstood(name)
        return value


@dataclass(frozen=True)
class Program:
    """The variables and, in the order in which they run, the operations of a model."""

    variables: Mapping[str, Variable]
    operations: tuple[Operation, ...]


def parse_program(data: Data) -> Program:
    """The program in these bytes; raises LoadError, also for one with control flow."""
    blocks = _parts(data, 0, len(data), _PROGRAM)[1]
    if not blocks:
        raise LoadError("has no block of operations")
    if len(blocks) > 1:
        raise LoadError(
            f"has {len(blocks)} blocks: loops or branches, whose variables can't be followed here"
        )
    parts = _inside(data, blocks[0], _BLOCK)
    variables = [_variable(data, field) for field in parts[3]]
    repeated = twice(variable.name for variable in variables)
    if repeated is not None:
        raise ambiguous(f"two variables are called {repeated[:80]!r}")
    operations = tuple(_operation(data, field) for field in parts[4])
    return Program({variable.name: variable for variable in variables}, operations)


def tensor_type(data: Data, start: int, end: int) -> TensorType:
    """The TensorDesc between two places; raises LoadError."""
    parts = _parts(data, start, end, _TENSOR)
    return TensorType(
        _signed(data, _required(parts, 1, "a tensor's type"), 32),
        tuple(_signed(data, field, 64) for field in parts[2]),
    )


def _variable(data: Data, field: Field) -> Variable:
    parts = _inside(data, field, _VARIABLE)
    name = _text(data, _required(parts, 1, "a variable's name"))
    type_ = _inside(data, _required(parts, 2, f"the type of variable {name[:80]!r}"), _TYPE)
    lod_tensor = _single(type_, 3, f"the tensor type of variable {name[:80]!r}")
    tensor = None
    if lod_tensor is not None:
        inner = _required(_inside(data, lod_tensor, _LOD_TENSOR), 1, f"the tensor of {name[:80]!r}")
        tensor = tensor_type(data, inner.start, inner.end)
    kind = _signed(data, _required(type_, 1, f"the type of variable {name[:80]!r}"), 32)
    persistable = _single(parts, 3, f"persistable of variable {name[:80]!r}")
    return Variable(name, kind, tensor, persistable is not None and number_in(data, persistable) != 0)


def _operation(data: Data, field: Field) -> Operation:
    parts = _inside(data, field, _OPERATION)
    kind = _text(data, _required(parts, 3, "an operation's type"))
    attributes = [_attribute(data, each) for each in parts[4]]
    repeated = twice(name for name, _ in attributes)
    if repeated is not None:
        raise ambiguous(f"a {kind[:80]} has the attribute {repeated[:80]!r} twice")
    return Operation(kind, _slots(data, parts[1], kind), _slots(data, parts[2], kind), dict(attributes))


def _slots(data: Data, found: list[Field], kind: str) -> dict[str, tuple[str, ...]]:
    slots = []
    for field in found:
        parts = _inside(data, field, _SLOT)
        name = _text(data, _required(parts, 1, "a slot's name"))
        slots.append((name, tuple(_text(data, each) for each in parts[2])))
    repeated = twice(name for name, _ in slots)
    if repeated is not None:
        raise ambiguous(f"a {kind[:80]} has two lists of variables called {repeated[:80]!r}")
    return dict(slots)


def _attribute(data: Data, field: Field) -> tuple[str, Value | None]:
    parts = _inside(data, field, _ATTRIBUTE)
    name = _text(data, _required(parts, 1, "an attribute's name"))
    type_ = _signed(data, _required(parts, 2, f"the type of attribute {name[:80]!r}"), 32)
    return name, _value(data, parts, type_, name)


def _value(data: Data, parts: Parts, type_: int, name: str) -> Value | None:
    if type_ in (_INTS, _LONGS):
        return tuple(_signed(data, each, 32 if type_ == _INTS else 64) for each in parts[_PLACES[type_]])
    if type_ not in _PLACES:
        return None
    field = _single(parts, _PLACES[type_], f"attribute {name[:80]!r}")
    if field is None:
        return None
    if type_ == _REAL:
        return float(struct.unpack("<f", data[field.start : field.end])[0])
    if type_ == _STRING:
        return _text(data, field)
    if type_ == _BOOLEAN:
        return number_in(data, field) != 0
    return _signed(data, field, 32 if type_ == _INT else 64)


# The fields in which attributes of these types have their values.
_PLACES = {_INT: 3, _REAL: 4, _STRING: 5, _INTS: 6, _BOOLEAN: 10, _LONG: 13, _LONGS: 15}


# ---------------------------------------------------------------------- messages


def _parts(data: Data, start: int, end: int, wire_types: Mapping[int, int]) -> Parts:
    """The fields of a message that are looked at, by number."""
    found: Parts = {number: [] for number in wire_types}
    for field in fields(data, start, end):
        if field.number in wire_types:
            if data[field.begin] & 7 != wire_types[field.number]:  # protobuf would leave it out
                raise LoadError(f"field {field.number} at byte {field.begin:,} has an unusual wire type")
            found[field.number].append(field)
    return found


def _inside(data: Data, field: Field, wire_types: Mapping[int, int]) -> Parts:
    return _parts(data, field.start, field.end, wire_types)


def _single(parts: Parts, number: int, what: str) -> Field | None:
    if len(parts[number]) > 1:
        raise ambiguous(f"{what} is there twice")
    return parts[number][0] if parts[number] else None


def _required(parts: Parts, number: int, what: str) -> Field:
    field = _single(parts, number, what)
    if field is None:
        raise LoadError(f"{what} is missing")
    return field


def _signed(data: Data, field: Field, bits: int) -> int:
    """A whole number as protobuf reads it: the lowest bits, in two's complement."""
    number = number_in(data, field) & ((1 << bits) - 1)
    return number - (1 << bits) if number >> (bits - 1) else number


def _text(data: Data, field: Field) -> str:
    try:
        text = bytes(data[field.start : field.end]).decode()
    except UnicodeDecodeError as error:
        raise LoadError(f"the text at byte {field.start:,} is not UTF-8") from error
    if "\0" in text:  # where programs in C end a name
        raise ambiguous(f"the text at byte {field.start:,} has a zero byte")
    return text
