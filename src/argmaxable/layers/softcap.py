"""Logits capped or scaled before anything else, as Gemma 2 (cap), Cohere and Granite (scale) do it."""

from __future__ import annotations

import math
from typing import Any, final

import torch
from torch import Tensor

from argmaxable.core.errors import InputError
from argmaxable.layers.pointwise import Kernel, Transform
from argmaxable.layers.transforms import Identity


@final
class SoftCap(Transform):
    """f(z) = g(cap · tanh(scale · z / cap)), or g(scale · z) without a cap; g is the `inner` transform."""

    def __init__(
        self, inner: Transform | None = None, *, cap: float | None = None, scale: float = 1.0
    ) -> None:
        super().__init__()
        for name, value in (("cap", cap), ("scale", scale)):
            if value is not None and not (math.isfinite(value) and value > 0):
                raise InputError(f"the {name} of logits is a finite number above 0, found {value}.")
        self.inner = Identity() if inner is None else inner
        self.cap, self.scale = cap, scale
        self.is_onto = cap is None and self.inner.is_onto

    def reset_parameters(self) -> None:
        self.inner.reset_parameters()

    def settings(self) -> dict[str, Any]:
        return {"inner": self.inner, "cap": self.cap, "scale": self.scale}

    def tables(self) -> tuple[Tensor, ...]:
        return self.inner.tables()

    def formula(self, z: Tensor, tables: tuple[Tensor, ...]) -> Tensor:
        return self.inner.formula(self._capped(z), tables)

    def slopes(self, z: Tensor) -> Tensor:
        capped = self._capped(z)
        own = 1.0 if self.cap is None else 1 - (capped / self.cap) ** 2
        return self.inner.slopes(capped) * own * self.scale

    def inverse(self, y: Tensor) -> Tensor:
        if self.cap is not None:
            raise InputError("capped logits are bounded: this transform has no inverse on all of ℝ.")
        return self.inner.inverse(y) / self.scale

    def kernel(self, tables: tuple[Tensor, ...], *, learn: bool) -> Kernel:
        return _SoftCapKernel(self.inner.kernel(tables, learn=learn), self.cap, self.scale)

    def _capped(self, z: Tensor) -> Tensor:
        return z * self.scale if self.cap is None else self.cap * torch.tanh(z * (self.scale / self.cap))


class _SoftCapKernel(Kernel):
    def __init__(self, inner: Kernel, cap: float | None, scale: float) -> None:
        super().__init__(inner.tables, learn=False)
        self.inner, self.cap, self.scale = inner, cap, scale
        self.sums = inner.sums
        self.buffer_bytes = inner.buffer_bytes + 8

    def values(self, z: Tensor) -> Tensor:
        capped = torch.mul(z, self.scale / (self.cap or 1.0), out=self.work.take("capped", z))
        if self.cap is not None:
            # The slope now: the identity hands `capped` itself on, and its new owner overwrites it.
            slope = torch.square(capped.tanh_(), out=self.work.take("slope", z))
            slope.neg_().add_(1).mul_(self.scale)
            capped.mul_(self.cap)
        return self.inner.values(capped)

    def pull_back(self, z: Tensor, gradient: Tensor, out: Tensor) -> None:
        self.inner.pull_back(self.work.take("capped", z), gradient, out)
        out.mul_(self.scale if self.cap is None else self.work.take("slope", z))
