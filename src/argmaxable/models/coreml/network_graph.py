"""A Core ML neural network as the `Graph` that `models/graph/` walks, whose operations are named as ONNX's.

Core ML may run such a network in float16. Ranges that rounding to float16 can leave, such as a mean's, are
not claimed. What is not understood becomes `coreml:…`, which ends every walk.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous
from argmaxable.models.binary_file import read_array
from argmaxable.models.coreml.kraken import is_kraken
from argmaxable.models.coreml.network import NeuralArray, NeuralLayer, NeuralNetwork
from argmaxable.models.graph.nodes import Attribute, Graph, Node
from argmaxable.models.graph.translation import NotTranslated, from_end

if TYPE_CHECKING:
    from argmaxable.models.graph.products import Stored

_DAMAGED = "It may be cut short or damaged; fetch it again."
# A product over more axes than these has its classes third from the end, with two axes of length 1 behind.
_MOST_AXES_OF_ROWS = 3
# Activations by the number of their field, of which rounding to float16 does not leave the range.
_PLAIN = {10: "Relu", 30: "Tanh", 40: "Sigmoid", 60: "Softsign"}
_LINEAR, _SIGMOID, _TANH = 5, 40, 30
_MAX_POOLING = 0
_SAME_RANK = frozenset(
    {
        "convolution",
        "pooling",
        "activation",
        "innerProduct",
        "softmax",
        "bias",
        "reduce",
        "reshape",
        "flatten",
    }
    | {"permute", "uniDirectionalLSTM", "biDirectionalLSTM", "clip", "tanh", "softmaxND", "transpose"}
)
_SAME_CHANNELS = frozenset({"activation", "softmax", "bias", "clip", "tanh", "flatten", "reshape"})


@dataclass(frozen=True)
class NeuralConstant:
    """An array of the file with the shape in which a layer uses it."""

    array: NeuralArray
    shape: tuple[int, ...]


@dataclass(frozen=True)
class NeuralWeights:
    """Gives the values of constants, as they are stored."""

    constants: Mapping[str, NeuralConstant]
    path: Path

    def __call__(self, stored: Stored) -> NDArray[Any]:
        """The values; raises LoadError."""
        constant = self.constants[stored.name]
        values = read_array(
            self.path,
            np.dtype(constant.array.dtype).newbyteorder("<").str,
            constant.array.start,
            constant.shape,
            _DAMAGED,
        )
        return values.astype(constant.array.dtype, copy=False)


@dataclass
class _Parts:
    """The graph under construction. `ranks` are numbers of axes, where they are known.

    `classes` is how many labels a classifier has, `channels` how many rows the layer behind a name has.
    """

    ranks: dict[str, int]
    classes: int
    is_kraken: bool
    channels: dict[str, int] = field(default_factory=dict)
    constants: dict[str, NeuralConstant] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)

    def add(self, op: str, inputs: tuple[str, ...], output: str, **attributes: Attribute) -> None:
        self.nodes.append(Node(op, inputs, (output,), attributes))

    def constant(self, layer: NeuralLayer, place: int, part: str, shape: tuple[int, ...]) -> str:
        """The name of an array of a layer; raises LoadError where it is quantised or of another size."""
        name, array = f"{layer.name}.{part}", layer.arrays.get(place)
        if name in self.constants:
            raise ambiguous(f"two layers are called {layer.name[:80]!r}")
        if array is None or min(shape) < 1:
            raise NotTranslated(part)
        if not array.dtype:
            raise NotTranslated("quantised weights")
        if array.count != math.prod(shape):
            raise LoadError(
                f"the layer {layer.name[:80]!r} has {array.count} numbers for its {part}, expected "
                f"{math.prod(shape)}"
            )
        self.constants[name] = NeuralConstant(array, shape)
        return name


def translate(network: NeuralNetwork, path: Path) -> tuple[Graph, NeuralWeights]:
    """The network's graph, and what reads its constants; raises LoadError."""
    parts = _Parts(dict(network.ranks), len(network.labels), is_kraken(network.metadata))
    layers, outputs = _with_own_names(network)
    for layer in layers:
        before = len(parts.nodes)
        translation = _TRANSLATIONS.get(layer.kind)
        try:
            if translation is None or len(layer.inputs) != 1 or not layer.outputs:
                raise NotTranslated(layer.kind)
            translation(parts, layer)
        except NotTranslated as reason:
            del parts.nodes[before:]
            kind = layer.kind if reason.args[0] == layer.kind else f"{layer.kind} ({reason})"
            parts.nodes.append(Node(f"coreml:{kind}", layer.inputs, layer.outputs, {}))
        rank = layer.rank
        if rank is None and layer.kind in _SAME_RANK and layer.inputs:
            rank = parts.ranks.get(layer.inputs[0])
        if rank is not None:
            parts.ranks |= dict.fromkeys(layer.outputs, rank)
        channels = _channels(parts, layer)
        if channels is not None:
            parts.channels |= dict.fromkeys(layer.outputs, channels)
    graph = Graph(
        nodes=tuple(parts.nodes),
        outputs=outputs,
        constants={name: constant.shape for name, constant in parts.constants.items()},
        types={name: constant.array.dtype for name, constant in parts.constants.items()},
    )
    return graph, NeuralWeights(parts.constants, path)


