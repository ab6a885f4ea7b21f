"""A model as a graph of named operations: just the data, with the constants known by name and shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

# Enough for any way from an output to its head or from a head to an activation; a damaged graph may run
# in circles, and a hostile one in long lines.
LONGEST_WALK = 200

# ONNX's numbers of FLOAT, FLOAT16, DOUBLE and BFLOAT16.
_FLOATS = frozenset({1, 10, 11, 16})

Attribute = float | str | tuple[int, ...]


@dataclass(frozen=True)
class Node:
    """One operation. Omitted inputs are empty names; attributes are numbers, texts or lists of integers."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Attribute]

    def input(self, position: int) -> str:
        return self.inputs[position] if position < len(self.inputs) else ""

    def number(self, name: str, default: float) -> float:
        value = self.attributes.get(name, default)
        return value if isinstance(value, int | float) else default

    def integers(self, name: str) -> tuple[int, ...] | None:
        value = self.attributes.get(name)
        return value if isinstance(value, tuple) else None


def is_float_cast(node: Node) -> bool:
    """Whether a Cast leaves fractions: one to integers would cut them off."""
    return node.number("to", 1) in _FLOATS


@dataclass(frozen=True)
class Graph:
    """Operations, the names of the graph's outputs, and what is known of its tensors.

    `constants` has the shapes of stored tensors, `scalars` the values of those with one number, `integers`
    the values of short lists of them (shapes, axes), `types` the names of their types (numpy's);
    `shapes` are those that tensors were declared with, where a name stands for a length that is not known in
    advance and −1 for one without a name; `declared` are the names of types that tensors other than constants
    were declared with. `replaceable` are constants that are also inputs of the graph, so that whoever runs
    the model can replace them: they have no part in `scalars` and `integers`. `opset` is the version of
    ONNX's operations; `promotes` says that operations turn whole numbers that meet floats into floats.
    """

    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, tuple[int, ...]]
    scalars: Mapping[str, float] = field(default_factory=dict)
    integers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    shapes: Mapping[str, tuple[int | str, ...]] = field(default_factory=dict)
    declared: Mapping[str, str] = field(default_factory=dict)
    replaceable: frozenset[str] = frozenset()
    opset: int = 13
    promotes: bool = False

    @cached_property
    def producers(self) -> dict[str, Node]:
        return {name: node for node in self.nodes for name in node.outputs if name}

    @cached_property
    def ranks(self) -> dict[str, int]:
        """How many axes tensors were declared with."""
        return {name: len(shape) for name, shape in self.shapes.items()}

    @cached_property
    def fixed(self) -> Graph:
        """The same graph, where what can be replaced is an input and no constant."""
        if not self.replaceable:
            return self
        constants = {name: shape for name, shape in self.constants.items() if name not in self.replaceable}
        return replace(self, constants=constants, replaceable=frozenset())

    def origin(self, name: str, passing: frozenset[str]) -> str:
        """The tensor that a name carries, looking back through the first input of these operations."""
        for _ in range(LONGEST_WALK):
            node = self.producers.get(name)
            if node is None or node.op not in passing or (node.op == "Cast" and not is_float_cast(node)):
                break
            name = node.input(0)
        return name

    def size(self, name: str) -> int | None:
        """How many numbers a constant holds."""
        shape = self.constants.get(name)
        if shape is None:
            return None
        size = 1
        for length in shape:
            size *= length
        return size
