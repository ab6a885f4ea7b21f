"""PLIF: a piecewise linear increasing function with up to millions of learned slopes (Ganea et al. 2019).

[−bound, bound] is cut into equal bins, each with its own positive slope; the end slopes go on beyond the
bound, so that f is a bijection. With i the bin of z and t the place in it, from 0 to 1,

    f(z) = z + c_i + e_i t,      e_i = width · (slope_i − 1),      c_{i+1} = c_i + e_i:

two look-ups forward. While every slope is 1, c = e = 0 and f(z) is z to the last bit. Backward, the
gradients of c and e are two histograms, and a reversed prefix sum turns them into those of the slopes. Past
the bound t leaves [0, 1] and both formulas stay right as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, final

import torch
from torch import Tensor, nn

from argmaxable.core.errors import InputError
from argmaxable.layers.pointwise import Kernel, Transform, computing_dtype, is_traced, recorded_gradients

_LOG_2 = math.log(2)
# Bins whose prefix sums are formed at a time, in float64: a few hundred kB, whatever the number of bins.
_BLOCK_BINS = 1 << 15


@final
class PLIF(Transform):
    """Piecewise linear with `bins` slopes on [−bound, bound]; starts out as the identity.

    The slope of a bin is log₂(1 + 2^v): the softplus that is 1 at v = 0, so that the parameter `raw` starts
    at 0 and weight decay pulls towards the identity. Use a larger learning rate for it than for weights
    (published follow-up code: 0.02). f(−bound) is kept fixed, which a softmax can't see.
    """

    shift: Tensor

    def __init__(self, bins: int = 100_000, bound: float = 20.0) -> None:
        super().__init__()
        if bins < 1:
            raise InputError(f"a PLIF needs at least one bin, found {bins}.")
        if not (math.isfinite(bound) and bound > 0):
            raise InputError(f"the bound of a PLIF is a finite number above 0, found {bound}.")
        self.bins, self.bound = bins, float(bound)
        self.raw = nn.Parameter(torch.zeros(bins))
        # f(−bound) + bound, kept so that the identity has a 0 here in every precision.
        self.register_buffer("shift", torch.zeros((), dtype=torch.float64))

    def reset_parameters(self) -> None:
        """Back to the identity."""
        nn.init.zeros_(self.raw)
        self.shift.zero_()

    @classmethod
    def from_function(cls, function: Callable[[Tensor], Tensor], *, bins: int, bound: float) -> PLIF:
        """The PLIF that agrees with an increasing function at all knots (Theorem 7), up to rounding of `raw`.

        Raises InputError when the function does not increase from each knot to the next.
        """
        plif = cls(bins, bound)
        values = function(plif.knots())
        rises = values.diff()
        if not bool((rises > 0).all()):
            first = int((~(rises > 0)).nonzero()[0])
            raise InputError(f"the function does not increase from knot {first} to knot {first + 1}.")
        with torch.no_grad():
            plif.raw.copy_(_raw_of(rises / plif.width))
            plif.shift.copy_(values[0] + plif.bound)
        return plif

    @property
    def width(self) -> float:
        """Of a bin."""
        return 2 * self.bound / self.bins

    @property
    def start(self) -> Tensor:
        """The value at the first knot, −bound."""
        return self.shift - self.bound

    def knots(self) -> Tensor:
        """The bins' ends, bins + 1 of them, in float64."""
        ends = torch.arange(self.bins + 1, dtype=torch.float64, device=self.raw.device)
        return ends * self.width - self.bound

    def bin_slopes(self) -> Tensor:
        """The slope in each bin, in float64."""
        return _slopes_of(self.raw)

    def settings(self) -> dict[str, Any]:
        return {"bins": self.bins, "bound": self.bound}

    def tables(self) -> tuple[Tensor, ...]:
        """c and e of the module's formula, one entry a bin."""
        dtype = computing_dtype(self.raw)
        first = self.shift.double()
        if is_traced():
            return _tables_of(self.raw, first, self.width, dtype)
        tables: tuple[Tensor, ...] = _Tables.apply(self.raw, first, self.width, dtype)  # type: ignore[no-untyped-call]
        return tables

    def formula(self, z: Tensor, tables: tuple[Tensor, ...]) -> Tensor:
        offsets, rises = tables
        index, place = self._bins_of(z)
        return z + offsets[index] + rises[index] * place

    def slopes(self, z: Tensor) -> Tensor:
        return self.bin_slopes()[self._bins_of(z)[0]].to(z.dtype)

    def _bins_of(self, z: Tensor) -> tuple[Tensor, Tensor]:
        u = z * (1 / self.width) + _middle(self.bins)
        floor = _floor(u.detach(), self.bins)
        return (floor + self.bins // 2).long(), u - floor

    def inverse(self, y: Tensor) -> Tensor:
        """Through the tables in double precision; differentiable."""
        slopes, left = self.bin_slopes(), self.knots()[:-1]
        rises = slopes * self.width
        values = self.shift.double() - self.bound + rises.cumsum(0) - rises  # f at the left end of each bin
        index = torch.searchsorted(values[1:].contiguous(), y.detach().double().contiguous(), right=True)
        return (left[index] + (y.double() - values[index]) / slopes[index]).to(y.dtype)

    def kernel(self, tables: tuple[Tensor, ...], *, learn: bool) -> Kernel:
        return _PLIFKernel(tables, learn=learn, width=self.width)


class _PLIFKernel(Kernel):
    def __init__(self, tables: tuple[Tensor, ...], *, learn: bool, width: float) -> None:
        super().__init__(tables, learn=learn)
        self.bins, self.per_unit = len(tables[0]), 1 / width
        self.middle = tables[0].new_tensor(_middle(self.bins))

    def values(self, z: Tensor) -> Tensor:
        offsets, rises = self.tables
        u = torch.add(self.middle, z, alpha=self.per_unit, out=self.work.take("place", z))
        floor = _floor(u, self.bins, out=self.work.take("rise", z))
        place = u.sub_(floor)
        values = self.work.take("values", z)
        # By way of integers of the same width, which floats are converted to four times as fast.
        whole = values.view(torch.int32 if z.dtype == torch.float32 else torch.int64)
        index = self.work.take("bin", z, torch.int64).copy_(whole.copy_(floor).add_(self.bins // 2)).view(-1)
        # index_select is the only one of torch's look-ups that is quick on processors.
        rise = torch.index_select(rises, 0, index, out=floor.view(-1)).view_as(z)
        torch.index_select(offsets, 0, index, out=values.view(-1))
        return values.add_(z).addcmul_(rise, place)

    def pull_back(self, z: Tensor, gradient: Tensor, out: Tensor) -> None:
        if self.sums:
            self._gather(gradient)
        # slope = 1 + rise / width
        torch.addcmul(gradient, gradient, self.work.take("rise", z), value=self.per_unit, out=out)

    def _gather(self, gradient: Tensor) -> None:
        """Add the gradient to both histograms, one logit after the other: the same sums at every run."""
        index = self.work.take("bin", gradient, torch.int64).view(-1)
        place = self.work.take("place", gradient)
        exact = self.work.take("exact", gradient, torch.float64)
        self.sums[0].scatter_add_(0, index, exact.copy_(gradient).view(-1))
        self.sums[1].scatter_add_(0, index, exact.copy_(place.mul_(gradient)).view(-1))


class _Tables(torch.autograd.Function):
    """Slopes to tables by a prefix sum in float64, block by block; backward the reversed sum."""

    @staticmethod
    def forward(
        ctx: Any, raw: Tensor, first: Tensor, width: float, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(raw, first)
        ctx.width, ctx.dtype = width, dtype
        offsets, rises = (torch.empty_like(raw, dtype=dtype) for _ in range(2))
        reached = first
        for start in range(0, len(raw), _BLOCK_BINS):
            block = slice(start, start + _BLOCK_BINS)
            rise = (_slopes_of(raw[block]) - 1) * width
            ends = rise.cumsum(0).add_(reached)
            rises[block], offsets[block] = rise, ends - rise
            reached = ends[-1]
        return offsets, rises

    @staticmethod
    def backward(ctx: Any, by_offset: Tensor, by_rise: Tensor) -> tuple[Tensor | None, ...]:
        raw, first = ctx.saved_tensors
        if torch.is_grad_enabled():
            tables = partial(_tables_of, first=first, width=ctx.width, dtype=ctx.dtype)
            return *recorded_gradients(tables, (raw,), (True,), (by_offset, by_rise)), None, None, None
        gradient = torch.empty_like(raw)
        later = raw.new_zeros((), dtype=torch.float64)  # what the offsets of all later bins receive
        for start in reversed(range(0, len(raw), _BLOCK_BINS)):
            block = slice(start, start + _BLOCK_BINS)
            offsets = by_offset[block].double()
            total = offsets.sum() + later
            rise = total - offsets.cumsum(0) + by_rise[block]
            gradient[block] = rise * ctx.width * torch.sigmoid(raw[block].double() * _LOG_2)
            later = total
        return gradient, None, None, None


def _slopes_of(raw: Tensor) -> Tensor:
    return torch.logaddexp2(raw.new_zeros((), dtype=torch.float64), raw.double())


def _tables_of(raw: Tensor, first: Tensor, width: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The tables by plain operations."""
    rises = (_slopes_of(raw) - 1) * width
    return (first + rises.cumsum(0) - rises).to(dtype), rises.to(dtype)


def _middle(bins: int) -> float:
    """Where 0 lies in its bin, which is counted as bin 0 here: so counted, places near 0 are most exact."""
    return 0.5 * (bins % 2)


def _floor(u: Tensor, bins: int, out: Tensor | None = None) -> Tensor:
    """The bin of u as a float, from −bins // 2; for NaN, which travels on in u itself, any bin."""
    inside = torch.clamp(u, -(bins // 2), bins - 1 - bins // 2, out=out)
    return torch.floor(torch.nan_to_num(inside, nan=0.0, out=out), out=out)


def _raw_of(slopes: Tensor) -> Tensor:
    """v with log₂(1 + 2^v) = slope."""
    return slopes + torch.log2(-torch.expm1(-slopes * _LOG_2))
