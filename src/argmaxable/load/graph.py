"""Finding the last linear layer in a graph of named operations.

The classes a model can answer are decided by argmax(W x + b) only if nothing but order-keeping steps
stand between that layer and the output. So the walk back from the output passes a softmax (also one
written out as exp / sum), changes of layout and the addition of constants, and stops at anything else:
a head it can't vouch for is not returned, the user has to name it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from argmaxable.errors import LoadError

_LAYOUT = frozenset(
    {"Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Cast", "Dropout"}
)
_ORDER_KEEPING = frozenset({"Softmax", "LogSoftmax", "Exp", "Log"})
# What a softmax subtracts. A mean is not among them: it is taken over other axes than the classes' too.
_SHIFTS = frozenset({"ReduceMax", "ReduceSum", "ReduceLogSumExp"})
_QUANTISED = frozenset({"MatMulInteger", "QLinearMatMul", "QGemm", "DequantizeLinear"})
# Enough to find the head, which is nearly always among the last; a large model has hundreds.
_CANDIDATES_SHOWN = 6


@dataclass(frozen=True)
class Node:
    """One operation. Omitted inputs are empty names; attributes are numbers or lists of integers."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, float | tuple[int, ...]]

    def input(self, position: int) -> str:
        return self.inputs[position] if position < len(self.inputs) else ""


@dataclass(frozen=True)
class Graph:
    """Operations, the names of the graph's outputs, and the shapes of its constants."""

    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, tuple[int, ...]]

    @cached_property
    def producers(self) -> dict[str, Node]:
        return {name: node for node in self.nodes for name in node.outputs if name}


@dataclass(frozen=True)
class Layer:
    """A linear layer: the names of its constants and how to read them.

    `stored_by_class` says the weight is classes × features (otherwise features × classes), `scaled`
    that it is multiplied by a factor, `targets` are the shapes its product is reshaped to.
    """

    weight: str
    stored_by_class: bool = True
    biases: tuple[str, ...] = ()
    scaled: bool = False
    targets: tuple[str, ...] = field(default=(), compare=False)


def last_layer(graph: Graph) -> Layer:
    """The linear layer all outputs come from; raises LoadError when there is not exactly one."""
    paths = [_walk_back(graph, output, softmax=True) for output in graph.outputs]
    if not any(paths):
        raise LoadError("the graph computes no output; the file is no complete model. Export it again.")
    layers = [_layer(graph, path) for path in paths]
    first = layers[0]
    if len(paths) == 1 and first is None:
        raise LoadError(
            f"no linear layer leads straight to the output {graph.outputs[0]!r}: the way back ends at "
            f"{paths[0][-1].op}. {_candidates(graph)}"
        )
    if first is None or any(layer != first for layer in layers):
        raise LoadError(
            f"the graph has {len(paths)} outputs ({', '.join(graph.outputs[:_CANDIDATES_SHOWN])}), which do "
            f"not all come from one linear layer. {_candidates(graph)}"
        )
    return first


def layer_using(graph: Graph, weight: str) -> Layer:
    """The linear layer with this weight; a constant that no layer uses is taken as classes × features.

    Raises LoadError when there is no such constant, or its users disagree on orientation or bias.
    """
    shape = graph.constants.get(weight)
    if shape is None:
        raise LoadError(f"{weight!r} not found ({len(graph.constants)} tensors). {_candidates(graph)}")
    if len(shape) != 2:
        raise LoadError(f"tensor {weight!r} has shape {shape}, expected a matrix. {_candidates(graph)}")
    users = [layer for layer in _linear_layers(graph) if layer.weight == weight]
    if len(users) > 1:
        raise LoadError(
            f"tensor {weight!r} is used by {len(users)} layers that differ in orientation or bias, so it "
            "is not clear which one is the head. Save the wanted weight and bias as .npz instead."
        )
    return users[0] if users else Layer(weight)


def other_weights(graph: Graph, weight: str) -> list[str]:
    """Weights of all other linear layers, nearest to the output first."""
    names = dict.fromkeys(layer.weight for layer in reversed(_linear_layers(graph)))
    return [name for name in names if name != weight]


def _walk_back(graph: Graph, name: str, *, softmax: bool) -> list[Node]:
    """The nodes from a tensor back to the first that can't be passed, which comes last."""
    path: list[Node] = []
    node = graph.producers.get(name)
    while node is not None and node not in path:  # a damaged graph may run in circles
        path.append(node)
        softmax = softmax and node.op != "Add"  # softmax(z) + c does not order classes as z does
        node = graph.producers.get(_passed_input(graph, node, softmax=softmax))
    return path


def _passed_input(graph: Graph, node: Node, *, softmax: bool) -> str:
    """The input that the node hands on with the order of classes kept, or an empty name."""
    if node.op == "Add":
        return _split_addition(graph, node)[0]
    if node.op in _LAYOUT or (softmax and _is_softmax_step(graph, node)):
        return node.input(0)
    return ""


