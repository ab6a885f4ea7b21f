"""What OpenVINO's operations are called in ONNX, with which inputs and attributes.

An operation is translated only where it does exactly, or within the same bounds, what ONNX's does. For any
other NotTranslated is raised, and the operation then ends every walk through the graph.
"""

from __future__ import annotations

from collections.abc import Callable

from argmaxable.models.graph.nodes import Attribute
from argmaxable.models.graph.translation import Given, NotTranslated, Translated
from argmaxable.models.openvino.constants import CAST_TYPES
from argmaxable.models.openvino.network import NetworkLayer

# Functions of each entry without attributes that matter.
_PLAIN = {
    **{"ReLU": "Relu", "Sigmoid": "Sigmoid", "Tanh": "Tanh", "SoftSign": "Softsign", "Exp": "Exp"},
    **{"Log": "Log", "Abs": "Abs", "Sqrt": "Sqrt", "Erf": "Erf", "Gelu": "Gelu", "HSwish": "HardSwish"},
    **{"Mish": "Mish", "SoftPlus": "Softplus", "ShapeOf": "Shape"},
}
_BINARY = {
    **{"Add": "Add", "Multiply": "Mul", "Subtract": "Sub", "Divide": "Div", "Power": "Pow"},
    **{"Maximum": "Max", "Minimum": "Min"},
}
# Entries of the first input, chosen in ways that the features' axis is not followed through.
_CHOOSING = ("StridedSlice", "GatherND", "GatherElements", "VariadicSplit")
_REDUCING = ("ReduceMean", "ReduceMax", "ReduceMin", "ReduceSum")
_USUAL_GATES = {"LSTMSequence": ("sigmoid", "tanh", "tanh"), "RNNSequence": ("tanh",)}


# ---------------------------------------------------------------------- linear layers


def _product(layer: NetworkLayer, given: Given) -> Translated:
    """A product with a stored matrix. OpenVINO's may have it in front, too: those are not translated."""
    transposed = {name: _flag(layer, name) for name in ("transpose_a", "transpose_b")}
    if given.are_stored != (False, True):
        return Translated("MatMul", given.names) if not any(given.are_stored) else _refuse()
    if len(given.shape(1)) != 2 or len(given.shape()) < 2:
        raise NotTranslated("rank")
    attributes: dict[str, Attribute] = {
        "transA": int(transposed["transpose_a"]), "transB": int(transposed["transpose_b"])
    }  # fmt: skip
    return Translated("FusedMatMul", given.names, attributes)


def _convolution(layer: NetworkLayer, given: Given) -> Translated:
    pads = (*layer.integers("pads_begin", ()), *layer.integers("pads_end", ()))
    if layer.attributes.get("auto_pad", "explicit") not in ("explicit", "valid"):
        raise NotTranslated("auto_pad")
    return Translated("Conv", given.names, {"group": 1, "pads": pads})


def _combination(layer: NetworkLayer, given: Given) -> Translated:
    return Translated(_BINARY[layer.kind], _two(layer, given))


def _two(layer: NetworkLayer, given: Given) -> tuple[str, ...]:
    if layer.attributes.get("auto_broadcast", "numpy") != "numpy" or len(given.names) != 2:
        raise NotTranslated("auto_broadcast")
    return given.names


# ---------------------------------------------------------------------- along an axis


def _softmax(layer: NetworkLayer, given: Given) -> Translated:
    op = {"SoftMax": "Softmax", "LogSoftmax": "LogSoftmax"}[layer.kind]
    return Translated(op, given.names, {"axis": given.from_end(_integer(layer, "axis", 1)), "opset": 13})


def _reduction(layer: NetworkLayer, given: Given) -> Translated:
    axes = tuple(map(given.from_end, given.integers(1)))
    keepdims = int(_flag(layer, "keep_dims"))
    return Translated(layer.kind, given.names[:1], {"axes": axes, "keepdims": keepdims})


