"""What TensorFlow's operations are called in ONNX, with which inputs and attributes.

An operation is translated only where it does exactly, or within the same bounds, what ONNX's does. For any
other NotTranslated is raised, and the operation then ends every walk through the graph.
"""

from __future__ import annotations

from collections.abc import Callable

from argmaxable.models.graph.nodes import Attribute
from argmaxable.models.graph.translation import Given, NotTranslated, Translated
from argmaxable.models.tensorflow.graph_def import TensorflowNode
from argmaxable.models.tensorflow.types import CASTS, WHOLE

# Functions of each entry, and copies.
_PLAIN = {
    **{"Relu": "Relu", "Sigmoid": "Sigmoid", "Tanh": "Tanh", "Softsign": "Softsign", "Softplus": "Softplus"},
    **{"Exp": "Exp", "Log": "Log", "Abs": "Abs", "Sqrt": "Sqrt", "Erf": "Erf", "Selu": "Selu", "Neg": "Neg"},
    **{"Reciprocal": "Reciprocal", "Inv": "Reciprocal", "Shape": "Shape", "Elu": "Elu"},
    **dict.fromkeys(("Identity", "StopGradient", "PreventGradient", "Snapshot", "CheckNumerics"), "Identity"),
    **dict.fromkeys(("EnsureShape", "OptimizationBarrier", "ReadVariableOp"), "Identity"),
}
_BINARY = {
    **{
        "Add": "Add",
        "AddV2": "Add",
        "Mul": "Mul",
        "Sub": "Sub",
        "RealDiv": "Div",
        "Div": "Div",
        "Pow": "Pow",
    },
    **{"Maximum": "Max", "Minimum": "Min"},
}
_REDUCING = {"Mean": "ReduceMean", "Max": "ReduceMax", "Min": "ReduceMin", "Sum": "ReduceSum"}
# Entries of the first input, chosen in ways that the features' axis is not followed through.
_CHOOSING = frozenset({"StridedSlice", "Slice", "GatherNd", "BatchGather", "ResourceGather"})
_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask")


# ---------------------------------------------------------------------- linear layers


def _product(operation: TensorflowNode, given: Given) -> Translated:
    """MatMul is of matrices, so it is ONNX's Gemm; BatchMatMul may have more axes in front."""
    is_batched = operation.kind != "MatMul"
    names = ("adj_x", "adj_y") if is_batched else ("transpose_a", "transpose_b")
    transposed = [int(operation.attribute(name, False)) for name in names]
    attributes: dict[str, Attribute] = {"transA": transposed[0], "transB": transposed[1]}
    if not is_batched:
        return Translated("Gemm", given.names[:2], attributes)
    if len(given.names) == 2 and given.are_stored == (True, False):
        raise NotTranslated("place of the weight")
    return Translated("FusedMatMul", given.names, attributes)


def _convolution(operation: TensorflowNode, given: Given) -> Translated:
    """A kernel of one position, with the channels last, is a matrix from inputs to outputs."""
    layout = operation.attribute("data_format", b"NHWC")
    kernel = given.shape(1)
    if layout != b"NHWC" or given.are_stored != (False, True) or len(kernel) != 4 or kernel[:2] != (1, 1):
        raise NotTranslated("data_format")
    if operation.attribute("padding", b"VALID") not in (b"VALID", b"SAME"):
        raise NotTranslated("padding")
    return Translated("FusedMatMul", given.names, {"kernel": 1})


def _einsum(operation: TensorflowNode, given: Given) -> Translated:
    """A product over the last axis with a stored matrix, such as abc,cd->abd."""
    left, arrow, result = (
        operation.attribute("equation", b"").decode(errors="replace").replace(" ", "").partition("->")
    )
    first, comma, second = left.partition(",")
    first, result = first.replace("...", "."), result.replace("...", ".")
    is_plain = (
        arrow and comma and len(second) == 2 and len(set(second)) == 2 and given.are_stored == (False, True)
    )
    if not is_plain or not first or first[-1] not in second or len(set(first)) < len(first):
        raise NotTranslated("equation")
    summed, made = first[-1], second.replace(first[-1], "")
    if made in first or result != first[:-1] + made:
        raise NotTranslated("equation")
    return Translated("FusedMatMul", given.names, {"transB": int(second[1] == summed)})