def _split_addition(graph: Graph, node: Node) -> tuple[str, str]:
    """The names of the variable and the constant summand; empty names unless there is one of each."""
    left, right = (_constant(graph, node.input(position)) for position in (0, 1))
    if left is None and right is not None:
        return node.input(0), right[0]
    if left is not None and right is None:
        return node.input(1), left[0]
    return "", ""


def _is_softmax_step(graph: Graph, node: Node) -> bool:
    if node.op not in ("Sub", "Div"):
        return node.op in _ORDER_KEEPING
    shared = _reduction(graph, node.input(1))
    if shared is None or node.op == "Sub":  # z - max(z), z - log(sum(exp(z))): one number for all classes
        return shared is not None and shared.op in _SHIFTS
    # exp(z) / sum(exp(z)): one number for all classes, and a positive one
    dividend = _without_layout(graph, node.input(0))
    summed = _without_layout(graph, shared.input(0)) == dividend and shared.op == "ReduceSum"
    return summed and dividend in graph.producers and graph.producers[dividend].op == "Exp"


def _reduction(graph: Graph, name: str) -> Node | None:
    """The Reduce… node whose value the tensor carries, perhaps expanded, bounded below or its logarithm."""
    for _ in graph.nodes:
        node = graph.producers.get(_without_layout(graph, name))
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


def _without_layout(graph: Graph, name: str) -> str:
    for _ in graph.nodes:
        node = graph.producers.get(name)
        if node is None or node.op not in _LAYOUT:
            break
        name = node.input(0)
    return name


def _constant(graph: Graph, name: str) -> tuple[str, bool] | None:
    """The stored constant behind a name, and whether it is transposed on the way."""
    transposed = False
    for _ in graph.nodes:
        node = graph.producers.get(name)
        if name in graph.constants or node is None:
            break
        if node.op == "Transpose" and node.attributes.get("perm", (1, 0)) == (1, 0):
            transposed = not transposed
        elif node.op != "Identity":
            break
        name = node.input(0)
    return (name, transposed) if name in graph.constants else None


def _layer(graph: Graph, path: list[Node]) -> Layer | None:
    """The linear layer at the end of a path, with the constants added and the shapes taken on the way."""
    product = path[-1] if path else None
    weight = None if product is None else _weight(graph, product)
    if product is None or weight is None:
        return None
    addends = [_split_addition(graph, node)[1] for node in path if node.op == "Add"]
    scaled = product.attributes.get("alpha", 1.0) != 1.0
    if product.input(2):  # only Gemm has a third input
        addend = _constant(graph, product.input(2))
        if addend is None:
            return None
        addends.append(addend[0])
        scaled = scaled or product.attributes.get("beta", 1.0) != 1.0
    targets = tuple(node.input(1) for node in path if node.op == "Reshape")
    return Layer(*weight, biases=tuple(addends), scaled=scaled, targets=targets)


def _weight(graph: Graph, product: Node) -> tuple[str, bool] | None:
    """The name of a product's constant matrix and whether it is stored classes × features."""
    if product.op not in ("MatMul", "Gemm"):
        return None
    left, right = (_constant(graph, product.input(position)) for position in (0, 1))
    if left is None and right is not None:  # x W: features × classes
        name, by_class = right[0], right[1] != bool(product.attributes.get("transB", 0))
    elif left is not None and right is None and product.op == "MatMul":  # W x: classes × features
        name, by_class = left[0], not left[1]
    else:
        return None
    return (name, by_class) if len(graph.constants[name]) == 2 else None


def _linear_layers(graph: Graph) -> list[Layer]:
    """Every different linear layer, with all the constants that are added to it, in graph order."""
    # A layer is complete where something other than layout or a constant takes it over; asking for its
    # shape is no use of it.
    ends = [
        name
        for node in graph.nodes
        if node.op != "Shape" and not _passed_input(graph, node, softmax=False)
        for name in node.inputs
    ]
    layers = (_layer(graph, _walk_back(graph, name, softmax=False)) for name in [*ends, *graph.outputs])
    return list(dict.fromkeys(layer for layer in layers if layer is not None))


def _candidates(graph: Graph) -> str:
    """What the user can choose from, nearest to the output first."""
    weights = other_weights(graph, "")
    if not weights:
        quantised = any(node.op in _QUANTISED for node in graph.nodes)
        hint = "quantised: use the float model it was made from" if quantised else "is it a classifier?"
        return f"The graph has no linear layer with constant float weights ({hint})."
    shown = [f"{name} {graph.constants[name]}" for name in weights[:_CANDIDATES_SHOWN]]
    more = f" and {len(weights) - len(shown)} more" if len(weights) > len(shown) else ""
    return (
        f"Weights of linear layers, nearest to the output first: {', '.join(shown)}{more}. "
        "Choose one with tensor= (--tensor)."
    )
