"""What feeds the output layer of a GGUF file: the last norm with its gain and shift, as llama.cpp runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from argmaxable.core.balls import LayerNorm, RMSNorm
from argmaxable.core.boxes import Box
from argmaxable.models.activations import RANGES
from argmaxable.models.finding import HeadInputs
from argmaxable.models.gguf.architectures import EITHER_NORM, LAYER_NORM, NORM_NAMES, RMS_NORM, WITHOUT_GAIN
from argmaxable.models.gguf.head import CLASSIFIER
from argmaxable.models.gguf.tensors import finite_vector
from argmaxable.models.norm_solid import norm_solid

if TYPE_CHECKING:
    from argmaxable.models.gguf.header import GGUFHeader

# What a classifier does before its output layer, where it has these: a Linear and a norm.
_DENSE, _DENSE_NORM = "cls.weight", "cls.norm"


def inputs_of(header: GGUFHeader, name: str, features: int) -> HeadInputs:
    """What feeds the head, and the domain that follows if the architecture tells what it does last."""
    if name == CLASSIFIER and _DENSE in header.tensors:
        return _inputs_of_classifier(header, features)
    if _only_predicts_ahead(header):
        return HeadInputs("unknown: the file holds only the block that predicts tokens further ahead")
    architecture = header.architecture
    norm = _norm_of(header)
    if norm is None:
        return HeadInputs(f"unknown for the architecture {architecture!r}")
    if architecture in WITHOUT_GAIN:
        return HeadInputs(
            f"{norm.name} without gain ({architecture})", norm_solid(norm, np.ones(features), 0.0, features)
        )
    return _inputs_of_norm(header, norm, NORM_NAMES.get(architecture, "output_norm"), features)


def _norm_of(header: GGUFHeader) -> type[RMSNorm | LayerNorm] | None:
    architecture = header.architecture
    if architecture in EITHER_NORM:
        epsilon = header.metadata.get(f"{architecture}.attention.layer_norm_rms_epsilon")
        return RMSNorm if epsilon else LayerNorm
    if architecture in RMS_NORM:
        return RMSNorm
    return LayerNorm if architecture in LAYER_NORM else None


def _only_predicts_ahead(header: GGUFHeader) -> bool:
    """Whether this is a model's draft block alone, which has a norm of its own; the test is llama.cpp's."""
    return "blk.0.attn_norm.weight" not in header.tensors and any(
        ".nextn." in name for name in header.tensors
    )


def _inputs_of_norm(
    header: GGUFHeader, norm: type[RMSNorm | LayerNorm], name: str, features: int
) -> HeadInputs:
    gain, shift = (header.tensors.get(f"{name}.{part}") for part in ("weight", "bias"))
    if gain is None:
        return HeadInputs(f"unknown: the file has no {name}.weight")
    stored = [gain] if shift is None else [gain, shift]
    described = f"{norm.name} with {' and '.join(tensor.name for tensor in stored)}"
    vectors = [finite_vector(tensor, features) for tensor in stored]
    usable = [vector for vector in vectors if vector is not None]
    if len(usable) < len(stored):
        return HeadInputs(f"{described}, which should have {features} finite numbers and have not")
    solid = norm_solid(norm, usable[0], usable[1] if len(usable) > 1 else 0.0, features)
    return HeadInputs(f"{described} ({header.architecture})", solid)


def _inputs_of_classifier(header: GGUFHeader, features: int) -> HeadInputs:
    if f"{_DENSE_NORM}.weight" in header.tensors:
        return _inputs_of_norm(header, LayerNorm, _DENSE_NORM, features)
    activation = "gelu" if header.architecture == "modern-bert" else "tanh"
    return HeadInputs(f"{activation} after {_DENSE}", Box(*RANGES[activation]))