def _norm(layer: NetworkLayer, given: Given) -> Translated:
    """Mean and variance normalisation, whose ε must not be negative; gain and shift follow it."""
    if not _flag(layer, "normalize_variance", default=True) or not float(layer.attributes["eps"]) >= 0:
        raise NotTranslated("normalize_variance")
    axes = tuple(map(given.from_end, given.integers(1)))
    return Translated("MeanVarianceNormalization", given.names[:1], {"axes": axes})


def _pooling(layer: NetworkLayer, given: Given) -> Translated:
    op = {"AvgPool": "AveragePool", "MaxPool": "MaxPool"}[layer.kind]
    includes = layer.kind == "AvgPool" and not _flag(layer, "exclude-pad")
    attributes: dict[str, Attribute] = {"count_include_pad": int(includes)}
    return Translated(op, given.names, attributes | {"kernel_shape": layer.integers("kernel", ())})


# ---------------------------------------------------------------------- layout


def _reshape(layer: NetworkLayer, given: Given) -> Translated:
    """With its target where the file has it; the shape declared for the output tells of the others."""
    target = given.numbers[1] if len(given.numbers) > 1 else None
    if target is None:
        return Translated("Reshape", given.names[:1])
    copies = _flag(layer, "special_zero")
    attributes: dict[str, Attribute] = {"shape": given.integers(1), "allowzero": int(not copies)}
    return Translated("Reshape", given.names[:1], attributes)


def _transpose(_: NetworkLayer, given: Given) -> Translated:
    order = given.integers(1) or tuple(reversed(range(len(given.shape()))))
    if sorted(order) != list(range(len(order))):
        raise NotTranslated("order")
    return Translated("Transpose", given.names[:1], {"perm": order})


def _squeeze(_: NetworkLayer, given: Given) -> Translated:
    places = sorted(map(given.from_end, given.integers(1)))
    if not places or any(given.shape()[place] != 1 for place in places):
        raise NotTranslated("axes")
    return Translated("Squeeze", given.names[:1], {"axes": tuple(places)})


def _unsqueeze(_: NetworkLayer, given: Given) -> Translated:
    rank = len(given.shape()) + len(given.integers(1))
    places = sorted(axis if axis < 0 else axis - rank for axis in given.integers(1))
    if not places or len(set(places)) < len(places) or not -rank <= places[0] or places[-1] >= 0:
        raise NotTranslated("axes")
    return Translated("Unsqueeze", given.names[:1], {"axes": tuple(places)})


def _gather(layer: NetworkLayer, given: Given) -> Translated:
    axes = given.integers(2)
    if len(axes) != 1 or _integer(layer, "batch_dims", 0) != 0:
        raise NotTranslated("axis")
    return Translated("Gather", given.names[:2], {"axis": axes[0]})


def _slice(_: NetworkLayer, given: Given) -> Translated:
    """ONNX has the axes before the steps; without axes it is as many as there are starts."""
    axes = given.integers(4) if len(given.names) > 4 else tuple(range(len(given.integers(1))))
    return Translated("Slice", given.names[:1], {"axes": tuple(map(given.from_end, axes))})


def _chosen(_: NetworkLayer, given: Given) -> Translated:
    return Translated("GatherND", given.names[:1])


def _split(_: NetworkLayer, given: Given) -> Translated:
    axes = given.integers(1)
    if len(axes) != 1:
        raise NotTranslated("axis")
    return Translated("Split", given.names[:1], {"axis": axes[0]})


def _repeated(layer: NetworkLayer, given: Given) -> Translated:
    """Converters put a Broadcast where nothing changes but, perhaps, a batch of one."""
    if layer.kind == "Broadcast" and layer.outputs and given.shape() == layer.outputs[0].shape:
        return Translated("Identity", given.names[:1])
    return Translated({"Broadcast": "Expand", "Tile": "Tile"}[layer.kind], given.names[:1])


def _concat(_: NetworkLayer, given: Given) -> Translated:
    return Translated("Concat", given.names)


# ---------------------------------------------------------------------- numbers


