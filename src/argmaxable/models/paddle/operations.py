"""What PaddlePaddle's operations are called in ONNX, and with which attributes.

An operation is translated only where it does exactly, or within the same bounds, what ONNX's does. For any
other NotUnderstood is raised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from argmaxable.models.graph.nodes import Attribute
from argmaxable.models.paddle.program import NotUnderstood, Operation

# Elementwise functions of X without attributes that matter, and copies.
_PLAIN = {
    **{"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "softsign": "Softsign", "exp": "Exp"},
    **{"log": "Log", "abs": "Abs", "sqrt": "Sqrt", "erf": "Erf", "gelu": "Gelu", "silu": "Swish"},
    **{"assign": "Identity", "share_data": "Identity"},
}
# Data types (VarType) of floats, and ONNX's numbers of them.
_FLOATS = {4: 10, 5: 1, 6: 11, 22: 16}
_CHANNELS_FIRST = ("NCHW", "AnyLayout")

Translated = tuple[str, dict[str, Attribute]]


@dataclass(frozen=True)
class Operands:
    """What an operation is given: its inputs' shapes as declared, and how the first one came about.

    An unknown shape is None. `are_stored` says which inputs are parameters, `may_be_logits` whether the first
    is a product, or follows one in ways that a head's logits may go.
    """

    shapes: tuple[tuple[int, ...] | None, ...]
    are_stored: tuple[bool, ...]
    made_by: str
    may_be_logits: bool

    @property
    def rank(self) -> int | None:
        """The number of axes of the first input."""
        return None if self.shapes[0] is None else len(self.shapes[0])

    def from_end(self, axis: int) -> int:
        """An axis of the first input, counted from the end; raises NotUnderstood where that is not known."""
        if axis >= 0 and self.rank is None:
            raise NotUnderstood("axis")
        place = axis if axis < 0 or self.rank is None else axis - self.rank
        if place >= 0 or (self.rank is not None and place < -self.rank):
            raise NotUnderstood("axis")
        return place


# ---------------------------------------------------------------------- linear layers


def _product(operation: Operation, names: tuple[str, str]) -> Translated:
    # Not ONNX's MatMul, in which the weight may also be the first factor: its bias would lie otherwise.
    transposed = [int(operation.attribute(name, False)) for name in names]
    return "FusedMatMul", {"transA": transposed[0], "transB": transposed[1]}


def _matmul(operation: Operation, _: Operands) -> Translated:
    if operation.attribute("alpha", 1.0) != 1.0 or operation.attribute("head_number", 1) != 1:
        raise NotUnderstood("alpha")
    return _product(operation, ("transpose_X", "transpose_Y"))


def _matmul_v2(operation: Operation, _: Operands) -> Translated:
    return _product(operation, ("trans_x", "trans_y"))


def _convolution(operation: Operation, _: Operands) -> Translated:
    pads = operation.attribute("paddings", (0, 0))
    padding = operation.attribute("padding_algorithm", "EXPLICIT")
    layout = operation.attribute("data_format", "NCHW")
    if layout not in _CHANNELS_FIRST or padding not in ("EXPLICIT", "VALID"):
        raise NotUnderstood("data_format")
    return "Conv", {"group": operation.attribute("groups", 1), "pads": pads}


def _addition(operation: Operation, known: Operands) -> Translated:
    """An Add where a bias is added along the axis of a product's classes; otherwise just a Sum."""
    axis = operation.attribute("axis", -1)
    is_bias = known.are_stored == (False, True) and known.shapes[1] is not None and len(known.shapes[1]) == 1
    if known.made_by == "FusedMatMul":
        is_along = axis == -1 or (known.rank is not None and axis == known.rank - 1)
    else:
        is_along = known.made_by == "Conv" and axis == 1
    # ONNX would lay a bias along the last axis, where a convolution has positions.
    return ("Add", {"along_classes": 1}) if is_bias and is_along else ("Sum", {})


# ---------------------------------------------------------------------- along an axis


def _softmax(operation: Operation, known: Operands) -> Translated:
    op = {"softmax": "Softmax", "log_softmax": "LogSoftmax"}[operation.kind]
    return op, {"axis": known.from_end(operation.attribute("axis", -1))}


def _argmax(operation: Operation, known: Operands) -> Translated:
    if operation.attribute("flatten", False):
        raise NotUnderstood("flatten")
    return "ArgMax", {"axis": known.from_end(operation.attribute("axis", -1))}


def _layer_norm(operation: Operation, known: Operands) -> Translated:
    is_last = known.rank is not None and operation.attribute("begin_norm_axis", 1) == known.rank - 1
    if not is_last or known.are_stored[1:2] != (True,) or not operation.attribute("epsilon", 1e-5) >= 0:
        raise NotUnderstood("begin_norm_axis")
    return "LayerNormalization", {"axis": -1}


def _reduction(operation: Operation, known: Operands) -> Translated:
    axes = operation.attribute("dim", (0,))
    if operation.attribute("reduce_all", False) or not axes:
        raise NotUnderstood("dim")
    op = {"reduce_mean": "ReduceMean", "reduce_max": "ReduceMax", "reduce_min": "ReduceMin"}[operation.kind]
    keepdims = int(operation.attribute("keep_dim", False))
    return op, {"axes": tuple(map(known.from_end, axes)), "keepdims": keepdims}


