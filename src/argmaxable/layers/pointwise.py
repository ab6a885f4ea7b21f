"""Increasing functions applied to every logit: what they promise, and how they work on blocks.

A transform is written twice on purpose. `formula` is its definition in plain tensor operations: what
`torch.compile` fuses and `torch.export` reads. A `Kernel` does the same block by block in buffers that stay
in the processor's cache, forward and backward, and holds nothing as large as the logits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

# Logits worked on at a time. The buffers of a block (up to 28 bytes a logit) should stay in cache, and each
# operation should take long enough (50 µs and more) for starting it not to matter.
BLOCK_LOGITS = 220_000
# What an infinite logit counts as. Its exponential is 0 all the same, but its products with 0 are not NaN.
FAR = 1e30


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


class Factor(NamedTuple):
    """s with f(z) = z + log s(z): e^f(z) is then e^z s(z), and no logarithm is needed."""

    values: Tensor  # s(z), rows × classes
    top: Tensor  # the largest z of each row (rows × 1)
    log_at: Callable[[Tensor], Tensor]  # log s of some logits


class Kernel(ABC):
    """A transform at work on blocks of logits; gathers the gradient of its tables along the way."""

    buffer_bytes = 28  # of its buffers, for each logit of a block in float32

    def __init__(self, tables: tuple[Tensor, ...], *, learn: bool) -> None:
        """`learn` says whether the gradient of the tables is wanted."""
        self.tables = tables
        self.work = Workspace()
        # In double precision: one entry of a table may gather the gradients of millions of logits.
        self.sums = tuple(torch.zeros_like(table, dtype=torch.float64) for table in tables if learn)

    @abstractmethod
    def values(self, z: Tensor) -> Tensor:
        """f(z), in a buffer of the kernel's own or in z itself where f is the identity."""

    def factor(self, z: Tensor) -> Factor | None:
        """What may take the place of `values`, if anything does."""
        return None

    @abstractmethod
    def pull_back(self, z: Tensor, gradient: Tensor, out: Tensor) -> None:
        """out = gradient ∘ f′(z), for the z last given to `values` or `factor`; `out` may be z or the
        gradient. After `factor`, z holds the gradient and no longer the logits."""


class Transform(nn.Module, ABC):
    """A strictly increasing, continuous function of one logit, the same for all."""

    is_onto: bool = True

    @abstractmethod
    def formula(self, z: Tensor, tables: tuple[Tensor, ...]) -> Tensor:
        """f(z) by plain operations, which may be differentiated any number of times by z and the tables."""

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
        """The arguments that build such a transform, as plain JSON values."""
        return {}

    def reset_parameters(self) -> None:
        """Initialise again; nothing to do for a transform without parameters."""

    def extra_repr(self) -> str:
        parts = self.settings().items()
        return ", ".join(f"{name}={value}" for name, value in parts if not isinstance(value, nn.Module))

    def forward(self, z: Tensor) -> Tensor:
        """f(z) of the same shape; half precision is computed and returned in single."""
        tables = self.tables()
        if is_traced():
            return self.formula(z.to(computing_dtype(z)), tables)
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
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            return None, *_recorded(ctx, gradient)
        z, *tables = ctx.saved_tensors
        learn = any(ctx.needs_input_grad[2:])
        kernel = ctx.transform.kernel(tuple(tables), learn=learn)
        pulled = torch.empty_like(z, memory_format=torch.contiguous_format)
        for block, given, out in _blocks(z, gradient, pulled):
            kernel.values(block)
            kernel.pull_back(block, given, out)
        sums = kernel.sums if learn else (None,) * len(tables)
        return None, pulled, *sums


def _recorded(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    transform: Transform = ctx.transform
    return recorded_gradients(
        lambda z, *tables: transform.formula(z, tables),
        ctx.saved_tensors,
        ctx.needs_input_grad[1:],
        gradient,
    )


def recorded_gradients(
    function: Callable[..., Any],
    inputs: Sequence[Tensor | None],
    wanted: Sequence[bool],
    outer: Tensor | tuple[Tensor, ...],
) -> tuple[Tensor | None, ...]:
    """Gradients that can be differentiated in turn, for a backward that is itself recorded (create_graph).

    Kernels work in place and leave no graph: autograd would take their gradients for constants, and a second
    derivative would miss terms without a word. So the function is computed again by plain operations.
    """
    # Aliases, so that an input given twice gets the gradient of each place.
    places = [None if each is None else each.view_as(each) for each in inputs]
    asked = [each for each, is_wanted in zip(places, wanted, strict=True) if each is not None and is_wanted]
    found = iter(torch.autograd.grad(function(*places), asked, outer, create_graph=True, allow_unused=True))
    return tuple(
        next(found) if each is not None and is_wanted else None
        for each, is_wanted in zip(places, wanted, strict=True)
    )


def is_traced(*, compiled: bool = True) -> bool:
    """Whether PyTorch wants plain operations: in torch.export, torch.func (vmap, grad) and torch.compile."""
    if torch.compiler.is_compiling():
        return compiled or torch.compiler.is_exporting()
    return torch._C._are_functorch_transforms_active()


def _blocks(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    flat = [tensor.reshape(-1) for tensor in tensors]
    return zip(*(tensor.split(BLOCK_LOGITS) for tensor in flat), strict=True)


def computing_dtype(*tensors: Tensor) -> torch.dtype:
    """Double precision where something is in double precision, otherwise single."""
    return torch.float64 if any(each.dtype == torch.float64 for each in tensors) else torch.float32
