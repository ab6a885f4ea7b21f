"""Checks the arguments of `SoftmaxHead.loss` before anything is computed."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from argmaxable.core.errors import InputError
from argmaxable.layers.aims import Aims
from argmaxable.layers.vocabulary import VocabularyShard

_REDUCTIONS = ("mean", "sum", "none")
_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def is_class(targets: Tensor) -> bool:
    """Whether targets are classes, not probabilities."""
    return targets.dtype in _INTEGERS


def require_loss_arguments(
    classes: int,
    mixtures: int,
    shape: torch.Size,
    targets: Tensor,
    class_weights: Tensor | None,
    label_smoothing: float,
    z_loss: float,
    reduction: str,
) -> None:
    """Raises InputError; `shape` is that of the tokens."""
    if reduction not in _REDUCTIONS:
        raise InputError(f"unknown reduction '{reduction}': choose one of {', '.join(_REDUCTIONS)}.")
    if not 0 <= label_smoothing <= 1:
        raise InputError(f"label smoothing must be between 0 and 1, found {label_smoothing}.")
    if not (math.isfinite(z_loss) and z_loss >= 0):
        raise InputError(f"z_loss must be a finite number of at least 0, found {z_loss}.")
    if z_loss and mixtures > 1:
        raise InputError(
            f"z_loss needs a head with one component; this one has {mixtures}, each with its own normaliser."
        )
    _require_targets(classes, shape, targets)
    _require_weights(classes, class_weights)


def require_shard(shard: VocabularyShard, rows: int, aims: Aims) -> None:
    """Raises InputError where a shared vocabulary can't serve these targets, or is not that of the head."""
    if shard.rows != rows:
        raise InputError(f"the shard has {shard.rows} rows, the head {rows}.")
    if not aims.is_one_class:
        raise InputError("with a shared vocabulary, targets must be classes, without label smoothing.")


def kept_tokens(targets: Tensor, ignore_index: int, classes: int) -> Tensor | None:
    """Which tokens count (None: all). Raises InputError on a target that is not a class."""
    counts = targets != ignore_index
    tokens = None if bool(counts.all()) else counts.nonzero()[:, 0]
    kept = targets if tokens is None else targets[tokens]
    if len(kept) and (int(kept.min()) < 0 or int(kept.max()) >= classes):
        stray = int(kept.min()) if int(kept.min()) < 0 else int(kept.max())
        raise InputError(
            f"target {stray} is not a class: the head has classes 0 to {classes - 1}, and "
            f"{ignore_index} marks tokens to ignore (ignore_index)."
        )
    return tokens


def _require_targets(classes: int, shape: torch.Size, targets: Tensor) -> None:
    if is_class(targets) and targets.shape == shape:
        return
    if not targets.is_floating_point() or targets.shape != (*shape, classes):
        raise InputError(
            f"targets must be integers of shape {tuple(shape)}, one for each feature vector, or "
            f"probabilities of shape {(*shape, classes)}; found {targets.dtype} of shape "
            f"{tuple(targets.shape)}."
        )
    if targets.requires_grad:
        raise InputError("the loss has no gradient by its targets: pass targets.detach().")


def _require_weights(classes: int, weights: Tensor | None) -> None:
    if weights is None:
        return
    if not weights.is_floating_point() or weights.shape != (classes,):
        raise InputError(
            f"class_weights must be {classes} floats, one for each class; found {weights.dtype} of "
            f"shape {tuple(weights.shape)}."
        )
    if weights.requires_grad:
        raise InputError("the loss has no gradient by class_weights: pass class_weights.detach().")