def _pooling(operation: Operation, _: Operands) -> Translated:
    if operation.attribute("data_format", "NCHW") not in _CHANNELS_FIRST:
        raise NotUnderstood("data_format")
    op = {"avg": "AveragePool", "max": "MaxPool"}.get(operation.attribute("pooling_type", ""))
    if op is None:
        raise NotUnderstood("pooling_type")
    return op, {"count_include_pad": int(not operation.attribute("exclusive", True))}


# ---------------------------------------------------------------------- layout


def _reshape(_: Operation, known: Operands) -> Translated:
    """Not of logits: their classes could be joined with another axis."""
    if known.may_be_logits:
        raise NotUnderstood("shape")
    return "Reshape", {}


def _transpose(operation: Operation, _: Operands) -> Translated:
    order: tuple[int, ...] = operation.attribute("axis", ())
    if not order or sorted(order) != list(range(len(order))):
        raise NotUnderstood("axis")
    return "Transpose", {"perm": order}


def _squeeze(operation: Operation, known: Operands) -> Translated:
    """PaddlePaddle leaves an axis alone whose length is not 1, so the length must be known."""
    axes: tuple[int, ...] = tuple(map(known.from_end, operation.attribute("axes", ())))
    shape = known.shapes[0]
    if not axes or shape is None or any(shape[axis] != 1 for axis in axes):
        raise NotUnderstood("axes")
    return "Squeeze", {"axes": axes}


def _unsqueeze(operation: Operation, known: Operands) -> Translated:
    axes: tuple[int, ...] = operation.attribute("axes", ())
    # Several are inserted one after the other, in ONNX all at once.
    if len(axes) != 1 or known.rank is None or not -known.rank - 1 <= axes[0] <= known.rank:
        raise NotUnderstood("axes")
    return "Unsqueeze", {"axes": (axes[0] - known.rank - 1 if axes[0] >= 0 else axes[0],)}


def _flatten(operation: Operation, known: Operands) -> Translated:
    is_usual = (operation.attribute("start_axis", 1), operation.attribute("stop_axis", 1)) == (1, -1)
    if not is_usual or known.may_be_logits:
        raise NotUnderstood("start_axis")
    return "Flatten", {"axis": 1}


# ---------------------------------------------------------------------- numbers


def _cast(operation: Operation, _: Operands) -> Translated:
    types = [operation.attribute(name, -1) for name in ("in_dtype", "out_dtype")]
    if not set(types) <= _FLOATS.keys():
        raise NotUnderstood("out_dtype")
    return "Cast", {"to": _FLOATS[types[1]]}


def _scale(operation: Operation, _: Operands) -> Translated:
    """Exporters put x · 1 + 0 before the output."""
    if operation.attribute("scale", 1.0) != 1.0 or operation.attribute("bias", 0.0) != 0.0:
        raise NotUnderstood("scale")
    return "Identity", {}


def _dropout(operation: Operation, _: Operands) -> Translated:
    how = operation.attribute("dropout_implementation", "downgrade_in_infer")
    if not operation.attribute("is_test", False) or how != "upscale_in_train":
        raise NotUnderstood("dropout_implementation")
    return "Dropout", {}


def _relu6(operation: Operation, _: Operands) -> Translated:
    if operation.attribute("threshold", 6.0) != 6.0:  # newer versions of PaddlePaddle take 6 all the same
        raise NotUnderstood("threshold")
    return "Clip", {"min": 0.0, "max": 6.0}


def _swish(operation: Operation, _: Operands) -> Translated:
    if operation.attribute("beta", 1.0) != 1.0:
        raise NotUnderstood("beta")
    return "Swish", {}


def _hard_sigmoid(operation: Operation, _: Operands) -> Translated:
    return "HardSigmoid", {
        "alpha": operation.attribute("slope", 0.2),
        "beta": operation.attribute("offset", 0.5),
    }


def _hard_swish(operation: Operation, _: Operands) -> Translated:
    usual = {"threshold": 6.0, "scale": 6.0, "offset": 3.0}
    if any(operation.attribute(name, number) != number for name, number in usual.items()):
        raise NotUnderstood("threshold")
    return "HardSwish", {}


def _combination(operation: Operation, _: Operands) -> Translated:
    return operation.kind.removeprefix("elementwise_").capitalize(), {}


def _plain(operation: Operation, _: Operands) -> Translated:
    return _PLAIN[operation.kind], {}


TRANSLATIONS: dict[str, Callable[[Operation, Operands], Translated]] = {
    **{"matmul": _matmul, "matmul_v2": _matmul_v2, "conv2d": _convolution, "elementwise_add": _addition},
    **{"softmax": _softmax, "log_softmax": _softmax, "arg_max": _argmax, "layer_norm": _layer_norm},
    **{"reduce_mean": _reduction, "reduce_max": _reduction, "reduce_min": _reduction, "pool2d": _pooling},
    **{"reshape2": _reshape, "transpose2": _transpose, "squeeze2": _squeeze, "unsqueeze2": _unsqueeze},
    **{"flatten_contiguous_range": _flatten, "cast": _cast, "scale": _scale, "dropout": _dropout},
    **{"relu6": _relu6, "swish": _swish, "hard_sigmoid": _hard_sigmoid, "hard_swish": _hard_swish},
    **{f"elementwise_{each}": _combination for each in ("mul", "max", "min")},
    **dict.fromkeys(_PLAIN, _plain),
}
