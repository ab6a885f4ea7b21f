"""Weights as GPTQ's programs pack them: whole numbers of 2, 3, 4 or 8 bits, packed along the features, and
a scale and a zero point for each group of features. A weight is (q − zero point) · scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.core.stored_rows import StoredRows
from argmaxable.models.ambiguity import ambiguous
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

_BITS = (2, 3, 4, 8)
# Zero points are stored less 1, or as they are.
_LESS_ONE, _AS_THEY_ARE = "gptq", "gptq_v2"


@dataclass(frozen=True)
class _Settings:
    """What config.json says; `bits` and `group_size` are of the layers that have no settings of their own."""

    bits: int
    group_size: int
    is_symmetric: bool
    is_ordered: bool
    zeros: str
    has_exceptions: bool


def dequantised(source: TensorSource, weight: str, config: Mapping[str, Any]) -> TensorSource:
    settings, layer = _settings(config), layer_of(weight)
    places, zeros, scales = (f"{layer}.{part}" for part in ("g_idx", "qzeros", "scales"))
    require_only(source, weight, (weight, places, zeros, scales, f"{layer}.bias"))
    words, factors = source.info(weight), source.info(scales)
    require_scales(factors)
    has_places = places in source.names
    columns = _columns(source.info(places)) if has_places else 32 * words.shape[0] // settings.bits
    bits = 32 * words.shape[0] // max(1, columns) if settings.has_exceptions and has_places else settings.bits
    size = _group_size(settings, columns, factors, has_places)
    groups = -(-columns // size)
    rows = words.shape[1]
    packed_zeros = TensorInfo(zeros, (groups, rows * bits // 32), "int32")
    if (
        bits not in _BITS
        or words.shape[0] * 32 != columns * bits
        or rows * bits % 32
        or factors.shape != (groups, rows)
        or source.info(zeros) != packed_zeros
    ):
        raise LoadError(
            f"tensors {words}, {factors} and {source.info(zeros)} don't fit together as GPTQ with {bits} "
            f"bits in groups of {size}, which config.json says. Is it the model's own?"
        )

    def read() -> NDArray[Any] | StoredRows:
        group_of = np.arange(columns) // size
        if has_places:
            group_of = _checked_places(source.read_array(places), group_of, groups, settings)
        points = _zeros(unpacked(source.read_array(zeros), bits), bits, settings)
        return grouped_rows(
            unpacked(source.read_array(weight).T, bits),
            np.ascontiguousarray(source.read_array(scales).T),
            group_of,
            significant=bits + 1,
            zeros=np.ascontiguousarray(points.T),
        )

    info = TensorInfo(weight, (rows, columns), f"GPTQ {bits}-bit, groups of {size}")
    return source.with_dequantised(info, read, scales_of_packed_layers(source))


def _settings(config: Mapping[str, Any]) -> _Settings:
    match config:
        case {"bits": int(bits), "group_size": int(size), **rest} if (
            bits in _BITS
            and (size > 0 or size == -1)
            and rest.get("checkpoint_format", _LESS_ONE) in (_LESS_ONE, _AS_THEY_ARE)
            and rest.get("pack_dtype", "int32") == "int32"
        ):
            return _Settings(
                bits,
                size,
                rest.get("sym") is True,
                rest.get("desc_act") is True,
                rest.get("checkpoint_format", _LESS_ONE),
                bool(rest.get("dynamic")),
            )
    raise LoadError(
        f"config.json says of a head that GPTQ quantised: {str(dict(config))[:200]}. Expected bits (2, 3, 4 "
        f"or 8), a group_size, and the checkpoint_format gptq or gptq_v2. {ADVICE}"
    )


def _columns(places: TensorInfo) -> int:
    if len(places.shape) != 1 or places.dtype != "int32":
        raise LoadError(f"tensor {places} should have a whole number for each column. {ADVICE}")
    return places.shape[0]


def _group_size(settings: _Settings, columns: int, scales: TensorInfo, has_places: bool) -> int:
    """How many columns share a scale; layers may have settings of their own, which their shapes show."""
    if settings.has_exceptions and has_places and len(scales.shape) == 2 and scales.shape[0]:
        return max(1, -(-columns // scales.shape[0]))
    return max(1, columns) if settings.group_size == -1 else settings.group_size


def _checked_places(
    places: NDArray[np.int32], in_order: NDArray[np.intp], groups: int, settings: _Settings
) -> NDArray[np.intp]:
    if settings.is_ordered:
        if len(places) and not (places.min() >= 0 and places.max() < groups):
            raise LoadError(f"has a g_idx that names groups beyond the {groups} that there are. {ADVICE}")
        return places.astype(np.intp)
    if not np.array_equal(places, in_order):
        raise ambiguous("its g_idx puts columns into other groups, and config.json does not say desc_act")
    return in_order


def _zeros(stored: NDArray[np.uint8], bits: int, settings: _Settings) -> NDArray[np.int16]:
    zeros = stored.astype(np.int16)
    if settings.zeros == _LESS_ONE:
        if (zeros == 2**bits - 1).any():
            # The sum overflows its bits: programs take it for 0, for 2^bits, or let it run into the next.
            raise ambiguous("a zero point of GPTQ's older format is stored as all ones")
        zeros += 1
    if settings.is_symmetric and (zeros != 2 ** (bits - 1)).any():
        raise ambiguous(
            "config.json says sym, which lets programs leave the zero points unread, but they differ"
        )
    return zeros
