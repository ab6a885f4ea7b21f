"""TensorFlow's graphs: a GraphDef and its functions, parsed without a library.

Values of tensors stay in the file: only their places are noted.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous, twice
from argmaxable.models.graph.translation import NotTranslated
from argmaxable.models.protobuf import (
    BYTES,
    DOUBLES,
    FLOAT,
    FLOATS,
    NUMBER,
    NUMBERS,
    Data,
    Field,
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

T = TypeVar("T")

# Fields of the messages that are looked into, by number, with their wire types.
_GRAPH = {1: BYTES, 2: BYTES}
_NODE = {1: BYTES, 2: BYTES, 3: BYTES, 5: BYTES}
# AttrValue: a list, a string, a number, a float, a truth value, a type, a shape, a tensor, a name of another
# attribute, a function.
_ATTRIBUTE = {1: BYTES, 2: BYTES, 3: NUMBER, 4: FLOAT, 5: NUMBER, 6: NUMBER} | dict.fromkeys(
    range(7, 11), BYTES
)
_LIST = {3: NUMBERS, 6: NUMBERS, 7: BYTES}
_SHAPE = {2: BYTES, 3: NUMBER}
_LENGTH = {1: NUMBER}
_TENSOR = {
    1: NUMBER,
    2: BYTES,
    4: BYTES,
    5: FLOATS,
    6: DOUBLES,
    7: NUMBERS,
    8: BYTES,
    10: NUMBERS,
    11: NUMBERS,
} | {13: NUMBERS}
_LIBRARY = {1: BYTES}
_FUNCTION = {1: BYTES, 3: BYTES, 4: BYTES}
_SIGNATURE = {1: BYTES, 2: BYTES, 3: BYTES}
_NAMED = {1: BYTES}
# More than any model has; a large language model written out has 100,000 nodes with ten attributes each.
_MOST_ATTRIBUTES = 2**21
# What TensorFlow itself never has in a name, so that it can set names apart here.
RESERVED = frozenset("|:^\0")


@dataclass(frozen=True)
class DeclaredShape:
    """A shape, in which −1 is a length not known; None where not even the number of axes is."""

    lengths: tuple[int, ...] | None


@dataclass(frozen=True)
class TensorPlace:
    """A tensor's type (TensorFlow's number), its shape, and the fields that hold its values.

    Fewer values than the shape has stand for the last of them again and again.
    """

    dtype: int
    shape: tuple[int, ...]
    values: Mapping[int, Sequence[Field]]


@dataclass(frozen=True)
class FunctionName:
    """The name of a function that an operation calls."""

    name: str


Value = bool | int | float | bytes | DeclaredShape | TensorPlace | FunctionName | tuple[object, ...]


@dataclass(frozen=True)
class TensorflowNode:
    """One operation. Inputs are "node", "node:1" or, inside functions, "argument" and "node:output:1"; a
    "^node" only comes before. An attribute of a kind not read here is None."""

    name: str
    kind: str
    inputs: tuple[str, ...]
    attributes: Mapping[str, Value | None]

    def attribute(self, name: str, default: T) -> T:
        """An attribute's value, of the same type as its default; raises NotTranslated for any other."""
        value: object = self.attributes.get(name, default)
        if not isinstance(value, type(default)) or isinstance(value, bool) != isinstance(default, bool):
            raise NotTranslated(name)
        return value


@dataclass(frozen=True)
class GraphFunction:
    """A function: its arguments and results by name, its nodes, and which tensor each result is."""

    name: str
    arguments: tuple[str, ...]
    results: tuple[str, ...]
    nodes: tuple[TensorflowNode, ...]
    returns: Mapping[str, str]


@dataclass(frozen=True)
class GraphDef:
    """The nodes of a model's graph, and the functions that they may call."""

    nodes: tuple[TensorflowNode, ...]
    functions: Mapping[str, GraphFunction] = field(default_factory=dict)


def parse_graph(data: Data, start: int, end: int) -> GraphDef:
    """The GraphDef between two places; raises LoadError."""
    return _Parser(data).graph(start, end)


