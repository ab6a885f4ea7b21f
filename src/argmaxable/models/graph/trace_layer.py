"""Traces a tensor of a graph back to the linear layer it comes from.

The classes a model can answer are decided by argmax(W x + b) only if nothing but order-preserving
steps stand between that layer and the output. So the trace from the output passes a sigmoid, a softmax (also
one written out as exp / sum), changes of layout, positive factors and the addition of constants, follows both
branches of an If, and stops at anything else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from argmaxable.models.graph.class_axis import crossing
from argmaxable.models.graph.nodes import LONGEST_WALK, Graph, Node, is_float_cast
from argmaxable.models.graph.products import (
    CONVOLUTIONS,
    Features,
    Stored,
    integer_product,
    linear_product,
    stored_vector,
)

_LAYOUT = frozenset(
    {"Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Cast", "Dropout"}
)
_IDENTITY = frozenset({"Identity"})
_ACTIVATIONS = {"Sigmoid": "sigmoid"} | dict.fromkeys(("Softmax", "LogSoftmax", "QLinearSoftmax"), "softmax")
_ORDER_PRESERVING = frozenset({*_ACTIVATIONS, "Exp", "Log", "ArgMax"})
_ADDITIONS = frozenset({"Add", "QLinearAdd"})
# Rounding to 8 bits never turns the order of two logits round, but may make them equal.
_ROUNDING = frozenset(
    {"QuantizeLinear", "DequantizeLinear", "QLinearMatMul", "QLinearAdd", "QLinearSoftmax"}
    | {"QGemm", "QLinearConv"}
)
_ROUNDED = "the model rounds its logits to 8 bits, so classes that differ here may be equal there"
# What a softmax subtracts. A mean is not among them: it is taken over other axes than the classes' too.
_SHIFTS = frozenset({"ReduceMax", "ReduceSum", "ReduceLogSumExp"})
_RANK_CHANGING = frozenset({"Reshape", "Squeeze", "Unsqueeze", "Flatten", "ArgMax", "If"})
# An If within an If within … has as many ways through it as leaves; a hostile graph has billions.
_MOST_PATHS = 16


@dataclass(frozen=True)
class LinearLayer:
    """A linear layer: its constants and how to read them.

    `stored_by_class` says the weight is classes × features (otherwise features × classes). What comes after
    does not tell layers apart: `features` is what it is given in each place where it is used, `crossing` says
    what follows that is not along the classes, `misplaced` the same of what comes up to its last bias,
    `activation` is what follows it ("sigmoid", "softmax" or "" for neither), and `notes` say what a user
    should know about the choice.
    """

    weight: Stored
    stored_by_class: bool = True
    biases: tuple[Stored, ...] = ()
    features: tuple[Features, ...] = field(default=(), compare=False)
    crossing: str = field(default="", compare=False)
    misplaced: str = field(default="", compare=False)
    activation: str = field(default="", compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)


def trace_layers(
    graph: Graph, name: str, *, softmax: bool = True
) -> tuple[tuple[LinearLayer, ...], tuple[Node, ...]]:
    """The different layers that a tensor's traces lead to, and the last nodes of traces without one."""
    found = [(path, _layer(graph, path)) for path in _traces(graph, name, softmax=softmax)]
    layers = different(layer for _, layer in found if layer is not None)
    return layers, tuple(path[-1] for path, layer in found if layer is None)


def linear_layers(graph: Graph) -> tuple[LinearLayer, ...]:
    """Every different linear layer, with all the constants that are added to it, in graph order."""
    # A layer is complete where something other than layout or a constant takes it over; asking for its
    # shape does not use it.
    ends = [
        name
        for node in graph.nodes
        if node.op not in ("Shape", "If") and not _passed_input(graph, node, softmax=False)
        for name in node.inputs
    ]
    paths = (path for name in [*ends, *graph.outputs] for path in _traces(graph, name, softmax=False))
    return different(layer for path in paths if (layer := _layer(graph, path)) is not None)


def different(layers: Iterable[LinearLayer]) -> tuple[LinearLayer, ...]:
    """Each different layer once, with what it is given in each of the places where it is used."""
    found: dict[LinearLayer, LinearLayer] = {}
    for layer in layers:
        known = found.setdefault(layer, layer)
        places = tuple(dict.fromkeys((*known.features, *layer.features)))
        found[layer] = replace(
            known,
            features=places,
            crossing=known.crossing or layer.crossing,
            misplaced=known.misplaced or layer.misplaced,
            activation=known.activation or layer.activation,
        )
    return tuple(found.values())


def _traces(graph: Graph, name: str, *, softmax: bool) -> list[list[Node]]:
    """Traces from a tensor back to the first node that can't be passed, which comes last in each.

    There is one, unless an If makes several. An empty list means that nothing computes the tensor.
    """
    complete: list[list[Node]] = []
    pending: list[tuple[list[Node], str, bool]] = [([], name, softmax)]
    while pending and len(complete) < _MOST_PATHS:
        path, name, softmax = pending.pop()
        node = graph.producers.get(name)
        if node is None or len(path) == LONGEST_WALK:
            complete.extend([path] if path else [])
            continue
        path = [*path, node]
        # softmax(z) + c does not order classes as z does, nor does a multiple of z
        softmax = softmax and node.op not in _ADDITIONS
        onwards = node.inputs if node.op == "If" else (_passed_input(graph, node, softmax=softmax),)
        if any(each in graph.producers for each in onwards):
            pending += [(path, each, softmax) for each in onwards]
        else:
            complete.append(path)
    return complete


