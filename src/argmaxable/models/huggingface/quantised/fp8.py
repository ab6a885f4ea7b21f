"""Weights of 8-bit floats with scales beside them: one for the tensor, for each row or for each block.

A weight is its 8-bit float times its scale, also where the scale is called weight_scale_inv: the inverse is
that of the factor by which the weights were multiplied before they were rounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.core.stored_rows import StoredRows
from argmaxable.models.ambiguity import ambiguous
from argmaxable.models.checkpoint.families import Obstacle
from argmaxable.models.checkpoint.locate import HeadTensors
from argmaxable.models.finding import TensorInfo
from argmaxable.models.huggingface.quantised.layer import extent, layer_of, require_only, require_scales
from argmaxable.models.quantised_rows import held, rows_from
from argmaxable.models.source import TensorSource

_DTYPES = ("float8_e4m3fn", "float8_e5m2")
_SCALES = ("_scale", "_scale_inv")
# Of the layer's inputs, which are no part of the weights.
_INPUT_SCALES = ("input_scale", "activation_scale")
# Significant bits of an 8-bit float, and an exponent beyond which none of them has bits on either side.
_SIGNIFICANT, _RANGE = 4, 16
_ROUNDED = Obstacle("the layer's inputs, which most programs round to 8 bits before an 8-bit product")


def is_quantised(source: TensorSource, weight: str) -> bool:
    """Whether a tensor is a matrix of 8-bit floats with scales beside it."""
    info = source.tensors.get(weight)
    is_small = info is not None and info.dtype in _DTYPES and len(info.shape) == 2
    return is_small and any(f"{weight}{end}" in source.names for end in _SCALES)


def dequantised(
    source: TensorSource, choice: HeadTensors, config: Mapping[str, Any]
) -> tuple[TensorSource, HeadTensors]:
    """The head with its weight multiplied by the scales. Raises LoadError, and AmbiguousError."""
    weight = choice.weight
    beside = [f"{weight}{end}" for end in _SCALES if f"{weight}{end}" in source.names]
    if len(beside) > 1:
        raise ambiguous(f"tensor {weight!r} comes with {beside[0]} and with {beside[1]}")
    layer = layer_of(weight)
    inputs = [f"{layer}.{name}" for name in _INPUT_SCALES]
    require_only(source, weight, (weight, *beside, *inputs, f"{layer}.bias"))
    stored, scales = source.info(weight), source.info(beside[0])
    require_scales(scales)
    block, words = _block(stored, scales, config)
    info = replace(stored, dtype=f"{stored.dtype}, a scale for each {words}")

    def read() -> NDArray[Any] | StoredRows:
        factors = source.read_array(scales.name).astype(np.float64)
        dtype = _exact_dtype(factors)
        rows, columns = info.shape
        by_block = factors.reshape(-(-rows // block[0]), -(-columns // block[1])).astype(dtype)
        by_row = np.repeat(by_block, block[0], axis=0)[:rows]

        def formula(values: NDArray[Any], factors: NDArray[Any]) -> NDArray[Any]:
            products: NDArray[Any] = np.repeat(factors, block[1], axis=1)[:, :columns]
            products *= values.astype(dtype)
            return products

        return held(rows_from([source.read_array(weight), by_row], columns, dtype, formula))

    return source.with_dequantised(info, read, {scales.name}), replace(choice, feed=_ROUNDED)


def _block(weight: TensorInfo, scales: TensorInfo, config: Mapping[str, Any]) -> tuple[tuple[int, int], str]:
    """How many rows and columns have a scale in common, and that in words; raises LoadError."""
    rows, columns = weight.shape
    if not rows * columns:
        raise LoadError(f"tensor {weight} is empty.")
    if scales.shape in ((), (1,), (1, 1)):
        return (rows, columns), "tensor"
    if scales.shape in ((rows,), (rows, 1)):
        return (1, columns), "row"
    settings = config.get("quantization_config")
    match settings.get("weight_block_size") if isinstance(settings, dict) else None:
        case [int(height), int(width)] if (
            height > 0 and width > 0 and scales.shape == (-(-rows // height), -(-columns // width))
        ):
            # No larger than the matrix, lest a forged block be repeated beyond all memory.
            return (min(height, rows), min(width, columns)), f"block of {height} × {width}"
    raise LoadError(
        f"tensor {weight} comes with {scales}: neither one scale, nor one for each row, nor one for each "
        "block as config.json says (weight_block_size in quantization_config). Use the model it was made "
        "from."
    )


def _exact_dtype(scales: NDArray[np.float64]) -> np.dtype[Any]:
    """The narrowest dtype that holds every product with an 8-bit float: 24 + 4 bits always fit float64."""
    top, low = extent(scales)
    fits = (top - low + _SIGNIFICANT <= 24) & (top + _RANGE <= 127) & (low - _RANGE >= -149)
    return np.dtype(np.float32 if fits.all() else np.float64)
