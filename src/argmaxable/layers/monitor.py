"""Watching a head while it trains: how many classes are unargmaxable now, and what the head lets through.

Verdicts are proven as always (questions/argmax.py), but start from the witnesses found last time: weights
move little between two looks, so most classes are settled by one product.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from argmaxable.check.checker import Checker
from argmaxable.core.domain import Domain
from argmaxable.core.errors import InputError
from argmaxable.core.head import Head
from argmaxable.layers.head import SoftmaxHead
from argmaxable.questions.argmax import DEFAULT_DOMAIN, verify
from argmaxable.run.plan import ONE_PROCESS, Engine


@dataclass(frozen=True)
class Health:
    """What was found at one step. Counts of classes are None for mixtures, which linear verdicts don't cover;
    the lost share of the gradient is None when no backward pass was seen."""

    step: int
    unargmaxable: int | None
    undecided: int | None
    effective_rank: float
    gradient_lost: float | None

    def as_record(self) -> dict[str, float]:
        """Plain numbers under names for a log, without what is not known."""
        known = {name: value for name, value in asdict(self).items() if value is not None and name != "step"}
        return {f"head_{name}": value for name, value in known.items()}


class HeadMonitor:
    """Call it after each optimizer step; every `every` steps it measures, logs and returns a Health.

    While it is open it watches the head's forward and backward passes (a few tokens of the batch before each
    measurement); `close` ends that.
    """

    def __init__(
        self,
        module: nn.Module,
        *,
        every: int = 100,
        domain: Domain = DEFAULT_DOMAIN,
        log: Callable[[Health], None] | None = None,
        time_limit: float | None = None,
        engine: Engine = ONE_PROCESS,
        tokens: int = 256,
    ) -> None:
        """`module` is the head; `time_limit` bounds the seconds of a measurement, leaving classes
        undecided."""
        if every < 1:
            raise InputError(
                f"`every` is the number of steps between two measurements, at least 1; found {every}."
            )
        if getattr(getattr(module, "weight", None), "ndim", 0) != 2:
            raise InputError(f"{type(module).__name__} has no matrix of weights: pass the model's head.")
        self.module, self.every, self.log, self.tokens = module, every, log, tokens
        self._census = Census(domain, time_limit=time_limit, engine=engine)
        self._seen: tuple[Tensor, Tensor] | None = None  # features, and the gradient of what came of them
        self._is_due = every == 1
        self._hooks = [module.register_forward_hook(self._watch_forward)]
        if isinstance(module, SoftmaxHead):
            module.loss_hooks.append(self._watch_loss)

    def expect(self, step: int) -> None:
        """Say which step comes next, when it is not the first or does not follow the last."""
        self._is_due = step % self.every == 0

    def __call__(self, step: int) -> Health | None:
        """After an optimizer step: measure when the step is due, otherwise None."""
        self.expect(step + 1)
        if step % self.every:
            return None
        health = self.measure(step)
        if self.log is not None:
            self.log(health)
        return health

    def measure(self, step: int = 0) -> Health:
        """Look now."""
        unargmaxable, undecided = self._counts()
        lost = None if self._seen is None else gradient_lost(self.module, *self._seen)
        self._seen = None
        return Health(step, unargmaxable, undecided, effective_rank(_rows(self.module)), lost)

    def _counts(self) -> tuple[int | None, int | None]:
        if getattr(self.module, "mixtures", 1) > 1:
            return None, None
        return self._census.count(Head.from_module(self.module))

    def close(self) -> None:
        """Stop watching."""
        for hook in self._hooks:
            hook.remove()
        if isinstance(self.module, SoftmaxHead) and self._watch_loss in self.module.loss_hooks:
            self.module.loss_hooks.remove(self._watch_loss)

    def _watch_forward(self, module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
        if self._is_due and output.requires_grad:
            features = inputs[0].detach()
            output.register_hook(lambda gradient: self._keep(features, gradient))

    def _keep(self, features: Tensor, gradient: Tensor) -> None:
        rows = gradient.reshape(-1, gradient.shape[-1])
        # Tokens without a gradient (ignored, or the last of a sequence) tell nothing.
        some = rows.abs().amax(1).nonzero()[: self.tokens, 0]
        self._seen = features.reshape(-1, features.shape[-1])[some].clone(), rows[some].detach().clone()

    def _watch_loss(self, hidden: Tensor, targets: Tensor) -> None:
        if not self._is_due:
            return
        assert isinstance(self.module, SoftmaxHead)
        features, some = hidden[: self.tokens].detach().clone(), targets[: self.tokens]
        with torch.no_grad():
            gradient = self.module.log_prob(features).exp_()
            if some.ndim == 2:
                gradient.sub_(some)
            else:
                gradient.scatter_add_(1, some[:, None], gradient.new_full((len(some), 1), -1.0))
        self._seen = features, gradient


class Census:
    """Counts unargmaxable classes again and again, starting each time from the witnesses of the last."""

    def __init__(
        self, domain: Domain, *, time_limit: float | None = None, engine: Engine = ONE_PROCESS
    ) -> None:
        domain.require_directions("a census")
        self.domain, self.time_limit, self.engine = domain, time_limit, engine
        self._points: NDArray[np.float32] | None = None
        self.reused = 0  # classes settled by an old witness at the last count

    def count(self, head: Head) -> tuple[int, int]:
        """How many classes are proven unargmaxable, and how many are left undecided."""
        checker = Checker(head, self.domain)
        if self._points is None or self._points.shape != head.weight.shape:
            self._points = np.full(head.weight.shape, np.nan, np.float32)
        settled = self._settled_by_old(checker)
        self.reused = int(settled.sum())
        rest = np.flatnonzero(~settled)
        if not len(rest):
            return 0, 0
        result = verify(head, self.domain, only=rest.tolist(), time_limit=self.time_limit, engine=self.engine)
        for verdict in result.argmaxable:
            if verdict.witness is not None:
                self._points[verdict.class_id] = checker.point(verdict.class_id, verdict.witness)
        return len(result.unargmaxable), len(result.undecided)

    def _settled_by_old(self, checker: Checker) -> NDArray[np.bool_]:
        assert self._points is not None
        settled = np.isfinite(self._points[:, 0])
        for ids in np.array_split(np.flatnonzero(settled), math.ceil(settled.sum() / 4096) or 1):
            if len(ids):
                settled[ids] = checker.gaps(ids, self._points[ids].astype(np.float64)).lower > 0
        return settled


@torch.no_grad()
def effective_rank(rows: Tensor) -> float:
    """e^H of the singular values, H their entropy as shares of their sum (Roy & Vetterli 2007); rows centred,
    since a vector added to every row changes no distribution."""
    rows = rows.double()
    values = torch.linalg.eigvalsh((rows - rows.mean(0)).T @ (rows - rows.mean(0))).clamp(min=0).sqrt()
    shares = values / values.sum().clamp(min=torch.finfo(values.dtype).tiny)
    return float(torch.special.entr(shares).sum().exp())


def gradient_lost(module: nn.Module, features: Tensor, gradient: Tensor) -> float:
    """1 − ‖P G‖ / ‖G‖: the share of the norm of the logits' gradient G that the head can't pass back.

    P projects on the span of the columns of W: only that part of G has any effect on the features (Godey &
    Artzi 2026). `gradient` is by what the head put out (tokens × classes), `features` what it received.
    """
    rows = _rows(module).double()
    by_logits = _by_linear_logits(module, features, gradient).double()
    values, vectors = torch.linalg.eigh(rows.T @ rows)
    # Directions that are zero up to the rounding of the product above pass nothing back.
    kept = values > values[-1] * len(rows) * torch.finfo(values.dtype).eps
    passed = (by_logits @ rows @ vectors[:, kept]) / values[kept].sqrt()
    whole = float(by_logits.norm())
    return 1 - float(passed.norm()) / whole if whole > 0 else 0.0


def _rows(module: nn.Module) -> Tensor:
    weight = module.weight
    assert isinstance(weight, Tensor)
    return weight.detach()


def _by_linear_logits(module: nn.Module, features: Tensor, gradient: Tensor) -> Tensor:
    """The gradient in front of transform and mixture, one row a token and component."""
    if not isinstance(module, SoftmaxHead):
        return gradient
    with torch.enable_grad():
        logits = module.component_logits(features).detach().requires_grad_()
        output = module.combine(features, logits)
        (by_logits,) = torch.autograd.grad(output, logits, gradient.to(output.dtype))
    return by_logits.flatten(0, -2)