def _passed_input(graph: Graph, node: Node, *, softmax: bool) -> str:
    """The input that the node hands on with the order of classes preserved, or an empty name."""
    if node.op in _ADDITIONS:
        return _split_addition(graph, node)[0]
    if node.op == "Mul" and (found := integer_product(graph, node)) is not None:
        return found[0].outputs[0]
    if _keeps_order(graph, node) or (softmax and _is_softmax_step(graph, node)):
        return node.input(0)
    return _scaled_input(graph, node) if softmax else ""


def _keeps_order(graph: Graph, node: Node) -> bool:
    if node.op == "Cast" and not is_float_cast(node):
        source = graph.producers.get(node.input(0))
        return source is not None and source.op == "ArgMax"
    if node.op in ("QuantizeLinear", "DequantizeLinear"):
        return graph.size(node.input(1)) == 1
    if node.op == "GlobalAveragePool":  # over positions, not classes: their mean is the logit of the mean
        return _is_convolution(graph, graph.producers.get(node.input(0)))
    return node.op in _LAYOUT


def _is_convolution(graph: Graph, node: Node | None) -> bool:
    if node is not None and node.op == "Add":
        node = graph.producers.get(_split_addition(graph, node)[0])
    return node is not None and node.op in CONVOLUTIONS


def _scaled_input(graph: Graph, node: Node) -> str:
    """What a multiplication with, or a division by, a positive constant is applied to."""
    for place in {"Mul": (0, 1), "Div": (1,)}.get(node.op, ()):
        if graph.scalars.get(graph.origin(node.input(place), _IDENTITY), 0.0) > 0:
            return node.input(1 - place)
    return ""


def _split_addition(graph: Graph, node: Node) -> tuple[str, Stored | None]:
    """The name of the variable summand and the constant one; nothing unless there is one of each."""
    if node.op == "QLinearAdd":
        values, scale, zero_point = (stored_vector(graph, node.input(place)) for place in (3, 4, 5))
        if values is None or scale is None or zero_point is None:
            return "", None
        return node.input(0), replace(values, scale=scale.name, zero_point=zero_point.name)
    left, right = (stored_vector(graph, node.input(position)) for position in (0, 1))
    if left is None and right is not None:
        return node.input(0), right
    if left is not None and right is None:
        return node.input(1), left
    return "", None


def _is_softmax_step(graph: Graph, node: Node) -> bool:
    if node.op not in ("Sub", "Div"):
        return node.op in _ORDER_PRESERVING
    shared = _reduction(graph, node.input(1))
    if shared is None or node.op == "Sub":  # z - max(z), z - log(sum(exp(z))): one number for all classes
        return shared is not None and shared.op in _SHIFTS
    # exp(z) / sum(exp(z)): one number for all classes, and a positive one
    dividend = graph.origin(node.input(0), _LAYOUT)
    summed = graph.origin(shared.input(0), _LAYOUT) == dividend and shared.op == "ReduceSum"
    return summed and dividend in graph.producers and graph.producers[dividend].op == "Exp"


def _reduction(graph: Graph, name: str) -> Node | None:
    """The Reduce… node whose value the tensor carries, perhaps expanded, bounded below or its logarithm."""
    for _ in range(LONGEST_WALK):
        node = graph.producers.get(graph.origin(name, _LAYOUT))
        if node is None or node.op.startswith("Reduce"):
            return node
        if node.op == "Max":
            variables = [each for each in node.inputs if each not in graph.constants]
            name = variables[0] if len(variables) == 1 else ""
        elif node.op in ("Expand", "Log"):
            name = node.input(0)
        else:
            return None
    return None


def _layer(graph: Graph, path: list[Node]) -> LinearLayer | None:
    """The linear layer at the end of a path, with the constants added on the way."""
    if not path:
        return None
    scales = [found for node in path if node.op == "Mul" and (found := integer_product(graph, node))]
    product = linear_product(graph, path[-1], scales[-1][1] if scales else "")
    if product is None:
        return None
    added = [place for place, node in enumerate(path) if node.op in _ADDITIONS]
    addends = [_split_addition(graph, path[place])[1] for place in added]
    up_to_bias = path[added[0] :] if added else path[-1:] if product.bias is not None else []
    rounded = any(node.op in _ROUNDING for node in path)
    return LinearLayer(
        product.weight,
        product.stored_by_class,
        biases=tuple(bias for bias in (*addends, product.bias) if bias is not None),
        features=(replace(product.features, rank=product.features.rank or _rank(graph, path)),),
        crossing=crossing(graph, path, product),
        misplaced=crossing(graph, up_to_bias, product) if up_to_bias else "",
        activation=next((_ACTIVATIONS[node.op] for node in path if node.op in _ACTIVATIONS), ""),
        notes=(_ROUNDED,) if rounded else (),
    )


def _rank(graph: Graph, path: list[Node]) -> int | None:
    """How many axes a product has, as declared for it or for a later tensor with as many."""
    for node in reversed(path):
        if node is not path[-1] and node.op in _RANK_CHANGING:
            break
        if (rank := graph.ranks.get(node.outputs[0])) is not None:
            return rank
    return None
