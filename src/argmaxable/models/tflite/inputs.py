"""What feeds a layer of a TensorFlow Lite model, and the box that its features can't leave.

Two things limit them: an activation function, seen through pooling and changes of layout, and the integers
that quantised features are, which cover a known range.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.core.boxes import Box, Everywhere
from argmaxable.models.activations import ANYTHING, RANGES, Range, intersection
from argmaxable.models.finding import HeadInputs

if TYPE_CHECKING:
    from argmaxable.models.tflite.model import Model, Operator, Tensor

# Steps whose results stay between the smallest and the largest value they take in. QUANTIZE is none of them:
# it rounds, perhaps upwards.
_RANGE_PRESERVING = frozenset(
    {"AVERAGE_POOL_2D", "MAX_POOL_2D", "MEAN", "REDUCE_MAX"}
    | {"RESHAPE", "SQUEEZE", "EXPAND_DIMS", "TRANSPOSE", "DEQUANTIZE"}
)
_ACTIVATION_OF = {name.upper(): name for name in RANGES} | {"LOGISTIC": "sigmoid"}
# Activations that quantised operators apply exactly, by limiting the integers. Others are approximated.
_CLAMPS = frozenset({"relu", "relu_n1_to_1", "relu6"})


def describe_inputs(model: Model, index: int) -> HeadInputs:
    """What gives the tensor of that index, in words, with the tightest box that follows."""
    tensor, words, ranges = model.tensor(index), [], [ANYTHING]
    for _ in model.operators:  # a damaged graph may run in circles
        ranges.append(_integer_range(tensor))
        operator = model.producers.get(tensor.index)
        if operator is None:
            words.append("the input of the model")
            break
        activation = _activation(model, operator)
        words.append(
            operator.kind if operator.kind in _ACTIVATION_OF else f"{operator.kind} {activation}".strip()
        )
        ranges.append(_activation_range(activation, tensor))
        source = _looked_through(model, operator, tensor)
        if source is None:
            break
        tensor = source
    low, high = reduce(intersection, ranges)
    description = f"{' of '.join(words)} ({model.tensor(index).type})"
    return HeadInputs(
        description, Box(low, high) if (low, high) != ANYTHING and low <= high else Everywhere()
    )


def _looked_through(model: Model, operator: Operator, tensor: Tensor) -> Tensor | None:
    """The tensor whose range the operator hands on, if it does."""
    if operator.kind not in _RANGE_PRESERVING or operator.activation:
        return None
    source = model.tensor(operator.input(0))
    # Other integers for the same numbers mean rounding.
    return None if tensor.is_quantised and not _same_integers(tensor, source) else source


def _same_integers(first: Tensor, second: Tensor) -> bool:
    return (
        first.type == second.type
        and np.array_equal(first.scale, second.scale)
        and np.array_equal(first.zero_point, second.zero_point)
    )


def _step(tensor: Tensor) -> float | None:
    """The number that 1 stands for in a quantised tensor, or None."""
    step = float(tensor.scale[0]) if tensor.is_quantised and tensor.scale.size == 1 else 0.0
    return step if 0 < step < math.inf else None


def _integer_range(tensor: Tensor) -> Range:
    step = _step(tensor)
    if step is None or tensor.type not in ("int8", "uint8", "int16"):
        return ANYTHING
    limits, zero = np.iinfo(tensor.type), int(tensor.zero_point[0]) if tensor.zero_point.size else 0
    return (int(limits.min) - zero) * step, (int(limits.max) - zero) * step


def _activation(model: Model, operator: Operator) -> str:
    """The name of the activation that an operator is, or ends in."""
    if operator.kind == "MUL" and not operator.activation:  # x · sigmoid(x)
        sides = operator.input(0), operator.input(1)
        for side, other in (sides, sides[::-1]):
            factor = model.producers.get(side)
            if factor is not None and factor.kind == "LOGISTIC" and factor.input(0) == other:
                return "silu"
    return operator.activation or _ACTIVATION_OF.get(operator.kind, "")


def _activation_range(activation: str, tensor: Tensor) -> Range:
    low, high = RANGES.get(activation, ANYTHING)
    if not tensor.is_quantised:
        return low, high
    step = _step(tensor)
    if step is None or activation not in _CLAMPS:
        return ANYTHING
    # The limits become integers; which way they are rounded does not matter if it is outwards here.
    return math.floor(low / step) * step, high if high == math.inf else math.ceil(high / step) * step
