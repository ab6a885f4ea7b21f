"""Heads in single PyTorch files: by the table of families, by usual names or, failing both, the last layer.

A state_dict lists the layers in the order in which the model's author made them, and the output layer is
mostly made last.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from argmaxable.load.checkpoint import choice_in, finding_of
from argmaxable.load.families import Obstacle
from argmaxable.load.finding import Finding
from argmaxable.load.huggingface import read_config
from argmaxable.load.locate import Architecture, Choice, choose
from argmaxable.load.pytorch import tensors_of
from argmaxable.load.registry import ReadOptions
from argmaxable.load.source import FLOATS, TensorSource
from argmaxable.load.vocabulary import labels_beside


def find(path: Path, options: ReadOptions) -> Finding:
    """The head in a PyTorch file; a config.json beside it is heeded. Raises LoadError."""
    architecture = Architecture.from_config(read_config(path.parent))
    source = tensors_of(path)
    choice = None
    if options.tensor is None and choose(source.names, architecture) is None:
        choice = _last_layer(source)
    finding = finding_of(
        source, choice or choice_in(source, architecture, options), options, format_name="pytorch"
    )
    return replace(finding, labels=labels_beside(path.parent, finding.classes))


def _last_layer(source: TensorSource) -> Choice | None:
    """The last layer with weights, if it is a linear one with a bias that stands alone.

    One without a bias may be anything, a convolution behind it means that it is no output, and the last of
    many equal blocks is no more the output layer than the others: then the user has to choose.
    """
    layers = [info for info in source.tensors.values() if len(info.shape) > 1 and info.dtype in FLOATS]
    if not layers:
        return None
    weight = layers[-1]
    bias = source.tensors.get(f"{weight.name.removesuffix('weight')}bias")
    if (
        len(weight.shape) != 2
        or bias is None
        or bias.shape != weight.shape[:1]
        or _is_repeated(weight.name, source)
    ):
        return None
    unknown = Obstacle("the head was found by its place in the file, and what feeds it is not known")
    return Choice(weight.name, bias.name, unknown, "the last layer in the file, linear and with a bias")


def _is_repeated(name: str, source: TensorSource) -> bool:
    """Whether a layer is in one of several equal blocks, as layers.11.fc2.weight is and 4.weight is not."""
    return sum(_without_numbers(other) == _without_numbers(name) for other in source.tensors) > 1


def _without_numbers(name: str) -> list[str]:
    *blocks, layer, kind = ["", *name.split(".")]
    return ["#" if part.isdigit() else part for part in blocks] + [layer, kind]
