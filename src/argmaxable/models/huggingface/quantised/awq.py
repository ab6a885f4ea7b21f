"""Weights as AWQ's programs pack them: 4-bit numbers of eight neighbouring classes in a word, in an order of
their own, and a scale and a zero point for each group of features. A weight is (q − zero point) · scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.core.stored_rows import StoredRows
from argmaxable.models.finding import TensorInfo
from argmaxable.models.huggingface.quantised.layer import (
    ADVICE,
    grouped_rows,
    layer_of,
    require_only,
    require_scales,
    scales_of_packed_layers,
    unpacked,
)
from argmaxable.models.source import TensorSource

_BITS = 4
# Where in a word the number of each of eight classes is, lowest bits first.
_PLACES = np.array([0, 4, 1, 5, 2, 6, 3, 7])


def dequantised(source: TensorSource, weight: str, config: Mapping[str, Any]) -> TensorSource:
    layer = layer_of(weight)
    zeros, scales = f"{layer}.qzeros", f"{layer}.scales"
    require_only(source, weight, (weight, zeros, scales, f"{layer}.bias"))
    size = _group_size(config)
    words, factors = source.info(weight), source.info(scales)
    require_scales(factors)
    columns, rows = words.shape[0], words.shape[1] * 32 // _BITS
    size = max(1, columns) if size == -1 else size
    groups = -(-columns // size)
    packed_zeros = TensorInfo(zeros, (groups, words.shape[1]), "int32")
    if factors.shape != (groups, rows) or source.info(zeros) != packed_zeros or not rows * columns:
        raise LoadError(
            f"tensors {words}, {factors} and {source.info(zeros)} don't fit together as AWQ in groups of "
            f"{size}, which config.json says. Is it the model's own?"
        )

    def read() -> NDArray[Any] | StoredRows:
        return grouped_rows(
            np.ascontiguousarray(_in_order(source.read_array(weight)).T),
            np.ascontiguousarray(source.read_array(scales).T),
            np.arange(columns) // size,
            significant=_BITS + 1,
            zeros=np.ascontiguousarray(_in_order(source.read_array(zeros)).T),
        )

    info = TensorInfo(weight, (rows, columns), f"AWQ 4-bit, groups of {size}")
    return source.with_dequantised(info, read, scales_of_packed_layers(source))


def _group_size(config: Mapping[str, Any]) -> int:
    match config:
        case {"bits": 4, "group_size": int(size), "zero_point": True, **rest} if (
            size > 0 or size == -1
        ) and str(rest.get("version", "gemm")).lower() == "gemm":
            return size
    raise LoadError(
        f"config.json says of a head that AWQ quantised: {str(dict(config))[:200]}. Expected 4 bits, a "
        f"group_size, zero_point and the version gemm. {ADVICE}"
    )


def _in_order(words: NDArray[np.int32]) -> NDArray[np.uint8]:
    steps = unpacked(words, _BITS)
    return steps.reshape(len(steps), -1, 8)[:, :, _PLACES].reshape(steps.shape)
