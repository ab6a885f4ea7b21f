"""A stand-in for logits that nobody has computed, from which a model can still take its loss.

Each model aligns labels and tokens in its own way before it calls `cross_entropy`. So in training the
model's own code runs, on a tensor that knows which token each of its rows stands for. Its views are views of
tokens, and its `cross_entropy` is the loss of the head. Whatever needs the numbers raises LogitsNeededError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

# float32, the dtype of logits, counts tokens exactly up to here.
_MOST_TOKENS = 1 << 24
_SELF = {Tensor.contiguous, Tensor.float}
_VIEWS = {Tensor.view, Tensor.reshape, torch.reshape}
_SUMS = {Tensor.add, Tensor.__add__, Tensor.__radd__, torch.add}
_PRODUCTS = {
    Tensor.mul,
    Tensor.__mul__,
    Tensor.__rmul__,
    Tensor.div,
    Tensor.__truediv__,
    torch.mul,
    torch.div,
}
# What asks about the tensor and not about its numbers.
_QUESTIONS = {
    getattr(Tensor, name).__get__ for name in ("shape", "dtype", "device", "ndim", "requires_grad")
} | {Tensor.size, Tensor.dim, Tensor.numel, Tensor.__len__, Tensor.is_floating_point}
# A head with mixtures or a transform has another distribution once its logits are scaled or capped.
_CHANGES = ("mul", "div", "true_divide", "truediv", "multiply", "divide", "tanh")


class LogitsNeededError(Exception):
    """Raised by an operation that needs the numbers; never seen outside of a model's forward."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.operation = getattr(function, "__name__", str(function)).strip("_")
        super().__init__(self.operation)

    @property
    def changes_logits(self) -> bool:
        """Whether the model makes other logits of them."""
        return self.operation in _CHANGES or self.operation.removeprefix("r") in _CHANGES


class Loss(Protocol):
    """A head's loss of features (n × features) and targets."""

    def __call__(
        self,
        h: Tensor,
        targets: Tensor,
        *,
        ignore_index: int,
        label_smoothing: float,
        class_weights: Tensor | None,
        reduction: str,
    ) -> Tensor: ...


class PendingLogits(Tensor):
    """Logits (…, classes) of features; each row's entries are the number of its token, stored once."""

    _features: Tensor  # all tokens × features
    _loss: Loss

    @classmethod
    def of(cls, features: Tensor, classes: int, loss: Loss) -> PendingLogits:
        flat = features.reshape(-1, features.shape[-1])
        if len(flat) > _MOST_TOKENS:
            raise LogitsNeededError(cls.of)
        numbers = torch.arange(len(flat), dtype=torch.float32, device=features.device)
        return cls._standing_for(numbers.view(features.shape[:-1]), classes, flat, loss)

    @classmethod
    def _standing_for(cls, numbers: Tensor, classes: int, features: Tensor, loss: Loss) -> PendingLogits:
        made: PendingLogits = numbers[..., None].expand(*numbers.shape, classes).as_subclass(cls)
        made._features, made._loss = features, loss
        return made

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, arguments: tuple[Any, ...] = (), options: dict[str, Any] | None = None
    ) -> Any:
        options = options or {}
        with torch._C.DisableTorchFunctionSubclass():
            logits = arguments[0] if arguments and isinstance(arguments[0], cls) else None
            if function in _QUESTIONS:
                return function(*arguments, **options)
            if function is Tensor.is_contiguous:
                return True  # or they would be copied
            if function is F.cross_entropy:
                return _cross_entropy(*arguments, **options)
            if logits is None and function in _SUMS:  # a + logits
                logits, arguments = arguments[1], (arguments[1], arguments[0])
            if logits is None:
                raise LogitsNeededError(function)
            numbers = _same_tokens(logits, function, arguments[1:], options)
            return cls._standing_for(numbers, logits.shape[-1], logits._features, logits._loss)


def _same_tokens(
    logits: PendingLogits, function: Any, arguments: tuple[Any, ...], options: dict[str, Any]
) -> Tensor:
    """The numbers of the tokens that a view of the logits is about (…)."""
    numbers, classes = logits.as_subclass(Tensor).select(-1, 0), logits.shape[-1]
    if function in _SELF or (function is Tensor.to and _changes_nothing(logits, arguments, options)):
        return numbers
    if function in _SUMS and isinstance(arguments[0], Tensor) and not bool(arguments[0].any()):
        return numbers  # BART's and Marian's bias, which is 0 unless somebody trained it
    if function in _PRODUCTS and not isinstance(arguments[0], Tensor) and arguments[0] == 1:
        return numbers  # Cohere's and Granite's scale, once the head has it
    if function in _VIEWS and not options:
        shape = tuple(arguments[0]) if isinstance(arguments[0], list | tuple) else arguments
        if shape and shape[-1] == classes:
            return numbers.reshape(shape[:-1])
    if function is Tensor.flatten and _spares_classes(logits, arguments, options):
        return numbers.flatten(*arguments, **options)
    if function is Tensor.__getitem__:
        return _picked(logits.as_subclass(Tensor), numbers, arguments[0], function)
    raise LogitsNeededError(function)


def _picked(whole: Tensor, numbers: Tensor, index: Any, function: Any) -> Tensor:
    if isinstance(index, Tensor) and index.ndim <= numbers.ndim:
        return numbers[index]
    parts = index if isinstance(index, tuple) else (index,)
    if any(isinstance(part, Tensor) for part in parts):
        raise LogitsNeededError(function)
    found = whole[index]
    if found.ndim == 0 or found.shape[-1] != whole.shape[-1] or found.stride(-1) != whole.stride(-1):
        raise LogitsNeededError(function)
    return found.select(-1, 0)


def _changes_nothing(logits: PendingLogits, arguments: tuple[Any, ...], options: dict[str, Any]) -> bool:
    asked = (*arguments, *options.values())
    return all(each in (logits.dtype, logits.device, False) for each in asked)


def _spares_classes(logits: PendingLogits, arguments: tuple[Any, ...], options: dict[str, Any]) -> bool:
    end = options.get("end_dim", arguments[1] if len(arguments) > 1 else -1)
    return bool(end % logits.ndim < logits.ndim - 1)


def _cross_entropy(
    logits: Any,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """What torch.nn.functional.cross_entropy computes from logits of n tokens (n × classes)."""
    is_usual = isinstance(logits, PendingLogits) and logits.ndim == 2
    if not is_usual or size_average is not None or reduce is not None:
        raise LogitsNeededError(F.cross_entropy)
    tokens = logits.as_subclass(Tensor)[:, 0].long()
    features = logits._features
    is_all = torch.equal(tokens, torch.arange(len(features), device=tokens.device))
    loss: Tensor = logits._loss(
        features if is_all else features[tokens],
        target,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
        class_weights=weight,
        reduction=reduction,
    )
    return loss