def _convert(layer: NetworkLayer, given: Given) -> Translated:
    number = CAST_TYPES.get(layer.attributes.get("destination_type", ""))
    if number is None:
        raise NotTranslated("destination_type")
    return Translated("Cast", given.names, {"to": number})


def _plain(layer: NetworkLayer, given: Given) -> Translated:
    return Translated(_PLAIN[layer.kind], given.names[:1])


def _swish(_: NetworkLayer, given: Given) -> Translated:
    if len(given.names) > 1 and given.numbers[1] != (1.0,):
        raise NotTranslated("beta")
    return Translated("Swish", given.names[:1])


def _clamp(layer: NetworkLayer, given: Given) -> Translated:
    limits: dict[str, Attribute] = {name: float(layer.attributes[name]) for name in ("min", "max")}
    return Translated("Clip", given.names, limits)


def _elu(layer: NetworkLayer, given: Given) -> Translated:
    return Translated("Elu", given.names, {"alpha": float(layer.attributes["alpha"])})


def _hard_sigmoid(layer: NetworkLayer, given: Given) -> Translated:
    if layer.kind == "HSigmoid":
        return Translated("HardSigmoid", given.names, {"alpha": 1 / 6, "beta": 0.5})
    slopes = [given.numbers[place] if place < len(given.numbers) else None for place in (1, 2)]
    if any(slope is None or len(slope) != 1 for slope in slopes):
        raise NotTranslated("alpha")
    alpha, beta = (slope[0] for slope in slopes if slope is not None)
    return Translated("HardSigmoid", given.names[:1], {"alpha": alpha, "beta": beta})


def _recurrent(layer: NetworkLayer, given: Given) -> Translated:
    usual = _USUAL_GATES[layer.kind]
    text = layer.attributes.get("activations", ",".join(usual))
    if tuple(part.strip() for part in text.split(",")) != usual:
        raise NotTranslated("activations")
    return Translated(layer.kind.removesuffix("Sequence"), given.names)


# ---------------------------------------------------------------------- attributes


def _flag(layer: NetworkLayer, name: str, *, default: bool = False) -> bool:
    text = layer.attributes.get(name, str(default)).lower()
    if text not in ("true", "false", "1", "0"):
        raise NotTranslated(name)
    return text in ("true", "1")


def _integer(layer: NetworkLayer, name: str, default: int) -> int:
    values = layer.integers(name, (default,))
    if len(values) != 1:
        raise NotTranslated(name)
    return values[0]


def _refuse() -> Translated:
    raise NotTranslated("place of the weight")


TRANSLATIONS: dict[str, Callable[[NetworkLayer, Given], Translated]] = {
    **{"MatMul": _product, "Convolution": _convolution, "MVN": _norm},
    **{"SoftMax": _softmax, "LogSoftmax": _softmax, "AvgPool": _pooling, "MaxPool": _pooling},
    **{"Transpose": _transpose, "Squeeze": _squeeze, "Unsqueeze": _unsqueeze, "Concat": _concat},
    **{
        "Reshape": _reshape,
        "Gather": _gather,
        "Slice": _slice,
        "Split": _split,
        "Broadcast": _repeated,
        "Tile": _repeated,
    },
    **{"Convert": _convert, "Swish": _swish, "Clamp": _clamp, "Elu": _elu},
    **{"HardSigmoid": _hard_sigmoid, "HSigmoid": _hard_sigmoid},
    **dict.fromkeys(_USUAL_GATES, _recurrent),
    **dict.fromkeys(_REDUCING, _reduction),
    **dict.fromkeys(_CHOOSING, _chosen),
    **dict.fromkeys(_BINARY, _combination),
    **dict.fromkeys(_PLAIN, _plain),
}


def translated(layer: NetworkLayer, given: Given) -> Translated:
    """The node that does the same as a layer; raises NotTranslated."""
    translation = TRANSLATIONS.get(layer.kind)
    if translation is None:
        raise NotTranslated(layer.kind)
    try:
        return translation(layer, given)
    except (KeyError, ValueError) as error:  # an attribute is missing, or not a number
        raise NotTranslated(str(error)) from error
