"""Weights of a few bits that are packed into 32-bit words under names of their own, with scales and zero
points for groups of columns: GPTQ's, AWQ's (`qweight`) and compressed-tensors' (`weight_packed`).

A weight is (q − zero point) · scale. Programs mostly compute that in float16; here it is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from argmaxable.core.errors import LoadError
from argmaxable.models.ambiguity import ambiguous
from argmaxable.models.checkpoint.locate import HeadTensors
from argmaxable.models.huggingface.quantised import awq, compressed, gptq
from argmaxable.models.huggingface.quantised.layer import layer_of
from argmaxable.models.source import TensorSource

_T = TypeVar("_T")
_WORDS, _PACKED = ".qweight", ".weight_packed"
_WEIGHT = ".weight"


def weights_named(tensors: Mapping[str, _T]) -> dict[str, _T]:
    """The same with packed weights under the name `weight`, by which a head is found, where it is free."""
    named = {}
    for name, value in tensors.items():
        layer = next((name.removesuffix(end) for end in (_WORDS, _PACKED) if name.endswith(end)), None)
        free = layer is not None and f"{layer}{_WEIGHT}" not in tensors
        both = layer is not None and f"{layer}{_WORDS}" in tensors and f"{layer}{_PACKED}" in tensors
        named[f"{layer}{_WEIGHT}" if free and not both else name] = value
    return named


def with_weights_named(source: TensorSource) -> TensorSource:
    """A source in which packed weights go by the name `weight`."""
    stored = weights_named({name: name for name in source.tensors})
    is_words = {own: info.dtype == "int32" for own, info in source.tensors.items()}
    stored = {name if is_words[own] else own: own for name, own in stored.items()}
    if all(name == own for name, own in stored.items()):
        return source
    infos = {name: replace(source.tensors[own], name=name) for name, own in stored.items()}
    return replace(
        source,
        tensors=infos,
        absent=weights_named(source.absent),
        read_array=lambda name: source.read_array(stored[name]),
    )


def is_quantised(source: TensorSource, weight: str) -> bool:
    """Whether a tensor is a matrix of words into which weights are packed."""
    info, layer = source.tensors.get(weight), layer_of(weight)
    is_packed = info is not None and info.dtype == "int32" and len(info.shape) == 2
    return is_packed and any(f"{layer}.{part}" in source.names for part in ("scales", "weight_scale"))


def require_single(source: TensorSource, weight: str) -> None:
    """Raise AmbiguousError where a layer has its weight twice, packed and not."""
    layer = layer_of(weight)
    twin = next((f"{layer}{end}" for end in (_WORDS, _PACKED) if f"{layer}{end}" in source.names), None)
    if twin is not None:
        raise ambiguous(f"the layer {layer} has {weight} and {twin}, each of which may be its weight")


def dequantised(
    source: TensorSource, choice: HeadTensors, config: Mapping[str, Any]
) -> tuple[TensorSource, HeadTensors]:
    """The head with its weight unpacked. Raises LoadError, and AmbiguousError."""
    layer = layer_of(choice.weight)
    if f"{layer}.weight_scale" in source.names:
        return compressed.dequantised(source, choice, config)
    settings: Any = config.get("quantization_config")
    match settings:
        case {"quant_method": "gptq"}:
            return gptq.dequantised(source, choice.weight, settings), choice
        case {"quant_method": "awq"}:
            return awq.dequantised(source, choice.weight, settings), choice
    raise LoadError(
        f"the layer {layer} is packed as GPTQ and AWQ do it. config.json should say which of them, and with "
        "how many bits (quantization_config), but does not, or is missing. Put the model's own beside it."
    )
