"""Weights of 8 bits, floats or whole numbers, with scales beside them: one for the tensor, for each row, for
each block, or for each group of a row's columns.

A weight is its 8-bit number, less a zero point if there are any, times its scale, also where the scale is
called weight_scale_inv: the inverse is that of the factor by which the weights were multiplied before they
were rounded.
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
from argmaxable.models.checkpoint.locate import HeadTensors
from argmaxable.models.finding import TensorInfo
from argmaxable.models.huggingface.quantised.layer import (
    ADVICE,
    ROUNDED_INPUTS,
    grouped_rows,
    layer_of,
    require_only,
    require_scales,
)
from argmaxable.models.huggingface.quantised.schemes import Scheme, scheme_of
from argmaxable.models.source import TensorSource

_WHOLE = "int8"
_DTYPES = ("float8_e4m3fn", "float8_e5m2", _WHOLE)
_SCALES = ("_scale", "_scale_inv")
_ZEROS = "_zero_point"
# Of the layer's inputs, which are no part of the weights.
_INPUT_SCALES = ("input_scale", "input_zero_point", "activation_scale")
# Significant bits of an 8-bit float, and of the difference of two whole numbers of 8 bits.
_SIGNIFICANT = {True: 9, False: 4}


def is_quantised(source: TensorSource, weight: str) -> bool:
    """Whether a tensor is a matrix of 8-bit numbers with scales beside it."""
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
    stored, scales = source.info(weight), source.info(beside[0])
    is_whole = stored.dtype == _WHOLE
    zeros = f"{weight}{_ZEROS}" if is_whole and f"{weight}{_ZEROS}" in source.names else None
    inputs = [f"{layer}.{name}" for name in _INPUT_SCALES]
    require_only(source, weight, (weight, *beside, *([zeros] if zeros else []), *inputs, f"{layer}.bias"))
    require_scales(scales)
    if is_whole:
        _require_scheme(scheme_of(config, layer), layer, has_zeros=zeros is not None)
    if zeros is not None:
        _require_zeros(source.info(zeros), scales)
    block, words = _block(stored, scales, config, layer)
    info = replace(stored, dtype=f"{stored.dtype}, a scale for each {words}")
    rows, columns = info.shape

    def by_row(values: NDArray[Any]) -> NDArray[Any]:
        blocks = values.reshape(-(-rows // block[0]), -(-columns // block[1]))
        return np.repeat(blocks, block[0], axis=0)[:rows]

    def read() -> NDArray[Any] | StoredRows:
        return grouped_rows(
            source.read_array(weight),
            by_row(source.read_array(scales.name)),
            np.arange(columns) // block[1],
            significant=_SIGNIFICANT[is_whole],
            zeros=None if zeros is None else by_row(source.read_array(zeros)),
        )

    parts = {scales.name} | ({zeros} if zeros else set())
    return source.with_dequantised(info, read, parts), replace(choice, feed=ROUNDED_INPUTS)


def _require_scheme(scheme: Scheme | None, layer: str, *, has_zeros: bool) -> None:
    """Whole numbers with scales are stored by several libraries; that of compressed-tensors is known."""
    if scheme is None or scheme.is_symmetric is has_zeros:
        problem = "does not say so" if scheme is None else "contradicts its zero points"
        raise LoadError(
            f"the layer {layer} holds whole numbers with scales, as compressed-tensors stores them, but "
            f"config.json (config_groups in quantization_config) {problem}. {ADVICE}"
        )


def _require_zeros(zeros: TensorInfo, scales: TensorInfo) -> None:
    if zeros.dtype != _WHOLE or zeros.shape != scales.shape:
        raise LoadError(f"tensor {zeros} does not fit {scales}: expected as many 8-bit numbers. {ADVICE}")


def _block(
    weight: TensorInfo, scales: TensorInfo, config: Mapping[str, Any], layer: str
) -> tuple[tuple[int, int], str]:
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
    scheme = scheme_of(config, layer)
    if scheme is not None and scheme.group_size and scales.shape == (rows, -(-columns // scheme.group_size)):
        return (1, scheme.group_size), f"group of {scheme.group_size} columns"
    raise LoadError(
        f"tensor {weight} comes with {scales}: neither one scale, nor one for each row, nor one for each "
        "block or group as config.json says (weight_block_size or config_groups in quantization_config). "
        f"{ADVICE}"
    )
