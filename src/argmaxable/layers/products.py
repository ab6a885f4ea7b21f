"""Matrix products of the loss: in float32 (or float64), or of bfloat16 factors summed in float32.

The latter where bfloat16 is what the caller asked for, by autocast or by its parameters, and the device has
units for it. On processors it would be slower (5 to 40 times, measured on one without such units) and no more
exact: there, factors are widened to float32, which makes the same products of bfloat16 parameters. float16
stays with float32 products too: gradients of single logits are below its reach until the loss is scaled.
"""

from __future__ import annotations

import torch
from torch import Tensor


def has_half_units(device: torch.device) -> bool:
    return device.type == "cuda"


def half_asked_for(*factors: Tensor) -> bool:
    """Whether these factors are to be multiplied in bfloat16: autocast decides, otherwise what they are."""
    device = factors[0].device
    if not has_half_units(device):
        return False
    if torch.is_autocast_enabled(device.type):
        return torch.get_autocast_dtype(device.type) == torch.bfloat16
    return all(each.dtype == torch.bfloat16 for each in factors)


def product(a: Tensor, b: Tensor, *, half: bool) -> Tensor:
    """a @ b, summed in the precision of a; with `half`, of factors rounded to bfloat16."""
    if not half:
        return a @ b
    a, b = a.to(torch.bfloat16), b.to(torch.bfloat16)
    return torch.mm(a, b, out_dtype=torch.float32) if a.device.type == "cuda" else a.float() @ b.float()