def _with_own_names(network: NeuralNetwork) -> tuple[list[NeuralLayer], tuple[str, ...]]:
    """The layers with a name of its own for each value: a layer may write to the name of an earlier value."""
    current: dict[str, str] = {}
    layers = []
    for number, layer in enumerate(network.layers):
        inputs = tuple(current.get(name, name) for name in layer.inputs)
        for name in layer.outputs:
            current[name] = f"{name}\0{number}" if name in current or name in layer.inputs else name
        layers.append(replace(layer, inputs=inputs, outputs=tuple(current[name] for name in layer.outputs)))
    return layers, tuple(dict.fromkeys(current.get(name, name) for name in network.outputs))


def _channels(parts: _Parts, layer: NeuralLayer) -> int | None:
    if layer.kind in ("innerProduct", "convolution"):
        return layer.number(2 if layer.kind == "innerProduct" else 1)
    return parts.channels.get(layer.inputs[0]) if layer.kind in _SAME_CHANNELS and layer.inputs else None


# ---------------------------------------------------------------------- linear layers


def _inner_product(parts: _Parts, layer: NeuralLayer) -> None:
    columns, rows = layer.number(1), layer.number(2)
    if layer.number(22) or not 0 < rows < 2**31 or not 0 < columns < 2**31:
        raise NotTranslated("quantised inputs")
    rank = parts.ranks.get(layer.inputs[0])
    output = layer.outputs[0]
    if (
        rank is not None and rank > _MOST_AXES_OF_ROWS
    ):  # all but the first axes become one, third from the end
        flat = f"{output}\0flat"
        parts.add("Reshape", layer.inputs, flat)
        weight = parts.constant(layer, 20, "weight", (rows, columns, 1, 1))
        bias = (parts.constant(layer, 21, "bias", (rows,)),) if layer.number(10) else ()
        parts.add("Conv", (flat, weight, *bias), output, group=1)
        return
    product = f"{output}\0product" if layer.number(10) else output
    weight = parts.constant(layer, 20, "weight", (rows, columns))
    parts.add("FusedMatMul", (layer.inputs[0], weight), product, transB=1)
    if layer.number(10):
        parts.add("Add", (product, parts.constant(layer, 21, "bias", (rows,))), output)


def _convolution(parts: _Parts, layer: NeuralLayer) -> None:
    rows, columns = layer.number(1), layer.number(2)
    sizes = layer.numbers.get(20, ())
    if layer.number(60) or layer.is_padded or layer.number(10, 1) not in (0, 1) or sizes != (1, 1):
        raise NotTranslated("kernel")
    if not 0 < rows < 2**31 or not 0 < columns < 2**31:
        raise NotTranslated("kernel")
    weight = parts.constant(layer, 90, "weight", (rows, columns, 1, 1))
    bias = (parts.constant(layer, 91, "bias", (rows,)),) if layer.number(70) else ()
    parts.add("Conv", (layer.inputs[0], weight, *bias), layer.outputs[0], group=1)


def _bias(parts: _Parts, layer: NeuralLayer) -> None:
    """A number for each channel, third from the end, or for every entry."""
    shape = layer.numbers.get(1, ())
    if len(shape) != 1:
        raise NotTranslated("shape")
    used = (shape[0], 1, 1) if shape[0] != 1 else (1,)
    parts.add("Add", (layer.inputs[0], parts.constant(layer, 2, "bias", used)), layer.outputs[0])


def _recurrent(parts: _Parts, layer: NeuralLayer) -> None:
    """States between −1 and 1: a sigmoid times a tanh, whatever the initial state."""
    kinds = [kind for kind, _ in layer.activations]
    once = [_SIGMOID, _TANH, _TANH]
    if kinds != (once if layer.kind == "uniDirectionalLSTM" else once * 2):
        raise NotTranslated("activations")
    parts.nodes.append(Node("LSTM", layer.inputs, layer.outputs, {}))


