"""Matrix products of the loss: in float32 (or float64), or of bfloat16 factors summed in float32.

The latter where bfloat16 is what the caller asked for, by autocast or by its parameters, and the device has
units for it. On processors it would be slower (5 to 40 times, measured on one without such units) and no more
exact: there, factors are widened to float32, which makes the same products of bfloat16 parameters. float16
stays with float32 products too: gradients of single logits are below its reach until the loss is scaled.

float32 products on AMD's processors with AVX-512 are left to oneDNN. PyTorch itself would call MKL, which
does not use AVX-512 there: it takes 1.5 to 2.8 times as long (measured on Zen 5). On Intel's, MKL uses it:
there, oneDNN would take 0.9 to 1.6 times as long (measured on a Xeon with AMX).
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

# Rows of a sum that oneDNN, which can't add in place, multiplies out at a time: few, to save memory.
_ROWS_AT_ONCE = 512

_Linear = Callable[[Tensor, Tensor, Tensor | None], Tensor]


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


def product(
    a: Tensor,
    b: Tensor,
    *,
    half: bool = False,
    bias: Tensor | None = None,
    buffer: Callable[[], Tensor] | None = None,
) -> Tensor:
    """a @ b + bias, summed in the precision of a; with `half`, of factors rounded to bfloat16.

    Where the library can write into memory that exists, it is given the buffer.
    """
    if half:
        a, b = a.to(torch.bfloat16), b.to(torch.bfloat16)
        rounded = (
            torch.mm(a, b, out_dtype=torch.float32) if a.device.type == "cuda" else a.float() @ b.float()
        )
        return rounded if bias is None else rounded.add_(bias)
    if linear := _linear_for(a, b):
        return linear(a, b.T, bias)
    out = None if buffer is None else buffer()
    return torch.mm(a, b, out=out) if bias is None else torch.addmm(bias, a, b, out=out)


def add_product(total: Tensor, a: Tensor, b: Tensor, *, half: bool = False) -> None:
    """Add a @ b to the total, in place."""
    if half:
        total.add_(product(a, b, half=True))
    elif linear := _linear_for(a, b):
        for start in range(0, len(total), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            total[rows].add_(linear(a[rows], b.T, None))
    else:
        total.addmm_(a, b)


def _linear_for(*factors: Tensor) -> _Linear | None:
    """oneDNN's product if it is faster for these factors."""
    # It takes a thousand times as long for some factors that are neither stored by rows nor by columns.
    suits = all(
        each.device.type == "cpu"
        and each.dtype == torch.float32
        and each.numel()
        and (each.is_contiguous() or each.T.is_contiguous())
        for each in factors
    )
    return _onednn_linear() if suits else None


@cache
def _onednn_linear() -> _Linear | None:
    """x, w, bias ↦ x wᵀ + bias by oneDNN; None where MKL is as fast or PyTorch lacks that function."""
    is_slow_with_mkl = torch.backends.cpu.get_cpu_capability() == "AVX512" and _is_amd()
    return _working_linear() if is_slow_with_mkl else None


def _is_amd() -> bool:
    """Whether the processor is AMD's, as Linux or Windows names its maker."""
    try:
        maker = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        maker = platform.processor()
    return "AuthenticAMD" in maker


def _working_linear() -> _Linear | None:
    def linear(x: Tensor, w: Tensor, bias: Tensor | None) -> Tensor:
        result: Tensor = torch.ops.mkldnn._linear_pointwise(x, w, bias, "none", [], "")
        return result

    # What torch.compile calls is not documented, so it may be different in another version.
    one = torch.ones(1, 1, dtype=torch.float32, device="cpu")  # whatever the defaults are just now
    try:
        return linear if linear(one, one, one[0]).item() == 2 else None
    except (AttributeError, RuntimeError):
        return None
