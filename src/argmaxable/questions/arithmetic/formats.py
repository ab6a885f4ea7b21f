"""Number formats that heads are computed or stored in, and copies of a head rounded to them.

A rounded copy is an exact head again, whose verdicts can be compared with those of the original.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import HeadError
from argmaxable.core.head import FLOAT_DTYPES, Head


class Float(StrEnum):
    """Formats in which logits are computed."""

    BF16 = "bf16"
    FP16 = "fp16"
    FP32 = "fp32"


class Rounding(StrEnum):
    """Formats that weights are stored in. int8 has one scale for each row, int8-tensor one for all."""

    BF16 = "bf16"
    FP16 = "fp16"
    FP32 = "fp32"
    INT8 = "int8"
    INT8_TENSOR = "int8-tensor"


@dataclass(frozen=True)
class Precision:
    """A float format: relative error of one rounding to nearest, what a rounding near zero can lose at
    most, and the largest number. Machines may flush bf16 and float32 to zero; fp16 keeps its smallest."""

    dtype: np.dtype[Any]
    unit: float
    tiny: float
    largest: float


PRECISIONS: dict[Float, Precision] = {
    Float.BF16: Precision(FLOAT_DTYPES["bfloat16"], 2.0**-8, 2.0**-126, (2 - 2.0**-7) * 2.0**127),
    Float.FP16: Precision(FLOAT_DTYPES["float16"], 2.0**-11, 2.0**-24, 65504.0),
    Float.FP32: Precision(FLOAT_DTYPES["float32"], 2.0**-24, 2.0**-126, (2 - 2.0**-23) * 2.0**127),
}
# Symmetric: −128 is not used, as in ONNX Runtime, PyTorch and TensorFlow Lite for weights.
_LARGEST_INT8 = 127


def rounded(head: Head, to: Rounding | str) -> Head:
    """The head with every weight and bias as that format stores it, exactly; named after both.

    Biases of int8 heads stay as they are, as in every runtime. Raises HeadError where a weight is beyond
    the format's range.
    """
    rounding = Rounding(to)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        weight, bias = _stored(head, rounding)
    try:
        return Head(weight, bias, head.labels, name=f"{head.name} in {rounding.value}")
    except HeadError as error:
        raise HeadError(
            f"{head.name} does not fit into {rounding.value}: {error} Choose a format with a wider range."
        ) from error


def _stored(head: Head, rounding: Rounding) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Weights and biases in a format; infinite or NaN beyond its range."""
    if rounding in (Rounding.INT8, Rounding.INT8_TENSOR):
        return _by_int8(head.weight, per_row=rounding is Rounding.INT8), head.bias
    dtype = PRECISIONS[Float(rounding.value)].dtype
    # Rows that stay in their file should do so where nothing is to be rounded.
    weight = head.weight if head.weight.dtype == dtype else head.weight.astype(dtype)
    return weight, None if head.bias is None else head.bias.astype(dtype)


def _by_int8(weight: NDArray[Any], *, per_row: bool) -> NDArray[np.float64]:
    """Integers −127…127 times a float32 scale: products of 8 and 24 bits, exact in float64."""
    values = weight.astype(np.float64)
    largest = np.abs(values).max(axis=1, keepdims=True) if per_row else np.abs(values).max()
    scale = np.asarray(largest / _LARGEST_INT8, np.float32).astype(np.float64)
    scale = np.where(scale > 0, scale, 1.0)
    return np.asarray(np.clip(np.rint(values / scale), -_LARGEST_INT8, _LARGEST_INT8) * scale)