# ---------------------------------------------------------------------- along an axis


def _softmax(parts: _Parts, layer: NeuralLayer) -> None:
    axis = -3 if layer.kind == "softmax" else from_end(layer.number(1), parts.ranks.get(layer.inputs[0]))
    parts.add("Softmax", layer.inputs, layer.outputs[0], axis=axis, opset=13)


def _argmax(parts: _Parts, layer: NeuralLayer) -> None:
    parts.add(
        "ArgMax",
        layer.inputs,
        layer.outputs[0],
        axis=from_end(layer.number(1), parts.ranks.get(layer.inputs[0])),
    )


# ---------------------------------------------------------------------- layout


def _reshaped(parts: _Parts, layer: NeuralLayer) -> None:
    """One axis third from the end. Of a classifier's scores there are as many as labels: nothing is moved."""
    if parts.classes and parts.channels.get(layer.inputs[0]) == parts.classes:
        parts.add("Identity", layer.inputs, layer.outputs[0])
    elif layer.kind == "flatten" and not layer.number(1):
        parts.add("Reshape", layer.inputs, layer.outputs[0])
    else:
        raise NotTranslated("shape")


def _squeeze(parts: _Parts, layer: NeuralLayer) -> None:
    axes = layer.numbers.get(1, ())
    if not axes or layer.number(2):
        raise NotTranslated("axes")
    op = {"squeeze": "Squeeze", "expandDims": "Unsqueeze"}[layer.kind]
    parts.add(op, layer.inputs, layer.outputs[0], axes=axes)


def _transpose(parts: _Parts, layer: NeuralLayer) -> None:
    order = layer.numbers.get(1, ())
    if sorted(order) != list(range(len(order))) or not order:
        raise NotTranslated("order")
    if layer.kind == "permute":  # of the first, third, fourth and fifth of five axes
        if len(order) != 4:
            raise NotTranslated("order")
        places = (0, 2, 3, 4)
        moved = [places[each] for each in order]
        order = (moved[0], 1, *moved[1:])
    parts.add("Transpose", layer.inputs, layer.outputs[0], perm=order)


def _pooling(parts: _Parts, layer: NeuralLayer) -> None:
    if layer.number(1) != _MAX_POOLING:
        raise NotTranslated("a mean in float16")
    parts.add("MaxPool", layer.inputs, layer.outputs[0])


# ---------------------------------------------------------------------- numbers


def _activation(parts: _Parts, layer: NeuralLayer) -> None:
    ((kind, parameters),) = layer.activations
    if kind in _PLAIN:
        parts.add(_PLAIN[kind], layer.inputs, layer.outputs[0])
    elif kind == _LINEAR and parameters == (1.0, 0.0):
        parts.add("Identity", layer.inputs, layer.outputs[0])
    else:
        raise NotTranslated("activation")


def _clip(parts: _Parts, layer: NeuralLayer) -> None:
    low, high = layer.limits
    if not low <= high or any(float(np.float16(each)) != each for each in layer.limits):
        raise NotTranslated("limits")
    parts.add("Clip", layer.inputs, layer.outputs[0], min=low, max=high)


def _dropout(parts: _Parts, layer: NeuralLayer) -> None:
    """A layer of Kraken's that does nothing once a model is trained."""
    if not parts.is_kraken:
        raise NotTranslated(layer.kind)
    parts.add("Identity", layer.inputs, layer.outputs[0])


def _tanh(parts: _Parts, layer: NeuralLayer) -> None:
    parts.add("Tanh", layer.inputs, layer.outputs[0])


_TRANSLATIONS: dict[str, Callable[[_Parts, NeuralLayer], None]] = {
    "innerProduct": _inner_product,
    "convolution": _convolution,
    "bias": _bias,
    "uniDirectionalLSTM": _recurrent,
    "biDirectionalLSTM": _recurrent,
    "softmax": _softmax,
    "softmaxND": _softmax,
    "argMax": _argmax,
    "flatten": _reshaped,
    "reshape": _reshaped,
    "squeeze": _squeeze,
    "expandDims": _squeeze,
    "permute": _transpose,
    "transpose": _transpose,
    "pooling": _pooling,
    "activation": _activation,
    "clip": _clip,
    "tanh": _tanh,
    "custom dropout": _dropout,
}
