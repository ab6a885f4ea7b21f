"""An OpenVINO network as the `Graph` that `models/graph/` walks, whose operations are named as ONNX's.

A layer that is not understood becomes `openvino:…`, which ends every walk: a head is then refused, or its
inputs are taken as unbounded.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from argmaxable.core.errors import LoadError
from argmaxable.models.graph.nodes import Graph, Node
from argmaxable.models.graph.translation import Given, NotTranslated
from argmaxable.models.openvino.constants import Constant, ConstantsFile, constant_of, type_name
from argmaxable.models.openvino.operations import translated

if TYPE_CHECKING:
    from pathlib import Path

    from argmaxable.models.openvino.network import LayerNetwork, NetworkLayer, Place, Port

_COMMUTATIVE = frozenset({"Add", "Multiply", "Maximum", "Minimum"})


@dataclass
class _Parts:
    """The graph under construction. `stored` are constants and what only casts or dequantises them."""

    names: dict[Place, str]
    values: ConstantsFile
    constants: dict[str, Constant]
    nodes: list[Node] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    declared: dict[str, str] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    stored: set[str] = field(default_factory=set)
    steps: dict[str, tuple[str, str]] = field(default_factory=dict)
    numbers: dict[str, tuple[float, ...]] = field(default_factory=dict)


def translate(network: LayerNetwork, weights: Path) -> tuple[Graph, ConstantsFile]:
    """The network's graph, and the file its constants are read from; raises LoadError."""
    constants: dict[str, Constant] = {}
    parts = _Parts(_names(network), ConstantsFile(constants, weights), constants)
    size = weights.stat().st_size
    for layer in network.layers:
        parts.seen.add(layer.number)
        if layer.kind == "Const":
            _add_constant(parts, layer, size)
        else:
            _add(parts, layer, network)
    graph = Graph(
        nodes=tuple(parts.nodes),
        outputs=tuple(dict.fromkeys(parts.outputs)),
        constants={name: constant.shape for name, constant in constants.items()},
        scalars={name: numbers[0] for name, numbers in parts.numbers.items() if len(numbers) == 1},
        types={name: constant.dtype for name, constant in constants.items()},
        shapes=parts.shapes,
        declared=parts.declared,
    )
    return graph, parts.values


def _names(network: LayerNetwork) -> dict[Place, str]:
    """A name for each output: its tensor's if no other has it, else its layer's, with numbers if need be."""
    ports = [(layer, port) for layer in network.layers for port in layer.outputs]
    tensors = Counter(port.names[0] for _, port in ports if port.names)
    layers = Counter(layer.name for layer, _ in ports)

    def name(layer: NetworkLayer, port: Port) -> str:
        if port.names and tensors[port.names[0]] == 1 and port.names[0] not in layers:
            return port.names[0]
        return layer.name if layers[layer.name] == 1 else f"{layer.name}#{layer.number}.{port.number}"

    found = {(layer.number, port.number): name(layer, port) for layer, port in ports}
    if len(set(found.values())) < len(found):
        raise LoadError("its layers have names that can't be told apart")
    return found


def _add_constant(parts: _Parts, layer: NetworkLayer, size: int) -> None:
    constant = constant_of(layer, size)
    name = parts.names[layer.number, layer.outputs[0].number]
    parts.constants[name] = constant
    parts.shapes[name] = constant.shape
    parts.stored.add(name)
    numbers = parts.values.numbers(name)
    if numbers is not None:
        parts.numbers[name] = numbers


def _add(parts: _Parts, layer: NetworkLayer, network: LayerNetwork) -> None:
    inputs = [_source(parts, layer, port, network) for port in layer.inputs]
    if layer.kind == "Result":
        parts.outputs += inputs
        return
    outputs = tuple(parts.names[layer.number, port.number] for port in layer.outputs)
    if layer.kind in _COMMUTATIVE and len(inputs) == 2 and inputs[0] in parts.stored:
        inputs.reverse()
    for name, port in zip(outputs, layer.outputs, strict=True):
        if port.shape:
            parts.shapes[name] = port.shape
    if layer.kind == "Parameter":  # what nothing computes is the model's input
        parts.declared |= dict.fromkeys(outputs, type_name(layer.attributes.get("element_type", "")))
    else:
        parts.nodes.append(_node(parts, layer, tuple(inputs), outputs))


def _source(parts: _Parts, layer: NetworkLayer, port: Port, network: LayerNetwork) -> str:
    """The name of the tensor that an input takes, which must have been computed before."""
    source = network.sources.get((layer.number, port.number))
    if source is None or source not in parts.names:
        raise LoadError(f"nothing leads to port {port.number[:20]!r} of layer {layer.name[:80]!r}")
    if source[0] not in parts.seen or source[0] == layer.number:
        raise LoadError(f"layer {layer.name[:80]!r} comes before a layer that it needs")
    return parts.names[source]


def _node(parts: _Parts, layer: NetworkLayer, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> Node:
    if outputs and inputs and set(inputs) <= parts.stored | parts.steps.keys():
        quantised = _dequantised(parts, layer, inputs, outputs)
        if quantised is not None:
            return quantised
    given = Given(
        inputs,
        tuple(parts.shapes.get(name) for name in inputs),
        tuple(parts.numbers.get(name) for name in inputs),
        tuple(name in parts.stored for name in inputs),
    )
    try:
        found = translated(layer, given)
    except NotTranslated:
        return Node(f"openvino:{layer.kind}", inputs, outputs, {})
    if found.op == "Cast" and inputs[0] in parts.stored:
        parts.stored.add(outputs[0])
        if inputs[0] in parts.numbers:
            parts.numbers[outputs[0]] = parts.numbers[inputs[0]]
    return Node(found.op, found.names, outputs, found.attributes)


def _dequantised(
    parts: _Parts, layer: NetworkLayer, inputs: tuple[str, ...], outputs: tuple[str, ...]
) -> Node | None:
    """One of the layers that make weights of whole numbers: Convert, Subtract a zero point, Multiply a scale.

    `parts.steps` has what a tensor of whole numbers stands for: the constant, and its zero point or "".
    """
    name, constant = inputs[0], parts.constants.get(inputs[0])
    if layer.kind == "Convert" and constant is not None and "int" in constant.dtype:
        parts.steps[outputs[0]] = (name, "")
        return Node("openvino:steps", inputs, outputs, {})
    if len(inputs) != 2 or name not in parts.steps or layer.attributes.get("auto_broadcast") == "none":
        return None
    stored, zero_point = parts.steps[name]
    if layer.kind == "Subtract" and not zero_point and inputs[1] in parts.steps:
        if not _fits(parts, inputs[1], stored) or parts.steps[inputs[1]][1]:
            return None
        parts.steps[outputs[0]] = (stored, parts.steps[inputs[1]][0])
        return Node("openvino:steps", inputs, outputs, {})
    if layer.kind == "Multiply" and inputs[1] in parts.constants and _fits(parts, inputs[1], stored):
        parts.stored.add(outputs[0])
        return Node("DequantizeLinear", (stored, inputs[1], zero_point), outputs, {"axis": 0})
    return None


def _fits(parts: _Parts, name: str, stored: str) -> bool:
    """Whether zero points or scales are one number, or one for each row of a matrix."""
    shape, rows = parts.shapes.get(name, ()), parts.constants[stored].shape
    return len(rows) == 2 and shape in ((), (1,), (1, 1), (rows[0], 1))
