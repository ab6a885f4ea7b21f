"""What a quantised layer stores beside its weight, how many bits its numbers need, and the rows they make."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.core.stored_rows import StoredRows
from argmaxable.models.checkpoint.families import Obstacle
from argmaxable.models.finding import TensorInfo
from argmaxable.models.quantised_rows import held, rows_from
from argmaxable.models.source import TensorSource

ADVICE = "Use the model it was made from."
# What feeds a head where programs round its inputs, too.
ROUNDED_INPUTS = Obstacle("the layer's inputs, which most programs round to 8 bits before an 8-bit product")

# Scales may have these dtypes, all of whose numbers are float32 numbers.
SCALE_DTYPES = frozenset({"float16", "bfloat16", "float32"})
# Exponents beyond any float's.
_FAR = 2**12
_FLOAT32_BITS = 24
# No number of 9 bits, nor an 8-bit float, has a bit beyond 2^16 or below 2^-16.
_RANGE = 16


def layer_of(weight: str) -> str:
    return weight.rpartition(".")[0]


def tensors_of_layer(weight: str, names: Collection[str]) -> list[str]:
    """The tensors that are stored under the name of the weight's layer, the weight included."""
    layer = layer_of(weight)
    return sorted(name for name in names if name.rpartition(".")[0] == layer) if layer else []


def require_only(source: TensorSource, weight: str, known: Collection[str]) -> None:
    """Raise LoadError where the layer has a tensor that is unknown: it may change the weight."""
    layer = layer_of(weight)
    other = [name for name in tensors_of_layer(weight, source.names) if name not in known]
    if other:
        raise LoadError(
            f"the layer {layer} is quantised and stores {other[0]}, whose meaning is unknown. Use the "
            "model it was made from."
        )


def scales_of_packed_layers(source: TensorSource) -> set[str]:
    """Scales of all layers that GPTQ or AWQ packed: matrices of floats, none of which is a layer's weight."""
    names = source.names
    return {name for name in names if name.endswith(".scales") and f"{layer_of(name)}.qzeros" in names}


def require_scales(info: TensorInfo) -> None:
    if info.dtype not in SCALE_DTYPES:
        raise LoadError(
            f"tensor {info} holds scales of an unknown type; expected "
            f"{', '.join(sorted(SCALE_DTYPES))}. Use the model it was made from."
        )


def extent(values: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Exponents (top, low) of float32 numbers: each is below 2^top and a whole multiple of 2^low.

    Numbers that are not finite count as 0: what is made from them is refused with the head.
    """
    finite = np.where(np.isfinite(values), values, 0.0)
    fraction, top = np.frexp(finite)
    whole = np.ldexp(fraction, _FLOAT32_BITS).astype(np.int64)
    low = top - _FLOAT32_BITS + np.frexp((whole & -whole).astype(np.float64))[1] - 1
    zero = finite == 0.0
    return np.where(zero, -_FAR, top), np.where(zero, _FAR, low)


def unpacked(words: NDArray[Any], bits: int) -> NDArray[np.uint8]:
    """The numbers in rows of 32-bit words, lowest bits first, words of fewer than eight numbers filled up.

    Eight numbers take as many bytes as one has bits.
    """
    raw = np.ascontiguousarray(words.astype("<u4", copy=False)).view(np.uint8).reshape(len(words), -1)
    octets = np.pad(raw, ((0, 0), (0, -raw.shape[1] % bits))).reshape(len(words), -1, bits)
    eights = np.zeros(octets.shape[:2], np.uint64)
    for place in range(bits):
        eights |= octets[:, :, place].astype(np.uint64) << np.uint64(8 * place)
    steps = np.empty((*eights.shape, 8), np.uint8)
    for place in range(8):
        steps[:, :, place] = (eights >> np.uint64(bits * place)) & np.uint64(2**bits - 1)
    return steps.reshape(len(words), -1)


def grouped_rows(
    steps: NDArray[Any],
    scales: NDArray[Any],
    group_of: NDArray[np.intp],
    *,
    significant: int,
    zeros: NDArray[Any] | None = None,
) -> NDArray[Any] | StoredRows:
    """(steps − zeros) · scales, exactly, where column c of a row has the scale group_of[c] of that row.

    `significant` is how many bits a difference has at most.
    """
    dtype = _exact_dtype(scales.astype(np.float64), significant)
    parts = [steps, scales.astype(dtype), *([] if zeros is None else [zeros.astype(dtype)])]

    def formula(steps: NDArray[Any], scales: NDArray[Any], zeros: NDArray[Any] | None = None) -> NDArray[Any]:
        values: NDArray[Any] = steps.astype(dtype)
        if zeros is not None:
            values -= zeros[:, group_of]
        values *= scales[:, group_of]
        return values

    return held(rows_from(parts, steps.shape[1], dtype, formula))


def _exact_dtype(scales: NDArray[np.float64], significant: int) -> np.dtype[Any]:
    """The narrowest dtype that holds every product: 24 bits of a scale and 9 others always fit float64."""
    top, low = extent(scales)
    fits = (top - low + significant <= _FLOAT32_BITS) & (top + _RANGE <= 127) & (low - _RANGE >= -149)
    return np.dtype(np.float32 if fits.all() else np.float64)
