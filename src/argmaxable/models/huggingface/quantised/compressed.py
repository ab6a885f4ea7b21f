"""Weights as compressed-tensors packs them: whole numbers of 2, 4 or 8 bits in 32-bit words, row by row, each
with 2^(bits − 1) added, with scales and perhaps zero points for rows or groups of columns.

Other numbers of bits are packed in two ways, by older and newer versions, and are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.core.stored_rows import StoredRows
from argmaxable.models.checkpoint.locate import HeadTensors
from argmaxable.models.finding import TensorInfo
from argmaxable.models.huggingface.quantised.layer import (
    ADVICE,
    ROUNDED_INPUTS,
    grouped_rows,
    layer_of,
    require_only,
    require_scales,
    unpacked,
)
from argmaxable.models.huggingface.quantised.schemes import Scheme, scheme_of
from argmaxable.models.source import TensorSource

_BITS = (2, 4, 8)


def dequantised(
    source: TensorSource, choice: HeadTensors, config: Mapping[str, Any]
) -> tuple[TensorSource, HeadTensors]:
    """The head with its weight unpacked. Raises LoadError."""
    weight, layer = choice.weight, layer_of(choice.weight)
    scheme = scheme_of(config, layer)
    if scheme is None or scheme.bits not in _BITS:
        raise LoadError(
            f"the layer {layer} is packed as compressed-tensors does it. How is in config.json "
            "(quantization_config with quant_method and config_groups), which is not there, says it in two "
            f"ways, or names other bits than {', '.join(map(str, _BITS))}. {ADVICE}"
        )
    scales, zeros, shape, places = (
        f"{layer}.weight_{part}" for part in ("scale", "zero_point", "shape", "g_idx")
    )
    require_only(source, weight, (weight, scales, zeros, shape, places, f"{layer}.bias"))
    rows, columns = _shape(source, shape)
    size = scheme.group_size or columns
    groups = -(-columns // size)
    words, factors = source.info(weight), source.info(scales)
    require_scales(factors)
    if words.shape != (rows, -(-columns * scheme.bits // 32)) or factors.shape not in (
        (rows, groups),
        (1,) * len(factors.shape) if groups == 1 else (rows, groups),
    ):
        raise LoadError(
            f"tensors {words} and {factors} don't fit together as {rows} × {columns} weights of "
            f"{scheme.bits} bits in groups of {size}. {ADVICE}"
        )
    if (zeros in source.names) == scheme.is_symmetric:
        raise LoadError(
            f"the layer {layer} has {'' if scheme.is_symmetric else 'no '}zero points, which contradicts "
            f"config.json. {ADVICE}"
        )

    def read() -> NDArray[Any] | StoredRows:
        steps = unpacked(source.read_array(weight), scheme.bits)[:, :columns]
        points = None if scheme.is_symmetric else _zeros(source, zeros, (rows, groups), scheme)
        offset = np.full((rows, 1), 2 ** (scheme.bits - 1), np.int16)
        return grouped_rows(
            steps,
            np.broadcast_to(source.read_array(scales).reshape(-1, groups), (rows, groups)),
            _group_of(source, places, columns, size),
            significant=scheme.bits + 1,
            # Both have the same number added, which their difference has not.
            zeros=np.broadcast_to(offset, (rows, groups)) if points is None else points,
        )

    info = TensorInfo(weight, (rows, columns), f"compressed-tensors {scheme.bits}-bit, groups of {size}")
    feed = ROUNDED_INPUTS if scheme.rounds_inputs else choice.feed
    return source.with_dequantised(info, read, {scales, zeros}), replace(choice, feed=feed)


def _shape(source: TensorSource, name: str) -> tuple[int, int]:
    info = source.info(name)
    if info.shape != (2,) or info.dtype not in ("int32", "int64"):
        raise LoadError(f"tensor {info} should be two whole numbers, rows and columns. {ADVICE}")
    rows, columns = map(int, source.read_array(name))
    if rows < 1 or columns < 1:
        raise LoadError(f"tensor {info} says {rows} × {columns}. {ADVICE}")
    return rows, columns


def _zeros(source: TensorSource, name: str, shape: tuple[int, int], scheme: Scheme) -> NDArray[Any]:
    """Zero points with the same number added as the weights: packed along rows, or 8 bits each."""
    rows, groups = shape
    info = source.info(name)
    if info.dtype == "int8" and info.shape == shape:
        points: NDArray[Any] = source.read_array(name).astype(np.int16) + 2 ** (scheme.bits - 1)
        return points
    if info.dtype == "int32" and info.shape == (-(-rows * scheme.bits // 32), groups):
        return np.ascontiguousarray(unpacked(source.read_array(name).T, scheme.bits)[:, :rows].T)
    raise LoadError(f"tensor {info} does not fit {rows} × {groups} groups of {scheme.bits} bits. {ADVICE}")


def _group_of(source: TensorSource, places: str, columns: int, size: int) -> NDArray[np.intp]:
    in_order = np.arange(columns) // size
    if places not in source.names:
        return in_order
    info = source.info(places)
    if info.dtype != "int32" or info.shape != (columns,):
        raise LoadError(f"tensor {info} should have a whole number for each of {columns} columns. {ADVICE}")
    stored = source.read_array(places).astype(np.intp)
    # The library sorts columns by these and cuts them into groups of one size.
    if not np.array_equal(np.sort(stored), in_order):
        raise LoadError(f"tensor {info} does not divide the columns into groups of {size}. {ADVICE}")
    return stored
