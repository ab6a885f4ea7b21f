"""Cross-entropy of a softmax head in little memory: −log Σ_k π_k softmax(f(W g_k + b))_target.

Tokens are taken in chunks. A chunk's logits are computed once, turned into their own gradient in place, and
multiplied out at once, so that no second round of products is needed and nothing of the size tokens ×
classes is ever held. Where the weight of each token's loss is known only in backward (reduction "none"), or
backward runs a second time, the chunks are computed again there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from argmaxable.core.errors import InputError
from argmaxable.layers.aims import Aims
from argmaxable.layers.objective import mixture_loss, softmax_loss
from argmaxable.layers.pointwise import (
    BLOCK_LOGITS,
    Factor,
    Transform,
    Workspace,
    computing_dtype,
    recorded_gradients,
)
from argmaxable.layers.products import add_product, product
from argmaxable.layers.vocabulary import WHOLE, Vocabulary

# A chunk's logits in float32 and the buffers of its kernel. A second thread gains more in larger chunks: with
# 10.8 MB of logits, two threads take a sixth longer than for one large product, with 20 MB 3 %.
_CHUNK_BYTES = 16_000_000
# Rows of a chunk at least: below, reading and writing the gradient of W for each chunk shows.
_CHUNK_ROWS = 96


class Inputs(NamedTuple):
    """Everything the loss is a differentiable function of; None where the head lacks that part."""

    hidden: Tensor  # tokens × features
    weight: Tensor  # classes × width
    bias: Tensor | None  # classes
    latent: Tensor | None  # (mixtures · width) × features
    latent_bias: Tensor | None  # mixtures · width
    prior: Tensor | None  # mixtures × features


@dataclass(frozen=True)
class LossTask:
    """What is asked of the inputs: `aims` is about the kept `tokens` (None: all)."""

    transform: Transform
    mixtures: int
    aims: Aims
    tokens: Tensor | None
    reduction: str
    is_training: bool
    half: bool = False  # whether matrices are multiplied in bfloat16 (see products.py)
    vocabulary: Vocabulary = WHOLE


def chunked_loss(task: LossTask, inputs: Inputs) -> Tensor:
    """The loss: a number, or with reduction "none" one for each token (0 for those not kept)."""
    loss: Tensor = _ChunkedLoss.apply(task, *inputs, *task.transform.tables())  # type: ignore[no-untyped-call]
    return loss


def plain_loss(task: LossTask, inputs: Inputs) -> Tensor:
    """The same by plain operations, all logits at once: for tracing."""
    return _plain_loss(task, *inputs, *task.transform.tables())


class _ChunkedLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, task: LossTask, *tensors: Tensor | None) -> Tensor:
        ctx.task = task
        ctx.dtypes = [None if each is None else each.dtype for each in tensors]
        ctx.save_for_backward(*tensors)
        now = task.is_training and task.reduction != "none" and any(ctx.needs_input_grad)
        work = _Pass(task, tensors, ctx.needs_input_grad[1:] if now else ())
        losses = work.run(_token_weights(task, work.dtype))
        ctx.gradients = work.gradients() if now else None
        return work.spread(losses) if task.reduction == "none" else losses.sum()

    @staticmethod
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            if ctx.task.vocabulary is not WHOLE:
                raise InputError("the loss of a vocabulary that processes share has no second derivative.")
            loss = partial(_plain_loss, ctx.task)
            return None, *recorded_gradients(loss, ctx.saved_tensors, ctx.needs_input_grad[1:], scale)
        gradients, ctx.gradients = ctx.gradients, None  # given away: whoever adds them up may keep them
        if gradients is None:
            gradients = _gradients_again(ctx, scale)
        elif scale != 1:
            for gradient in gradients:
                if gradient is not None:
                    gradient.mul_(scale)
        # Last of all: unscaled, half precision would round small gradients to zero.
        return None, *(
            None if gradient is None else gradient.to(dtype)
            for gradient, dtype in zip(gradients, ctx.dtypes, strict=True)
        )


def _gradients_again(ctx: Any, scale: Tensor) -> tuple[Tensor | None, ...]:
    task: LossTask = ctx.task
    work = _Pass(task, ctx.saved_tensors, ctx.needs_input_grad[1:])
    if task.reduction == "none":
        weights = scale if task.tokens is None else scale[task.tokens]
    else:
        weights = _token_weights(task, work.dtype) * scale
    work.run(weights.to(work.dtype))
    return work.gradients()


def _token_weights(task: LossTask, dtype: torch.dtype) -> Tensor:
    """What each kept token's loss counts; no tokens make a loss of 0."""
    tokens = task.aims.targets
    # A sum of weights may be any number, and only one of no tokens at all is harmless.
    count = task.aims.count(dtype) if task.reduction == "mean" and len(tokens) else 1.0
    weight = 1 / count if count else math.nan
    return torch.full((len(tokens),), weight, dtype=dtype, device=tokens.device)


