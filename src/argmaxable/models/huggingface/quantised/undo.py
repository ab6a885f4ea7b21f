"""A checkpoint whose head is quantised, as one whose head is a matrix of floats."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from argmaxable.models.checkpoint.locate import HeadTensors
from argmaxable.models.huggingface.quantised import fp8, mlx, nf4
from argmaxable.models.huggingface.quantised.layer import tensors_of_layer
from argmaxable.models.source import TensorSource


def undone(
    source: TensorSource, choice: HeadTensors, config: Mapping[str, Any]
) -> tuple[TensorSource, HeadTensors]:
    """The tensors and the head with its weight dequantised; both unchanged where it is not quantised.

    Where programs also round the head's inputs, or MLX may have changed the norm before it, the domain
    becomes unknown. Raises LoadError, or AmbiguousError when the numbers can be read in two ways.
    """
    if mlx.is_quantised(source, choice.weight):
        return mlx.dequantised(source, choice, config)
    if fp8.is_quantised(source, choice.weight):
        return fp8.dequantised(source, choice, config)
    if nf4.is_quantised(source, choice.weight):
        return nf4.dequantised(source, choice.weight), choice
    if source.saved_by == "mlx":
        return source, replace(choice, feed=mlx.feed_of(choice, config))
    return source, choice


def tensors_beside(weight: str, names: Collection[str]) -> list[str]:
    """What a layer stores beside its weight, without which a quantised one can't be read."""
    inside = [name for name in nf4.parts_of(weight) if name in names]
    return [*inside, *(name for name in tensors_of_layer(weight, names) if name != weight)]
