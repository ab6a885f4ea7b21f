"""Whether what follows a linear layer normalises, or takes the argmax, over the axis of its classes.

A softmax over positions divides each class by a number of its own and so changes their order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from argmaxable.models.graph.layout import KEEPING, Axis, axis_before

if TYPE_CHECKING:
    from argmaxable.models.graph.nodes import Graph, Node
    from argmaxable.models.graph.products import Product

# Since this version of ONNX's operations a softmax is over one axis; before, over that and all behind it.
_ONE_AXIS = 13
_SOFTMAXES = frozenset({"Softmax", "LogSoftmax", "QLinearSoftmax"})


def crossing(graph: Graph, path: list[Node], product: Product) -> str:
    """The first operation of a path, which leads from an output back to a product, that works along other
    axes than the classes', in words; an empty text where there is none, or it can't be known.
    """
    # x W has the classes where x has its features, unless x is transposed for it.
    classes = -1 if path[-1].number("transA", 0) else product.features.axis
    for place, node in enumerate(path[:-1]):
        axes = _axes(graph, node, _rank(graph, node, product))
        before = [_before(graph, Axis(axis), path[place:-1]) for axis in axes]
        known = [axis.place for axis in before if axis is not None and not axis.needs_length]
        if axes and len(known) == len(before) and classes not in known:
            return f"{node.op} over axis {', '.join(map(str, axes))} counted from the end"
    return ""


def _before(graph: Graph, axis: Axis | None, path: list[Node]) -> Axis | None:
    """Where an axis was before the operations of a path, of which the last in the path comes first."""
    for node in path:
        rank = None if axis is None else axis.rank or graph.ranks.get(node.outputs[0])
        axis = None if axis is None else Axis(axis.place, rank, axis.needs_length)
        axis = axis_before(graph, node, axis) if node.op in KEEPING else axis
    return axis


def _axes(graph: Graph, node: Node, rank: int | None) -> tuple[int, ...]:
    """The axes, counted from the end, that an operation works along; none where that is not known."""
    if node.op in _SOFTMAXES:
        version = int(node.number("opset", graph.opset))
        axis = int(node.number("axis", -1 if version >= _ONE_AXIS else 1))
        first = _from_end(axis, rank)
        if first is None or version >= _ONE_AXIS:
            return () if first is None else (first,)
        return tuple(range(first, 0))
    if node.op == "ArgMax":
        first = _from_end(int(node.number("axis", 0)), rank)
        return () if first is None else (first,)
    return _reduced(graph, node, rank) if node.op in ("Sub", "Div") else ()


def _reduced(graph: Graph, node: Node, rank: int | None) -> tuple[int, ...]:
    """The axes of the maximum that is subtracted, or the sum that is divided by, if of the same tensor."""
    reduction = graph.producers.get(node.input(1))
    if reduction is None or reduction.input(0) != node.input(0):
        return ()
    axes = reduction.integers("axes") or graph.integers.get(reduction.input(1)) or ()
    places = [_from_end(axis, rank) for axis in axes]
    return () if None in places else tuple(place for place in places if place is not None)


def _rank(graph: Graph, node: Node, product: Product) -> int | None:
    """How many axes the tensor has that an operation is given."""
    names = (node.input(0), *(node.outputs[:1] if node.op != "ArgMax" else ()))
    known = (graph.ranks[name] for name in names if name in graph.ranks)
    source = graph.producers.get(node.input(0))
    is_product = source is not None and product.features.tensor in source.inputs
    return next(known, product.features.rank if is_product else None)


def _from_end(axis: int, rank: int | None) -> int | None:
    if axis < 0:
        return axis
    return None if rank is None or axis >= rank else axis - rank
