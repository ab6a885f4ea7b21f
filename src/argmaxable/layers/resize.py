"""Output layers with more or fewer classes, as `resize_token_embeddings` asks for them.

New rows start near the mean of the old ones, and their biases at the mean: as likely as the average class.
They differ a little from each other, for equal rows tie.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

# Of the new rows, in units of the old entries' standard deviation.
_SPREAD = 0.01


@torch.no_grad()
def resize_head(head: nn.Module, classes: int) -> None:
    """Change the number of classes in place. A tie to an embedding ends; whoever resizes that ties again."""
    for part in ("weight", "bias"):
        holder, name = _holder(head, part)
        old = getattr(holder, name)
        if isinstance(old, nn.Parameter):
            setattr(holder, name, nn.Parameter(_rows(old, classes), requires_grad=old.requires_grad))
        elif old is not None:
            setattr(holder, name, _rows(old, classes))
    if isinstance(head, nn.Linear):
        head.out_features = classes


@torch.no_grad()
def resize_bias_beside(model: nn.Module, head: nn.Module) -> None:
    """BERT and its kind hold their layer's bias a second time, in the module around it: resize that too."""
    classes = len(head.weight)  # type: ignore[arg-type]  # every head has a matrix of weights
    for module in model.modules():
        bias = module._parameters.get("bias")
        if head in module._modules.values() and bias is not None and bias.ndim == 1:
            module.bias = nn.Parameter(_rows(bias, classes), requires_grad=bias.requires_grad)


def _holder(head: nn.Module, part: str) -> tuple[Any, str]:
    """Where a weight or bias is stored: for rows of a special kind, behind their parametrization."""
    if parametrize.is_parametrized(head, part):
        return head.parametrizations[part], "original"  # type: ignore[index]  # a ModuleDict, which PyTorch does not declare
    return head, part


def _rows(old: Tensor, classes: int) -> Tensor:
    """The first rows, and then new ones."""
    if classes <= len(old):
        return old[:classes].clone()
    exact = old.double()
    added = exact.mean(0).repeat(classes - len(old), *[1] * (old.ndim - 1))
    if old.ndim == 2:
        added += _SPREAD * exact.std() * torch.randn_like(added)
    return torch.cat([old, added.to(old.dtype)])
