"""The loss of a block of tokens, and its gradient in place of the logits it came from.

`values` are transformed logits, (tokens · mixtures) × classes, which are overwritten: with the gradient of
Σ weight · loss when weights are given, otherwise with nothing of use. All in log space.
"""

from __future__ import annotations

import torch
from torch import Tensor

from argmaxable.layers.pointwise import Workspace


def softmax_loss(values: Tensor, targets: Tensor, weights: Tensor | None, smoothing: float) -> Tensor:
    """−Σ_c q_c log softmax(values)_c of each token, q the target smoothed."""
    at_target = values.gather(1, targets[:, None])
    aim = torch.lerp(at_target, values.mean(1, keepdim=True), smoothing) if smoothing else at_target
    top, total = _exponentiate(values)
    if weights is not None:
        share = weights[:, None]
        values.mul_(share / total)
        if smoothing:
            values.sub_(share * (smoothing / values.shape[1]))
        values.scatter_add_(1, targets[:, None], share * (smoothing - 1))
    return (top + total.log() - aim)[:, 0]


def mixture_loss(
    values: Tensor, targets: Tensor, weights: Tensor | None, log_prior: Tensor
) -> tuple[Tensor, Tensor | None]:
    """−log Σ_k π_k softmax_k(target) of each token, and what each component has in it (tokens × mixtures).

    That share, times the weight, is minus the gradient by log π; None without weights.
    """
    columns = targets.repeat_interleave(log_prior.shape[1])[:, None]
    at_target = values.gather(1, columns)
    top, total = _exponentiate(values)
    joint = (at_target - top - total.log()).view_as(log_prior) + log_prior
    log_prob = joint.logsumexp(1, keepdim=True)
    if weights is None:
        return -log_prob[:, 0], None
    shares = (joint - log_prob).exp_().mul_(weights[:, None])
    by_row = shares.view(-1, 1)
    values.mul_(by_row / total).scatter_add_(1, columns, -by_row)
    return -log_prob[:, 0], shares


def smoothed_mixture_loss(
    values: Tensor,
    targets: Tensor,
    weights: Tensor | None,
    log_prior: Tensor,
    smoothing: float,
    work: Workspace,
) -> tuple[Tensor, Tensor | None]:
    """The same with smoothed targets: every class counts, so each has shares of its own, π_k p_k(c) /
    P(c)."""
    mixtures, classes = log_prior.shape[1], values.shape[1]
    values.sub_(values.logsumexp(1, keepdim=True))
    log_probs = values.view(-1, mixtures, classes)  # of each component
    shares = torch.add(log_probs, log_prior[:, :, None], out=work.take("shares", log_probs))
    mixed = shares.logsumexp(1)  # log P(c)
    everywhere = smoothing / classes
    losses = -everywhere * mixed.sum(1) - (1 - smoothing) * mixed.gather(1, targets[:, None])[:, 0]
    if weights is None:
        return losses, None
    shares.sub_(mixed[:, None]).exp_()
    columns = targets[:, None, None].expand(-1, mixtures, 1)
    at_target = shares.gather(2, columns)
    shares.mul_(everywhere).scatter_add_(2, columns, at_target * (1 - smoothing))
    claims = shares.sum(2, keepdim=True)
    by_token = weights[:, None, None]
    log_probs.exp_().mul_(claims).sub_(shares).mul_(by_token)
    return losses, (claims * by_token)[:, :, 0]


def _exponentiate(values: Tensor) -> tuple[Tensor, Tensor]:
    """values → e^(values − top); returns each row's top and the sum of its exponentials (rows × 1)."""
    top = values.amax(1, keepdim=True)
    values.sub_(top).exp_()
    return top, values.sum(1, keepdim=True)