def _bias(operation: TensorflowNode, given: Given) -> Translated:
    if operation.attribute("data_format", b"NHWC") != b"NHWC":
        raise NotTranslated("data_format")
    return Translated("Add", given.names)


def _combination(operation: TensorflowNode, given: Given) -> Translated:
    return Translated(_BINARY[operation.kind], given.names)


# ---------------------------------------------------------------------- along an axis


def _softmax(operation: TensorflowNode, given: Given) -> Translated:
    return Translated(operation.kind, given.names, {"axis": -1, "opset": 13})


def _argmax(_: TensorflowNode, given: Given) -> Translated:
    axes = given.integers(1)
    if len(axes) != 1:
        raise NotTranslated("axis")
    return Translated("ArgMax", given.names[:1], {"axis": axes[0]})


def _reduction(operation: TensorflowNode, given: Given) -> Translated:
    axes = given.integers(1)
    if not axes:  # of a list of no axes nothing is reduced
        raise NotTranslated("axes")
    keepdims = int(operation.attribute("keep_dims", False))
    return Translated(_REDUCING[operation.kind], given.names[:1], {"axes": axes, "keepdims": keepdims})


def _pooling(operation: TensorflowNode, given: Given) -> Translated:
    return Translated({"AvgPool": "AveragePool", "MaxPool": "MaxPool"}[operation.kind], given.names)


# ---------------------------------------------------------------------- layout


def _reshape(_: TensorflowNode, given: Given) -> Translated:
    """With its target where the file has it. TensorFlow's 0 is a length of 0, and no copy."""
    target = given.numbers[1] if len(given.numbers) > 1 else None
    if target is None:
        return Translated("Reshape", given.names[:2], {"allowzero": 1})
    return Translated("Reshape", given.names[:1], {"shape": given.integers(1), "allowzero": 1})


def _transpose(_: TensorflowNode, given: Given) -> Translated:
    order = given.integers(1)
    if sorted(order) != list(range(len(order))):
        raise NotTranslated("perm")
    if order == tuple(range(len(order))):
        return Translated("Identity", given.names[:1])
    return Translated("Transpose", given.names[:1], {"perm": order})


def _squeeze(operation: TensorflowNode, given: Given) -> Translated:
    nothing: tuple[object, ...] = ()
    axes = operation.attribute("squeeze_dims", nothing) or operation.attribute("axis", nothing)
    places = tuple(axis for axis in axes if isinstance(axis, int))
    if len(places) < len(axes):
        raise NotTranslated("squeeze_dims")
    return Translated("Squeeze", given.names[:1], {"axes": places} if places else {})


def _expand(_: TensorflowNode, given: Given) -> Translated:
    axes = given.integers(1)
    if len(axes) != 1:
        raise NotTranslated("axis")
    return Translated("Unsqueeze", given.names[:1], {"axes": axes})


def _concat(_: TensorflowNode, given: Given) -> Translated:
    return Translated("Concat", given.names[:-1])


def _stack(operation: TensorflowNode, given: Given) -> Translated:
    """Lengths put together to a shape."""
    if operation.attribute("T", 0) not in WHOLE or operation.attribute("axis", 0):
        raise NotTranslated("T")
    return Translated("Concat", given.names)


def _gather(operation: TensorflowNode, given: Given) -> Translated:
    axes = given.integers(2) if len(given.names) > 2 else (0,)
    if len(axes) != 1 or operation.attribute("batch_dims", 0):
        raise NotTranslated("axis")
    return Translated("Gather", given.names[:2], {"axis": axes[0]})


