"""Increasing functions applied to every logit: what they promise, and how they work on blocks.

A transform is written twice on purpose. `formula` is its definition in plain tensor operations: what
`torch.compile` fuses and `torch.export` reads. A `Kernel` does the same block by block in buffers that stay
in the processor's cache, forward and backward, and holds nothing as large as the logits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

# Logits worked on at a time. The buffers of a block (up to 28 bytes a logit) should stay in cache, and each
# operation should take long enough (50 µs and more) for starting it not to matter.
BLOCK_LOGITS = 300_000


class Workspace:
    """Named buffers that are allocated once and used for every block: fresh memory costs page faults."""

    def __init__(self) -> None:
        self._buffers: dict[str, Tensor] = {}

    def take(self, name: str, like: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """An uninitialised tensor of that shape; what the name held before is overwritten."""
        buffer = self._buffers.get(name)
        if buffer is None or buffer.numel() < like.numel():
            buffer = torch.empty(like.numel(), dtype=dtype or like.dtype, device=like.device)
            self._buffers[name] = buffer
        return buffer[: like.numel()].view(like.shape)

    def clear(self) -> None:
        """Free all buffers."""
        self._buffers.clear()


class Kernel(ABC):
    """A transform at work on blocks of logits; gathers the gradient of its tables along the way."""

    def __init__(self, tables: tuple[Tensor, ...], *, learn: bool) -> None:
        """`learn` says whether the gradient of the tables is wanted."""
        self.tables = tables
        self.work = Workspace()
        # In double precision: one entry of a table may gather the gradients of millions of logits.
        self.sums = tuple(torch.zeros_like(table, dtype=torch.float64) for table in tables if learn)

    @abstractmethod
    def values(self, z: Tensor) -> Tensor:
        """f(z), in a buffer of the kernel's own or in z itself where f is the identity."""

    @abstractmethod
    def pull_back(self, z: Tensor, gradient: Tensor, out: Tensor) -> None:
        """out = gradient ∘ f′(z), for the z last given to `values`; `out` may be z or the gradient."""


class Transform(nn.Module, ABC):
    """A strictly increasing, continuous function of one logit, the same for all."""

    is_onto: bool = True

    @abstractmethod
    def formula(self, z: Tensor) -> Tensor:
        """f(z) by plain differentiable operations."""

    @abstractmethod
    def slopes(self, z: Tensor) -> Tensor:
        """f′(z), above 0; at a kink the slope to its right."""

    @abstractmethod
    def inverse(self, y: Tensor) -> Tensor:
        """The z with f(z) = y. Raises InputError when f is bounded, hence not onto."""

    @abstractmethod
    def kernel(self, tables: tuple[Tensor, ...], *, learn: bool) -> Kernel:
        """A fresh kernel with these tables."""

    def tables(self) -> tuple[Tensor, ...]:
        """What a kernel looks up, as differentiable functions of the parameters."""
        return ()

    def settings(self) -> dict[str, Any]:
        """The arguments that build this transform anew, as plain JSON values."""
        return {}

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.settings().items())

    def forward(self, z: Tensor) -> Tensor:
        """f(z) of the same shape; half precision is computed and returned in single."""
        if torch.compiler.is_compiling():
            return self.formula(z.to(computing_dtype(z)))
        tables = self.tables()
        dtype = computing_dtype(z, *tables)
        values: Tensor = _Blockwise.apply(self, z.to(dtype), *(table.to(dtype) for table in tables))  # type: ignore[no-untyped-call]
        return values


class _Blockwise(torch.autograd.Function):
    """f(z) without intermediate results of the size of z: blocks forward, the same blocks backward."""

    @staticmethod
    def forward(ctx: Any, transform: Transform, z: Tensor, *tables: Tensor) -> Tensor:
        ctx.transform = transform
        ctx.save_for_backward(z, *tables)
        kernel = transform.kernel(tables, learn=False)
        values = torch.empty_like(z, memory_format=torch.contiguous_format)
        for block, out in _blocks(z, values):
            out.copy_(kernel.values(block))
        return values

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        z, *tables = ctx.saved_tensors
        learn = any(ctx.needs_input_grad[2:])
        kernel = ctx.transform.kernel(tuple(tables), learn=learn)
        pulled = torch.empty_like(z, memory_format=torch.contiguous_format)
        for block, given, out in _blocks(z, gradient, pulled):
            kernel.values(block)
            kernel.pull_back(block, given, out)
        sums = kernel.sums if learn else (None,) * len(tables)
        return None, pulled, *sums


def _blocks(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    flat = [tensor.reshape(-1) for tensor in tensors]
    return zip(*(tensor.split(BLOCK_LOGITS) for tensor in flat), strict=True)


def computing_dtype(*tensors: Tensor) -> torch.dtype:
    """Double precision where something is in double precision, otherwise single."""
    return torch.float64 if any(each.dtype == torch.float64 for each in tensors) else torch.float32