class _Sums(NamedTuple):
    """Gradients of the inputs added up over chunks, in the computing precision; None where not wanted."""

    hidden: Tensor | None
    weight: Tensor | None
    bias: Tensor | None
    latent: Tensor | None
    latent_bias: Tensor | None
    prior: Tensor | None


@dataclass
class _Chunk:
    """Some tokens (n of them) on their way through the head."""

    hidden: Tensor  # n × features
    aims: Aims  # of n tokens
    weights: Tensor  # n
    components: Tensor  # (n · mixtures) × width


@dataclass
class _MixedChunk(_Chunk):
    """Tokens of a head with several components."""

    log_prior: Tensor  # n × mixtures
    shares: Tensor  # n × mixtures: what each component has in the loss (see objective.py)


class _Mixture(NamedTuple):
    latent: Tensor
    latent_bias: Tensor | None
    prior: Tensor


class _Pass:
    """One walk over all chunks, with or without gradients."""

    def __init__(self, task: LossTask, tensors: tuple[Tensor | None, ...], wanted: tuple[bool, ...]) -> None:
        parts = len(Inputs._fields)
        self.task = task
        self.inputs, tables = _in_one_precision(tensors)
        self.dtype = self.inputs.hidden.dtype
        # Rounded once: all chunks meet the same weight.
        self.weight = self.inputs.weight.to(torch.bfloat16) if task.half else self.inputs.weight
        latent, latent_bias, prior = self.inputs[3:]
        self.mixture = None if latent is None or prior is None else _Mixture(latent, latent_bias, prior)
        self.with_gradients = bool(wanted)
        self.kernel = task.transform.kernel(tables, learn=any(wanted[parts:]))
        self.may_factor = task.aims.is_one_class and task.vocabulary is WHOLE
        self.work = Workspace()
        flags = wanted[:parts] or (False,) * parts
        self.sums = _Sums(
            *(
                torch.zeros_like(part) if part is not None and is_wanted else None
                for part, is_wanted in zip(self.inputs, flags, strict=True)
            )
        )
        classes = task.vocabulary.widest(self.inputs.weight.shape[0])
        logits = (_CHUNK_BYTES - BLOCK_LOGITS * self.kernel.buffer_bytes) // 4
        rows = max(_CHUNK_ROWS, logits // classes)
        self.chunk_tokens = max(1, rows // task.mixtures)
        # Cache matters to processors only; elsewhere a chunk is one block.
        logits = BLOCK_LOGITS if self.inputs.weight.is_cpu else rows * classes
        self.block_tokens = max(1, logits // (classes * task.mixtures))

    def run(self, weights: Tensor) -> Tensor:
        """The weighted loss of each kept token; gathers the gradients if they are wanted."""
        losses = torch.empty_like(weights)
        with torch.autocast(weights.device.type, enabled=False):
            for part in _slices(len(weights), self.chunk_tokens):
                losses[part] = self._chunk_losses(part, weights[part])
        return losses.mul_(weights)

    def _chunk_losses(self, part: slice, weights: Tensor) -> Tensor:
        chunk = self._components(part, weights)
        logits = self._logits(chunk.components)
        losses = self._turn_into_gradient(logits, chunk)
        if self.with_gradients:
            self._pull_back(logits, chunk, part)
        return losses

    def _components(self, part: slice, weights: Tensor) -> _Chunk:
        tokens, inputs = self.task.tokens, self.inputs
        hidden = inputs.hidden[part] if tokens is None else inputs.hidden[tokens[part]]
        aims = self.task.aims.part(part)
        if self.mixture is None:
            return _Chunk(hidden, aims, weights, hidden)
        latent = self._product(hidden, self.mixture.latent.T)
        latent = latent if self.mixture.latent_bias is None else latent.add_(self.mixture.latent_bias)
        log_prior = (hidden @ self.mixture.prior.T).log_softmax(1)
        components = latent.tanh_().view(-1, inputs.weight.shape[1])
        return _MixedChunk(hidden, aims, weights, components, log_prior, torch.empty_like(log_prior))

    def _product(self, a: Tensor, b: Tensor) -> Tensor:
        return product(a, b, half=self.task.half)

    def _add_product(self, total: Tensor, a: Tensor, b: Tensor) -> None:
        add_product(total, a, b, half=self.task.half)

    def _logits(self, components: Tensor) -> Tensor:
        like = components[:, :1].expand(-1, len(self.weight))
        return product(
            components, self.weight.T, half=self.task.half, bias=self.inputs.bias,
            buffer=partial(self.work.take, "logits", like),
        )  # fmt: skip

    def _turn_into_gradient(self, logits: Tensor, chunk: _Chunk) -> Tensor:
        """The loss of each token; the logits become their own weighted gradient, if that is wanted."""
        losses = []
        for part in _slices(len(chunk.weights), self.block_tokens):
            z = logits[part.start * self.task.mixtures : part.stop * self.task.mixtures]
            factor = self.kernel.factor(z) if self.may_factor else None
            values = self.kernel.values(z) if factor is None else z
            losses.append(self._block_loss(values, factor, chunk, part))
            if self.with_gradients:
                self.kernel.pull_back(z, values, z)
        return torch.cat(losses)

    def _block_loss(self, values: Tensor, factor: Factor | None, chunk: _Chunk, part: slice) -> Tensor:
        aims = chunk.aims.part(part)
        weights = chunk.weights[part] if self.with_gradients else None
        if not isinstance(chunk, _MixedChunk):
            return softmax_loss(values, aims, weights, self.task.vocabulary, factor)
        loss, shares = mixture_loss(
            values, aims, weights, chunk.log_prior[part], self.work, self.task.vocabulary, factor
        )
        if shares is not None:
            chunk.shares[part] = shares
        return loss

    def _pull_back(self, gradient: Tensor, chunk: _Chunk, part: slice) -> None:
        """From the logits' gradient to those of everything in front of them."""
        sums = self.sums
        if sums.weight is not None:
            self._add_product(sums.weight, gradient.T, chunk.components)
        if sums.bias is not None:
            sums.bias.add_(gradient.sum(0))
        if self.mixture is not None and isinstance(chunk, _MixedChunk):
            self._pull_back_mixture(self._by_component(gradient), chunk, self.mixture, part)
        elif sums.hidden is not None:
            self._put(sums.hidden, part, self._by_component(gradient))

    def _by_component(self, gradient: Tensor) -> Tensor:
        return self.task.vocabulary.add_up(self._product(gradient, self.weight))

    def _pull_back_mixture(
        self, by_component: Tensor, chunk: _MixedChunk, mixture: _Mixture, part: slice
    ) -> None:
        sums = self.sums
        # tanh′ = 1 − tanh², formed in place.
        by_component.addcmul_(by_component * chunk.components, chunk.components, value=-1)
        by_latent = by_component.view(len(chunk.weights), -1)
        by_prior = chunk.log_prior.exp().mul_(chunk.shares.sum(1, keepdim=True)).sub_(chunk.shares)
        if sums.latent is not None:
            self._add_product(sums.latent, by_latent.T, chunk.hidden)
        if sums.latent_bias is not None:
            sums.latent_bias.add_(by_latent.sum(0))
        if sums.prior is not None:
            sums.prior.addmm_(by_prior.T, chunk.hidden)
        if sums.hidden is not None:
            self._put(
                sums.hidden, part, self._product(by_latent, mixture.latent).addmm_(by_prior, mixture.prior)
            )

    def _put(self, whole: Tensor, part: slice, rows: Tensor) -> None:
        whole[part if self.task.tokens is None else self.task.tokens[part]] = rows

    def spread(self, losses: Tensor) -> Tensor:
        """The losses of kept tokens among all tokens."""
        if self.task.tokens is None:
            return losses
        return losses.new_zeros(len(self.inputs.hidden)).index_copy_(0, self.task.tokens, losses)

    def gradients(self) -> tuple[Tensor | None, ...]:
        """Of the inputs and the tables, in the computing precision; the buffers go first."""
        self.work.clear()
        self.kernel.work.clear()
        learned = tuple(self.task.vocabulary.add_up(total).to(self.dtype) for total in self.kernel.sums)
        return *self.sums, *(learned or (None,) * len(self.kernel.tables))


def _plain_loss(task: LossTask, *tensors: Tensor | None) -> Tensor:
    inputs, tables = _in_one_precision(tensors)
    hidden = inputs.hidden if task.tokens is None else inputs.hidden[task.tokens]
    log_probs, log_sum = _plain_log_probs(task, inputs, hidden, tables)
    losses = _plain_token_losses(task.aims, log_probs)
    if task.aims.z_loss:
        losses = losses + task.aims.z_loss * log_sum.square()
    if task.reduction != "none":
        return (losses * _token_weights(task, inputs.hidden.dtype)).sum()
    if task.tokens is None:
        return losses
    return losses.new_zeros(len(inputs.hidden)).index_copy(0, task.tokens, losses)


def _plain_token_losses(aims: Aims, log_probs: Tensor) -> Tensor:
    if aims.is_one_class:
        losses = -log_probs.gather(1, aims.targets[:, None])[:, 0]
        scale = aims.token_weights(losses.dtype)
        return losses if scale is None else losses * scale
    wanted = aims.dense(log_probs.shape[1], log_probs.dtype)
    return -torch.where(wanted == 0, 0, wanted * log_probs).sum(1)


def _in_one_precision(tensors: tuple[Tensor | None, ...]) -> tuple[Inputs, tuple[Tensor, ...]]:
    """The inputs and the tables, all in the computing precision."""
    parts = len(Inputs._fields)
    hidden, weight, *optional = tensors[:parts]
    assert hidden is not None
    assert weight is not None
    dtype = computing_dtype(hidden, weight)
    converted = (None if each is None else each.to(dtype) for each in optional)
    tables = tuple(table.to(dtype) for table in tensors[parts:] if table is not None)
    return Inputs(hidden.to(dtype), weight.to(dtype), *converted), tables


def _plain_log_probs(
    task: LossTask, inputs: Inputs, hidden: Tensor, tables: tuple[Tensor, ...]
) -> tuple[Tensor, Tensor]:
    """And log Σ exp of each row of transformed logits."""
    components = hidden
    if inputs.latent is not None:
        latent = _affine(hidden, inputs.latent, inputs.latent_bias).tanh()
        components = latent.view(-1, inputs.weight.shape[1])
    values = task.transform.formula(_affine(components, inputs.weight, inputs.bias), tables)
    log_probs, log_sum = values.log_softmax(1), values.logsumexp(1)
    if inputs.prior is None:
        return log_probs, log_sum
    log_prior = (hidden @ inputs.prior.T).log_softmax(1)
    return (log_probs.view(*log_prior.shape, -1) + log_prior[:, :, None]).logsumexp(1), log_sum


def _affine(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return x @ weight.T if bias is None else torch.addmm(bias, x, weight.T)


def _slices(length: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, length)) for start in range(0, length, size))
