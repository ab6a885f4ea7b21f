"""The program of a PaddlePaddle model: a ProgramDesc (framework.proto), parsed without a library."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous, twice
from argmaxable.models.protobuf import (
    BYTES,
    FLOAT,
    NUMBER,
    Data,
    Field,
    Parts,
    inside,
    number_in,
    parts_of,
    required,
    signed,
    single,
    text,
)

T = TypeVar("T")
Value = bool | int | float | str | tuple[int, ...]

# Fields of the messages that are looked into, by number, with their wire types.
_PROGRAM = {1: BYTES}
_BLOCK = {3: BYTES, 4: BYTES}
_VARIABLE = {1: BYTES, 2: BYTES, 3: NUMBER}
_TYPE = {1: NUMBER, 3: BYTES}
_LOD_TENSOR = {1: BYTES}
_TENSOR = {1: NUMBER, 2: NUMBER}
_OPERATION = {1: BYTES, 2: BYTES, 3: BYTES, 4: BYTES}
_SLOT = {1: BYTES, 2: BYTES}
_ATTRIBUTE = {
    **{1: BYTES, 2: NUMBER, 3: NUMBER, 4: FLOAT, 5: BYTES},
    **{6: NUMBER, 10: NUMBER, 13: NUMBER, 15: NUMBER},
}
# AttrType: the types whose values are read.
_INT, _REAL, _STRING, _INTS, _BOOLEAN, _LONG, _LONGS = 0, 1, 2, 3, 6, 9, 11


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
    blocks = parts_of(data, 0, len(data), _PROGRAM)[1]
    if not blocks:
        raise LoadError("has no block of operations")
    if len(blocks) > 1:
        raise LoadError(
            f"has {len(blocks)} blocks: loops or branches, whose variables can't be followed here"
        )
    parts = inside(data, blocks[0], _BLOCK)
    variables = [_variable(data, field) for field in parts[3]]
    repeated = twice(variable.name for variable in variables)
    if repeated is not None:
        raise ambiguous(f"two variables are called {repeated[:80]!r}")
    operations = tuple(_operation(data, field) for field in parts[4])
    return Program({variable.name: variable for variable in variables}, operations)


def tensor_type(data: Data, start: int, end: int) -> TensorType:
    """The TensorDesc between two places; raises LoadError."""
    parts = parts_of(data, start, end, _TENSOR)
    return TensorType(
        signed(data, required(parts, 1, "a tensor's type"), 32),
        tuple(signed(data, field, 64) for field in parts[2]),
    )


def _variable(data: Data, field: Field) -> Variable:
    parts = inside(data, field, _VARIABLE)
    name = text(data, required(parts, 1, "a variable's name"))
    type_ = inside(data, required(parts, 2, f"the type of variable {name[:80]!r}"), _TYPE)
    lod_tensor = single(type_, 3, f"the tensor type of variable {name[:80]!r}")
    tensor = None
    if lod_tensor is not None:
        inner = required(inside(data, lod_tensor, _LOD_TENSOR), 1, f"the tensor of {name[:80]!r}")
        tensor = tensor_type(data, inner.start, inner.end)
    kind = signed(data, required(type_, 1, f"the type of variable {name[:80]!r}"), 32)
    persistable = single(parts, 3, f"persistable of variable {name[:80]!r}")
    return Variable(name, kind, tensor, persistable is not None and number_in(data, persistable) != 0)


def _operation(data: Data, field: Field) -> Operation:
    parts = inside(data, field, _OPERATION)
    kind = text(data, required(parts, 3, "an operation's type"))
    attributes = [_attribute(data, each) for each in parts[4]]
    repeated = twice(name for name, _ in attributes)
    if repeated is not None:
        raise ambiguous(f"a {kind[:80]} has the attribute {repeated[:80]!r} twice")
    return Operation(kind, _slots(data, parts[1], kind), _slots(data, parts[2], kind), dict(attributes))


def _slots(data: Data, found: list[Field], kind: str) -> dict[str, tuple[str, ...]]:
    slots = []
    for field in found:
        parts = inside(data, field, _SLOT)
        name = text(data, required(parts, 1, "a slot's name"))
        slots.append((name, tuple(text(data, each) for each in parts[2])))
    repeated = twice(name for name, _ in slots)
    if repeated is not None:
        raise ambiguous(f"a {kind[:80]} has two lists of variables called {repeated[:80]!r}")
    return dict(slots)


def _attribute(data: Data, field: Field) -> tuple[str, Value | None]:
    parts = inside(data, field, _ATTRIBUTE)
    name = text(data, required(parts, 1, "an attribute's name"))
    type_ = signed(data, required(parts, 2, f"the type of attribute {name[:80]!r}"), 32)
    return name, _value(data, parts, type_, name)


def _value(data: Data, parts: Parts, type_: int, name: str) -> Value | None:
    if type_ in (_INTS, _LONGS):
        return tuple(signed(data, each, 32 if type_ == _INTS else 64) for each in parts[_PLACES[type_]])
    if type_ not in _PLACES:
        return None
    field = single(parts, _PLACES[type_], f"attribute {name[:80]!r}")
    if field is None:
        return None
    if type_ == _REAL:
        return float(struct.unpack("<f", data[field.start : field.end])[0])
    if type_ == _STRING:
        return text(data, field)
    if type_ == _BOOLEAN:
        return number_in(data, field) != 0
    return signed(data, field, 32 if type_ == _INT else 64)


# The fields in which attributes of these types have their values.
_PLACES = {_INT: 3, _REAL: 4, _STRING: 5, _INTS: 6, _BOOLEAN: 10, _LONG: 13, _LONGS: 15}
