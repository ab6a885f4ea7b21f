"""Shapes that a graph works out for itself, as far as they can be followed: targets of Reshape, mostly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from argmaxable.models.graph.lengths import Length, Lengths, declared_lengths, unknown
from argmaxable.models.graph.nodes import LONGEST_WALK

if TYPE_CHECKING:
    from argmaxable.models.graph.lengths import Target
    from argmaxable.models.graph.nodes import Graph, Node

_SAME_NUMBERS = frozenset({"Identity", "Cast", "Unsqueeze", "Squeeze", "Reshape"})
_SAME_SHAPE = frozenset({"Identity", "Cast", "Dropout", "Relu", "Tanh", "Sigmoid", "Clip", "HardSwish"}) | {
    "QuantizeLinear",
    "DequantizeLinear",
    "DynamicQuantizeLinear",
}


def target_of(graph: Graph, node: Node) -> tuple[Target | None, bool]:
    """The shape that a Reshape makes, or its end, and whether that is the whole of it.

    What is declared of its output is believed only where nothing better is known.
    """
    stored = node.integers("shape")
    values, is_whole = (stored, True) if stored else _numbers(graph, node.input(1), LONGEST_WALK)
    if node.number("allowzero", 0) and 0 in values:
        return None, True
    if not is_whole and (declared := graph.shapes.get(node.outputs[0])) is not None and not values:
        return declared_lengths(node.outputs[0], declared), True
    return values or None, is_whole


def takes_own_shape(graph: Graph, node: Node) -> bool:
    """Whether a Reshape leaves its input as it is: it is given that input's shape."""
    shape = graph.producers.get(node.input(1))
    return (
        shape is not None and (shape.op, shape.input(0)) == ("Shape", node.input(0)) and not shape.attributes
    )


def lengths_of(graph: Graph, tensor: str) -> Lengths | None:
    """The lengths of a tensor's axes: as it was reshaped to, or as declared; None where neither is known."""
    node = graph.producers.get(tensor)
    for _ in range(LONGEST_WALK):
        if node is None or node.op not in _SAME_SHAPE or tensor != node.outputs[0] or tensor in graph.shapes:
            break
        tensor = node.input(0)
        node = graph.producers.get(tensor)
    if node is not None and node.op == "Reshape":
        target, is_whole = target_of(graph, node)
        if target is not None and is_whole:
            return tuple(
                each if isinstance(each, Length) else Length(each) if each > 0 else unknown(tensor, axis)
                for axis, each in enumerate(target)
            )
    shape = graph.shapes.get(tensor)
    return None if shape is None else declared_lengths(tensor, shape)


def _numbers(graph: Graph, name: str, steps: int) -> tuple[Target, bool]:
    """The integers in a tensor, or the last of them, and whether they are all."""
    node = graph.producers.get(name)
    if name in graph.integers:
        return graph.integers[name], True
    if node is None or not steps:
        return (), False
    if node.op in _SAME_NUMBERS:
        return _numbers(graph, node.input(0), steps - 1)
    if node.op == "Concat":
        return _joined(graph, node, steps - 1)
    if node.op == "Mul":
        return _multiplied(graph, node, steps - 1)
    length = _length(graph, node)
    return ((), False) if length is None else ((length,), True)


def _joined(graph: Graph, node: Node, steps: int) -> tuple[Target, bool]:
    joined: Target = ()
    for name in reversed(node.inputs):
        part, is_whole = _numbers(graph, name, steps // len(node.inputs))
        joined = (*part, *joined)
        if not is_whole:
            return joined, False
    return joined, True


def _multiplied(graph: Graph, node: Node, steps: int) -> tuple[Target, bool]:
    product = Length(1)
    for name in node.inputs:
        factor, is_whole = _numbers(graph, name, steps // len(node.inputs))
        if not is_whole or len(factor) != 1:
            return (), False
        (number,) = factor
        if not isinstance(number, Length) and number <= 0:
            return (), False
        product *= number if isinstance(number, Length) else Length(number)
    return (product,), True


def _length(graph: Graph, node: Node) -> Length | None:
    """The length that a node takes out of a shape: one entry by Gather, or a Slice of one."""
    shape = graph.producers.get(graph.origin(node.input(0), frozenset({"Identity"})))
    while shape is not None and shape.op == "Cast":
        shape = graph.producers.get(shape.input(0))
    if shape is None or shape.op != "Shape" or shape.attributes:
        return None
    places = [graph.integers.get(name) for name in node.inputs[1:]]
    if node.op == "Gather" and len(places) == 1:
        place = places[0]
    elif node.op == "Slice" and places[2:] in ([], [(0,)], [(0,), (1,)]) and None not in places:
        place, end = places[:2]
        place = place if place is not None and end == tuple(each + 1 for each in place) else None
    else:
        return None
    if place is None or len(place) != 1 or place[0] < 0:
        return None
    known = lengths_of(graph, shape.input(0)) or ()
    return known[place[0]] if place[0] < len(known) else unknown(shape.input(0), place[0])
