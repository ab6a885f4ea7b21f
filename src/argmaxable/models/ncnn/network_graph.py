"""An ncnn network as the `Graph` that `models/graph/` walks, whose operations are named as ONNX's.

ncnn's blobs have no axis for a batch, and axes are counted from the front; here all are counted from the end,
which needs to know how many there are. What is not understood becomes `ncnn:…`, which ends every walk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from argmaxable.models.graph.nodes import Attribute, Graph, Node
from argmaxable.models.graph.translation import NotTranslated, from_end
from argmaxable.models.ncnn.network import ABSENT, NcnnLayer
from argmaxable.models.ncnn.weights import NcnnArray

if TYPE_CHECKING:
    from collections.abc import Mapping

_PLAIN = {
    **{"Sigmoid": "Sigmoid", "TanH": "Tanh", "Swish": "Swish", "Mish": "Mish", "GELU": "Gelu", "Erf": "Erf"},
    **{
        "SELU": "Selu",
        "AbsVal": "Abs",
        "Exp": "Exp",
        "Noop": "Identity",
        "Cast": "Identity",
        "Split": "Identity",
    },
    **{"Softplus": "Softplus"},
}
_BINARY = {0: "Add", 1: "Sub", 2: "Mul", 3: "Div", 4: "Max", 5: "Min"}
# The activations that a layer may have built in.
_FUSED = {1: "Relu", 3: "Clip", 4: "Sigmoid", 5: "Mish", 6: "HardSwish"}
_WITH_ACTIVATION = frozenset({"Convolution", "ConvolutionDepthWise", "Deconvolution", "InnerProduct"})
# Kinds whose output has as many axes as their first input.
_SAME_RANK = frozenset(
    {*_PLAIN, "ReLU", "Clip", "ELU", "HardSwish", "HardSigmoid", "Dropout", "Softmax", "LayerNorm", "RMSNorm"}
    | {
        "Permute",
        "BatchNorm",
        "Scale",
        "Bias",
        "InnerProduct",
        "PReLU",
        "GroupNorm",
        "InstanceNorm",
        "UnaryOp",
    }
)


@dataclass
class _Parts:
    """The graph under construction. `ranks` are numbers of axes, where they are known."""

    arrays: dict[str, NcnnArray]
    nodes: list[Node] = field(default_factory=list)
    ranks: dict[str, int | None] = field(default_factory=dict)
    made: int = 0

    def add(self, op: str, inputs: tuple[str, ...], output: str, **attributes: Attribute) -> None:
        self.nodes.append(Node(op, inputs, (output,), attributes))


def translate(
    layers: tuple[NcnnLayer, ...], arrays: Mapping[str, NcnnArray]
) -> tuple[Graph, dict[str, NcnnArray]]:
    """The network's graph, and its arrays with the shapes they are used in."""
    parts = _Parts(dict(arrays))
    for layer in layers:
        before = len(parts.nodes)
        try:
            _add(parts, layer)
        except NotTranslated:
            del parts.nodes[before:]
            _add_unknown(parts, layer)
        _note_rank(parts, layer)
    used = {blob for layer in layers for blob in layer.inputs}
    ends = [
        blob
        for layer in layers
        for blob in layer.outputs
        if blob not in used and layer.kind not in ("Input", "MemoryData")
    ]
    graph = Graph(
        nodes=tuple(parts.nodes),
        outputs=tuple(ends),
        constants={name: array.shape for name, array in parts.arrays.items()},
        types={name: array.dtype for name, array in parts.arrays.items()},
    )
    return graph, parts.arrays


