"""A TensorFlow graph as the `Graph` that `models/graph/` walks, whose operations are named as ONNX's.

An operation that is not understood becomes `tensorflow:…`, which ends every walk: a head is then refused, or
its inputs are taken as unbounded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from argmaxable.core.errors import LoadError
from argmaxable.models.graph.nodes import Graph, Node
from argmaxable.models.graph.translation import Given, NotTranslated
from argmaxable.models.tensorflow.constants import GraphConstant, GraphConstants
from argmaxable.models.tensorflow.flatten import LISTS, FlatGraph, FlatNode
from argmaxable.models.tensorflow.graph_def import DeclaredShape, TensorPlace
from argmaxable.models.tensorflow.operations import TRANSLATIONS, translated
from argmaxable.models.tensorflow.saved_model import VARIABLES, resource_of
from argmaxable.models.tensorflow.types import TYPES

if TYPE_CHECKING:
    from argmaxable.models.tensorflow.bundle import TensorBundle

_GIVEN = frozenset({"Placeholder", "PlaceholderWithDefault", "PlaceholderV2"})
# What reads a variable without changing it. One of TensorFlow 1 is its own value: translated nodes read it.
_READING = frozenset({"ReadVariableOp", "ResourceGather", "VariableShape", "VarIsInitializedOp"})
_SAME = frozenset({"Identity", "Cast"})


@dataclass
class _Parts:
    """The graph under construction.

    `stored` are constants and what only copies or casts them, `products` what multiplies or negates.
    """

    flat: FlatGraph
    values: GraphConstants
    constants: dict[str, GraphConstant]
    nodes: list[Node] = field(default_factory=list)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    declared: dict[str, str] = field(default_factory=dict)
    stored: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, tuple[float, ...]] = field(default_factory=dict)
    products: dict[str, Node] = field(default_factory=dict)


def translate(
    flat: FlatGraph,
    outputs: Mapping[str, str],
    path: Path,
    variables: Mapping[str, tuple[str, ...]],
    bundle: TensorBundle | None,
) -> tuple[Graph, GraphConstants]:
    """The graph, and what reads its constants; raises LoadError.

    `outputs` are its answers, by the names that people know; `variables` the keys of stored variables.
    """
    constants: dict[str, GraphConstant] = {}
    parts = _Parts(flat, GraphConstants(constants, path, bundle), constants)
    used: dict[str, set[int]] = defaultdict(set)
    for node in flat.nodes.values():
        for name in node.inputs:
            source, _, number = flat.resolve(name).partition(":")
            used[source].add(int(number.rpartition(":")[2] or 0))
    changed = _changed(flat)
    for node in flat.nodes.values():
        if node.kind in ("Const", *VARIABLES):
            _add_constant(parts, node, changed, variables)
    for node in _in_order(flat):
        if node.kind not in ("Const", "NoOp", *VARIABLES, *_GIVEN):
            _add(parts, node, used[node.name])
        elif node.kind in _GIVEN:
            _declare(parts, node)
    answers = _answers(parts, outputs)
    graph = Graph(
        nodes=tuple(parts.nodes),
        outputs=answers,
        constants={name: constant.shape for name, constant in constants.items()},
        scalars={name: numbers[0] for name, numbers in parts.numbers.items() if len(numbers) == 1},
        integers={
            name: tuple(map(int, numbers))
            for name, numbers in parts.numbers.items()
            if name in constants and constants[name].dtype in ("int32", "int64")
        },
        types={name: constant.dtype for name, constant in constants.items()},
        shapes=parts.shapes,
        declared=parts.declared,
    )
    return graph, parts.values


def _answers(parts: _Parts, outputs: Mapping[str, str]) -> tuple[str, ...]:
    """A copy of each output under the name that people know it by, where no other tensor has that."""
    taken = set(parts.flat.nodes)
    answers = []
    for name, tensor in outputs.items():
        source = parts.flat.resolve(tensor)
        if source == name:
            answers.append(name)
            continue
        answer = name if name not in taken else f"{name}|"
        parts.nodes.append(Node("Identity", (source,), (answer,), {}))
        if source in parts.shapes:
            parts.shapes[answer] = parts.shapes[source]
        answers.append(answer)
    return tuple(answers)


def _changed(flat: FlatGraph) -> set[str]:
    """The variables that something might change while the model runs."""
    changed = set[str]()
    for node in flat.nodes.values():
        for name in node.inputs:
            source = flat.nodes.get(flat.resolve(name))
            if source is None or source.kind not in VARIABLES:
                continue
            reading = _READING if source.kind == "VarHandleOp" else TRANSLATIONS
            if node.kind not in reading:
                changed.add(resource_of(source))
    return changed


def _add_constant(
    parts: _Parts, node: FlatNode, changed: set[str], variables: Mapping[str, tuple[str, ...]]
) -> None:
    constant = _constant(node) if node.kind == "Const" else _variable(parts, node, changed, variables)
    if constant is None:
        return
    parts.constants[node.name] = constant
    parts.shapes[node.name] = constant.shape
    parts.stored[node.name] = node.name
    numbers = parts.values.numbers(node.name)
    if numbers is not None:
        parts.numbers[node.name] = numbers


def _constant(node: FlatNode) -> GraphConstant | None:
    value = node.operation.attributes.get("value")
    if not isinstance(value, TensorPlace) or value.dtype not in TYPES or not value.values:
        return None
    return GraphConstant(TYPES[value.dtype][0], value.shape, place=value)


def _variable(
    parts: _Parts, node: FlatNode, changed: set[str], variables: Mapping[str, tuple[str, ...]]
) -> GraphConstant | None:
    resource, bundle = resource_of(node), parts.values.bundle
    keys = variables.get(resource, ())
    if not keys or resource in changed or bundle is None:
        return None
    entries = [bundle.entries[key] for key in keys if key in bundle.entries]
    if len(entries) != len(keys):
        return None
    declared = node.operation.attributes.get("shape")
    shapes = {entry.shape for entry in entries}
    if isinstance(declared, DeclaredShape) and declared.lengths is not None and -1 not in declared.lengths:
        shapes.add(declared.lengths)
    if len(shapes) > 1:
        raise LoadError(
            f"the variable {node.name[:80]!r} is stored with another shape than it is declared with"
        )
    return GraphConstant(entries[0].dtype, entries[0].shape, keys=keys)


def _in_order(flat: FlatGraph) -> list[FlatNode]:
    """The nodes, each after those that it needs, as far as they don't run in circles."""
    order, state = list[FlatNode](), dict[str, int]()
    for start in flat.nodes:
        pending = [start]
        while pending:
            name = pending[-1]
            if state.get(name, 0) or name not in flat.nodes:
                if state.get(name) == 1:
                    order.append(flat.nodes[name])
                state[name] = 2
                pending.pop()
                continue
            state[name] = 1
            needed = (flat.resolve(each).partition(":")[0] for each in flat.nodes[name].inputs)
            pending += [each for each in needed if not state.get(each)]
    return order


