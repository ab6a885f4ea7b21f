"""Increasing functions in closed form: Identity, SigSoftmax (Kanai et al. 2018) and the monotonic
network of Ganea et al. 2019, eq. 14 (Daniels & Velikova 2010).
"""

from __future__ import annotations

import math
from typing import Any, final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from argmaxable.core.errors import InputError
from argmaxable.layers.pointwise import Factor, Kernel, Transform, computing_dtype

# Rows whose logits are all below have sigmoids that come near the smallest float32, 1e-38.
_FAR_LEFT = -60.0
# Halvings of a bracket until it is as narrow as float64 allows.
_BISECTIONS = 80


@final
class Identity(Transform):
    """f(z) = z: the plain softmax."""

    def formula(self, z: Tensor, tables: tuple[Tensor, ...]) -> Tensor:
        return z

    def slopes(self, z: Tensor) -> Tensor:
        return torch.ones_like(z)

    def inverse(self, y: Tensor) -> Tensor:
        return y

    def kernel(self, tables: tuple[Tensor, ...], *, learn: bool) -> Kernel:
        return _IdentityKernel(tables, learn=learn)


class _IdentityKernel(Kernel):
    buffer_bytes = 0

    def values(self, z: Tensor) -> Tensor:
        return z

    def pull_back(self, z: Tensor, gradient: Tensor, out: Tensor) -> None:
        if out is not gradient:
            out.copy_(gradient)


@final
class SigSoftmax(Transform):
    """f(z) = z + log σ(z), between 2z (far left) and z (far right)."""

    def formula(self, z: Tensor, tables: tuple[Tensor, ...]) -> Tensor:
        return z - F.softplus(-z)  # not logsigmoid, which ONNX files compute as log(σ(z)) and so lose

    def slopes(self, z: Tensor) -> Tensor:
        return 2 - torch.sigmoid(z)

    def inverse(self, y: Tensor) -> Tensor:
        # With t = e^z, e^y = t²/(1 + t): a quadratic in t. Each branch has no exponential that overflows.
        right = y.clamp(min=0)
        left = y.clamp(max=0)
        above = right + torch.log1p(torch.sqrt(1 + 4 * torch.exp(-right))) - math.log(2)
        below = left / 2 + torch.log((torch.exp(left / 2) + torch.sqrt(torch.exp(left) + 4)) / 2)
        return torch.where(y > 0, above, below)

    def kernel(self, tables: tuple[Tensor, ...], *, learn: bool) -> Kernel:
        return _SigSoftmaxKernel(tables, learn=learn)


class _SigSoftmaxKernel(Kernel):
    buffer_bytes = 12

    def values(self, z: Tensor) -> Tensor:
        # log σ(z) = min(z, 0) + log σ(|z|), and σ(|z|) = max(s, 1 − s) is at least ½: nothing underflows,
        # and one sigmoid serves the slope too. (logsigmoid takes four times as long.)
        sigmoid = torch.sigmoid(z, out=self.work.take("sigmoid", z))
        values = torch.sub(1, sigmoid, out=self.work.take("values", z))
        torch.maximum(values, sigmoid, out=values).log_()
        negative = torch.clamp(z, max=0, out=self.work.take("negative", z))
        return values.add_(z).add_(negative)

    def factor(self, z: Tensor) -> Factor | None:
        top = z.amax(1, keepdim=True)
        if bool((top < _FAR_LEFT).any()):
            return None
        sigmoid = torch.sigmoid(z, out=self.work.take("sigmoid", z))
        return Factor(sigmoid, top, F.logsigmoid)

    def pull_back(self, z: Tensor, gradient: Tensor, out: Tensor) -> None:
        slope = torch.sub(2, self.work.take("sigmoid", z), out=self.work.take("negative", z))
        torch.mul(gradient, slope, out=out)