def _note_rank(parts: _Parts, layer: NcnnLayer) -> None:
    rank = None
    if layer.kind in ("Input", "MemoryData", "Reshape"):
        given = [
            layer.parameters.get(number, ABSENT if layer.kind == "Reshape" else 0) for number in (0, 1, 11, 2)
        ]
        rank = sum(isinstance(each, int) and each not in (0, ABSENT) for each in given) or None
        if any(not isinstance(each, int) for each in given) or (layer.kind == "Reshape" and 0 in given):
            rank = None
    elif layer.kind == "Flatten" or (layer.kind == "Pooling" and layer.integer(4)):
        rank = 1
    elif layer.kind in ("Convolution", "ConvolutionDepthWise", "Deconvolution", "Pooling", "Interp"):
        rank = 3
    elif layer.kind in ("Gemm", "LSTM", "GRU", "RNN"):
        rank = 2
    elif (
        layer.kind == "Squeeze"
        and (axes := layer.integers(3))
        and (known := parts.ranks.get(layer.inputs[0]))
    ):
        rank = known - len(axes)
    elif layer.kind in _SAME_RANK and layer.inputs:
        rank = parts.ranks.get(layer.inputs[0])
    parts.ranks |= dict.fromkeys(layer.outputs, rank)


def _add(parts: _Parts, layer: NcnnLayer) -> None:
    if layer.kind in ("Input", "MemoryData"):
        return
    translation = _TRANSLATIONS.get(layer.kind)
    if translation is None or not layer.inputs or not layer.outputs:
        raise NotTranslated(layer.kind)
    translation(parts, layer)


def _add_unknown(parts: _Parts, layer: NcnnLayer) -> None:
    """A layer that is not followed; the activation that a convolution has built in bounds its output."""
    before = len(parts.nodes)
    biased = f"{layer.outputs[0]}\0biased" if layer.outputs else ""
    try:
        if layer.kind not in _WITH_ACTIVATION or not layer.integer(9) or len(layer.outputs) != 1:
            raise NotTranslated(layer.kind)
        _activate(parts, layer, biased)
        parts.nodes.append(Node(f"ncnn:{layer.kind}", layer.inputs, (biased,), {}))
    except NotTranslated:
        del parts.nodes[before:]
        parts.nodes.append(Node(f"ncnn:{layer.kind}", layer.inputs, layer.outputs, {}))


# ---------------------------------------------------------------------- linear layers


def _shaped(parts: _Parts, name: str, shape: tuple[int, ...], size: int) -> str:
    """An array, with the shape that it is used in."""
    if name not in parts.arrays or parts.arrays[name].shape != (size,):
        raise NotTranslated(name)
    parts.arrays[name] = replace(parts.arrays[name], shape=shape)
    return name


