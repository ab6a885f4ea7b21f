"""Heads in single PyTorch files: by the table of families, by usual names or, failing both, the last layer.

A state_dict lists the layers in the order in which the model's author made them, and the output layer of a
small classifier is mostly made last. Large models, recognised by their configuration or by the names of their
layers, are never guessed at: what comes last in their bodies pools or projects.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from argmaxable.core.errors import LoadError
from argmaxable.models.checkpoint.families import Obstacle
from argmaxable.models.checkpoint.locate import HeadTensors
from argmaxable.models.flair import reader as flair
from argmaxable.models.huggingface.reader import find_in, is_part
from argmaxable.models.pytorch.tensors import tensors_of
from argmaxable.models.source import FLOATS, TensorSource

if TYPE_CHECKING:
    from argmaxable.models.finding import Finding, TensorInfo
    from argmaxable.models.registry import ReadOptions

# Files of Llama as Meta publishes it, and of Megatron: each has a part of the rows or columns of a tensor.
_SLICE = re.compile(r"(consolidated\.|mp_rank_)(\d+)(.*\.pth?)")
# How lists of equal blocks are called, of which a small model may have just one.
_BLOCKS = frozenset({"layer", "layers", "block", "blocks", "h", "stages"})


def find(path: Path, options: ReadOptions) -> Finding:
    """The head in a PyTorch file; a config.json beside it is heeded. Raises LoadError."""
    _require_whole_tensors(path)
    if flair.is_flair(path):
        return flair.find(path, options)
    return find_in(
        tensors_of(path),
        path.parent,
        options,
        format_name="pytorch",
        is_part=is_part(path),
        guess=_last_layer,
    )


def _require_whole_tensors(path: Path) -> None:
    """Refuse a file that holds slices of tensors, of which others lie beside it."""
    name = _SLICE.fullmatch(path.name)
    if name is None:
        return
    others = filter(None, (_SLICE.fullmatch(each.name) for each in path.parent.iterdir()))
    alike = [other[0] for other in others if other.group(1, 3) == name.group(1, 3)]
    if len(alike) > 1:
        raise LoadError(
            f"holds a slice of every tensor, as the {len(alike) - 1} files like it beside do: none has the "
            "whole head. Convert the model to Hugging Face's format and pass that."
        )


def _last_layer(source: TensorSource) -> HeadTensors | None:
    """The last layer with weights, if it is a linear one with a bias that stands alone.

    One without a bias may be anything, a convolution behind it means that it is not the output, one of as
    many outputs as inputs mostly goes on to another, and the last of many equal blocks is no more the output
    layer than the others: then the user has to choose.
    """
    layers = [info for info in source.tensors.values() if len(info.shape) > 1 and info.dtype in FLOATS]
    if not layers:
        return None
    weight = layers[-1]
    bias = source.tensors.get(f"{weight.name.removesuffix('weight')}bias")
    if bias is None or not _is_alone(weight, source):
        return None
    if len(weight.shape) != 2 or bias.shape != weight.shape[:1] or weight.shape[0] == weight.shape[1]:
        return None
    unknown = Obstacle("the head was found by its place in the file, and what feeds it is not known")
    return HeadTensors(weight.name, bias.name, unknown, "the last layer in the file, linear and with a bias")


def _is_alone(weight: TensorInfo, source: TensorSource) -> bool:
    """Whether a layer is in none of several equal blocks, as layers.11.fc2.weight is and 4.weight is not."""
    *blocks, _, _ = ["", *weight.name.split(".")]
    in_block = any(name in _BLOCKS and number.isdigit() for name, number in pairwise(blocks))
    alike = sum(_without_numbers(other) == _without_numbers(weight.name) for other in source.tensors)
    return not in_block and alike == 1


def _without_numbers(name: str) -> list[str]:
    *blocks, layer, kind = ["", *name.split(".")]
    return ["#" if part.isdigit() else part for part in blocks] + [layer, kind]
