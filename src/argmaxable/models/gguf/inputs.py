"""What feeds the output layer of a GGUF file: the last norm with its gain and shift, as llama.cpp runs it."""

from __future__ import annotations

import numpy as np

from argmaxable.core.balls import LayerNorm, RMSNorm
from argmaxable.core.boxes import Box
from argmaxable.models.activations import RANGES
from argmaxable.models.finding import Inputs
from argmaxable.models.gguf.architectures import EITHER_NORM, LAYER_NORM, NORM_NAMES, RMS_NORM, WITHOUT_GAIN
from argmaxable.models.gguf.head import CLASSIFIER
from argmaxable.models.gguf.header import Contents
from argmaxable.models.gguf.tensors import finite_vector

# What a classifier does before its output layer, where it has these: a Linear and a norm.
_DENSE, _DENSE_NORM = "cls.weight", "cls.norm"


def inputs_of(contents: Contents, name: str, features: int) -> Inputs:
    """What feeds the head, and the domain that follows if the architecture tells what it does last."""
    if name == CLASSIFIER and _DENSE in contents.tensors:
        return _inputs_of_classifier(contents, features)
    if _only_predicts_ahead(contents):
        return Inputs("unknown: the file holds only the block that predicts tokens further ahead")
    architecture = contents.architecture
    norm = _norm_of(contents)
    if norm is None:
        return Inputs(f"unknown for the architecture {architecture!r}")
    if architecture in WITHOUT_GAIN:
        return Inputs(f"{norm.kind} without gain ({architecture})", norm(np.ones(features)))
    return _inputs_of_norm(contents, norm, NORM_NAMES.get(architecture, "output_norm"), features)


def _norm_of(contents: Contents) -> type[RMSNorm | LayerNorm] | None:
    architecture = contents.architecture
    if architecture in EITHER_NORM:
        epsilon = contents.metadata.get(f"{architecture}.attention.layer_norm_rms_epsilon")
        return RMSNorm if epsilon else LayerNorm
    if architecture in RMS_NORM:
        return RMSNorm
    return LayerNorm if architecture in LAYER_NORM else None


def _only_predicts_ahead(contents: Contents) -> bool:
    """Whether this is a model's draft block alone, which has a norm of its own; the test is llama.cpp's."""
    return "blk.0.attn_norm.weight" not in contents.tensors and any(
        ".nextn." in name for name in contents.tensors
    )


def _inputs_of_norm(contents: Contents, norm: type[RMSNorm | LayerNorm], name: str, features: int) -> Inputs:
    gain, shift = (contents.tensors.get(f"{name}.{part}") for part in ("weight", "bias"))
    if gain is None:
        return Inputs(f"unknown: the file has no {name}.weight")
    stored = [gain] if shift is None else [gain, shift]
    described = f"{norm.kind} with {' and '.join(tensor.name for tensor in stored)}"
    vectors = [finite_vector(tensor, features) for tensor in stored]
    usable = [vector for vector in vectors if vector is not None]
    if len(usable) < len(stored):
        return Inputs(f"{described}, which should have {features} finite numbers and have not")
    return Inputs(f"{described} ({contents.architecture})", norm(*usable))


def _inputs_of_classifier(contents: Contents, features: int) -> Inputs:
    if f"{_DENSE_NORM}.weight" in contents.tensors:
        return _inputs_of_norm(contents, LayerNorm, _DENSE_NORM, features)
    activation = "gelu" if contents.architecture == "modern-bert" else "tanh"
    return Inputs(f"{activation} after {_DENSE}", Box(*RANGES[activation]))