class _Parser:
    """Parses one file and counts what it has found."""

    def __init__(self, data: Data) -> None:
        self.data, self.attributes = data, 0

    def graph(self, start: int, end: int) -> GraphDef:
        parts = parts_of(self.data, start, end, _GRAPH)
        library = single(parts, 2, "the library of functions")
        found = [] if library is None else inside(self.data, library, _LIBRARY)[1]
        functions = [self._function(each) for each in found]
        repeated = twice(function.name for function in functions)
        if repeated is not None:
            raise ambiguous(f"two functions are called {repeated[:80]!r}")
        return GraphDef(self._nodes(parts[1]), {function.name: function for function in functions})

    def _function(self, field_: Field) -> GraphFunction:
        parts = inside(self.data, field_, _FUNCTION)
        signature = inside(self.data, required(parts, 1, "a function's signature"), _SIGNATURE)
        name = text(self.data, required(signature, 1, "a function's name"))
        arguments, results = (tuple(map(self._named, signature[number])) for number in (2, 3))
        repeated = twice(arguments) or twice(results)
        if repeated is not None:
            raise ambiguous(f"function {name[:80]!r} has two arguments or results called {repeated[:80]!r}")
        returns = dictionary(self.data, parts[4], f"function {name[:80]!r}: the result")
        return GraphFunction(
            name,
            arguments,
            results,
            self._nodes(parts[3]),
            {key: text(self.data, each) for key, each in returns.items()},
        )

    def _named(self, field_: Field) -> str:
        return text(self.data, required(inside(self.data, field_, _NAMED), 1, "an argument's name"))

    def _nodes(self, found: Sequence[Field]) -> tuple[TensorflowNode, ...]:
        nodes = tuple(map(self._node, found))
        repeated = twice(node.name for node in nodes)
        if repeated is not None:
            raise ambiguous(f"two nodes of a graph are called {repeated[:80]!r}")
        return nodes

    def _node(self, field_: Field) -> TensorflowNode:
        parts = inside(self.data, field_, _NODE)
        name = text(self.data, required(parts, 1, "a node's name"))
        kind = text(self.data, required(parts, 2, f"the operation of node {name[:80]!r}"))
        if not name or RESERVED & set(name):
            raise LoadError(f"a node is called {name[:80]!r}, which TensorFlow does not allow")
        attributes = dictionary(self.data, parts[5], f"node {name[:80]!r}: the attribute")
        self.attributes += len(attributes) + 1
        if self.attributes > _MOST_ATTRIBUTES:
            raise LoadError(f"it has more than {_MOST_ATTRIBUTES:,} attributes, as no model has")
        return TensorflowNode(
            name,
            kind,
            tuple(text(self.data, each) for each in parts[3]),
            {key: self._value(each, name) for key, each in attributes.items()},
        )

    def _value(self, field_: Field, node: str) -> Value | None:
        data = self.data
        parts = inside(data, field_, _ATTRIBUTE)
        found = [(number, each) for number, fields in parts.items() for each in fields]
        if len(found) != 1:
            if found:
                raise ambiguous(f"an attribute of node {node[:80]!r} has two values")
            return None
        number, value = found[0]
        if number == 1:
            return self._list(value)
        if number == 2:
            return bytes(data[value.start : value.end])
        if number == 4:
            return float(struct.unpack("<f", data[value.start : value.end])[0])
        if number == 5:
            return number_in(data, value) != 0
        if number in (3, 6):
            return signed(data, value, 64)
        if number == 7:
            return shape_in(data, value)
        if number == 8:
            return self._tensor(value)
        if number == 10:
            name = single(inside(data, value, _NAMED), 1, "a function's name")
            return None if name is None else FunctionName(text(data, name))
        return None

    def _list(self, field_: Field) -> tuple[object, ...] | None:
        """A list of numbers, types or shapes."""
        parts = inside(self.data, field_, _LIST)
        filled = [number for number, found in parts.items() if found]
        if len(filled) > 1:
            raise ambiguous("a list has values of two kinds")
        if not filled:
            return ()
        if filled == [7]:
            return tuple(shape_in(self.data, each) for each in parts[7])
        return tuple(signed_numbers(self.data, parts[filled[0]], 64))

    def _tensor(self, field_: Field) -> TensorPlace | None:
        parts = inside(self.data, field_, _TENSOR)
        dtype, shape = (single(parts, number, "a tensor's type or shape") for number in (1, 2))
        single(parts, 4, "a tensor's content")
        declared = DeclaredShape(()) if shape is None else shape_in(self.data, shape)
        if dtype is None or declared.lengths is None or min(declared.lengths, default=0) < 0:
            return None
        values = {number: found for number, found in parts.items() if number > 2 and found}
        if len(values) > 1:
            raise ambiguous("a tensor has values in two fields")
        return TensorPlace(signed(self.data, dtype, 32), declared.lengths, values)


def shape_in(data: Data, field: Field) -> DeclaredShape:
    """The TensorShapeProto in a field; raises LoadError."""
    parts = inside(data, field, _SHAPE)
    unknown = single(parts, 3, "a shape's unknown_rank")
    if unknown is not None and number_in(data, unknown):
        return DeclaredShape(None)
    lengths = [single(inside(data, each, _LENGTH), 1, "a length") for each in parts[2]]
    return DeclaredShape(tuple(0 if each is None else signed(data, each, 64) for each in lengths))
