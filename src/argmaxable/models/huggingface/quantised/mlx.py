"""Weights as MLX quantises them ("affine"): whole numbers q of a few bits, packed into 32-bit words, and for
each group of columns a scale and a bias. A weight is scale · q + bias.

The sum is computed exactly, in float32 where that holds it and otherwise in float64. MLX's kernels multiply
by the same numbers and round as they go, each in its own way; none of them is taken for the truth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import LoadError
from argmaxable.core.stored_rows import StoredRows
from argmaxable.models.ambiguity import ambiguous
from argmaxable.models.checkpoint.families import Activation, Obstacle
from argmaxable.models.checkpoint.locate import Architecture, HeadTensors, NormTensors
from argmaxable.models.finding import TensorInfo
from argmaxable.models.huggingface.quantised.layer import (
    ADVICE,
    extent,
    layer_of,
    require_only,
    require_scales,
    unpacked,
)
from argmaxable.models.quantised_rows import held, rows_from
from argmaxable.models.source import TensorSource

_BITS = (2, 3, 4, 5, 6, 8)
_GROUP_SIZES = (32, 64, 128)
# Rows of scales examined at a time.
_BLOCK_ROWS = 4096
# Families whose norms add 1 to the stored gain in MLX as well. For others it adds the 1 when it converts a
# model (Qwen3-Next), and the file does not tell.
_ADD_ONE = frozenset({"gemma", "gemma2", "gemma3_text", "nemotron"})


@dataclass(frozen=True)
class _Packing:
    bits: int
    group_size: int

    def __str__(self) -> str:
        return f"MLX {self.bits}-bit, groups of {self.group_size}"


def is_quantised(source: TensorSource, weight: str) -> bool:
    """Whether a tensor is a matrix of packed words with scales beside it."""
    info = source.tensors.get(weight)
    is_packed = info is not None and info.dtype == "uint32" and len(info.shape) == 2
    return is_packed and f"{layer_of(weight)}.scales" in source.names


def dequantised(
    source: TensorSource, choice: HeadTensors, config: Mapping[str, Any]
) -> tuple[TensorSource, HeadTensors]:
    """The head with its weight unpacked. Raises LoadError, and AmbiguousError."""
    layer = layer_of(choice.weight)
    words, scales, biases = choice.weight, f"{layer}.scales", f"{layer}.biases"
    packing = _packing(config, layer)
    if biases not in source.names:
        raise LoadError(f"the layer {layer} has {scales}, but no {biases}. Fetch the model again.")
    require_only(source, words, (words, scales, biases, f"{layer}.bias"))
    info = _matrix(source.info(words), source.info(scales), source.info(biases), packing)

    def read() -> NDArray[Any] | StoredRows:
        parts = [source.read_array(name) for name in (words, scales, biases)]
        dtype = _exact_dtype(parts[1], parts[2], packing.bits)

        def formula(words: NDArray[Any], scales: NDArray[Any], biases: NDArray[Any]) -> NDArray[Any]:
            steps = unpacked(words, packing.bits).astype(dtype)
            grouped = steps.reshape(*scales.shape, packing.group_size)
            grouped *= scales.astype(dtype)[:, :, None]
            grouped += biases.astype(dtype)[:, :, None]
            return grouped.reshape(len(words), -1)

        return held(rows_from(parts, info.shape[1], dtype, formula))

    return source.with_dequantised(info, read, _parts(source)), replace(choice, feed=feed_of(choice, config))


def _parts(source: TensorSource) -> set[str]:
    """Scales and biases of all layers: matrices of floats, none of which is a layer's weight."""
    ends = (".scales", ".biases")
    return {
        name
        for name in source.tensors
        if name.endswith(ends) and is_quantised(source, f"{layer_of(name)}.weight")
    }


def _packing(config: Mapping[str, Any], layer: str) -> _Packing:
    settings = config.get("quantization")
    if not isinstance(settings, dict):
        raise LoadError(
            f"the layer {layer} is quantised as MLX does it. config.json should say how many bits and columns"
            " go together ('quantization'), but does not, or is missing. Put the model's own beside it."
        )
    packing = _stated(settings, layer)
    again = config.get("quantization_config")
    if isinstance(again, dict) and "bits" in again and _stated(again, layer) != packing:
        raise ambiguous("config.json has a 'quantization' and a 'quantization_config' that differ")
    return packing


