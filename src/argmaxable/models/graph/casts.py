"""Which tensors of a graph are certain to hold floats, and which changes of type hand values on as they are.

Whole numbers wrap round: the square of 50,000 is negative in int32. So the bounds that activation functions
and interval arithmetic give hold for floats only. In a norm or a gate, one of whose parts is rounded to half
precision, the parts no longer belong to the same numbers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from argmaxable.models.graph.nodes import is_float_cast

if TYPE_CHECKING:
    from argmaxable.models.graph.nodes import Graph, Node

# Casts by what they do, where they are not between float32 and float64.
HALF_CAST, WHOLE_CAST = "Cast from or to half precision", "Cast of what may be whole numbers"

_LAYOUT = frozenset({"Identity", "Reshape", "Squeeze", "Unsqueeze", "Transpose", "Expand", "Flatten"})
# Operations that put out nothing but floats.
_FLOAT_ONLY = frozenset(
    {"Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "Softsign", "Softplus", "Softmax", "LogSoftmax", "Exp"}
    | {"Log", "Sqrt", "Reciprocal", "Gelu", "FastGelu", "BiasGelu", "QuickGelu", "Swish", "Mish", "Elu"}
    | {"Celu", "Selu", "ThresholdedRelu", "LeakyRelu", "LayerNormalization", "RMSNormalization"}
    | {"SimplifiedLayerNormalization", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization"}
    | {"MeanVarianceNormalization", "BatchNormalization", "InstanceNormalization", "GroupNormalization"}
    | {"LSTM", "GRU", "RNN", "DequantizeLinear"}
    # The whole numbers that this puts out stand for what it was given.
    | {"DynamicQuantizeLinear"}
)
# Operations that put out floats where one of their inputs is a float: they have one type for all, or give
# the result the type of the widest. Of the others it is the first input's type that counts.
_ONE_TYPE = frozenset(
    {"Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean", "Concat", "If", "MatMul", "Gemm", "FusedMatMul"}
    | {"Conv", "ConvTranspose"}
)
_AS_FIRST = _LAYOUT | {
    *("Relu", "Abs", "Neg", "Erf", "Clip", "Pow", "Dropout", "Slice", "Gather", "GatherElements", "GatherND"),
    *("Split", "Tile", "Pad", "MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool"),
    *("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin"),
}


def float_tensors(graph: Graph) -> frozenset[str]:
    """The names of tensors that are certain to hold floats."""
    users: dict[str, list[Node]] = {}
    for node in graph.nodes:
        for name in _deciding(node):
            users.setdefault(name, []).append(node)
    given = {name: type_ for name, type_ in graph.declared.items() if name not in graph.producers}
    found = {name for name, type_ in (given | dict(graph.types)).items() if "float" in type_}
    found.update(name for node in graph.nodes if _makes_floats(node) for name in node.outputs)
    waiting = list(found)
    while waiting:
        for node in users.pop(waiting.pop(), ()):
            # Second outputs are masks and places, but for those of a Split.
            new = set(node.outputs if node.op == "Split" else node.outputs[:1]) - found
            found |= new
            waiting += new
    return frozenset(found)


def _deciding(node: Node) -> tuple[str, ...]:
    """The inputs of which one that holds floats is enough for the output to do so."""
    if node.op in _ONE_TYPE:
        return node.inputs
    if node.op == "Where":
        return node.inputs[1:]
    return node.inputs[:1] if node.op in _AS_FIRST else ()


def _makes_floats(node: Node) -> bool:
    return node.op in _FLOAT_ONLY or (node.op == "Cast" and is_float_cast(node))


def with_told_casts(graph: Graph, floats: frozenset[str], halves: frozenset[str]) -> Graph:
    """The graph with casts told apart by name: those that are still called Cast lose next to nothing."""
    return replace(graph, nodes=tuple(_told(graph, node, floats, halves) for node in graph.nodes))


def _told(graph: Graph, node: Node, floats: frozenset[str], halves: frozenset[str]) -> Node:
    if node.op != "Cast" or not is_float_cast(node):
        return node
    source, target = node.input(0), node.outputs[:1]
    if halves.isdisjoint(target) and graph.origin(source, _LAYOUT) in graph.constants:
        return node  # a constant is read as the graph casts it
    if source not in floats:
        return replace(node, op=WHOLE_CAST)
    return node if halves.isdisjoint((source, *target)) else replace(node, op=HALF_CAST)
