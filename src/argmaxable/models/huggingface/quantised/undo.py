"""A checkpoint whose head is quantised, as one whose head is a matrix of floats."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from argmaxable.models.checkpoint.locate import HeadTensors
from argmaxable.models.huggingface.quantised import eight_bits, four_bits, mlx, packed, scaled
from argmaxable.models.huggingface.quantised.layer import tensors_of_layer
from argmaxable.models.source import TensorSource


def undone(
    source: TensorSource, choice: HeadTensors, config: Mapping[str, Any]
) -> tuple[TensorSource, HeadTensors]:
    """The tensors and the head with its weight dequantised; both unchanged where it is not quantised.

    Where programs also round the head's inputs, or MLX may have changed the norm before it, the domain
    becomes unknown. Raises LoadError, or AmbiguousError when the numbers can be read in two ways.
    """
    packed.require_single(source, choice.weight)
    if mlx.is_quantised(source, choice.weight):
        return mlx.dequantised(source, choice, config)
    if scaled.is_quantised(source, choice.weight):
        return scaled.dequantised(source, choice, config)
    if four_bits.is_quantised(source, choice.weight):
        return four_bits.dequantised(source, choice.weight), choice
    if eight_bits.is_quantised(source, choice.weight):
        return eight_bits.dequantised(source, choice)
    if packed.is_quantised(source, choice.weight):
        return packed.dequantised(source, choice, config)
    if source.saved_by == "mlx":
        return source, replace(choice, feed=mlx.feed_of(choice, config))
    return source, choice


def tensors_beside(weight: str, names: Collection[str]) -> list[str]:
    """What a layer stores beside its weight, without which a quantised one can't be read."""
    inside = [name for name in four_bits.parts_of(weight) if name in names]
    return [*inside, *(name for name in tensors_of_layer(weight, names) if name != weight)]
