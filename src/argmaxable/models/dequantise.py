"""What stored numbers stand for, without rounding: quantised weights, factors, casts.

A quantised weight is (q − zero point) · scale. With q − zero point below 2^29 and a scale of at most 24
significant bits the product has at most 53, so float64 holds it exactly.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.core.head import FLOAT_DTYPES

_LARGEST_EXACT_STEPS = 2**29
# Casts that keep every value; after them the stored numbers serve as well.
_WIDER = {
    "float16": ("float16", "float32", "float64"),
    "bfloat16": ("bfloat16", "float32", "float64"),
    "float32": ("float32", "float64"),
    "float64": ("float64",),
}


def dequantised(
    steps: NDArray[Any],
    scale: NDArray[Any] | None,
    zero_point: NDArray[Any] | None,
    axis: int,
) -> NDArray[np.float64]:
    """(steps − zero point) · scale as float64; a scale or zero point of several numbers runs along `axis`.

    Raises LoadError where they don't fit the array or the result would be rounded.
    """
    values = steps.astype(np.float64)
    if zero_point is not None:
        values -= _along(zero_point, values, axis, "zero points")
    if scale is None:
        return values
    if scale.dtype == np.float64 or (values.size and np.abs(values).max() > _LARGEST_EXACT_STEPS):
        raise LoadError(
            f"quantised values up to {np.abs(values).max():g} with a scale of type {scale.dtype} can't be "
            "dequantised without rounding. Use the float model they were made from."
        )
    values *= _along(scale, values, axis, "scales")
    return values


def times(values: NDArray[Any], factor: float) -> NDArray[Any]:
    """values · factor, exactly: in the same dtype if the factor is a power of two, else in float64.

    Raises LoadError where even that would be rounded.
    """
    if factor == 1.0:
        return values
    if values.dtype == np.float64 and abs(math.frexp(factor)[0]) != 0.5:
        raise LoadError(
            f"multiplying float64 values by {factor} would round them. Fold the factor into the weights and "
            "export the model again."
        )
    if abs(math.frexp(factor)[0]) == 0.5:
        with np.errstate(over="ignore", under="ignore"):
            scaled: NDArray[Any] = values * values.dtype.type(factor)
            if (scaled / values.dtype.type(factor) == values).all():  # neither overflow nor underflow
                return scaled
    return values.astype(np.float64) * factor


def cast(values: NDArray[Any], dtype: str) -> NDArray[Any]:
    """The values as a cast to that dtype leaves them; a wider dtype leaves them as they are."""
    if dtype in _WIDER.get(values.dtype.name, ()):
        return values
    with np.errstate(over="ignore"):  # too large for it: infinite, which no head accepts
        return values.astype(FLOAT_DTYPES[dtype])


def _along(numbers: NDArray[Any], values: NDArray[Any], axis: int, what: str) -> NDArray[np.float64]:
    flat = numbers.reshape(-1).astype(np.float64)
    if flat.size == 1:
        return flat.reshape(())
    if values.ndim <= axis or values.shape[axis] != flat.size:
        raise LoadError(
            f"{flat.size} {what} don't fit a quantised tensor of shape {values.shape} (axis {axis})."
        )
    return flat.reshape([-1 if place == axis else 1 for place in range(values.ndim)])