def _stated(settings: Mapping[str, Any], layer: str) -> _Packing:
    """What the settings say about a layer: one that is named has its own, the others share them."""
    own = settings.get(layer, True)
    if layer not in settings:
        _require_no_like_name(settings, layer)
    if own is True:
        own = settings
    mode = own.get("mode", "affine") if isinstance(own, dict) else "affine"
    if mode != "affine":
        raise LoadError(
            f"the layer {layer} is quantised in MLX's mode {str(mode)[:80]!r}, which is not "
            f"supported (only affine is). {ADVICE}"
        )
    match own:
        case {"bits": int(bits), "group_size": int(size)} if bits in _BITS and size in _GROUP_SIZES:
            return _Packing(bits, size)
    raise LoadError(
        f"config.json says for the layer {layer}, which is quantised: {str(own)[:200]}. Expected bits "
        f"({', '.join(map(str, _BITS))}) and group_size ({', '.join(map(str, _GROUP_SIZES))})."
    )


def _require_no_like_name(settings: Mapping[str, Any], layer: str) -> None:
    """Refuse settings for a layer of the same name inside or outside of another."""
    like = [key for key in settings if key.endswith(f".{layer}") or layer.endswith(f".{key}")]
    if like:
        raise ambiguous(
            f"the layer {layer} is quantised, and config.json has settings for {like[0][:80]!r}, "
            "which may be the same layer"
        )


def _matrix(words: TensorInfo, scales: TensorInfo, biases: TensorInfo, packing: _Packing) -> TensorInfo:
    """The matrix that the tensors stand for; raises LoadError where they don't fit."""
    rows, packed = words.shape
    require_scales(scales)
    fits = len(scales.shape) == 2 and (biases.shape, biases.dtype) == (scales.shape, scales.dtype)
    columns = scales.shape[1] * packing.group_size if fits else 0
    if not fits or scales.shape[0] != rows or 32 * packed != columns * packing.bits or not rows * columns:
        raise LoadError(
            f"tensors {words}, {scales} and {biases} don't fit together as {packing}, which config.json "
            "says. Is it the model's own?"
        )
    return TensorInfo(words.name, (rows, columns), str(packing))


def _exact_dtype(scales: NDArray[Any], biases: NDArray[Any], bits: int) -> np.dtype[Any]:
    """The narrowest dtype that holds every scale · q + bias; raises LoadError where none does.

    With scale and bias multiples of 2^low, scale · q and the sum are, too, and they are below 2^top where
    |scale| < 2^(top - 1 - bits) and |bias| < 2^(top - 1). A float of top - low bits holds both.
    """
    span, highest = 0, 0
    for start in range(0, len(scales), _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        scale_top, scale_low = extent(scales[block].astype(np.float64))
        bias_top, bias_low = extent(biases[block].astype(np.float64))
        top = np.maximum(scale_top + bits, bias_top) + 1
        span = max(span, int((top - np.minimum(scale_low, bias_low)).max()))
        highest = max(highest, int(top.max()))
    if span <= 24 and highest <= 127:
        return np.dtype(np.float32)
    if span <= 53:
        return np.dtype(np.float64)
    raise LoadError(
        f"has quantised weights that take {span} bits: float64 would round them. Scales and biases so far "
        f"apart look damaged. {ADVICE}"
    )


def feed_of(choice: HeadTensors, config: Mapping[str, Any]) -> NormTensors | Activation | Obstacle:
    """What feeds a head that MLX saved; unknown where it may have changed the gain of the norm."""
    types = Architecture.from_config(config).model_types
    if isinstance(choice.feed, NormTensors) and choice.feed.offset and not _ADD_ONE.intersection(types):
        return Obstacle("a norm to whose gain MLX may have added 1 already, which the file does not tell")
    return choice.feed
