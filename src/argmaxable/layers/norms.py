"""The norm in front of an output layer: x = γ∘z + β with ‖z‖ at most √features, whoever wrote it.

Models bring RMS norms of their own. Some store the gain γ, some γ − 1 (Gemma). So a norm that is not of
PyTorch is asked: its answer to a vector of ±1, scaled up until no epsilon matters, is its gain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from argmaxable.core.balls import LayerNorm, RMSNorm
from argmaxable.core.domain import Domain
from argmaxable.core.errors import InputError

_LARGE = 1e4


@dataclass(frozen=True)
class Norm:
    """A norm module and how its gain is stored. No nn.Module: its parameters belong to the model."""

    module: Any
    removes_mean: bool = False
    stores_gain_minus_one: bool = False

    def gain(self) -> Tensor | None:
        """γ as it is now; None for ones."""
        weight: Tensor | None = self.module.weight
        return weight + 1 if self.stores_gain_minus_one and weight is not None else weight

    def shift(self) -> Tensor | None:
        """β as it is now."""
        return self.module.bias if self.removes_mean else None

    def domain(self) -> Domain:
        """What the norm can put out."""
        gain, shift = self.gain(), self.shift()
        factors = 1.0 if gain is None else as_array(gain)
        if not self.removes_mean:
            return RMSNorm(factors)
        return LayerNorm(factors, 0.0 if shift is None else as_array(shift))


def norm_of(module: nn.Module | Norm, features: int) -> Norm:
    """Raises InputError when the module is not a LayerNorm or RMS norm over these features."""
    if isinstance(module, Norm):
        return module
    if isinstance(module, nn.LayerNorm | nn.RMSNorm):
        shape = tuple(module.normalized_shape)
        if shape != (features,):
            raise InputError(f"the norm is over shape {shape}, the layer has {features} features.")
        return Norm(module, removes_mean=isinstance(module, nn.LayerNorm))
    weight = getattr(module, "weight", None)
    if isinstance(weight, Tensor) and weight.shape == (features,) and getattr(module, "bias", None) is None:
        for norm in (Norm(module), Norm(module, stores_gain_minus_one=True)):
            if _answers_as(norm):
                return norm
    raise InputError(
        f"`behind` is the norm in front of the layer, an nn.LayerNorm or an RMS norm of {features} features; "
        f"found {type(module).__name__}."
    )


@torch.no_grad()
def _answers_as(norm: Norm) -> bool:
    gain = norm.gain()
    assert gain is not None
    signs = torch.ones_like(gain)
    signs[::2] = -1
    signs[::3] = 1  # so that the mean is not 0, and a norm that removes it is told apart
    answer = norm.module(signs * _LARGE)
    return isinstance(answer, Tensor) and torch.allclose(answer.double(), (signs * gain).double(), rtol=1e-2)


def as_array(tensor: Tensor) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Its values in double precision."""
    return tensor.detach().double().cpu().numpy()