def _declare(parts: _Parts, node: FlatNode) -> None:
    """The shapes that a file declares for what a node puts out, and the type of an input."""
    shapes = node.operation.attributes.get("_output_shapes")
    if not isinstance(shapes, tuple):
        shapes = (node.operation.attributes.get("shape"),) if node.kind in _GIVEN else ()
    type_ = node.operation.attributes.get("dtype")
    if node.kind in _GIVEN and isinstance(type_, int) and type_ in TYPES:
        parts.declared[node.name] = TYPES[type_][0]
    for number, shape in enumerate(shapes):
        if isinstance(shape, DeclaredShape) and shape.lengths is not None:
            parts.shapes[f"{node.name}:{number}" if number else node.name] = shape.lengths


def _add(parts: _Parts, node: FlatNode, used: set[int]) -> None:
    inputs = tuple(map(parts.flat.resolve, node.inputs))
    _declare(parts, node)
    outputs: tuple[str, ...] = (node.name,)
    if node.kind in LISTS:
        outputs = tuple(f"{node.name}:{number}" if number else node.name for number in sorted(used | {0}))
    try:
        parts.nodes += _translated(parts, node, inputs, outputs)
    except NotTranslated:
        parts.nodes.append(Node(f"tensorflow:{node.kind}", inputs, outputs, {}))