def _inner_product(parts: _Parts, layer: NcnnLayer) -> None:
    rows, size = layer.integer(0), layer.integer(2)
    if rows < 1 or size < 1 or size % rows or layer.integer(8):
        raise NotTranslated("weight")
    weight = _shaped(parts, f"{layer.name}.weight", (rows, size // rows), size)
    product, biased = _names(parts, layer, 1, 9)
    parts.add("FusedMatMul", (layer.inputs[0], weight), product, transB=1)
    if layer.integer(1):
        parts.add("Add", (product, _shaped(parts, f"{layer.name}.bias", (rows,), rows)), biased)
    _activate(parts, layer, biased)


def _gemm(parts: _Parts, layer: NcnnLayer) -> None:
    """A product with a stored matrix on the right, plus one number for each of its columns."""
    columns, inner = layer.integer(8), layer.integer(9)
    is_plain = (layer.real(0, 1.0), layer.real(1, 1.0)) == (1.0, 1.0) and not any(
        layer.integer(number) for number in (2, 4, 11, 14, 18)
    )
    added = layer.integer(10, -1) if layer.integer(6) else -1
    if (
        not is_plain
        or not layer.integer(5)
        or columns < 1
        or inner < 1
        or len(layer.inputs) != 1
        or added not in (-1, 4)
    ):
        raise NotTranslated("Gemm")
    by_class = layer.integer(3)
    shape = (columns, inner) if by_class else (inner, columns)
    weight = _shaped(parts, f"{layer.name}.right", shape, columns * inner)
    output = layer.outputs[0]
    product = output if added == -1 else f"{output}\0product"
    parts.add("FusedMatMul", (layer.inputs[0], weight), product, transB=by_class)
    if added == 4:
        parts.add("Add", (product, _shaped(parts, f"{layer.name}.added", (columns,), columns)), output)


def _recurrent(parts: _Parts, layer: NcnnLayer) -> None:
    """States between −1 and 1, as long as they start from 0 and are not projected."""
    if len(layer.inputs) != 1 or layer.integer(3, layer.integer(0)) != layer.integer(0):
        raise NotTranslated("hidden_size")
    parts.nodes.append(Node(layer.kind, layer.inputs, layer.outputs, {}))


def _convolution(parts: _Parts, layer: NcnnLayer) -> None:
    rows, size = layer.integer(0), layer.integer(6)
    width = layer.integer(1)
    pads = [layer.integer(number, layer.integer(4)) for number in (4, 14, 15, 16)]
    is_one = (width, layer.integer(11, width)) == (1, 1) and not any(pads)
    if rows < 1 or size < 1 or size % rows or layer.integer(8) or layer.integer(19) or not is_one:
        raise NotTranslated("kernel")
    weight = _shaped(parts, f"{layer.name}.weight", (rows, size // rows, 1, 1), size)
    biased = _names(parts, layer, 5, 9)[1]
    inputs: tuple[str, ...] = (layer.inputs[0], weight)
    if layer.integer(5):
        inputs = (*inputs, _shaped(parts, f"{layer.name}.bias", (rows,), rows))
    parts.add("Conv", inputs, biased, group=1)
    _activate(parts, layer, biased)


def _names(parts: _Parts, layer: NcnnLayer, bias: int, activation: int) -> tuple[str, str]:
    """Names for a product, and for it with its bias: those of the output where nothing follows."""
    output = layer.outputs[0]
    biased = f"{output}\0biased" if layer.integer(activation) else output
    return f"{output}\0product" if layer.integer(bias) else biased, biased


def _activate(parts: _Parts, layer: NcnnLayer, before: str) -> None:
    """The activation that a layer has built in, if it has one."""
    kind = layer.integer(9)
    if not kind:
        return
    if kind not in _FUSED or kind == 6:  # with parameters of its own
        raise NotTranslated("activation")
    attributes: dict[str, Attribute] = {}
    if kind == 3:
        limits = layer.parameters.get(-23310)
        if not isinstance(limits, tuple) or len(limits) != 2:
            raise NotTranslated("limits")
        attributes = {"min": float(limits[0]), "max": float(limits[1])}
    parts.add(_FUSED[kind], (before,), layer.outputs[0], **attributes)


# ---------------------------------------------------------------------- along an axis


def _softmax(parts: _Parts, layer: NcnnLayer) -> None:
    parts.add(
        "Softmax",
        layer.inputs[:1],
        layer.outputs[0],
        axis=from_end(layer.integer(0), parts.ranks.get(layer.inputs[0])),
    )


def _norm(parts: _Parts, layer: NcnnLayer) -> None:
    """Over the last axis, unless there are more numbers in it than a list of gains has."""
    size = layer.integer(0)
    gain = f"{layer.name}.gamma"
    if not layer.integer(2, 1) or not layer.real(1, 0.001) >= 0 or gain not in parts.arrays:
        raise NotTranslated("affine")
    op = {"LayerNorm": "LayerNormalization", "RMSNorm": "RMSNormalization"}[layer.kind]
    shift = (f"{layer.name}.beta",) if layer.kind == "LayerNorm" else ()
    if parts.arrays[gain].shape != (size,):
        raise NotTranslated("affine_size")
    parts.add(op, (layer.inputs[0], gain, *shift), layer.outputs[0], axis=-1)


def _pooling(parts: _Parts, layer: NcnnLayer) -> None:
    op = {0: "MaxPool", 1: "AveragePool"}.get(layer.integer(0))
    if op is None:
        raise NotTranslated("pooling_type")
    if layer.integer(4):  # over all positions, of which nothing is left
        reduced = "ReduceMax" if op == "MaxPool" else "ReduceMean"
        parts.add(reduced, layer.inputs[:1], layer.outputs[0], axes=(-2, -1), keepdims=0)
    else:
        parts.add(op, layer.inputs[:1], layer.outputs[0], count_include_pad=1)


# ---------------------------------------------------------------------- layout


def _flat(parts: _Parts, layer: NcnnLayer) -> None:
    """Of a vector nothing; otherwise everything becomes one axis."""
    if parts.ranks.get(layer.inputs[0]) == 1:
        parts.add("Identity", layer.inputs[:1], layer.outputs[0])
    else:
        parts.add("Reshape", layer.inputs[:1], layer.outputs[0], shape=(-1,))


def _reshape(parts: _Parts, layer: NcnnLayer) -> None:
    """The shape is given from the last axis to the first."""
    lengths = [layer.parameters.get(number, ABSENT) for number in (2, 11, 1, 0)]
    shape = tuple(each for each in lengths if isinstance(each, int) and each != ABSENT)
    if any(not isinstance(each, int) for each in lengths) or not shape or 0 in shape or layer.integer(3):
        raise NotTranslated("shape")
    parts.add("Reshape", layer.inputs[:1], layer.outputs[0], shape=shape)


def _rearranged(parts: _Parts, layer: NcnnLayer) -> None:
    """Nothing but the entries that came in, in an order that is not followed."""
    parts.add("GatherND", layer.inputs[:1], layer.outputs[0])


def _concat(parts: _Parts, layer: NcnnLayer) -> None:
    parts.add("Concat", layer.inputs, layer.outputs[0])


# ---------------------------------------------------------------------- numbers


def _plain(parts: _Parts, layer: NcnnLayer) -> None:
    for output in layer.outputs:
        parts.add(_PLAIN[layer.kind], layer.inputs[:1], output)


def _relu(parts: _Parts, layer: NcnnLayer) -> None:
    if layer.real(0, 0.0):
        raise NotTranslated("slope")
    parts.add("Relu", layer.inputs, layer.outputs[0])


def _clip(parts: _Parts, layer: NcnnLayer) -> None:
    infinite = 3.4e38
    parts.add(
        "Clip", layer.inputs, layer.outputs[0], min=layer.real(0, -infinite), max=layer.real(1, infinite)
    )


def _elu(parts: _Parts, layer: NcnnLayer) -> None:
    parts.add("Elu", layer.inputs, layer.outputs[0], alpha=layer.real(0, 0.1))


def _hard_sigmoid(parts: _Parts, layer: NcnnLayer) -> None:
    parts.add(
        "HardSigmoid", layer.inputs, layer.outputs[0], alpha=layer.real(0, 0.2), beta=layer.real(1, 0.5)
    )


def _hard_swish(parts: _Parts, layer: NcnnLayer) -> None:
    """x · clip(αx + β, 0, 1)."""
    gate = f"{layer.outputs[0]}\0gate"
    parts.add("HardSigmoid", layer.inputs, gate, alpha=layer.real(0, 0.2), beta=layer.real(1, 0.5))
    parts.add("Mul", (layer.inputs[0], gate), layer.outputs[0])


def _dropout(parts: _Parts, layer: NcnnLayer) -> None:
    if layer.real(0, 1.0) != 1.0:
        raise NotTranslated("scale")
    parts.add("Identity", layer.inputs, layer.outputs[0])


def _binary(parts: _Parts, layer: NcnnLayer) -> None:
    op = _BINARY.get(layer.integer(0))
    if op is None or layer.integer(1) or len(layer.inputs) != 2:
        raise NotTranslated("op_type")
    parts.add(op, layer.inputs, layer.outputs[0])


_TRANSLATIONS: dict[str, Callable[[_Parts, NcnnLayer], None]] = {
    **{
        "InnerProduct": _inner_product,
        "Gemm": _gemm,
        "Convolution": _convolution,
        "Softmax": _softmax,
        "LayerNorm": _norm,
    },
    **{"RMSNorm": _norm, "Pooling": _pooling, "Flatten": _flat, "Reshape": _reshape, "Concat": _concat},
    **{"ReLU": _relu, "Clip": _clip, "ELU": _elu, "HardSigmoid": _hard_sigmoid, "HardSwish": _hard_swish},
    **{"Dropout": _dropout, "BinaryOp": _binary},
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _recurrent),
    **dict.fromkeys(
        ("Permute", "Squeeze", "ExpandDims", "Crop", "Slice", "Packing", "ShuffleChannel"), _rearranged
    ),
    **dict.fromkeys(_PLAIN, _plain),
}