def _chosen(operation: TensorflowNode, given: Given) -> Translated:
    """Of a list of lengths the one that is taken out counts; of anything else, that nothing is new."""
    is_length = operation.kind == "StridedSlice" and operation.attribute("T", 0) in WHOLE
    if is_length and not any(operation.attribute(mask, 0) for mask in _MASKS):
        begin, end, strides = (given.integers(place) for place in (1, 2, 3))
        if len(begin) == 1 and (end, strides) == ((begin[0] + 1,), (1,)):
            return Translated("Gather", given.names[:2])
    return Translated("GatherND", given.names[:1])


def _split(operation: TensorflowNode, given: Given) -> Translated:
    place = {"Split": 0, "SplitV": 2}[operation.kind]
    axes = given.integers(place)
    if len(axes) != 1:
        raise NotTranslated("axis")
    values = given.names[1] if operation.kind == "Split" else given.names[0]
    return Translated("Split", (values,), {"axis": axes[0]})


def _repeated(operation: TensorflowNode, given: Given) -> Translated:
    return Translated({"BroadcastTo": "Expand", "Tile": "Tile"}[operation.kind], given.names[:1])


# ---------------------------------------------------------------------- numbers


def _cast(operation: TensorflowNode, given: Given) -> Translated:
    types = [operation.attribute(name, 0) for name in ("SrcT", "DstT")]
    if set(types) <= WHOLE:  # lengths
        return Translated("Identity", given.names)
    if not set(types) <= CASTS.keys():
        raise NotTranslated("DstT")
    return Translated("Cast", given.names, {"to": CASTS[types[1]]})


def _plain(operation: TensorflowNode, given: Given) -> Translated:
    return Translated(_PLAIN[operation.kind], given.names[:1])


def _relu6(_: TensorflowNode, given: Given) -> Translated:
    return Translated("Clip", given.names, {"min": 0.0, "max": 6.0})


def _clip(_: TensorflowNode, given: Given) -> Translated:
    limits = [given.numbers[place] if place < len(given.numbers) else None for place in (1, 2)]
    if any(limit is None or len(limit) != 1 for limit in limits):
        raise NotTranslated("limits")
    low, high = (limit[0] for limit in limits if limit is not None)
    return Translated("Clip", given.names[:1], {"min": low, "max": high})


def _sum(_: TensorflowNode, given: Given) -> Translated:
    return Translated("Sum", given.names)


def _choice(_: TensorflowNode, given: Given) -> Translated:
    return Translated("Where", given.names)


TRANSLATIONS: dict[str, Callable[[TensorflowNode, Given], Translated]] = {
    **dict.fromkeys(("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), _product),
    **{"Conv2D": _convolution, "Einsum": _einsum, "BiasAdd": _bias, "BiasAddV1": _bias},
    **{
        "Softmax": _softmax,
        "LogSoftmax": _softmax,
        "ArgMax": _argmax,
        "AvgPool": _pooling,
        "MaxPool": _pooling,
    },
    **{"Reshape": _reshape, "Transpose": _transpose, "Squeeze": _squeeze, "ExpandDims": _expand},
    **{"ConcatV2": _concat, "Pack": _stack, "Gather": _gather, "GatherV2": _gather},
    **{"Split": _split, "SplitV": _split, "BroadcastTo": _repeated, "Tile": _repeated},
    **{"Cast": _cast, "Relu6": _relu6, "ClipByValue": _clip, "AddN": _sum},
    **{"Select": _choice, "SelectV2": _choice},
    **dict.fromkeys(_REDUCING, _reduction),
    **dict.fromkeys(_CHOOSING, _chosen),
    **dict.fromkeys(_BINARY, _combination),
    **dict.fromkeys(_PLAIN, _plain),
}


def translated(operation: TensorflowNode, given: Given) -> Translated:
    """The node that does the same as an operation; raises NotTranslated."""
    translation = TRANSLATIONS.get(operation.kind)
    if translation is None or not given.names:
        raise NotTranslated(operation.kind)
    try:
        return translation(operation, given)
    except IndexError as error:  # an input is missing
        raise NotTranslated(str(error)) from error