def _translated(
    parts: _Parts, node: FlatNode, inputs: tuple[str, ...], outputs: tuple[str, ...]
) -> list[Node]:
    """The nodes that do the same; raises NotTranslated."""
    written = _written_out(node, inputs)
    if written is not None:
        return written
    if node.kind == "Erfc" and len(inputs) == 1:
        return _error_function(parts, node, inputs[0])
    if node.kind == "IdentityN":
        numbers = [int(name.rpartition(":")[2]) if ":" in name else 0 for name in outputs]
        pairs = [
            (inputs[number], name)
            for number, name in zip(numbers, outputs, strict=True)
            if number < len(inputs)
        ]
        return [Node("Identity", (source,), (name,), {}) for source, name in pairs]
    given = Given(
        inputs,
        tuple(parts.shapes.get(name) for name in inputs),
        tuple(parts.numbers.get(name) for name in inputs),
        tuple(name in parts.stored for name in inputs),
    )
    found = translated(node.operation, given)
    if found.attributes.pop("kernel", 0):
        _flatten_kernel(parts, found.names[1])
    lists = [parts.numbers.get(name) for name in found.names]
    if found.op == "Concat" and all(each is not None for each in lists):
        parts.numbers[outputs[0]] = tuple(number for each in lists for number in each or ())
    if found.op in _SAME and found.names[0] in parts.stored:
        parts.stored[outputs[0]] = parts.stored[found.names[0]]
        parts.shapes[outputs[0]] = parts.shapes[found.names[0]]
        if found.names[0] in parts.numbers:
            parts.numbers[outputs[0]] = parts.numbers[found.names[0]]
    made = Node(found.op, found.names, outputs, found.attributes)
    if made.op in ("Mul", "Neg"):
        parts.products[outputs[0]] = made
    return [made]


def _flatten_kernel(parts: _Parts, name: str) -> None:
    """A kernel of one position becomes the matrix that it is."""
    constant = parts.constants[parts.stored[name]]
    matrix = GraphConstant(constant.dtype, constant.shape[-2:], constant.place, constant.keys)
    parts.constants[parts.stored[name]] = matrix


def _error_function(parts: _Parts, node: FlatNode, name: str) -> list[Node]:
    """erfc(−c · x) as 1 + erf(c · x), which a GELU is made of."""
    producers = parts.products
    product = producers.get(name)
    if product is None or product.op != "Mul":
        raise NotTranslated("Erfc")
    places = [place for place in (0, 1) if (each := producers.get(product.input(place))) and each.op == "Neg"]
    if len(places) != 1 or product.input(1 - places[0]) not in parts.numbers:
        raise NotTranslated("Erfc")
    x = producers[product.input(places[0])].input(0)
    scaled, erf, one = (f"{node.name}|{each}" for each in ("scaled", "erf", "one"))
    parts.numbers[one] = (1.0,)
    return [
        Node("Mul", (x, product.input(1 - places[0])), (scaled,), {}),
        Node("Erf", (scaled,), (erf,), {}),
        Node("Add", (erf, one), (node.name,), {}),
    ]


def _written_out(node: FlatNode, inputs: Sequence[str]) -> list[Node] | None:
    """Operations that are two of ONNX's."""
    if node.kind == "Rsqrt" and len(inputs) == 1:
        root = f"{node.name}|root"
        return [Node("Sqrt", (inputs[0],), (root,), {}), Node("Reciprocal", (root,), (node.name,), {})]
    if node.kind == "Square" and len(inputs) == 1:
        return [Node("Mul", (inputs[0], inputs[0]), (node.name,), {})]
    if node.kind == "SquaredDifference" and len(inputs) == 2:
        difference = f"{node.name}|difference"
        return [
            Node("Sub", tuple(inputs), (difference,), {}),
            Node("Mul", (difference, difference), (node.name,), {}),
        ]
    return None
