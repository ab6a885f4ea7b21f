"""The gate of `SoftmaxHead.loss`: what it can't compute is named before anything is computed."""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor

from argmaxable.core.errors import InputError

_REDUCTIONS = ("mean", "sum", "none")
_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


class Sizes(Protocol):
    """What is asked of a head."""

    mixtures: int

    @property
    def classes(self) -> int: ...


def is_class(targets: Tensor) -> bool:
    """Whether targets are classes, not probabilities."""
    return targets.dtype in _INTEGERS


def require_loss_arguments(
    head: Sizes,
    shape: torch.Size,
    targets: Tensor,
    class_weights: Tensor | None,
    label_smoothing: float,
    z_loss: float,
    reduction: str,
) -> None:
    """Raises InputError; `shape` is that of the tokens."""
    if reduction not in _REDUCTIONS:
        raise InputError(f"no reduction '{reduction}': choose one of {', '.join(_REDUCTIONS)}.")
    if not 0 <= label_smoothing <= 1:
        raise InputError(f"label smoothing lies between 0 and 1, found {label_smoothing}.")
    if not (math.isfinite(z_loss) and z_loss >= 0):
        raise InputError(f"z_loss is a finite number of at least 0, found {z_loss}.")
    if z_loss and head.mixtures > 1:
        raise InputError(
            f"z_loss needs a head with one component: the {head.mixtures} of this one have {head.mixtures} "
            "normalisers."
        )
    _require_targets(head, shape, targets)
    _require_weights(head, class_weights)


def _require_targets(head: Sizes, shape: torch.Size, targets: Tensor) -> None:
    if is_class(targets) and targets.shape == shape:
        return
    if not targets.is_floating_point() or targets.shape != (*shape, head.classes):
        raise InputError(
            f"targets must be integers of shape {tuple(shape)}, one for each feature vector, or "
            f"probabilities of shape {(*shape, head.classes)}; found {targets.dtype} of shape "
            f"{tuple(targets.shape)}."
        )
    if targets.requires_grad:
        raise InputError("the loss has no gradient by its targets: pass targets.detach().")


def _require_weights(head: Sizes, weights: Tensor | None) -> None:
    if weights is None:
        return
    if not weights.is_floating_point() or weights.shape != (head.classes,):
        raise InputError(
            f"class_weights must be {head.classes} floats, one for each class; found {weights.dtype} of "
            f"shape {tuple(weights.shape)}."
        )
    if weights.requires_grad:
        raise InputError("the loss has no gradient by class_weights: pass class_weights.detach().")