@final
class MonotonicNetwork(Transform):
    """f(z) = Σ_k v_k σ(u_k z + a_k), plus a linear term; u, v and the linear slope are positive by softplus.

    Without the linear term f is bounded: no class can then have more than e^{Σv} times the probability of
    another. The constant b of eq. 14 cancels in the softmax and is left out.
    """

    def __init__(self, units: int = 10, *, linear: bool = True) -> None:
        """`units` sigmoids, starting out spread over −4..4; with the linear term close to the identity."""
        super().__init__()
        if units < 1:
            raise InputError(f"a monotonic network needs at least one unit, found {units}.")
        self.units = units
        self.is_onto = linear
        self.widths, self.heights, self.shifts = (nn.Parameter(torch.empty(units)) for _ in range(3))
        self.linear = nn.Parameter(torch.empty(1)) if linear else None
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        self.widths.fill_(_inverse_softplus(1.0))
        self.heights.fill_(_inverse_softplus(0.1 if self.is_onto else 8.0 / self.units))
        self.shifts.copy_(torch.linspace(-4.0, 4.0, self.units) if self.units > 1 else torch.zeros(1))
        if self.linear is not None:
            self.linear.fill_(_inverse_softplus(1.0))

    def settings(self) -> dict[str, Any]:
        return {"units": self.units, "linear": self.is_onto}

    def tables(self) -> tuple[Tensor, ...]:
        """u, v and a (one entry a unit), and the slope of the linear term (one entry, or none)."""
        dtype = computing_dtype(self.widths)
        widths, heights, shifts = (each.to(dtype) for each in (self.widths, self.heights, self.shifts))
        linear = shifts.new_empty(0) if self.linear is None else F.softplus(self.linear.to(dtype))
        return F.softplus(widths), F.softplus(heights), shifts, linear

    def formula(self, z: Tensor, tables: tuple[Tensor, ...]) -> Tensor:
        widths, heights, shifts, linear = tables
        values = z * linear.sum()
        for u, v, a in zip(widths.unbind(), heights.unbind(), shifts.unbind(), strict=True):
            values = values + v * torch.sigmoid(u * z + a)
        return values

    def slopes(self, z: Tensor) -> Tensor:
        widths, heights, shifts, linear = self.tables()
        slope = linear.sum().expand_as(z)
        for u, v, a in zip(widths.unbind(), heights.unbind(), shifts.unbind(), strict=True):
            sigmoid = torch.sigmoid(u * z + a)
            slope = slope + u * v * sigmoid * (1 - sigmoid)
        return slope

    @torch.no_grad()
    def inverse(self, y: Tensor) -> Tensor:
        """By bisection in double precision, hence without a gradient."""
        if not self.is_onto:
            raise InputError("this network has no linear term: it is bounded and has no inverse on all of ℝ.")
        tables = tuple(table.double() for table in self.tables())
        _, heights, _, linear = tables
        high = y.double() / linear
        low = high - heights.sum() / linear
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            too_low = self.formula(middle, tables) < y
            low, high = torch.where(too_low, middle, low), torch.where(too_low, high, middle)
        return ((low + high) / 2).to(y.dtype)

    def kernel(self, tables: tuple[Tensor, ...], *, learn: bool) -> Kernel:
        return _NetworkKernel(tables, learn=learn)


class _NetworkKernel(Kernel):
    """One unit after another, so that no unit's activations outlive it; backward computes them again."""

    buffer_bytes = 16

    def values(self, z: Tensor) -> Tensor:
        widths, heights, shifts, linear = (table.tolist() for table in self.tables)
        values = torch.mul(z, sum(linear), out=self.work.take("values", z))
        for u, v, a in zip(widths, heights, shifts, strict=True):
            values.add_(self._sigmoid(z, u, a), alpha=v)
        return values

    def pull_back(self, z: Tensor, gradient: Tensor, out: Tensor) -> None:
        widths, heights, shifts, linear = (table.tolist() for table in self.tables)
        slope = self.work.take("slope", z).fill_(sum(linear))
        product = self.work.take("product", z)
        for unit, (u, v, a) in enumerate(zip(widths, heights, shifts, strict=True)):
            sigmoid = self._sigmoid(z, u, a)
            if self.sums:
                self.sums[1][unit] += _total(torch.mul(gradient, sigmoid, out=product))
            rise = sigmoid.addcmul_(sigmoid, sigmoid, value=-1)  # σ′ = σ(1 − σ)
            slope.add_(rise, alpha=u * v)
            if self.sums:
                torch.mul(gradient, rise, out=product)
                self.sums[2][unit] += v * _total(product)
                self.sums[0][unit] += v * _total(product.mul_(z))
        if self.sums and linear:
            self.sums[3][0] += _total(torch.mul(gradient, z, out=product))
        torch.mul(gradient, slope, out=out)

    def _sigmoid(self, z: Tensor, u: float, a: float) -> Tensor:
        return torch.mul(z, u, out=self.work.take("sigmoid", z)).add_(a).sigmoid_()


def _total(product: Tensor) -> Tensor:
    return product.sum(dtype=torch.float64)


def _inverse_softplus(value: float) -> float:
    return math.log(math.expm1(value))
