"""The loss of a block of tokens, and its gradient in place of the logits it came from.

`values` are transformed logits, (tokens · mixtures) × classes, which are overwritten: with the gradient of
Σ weight · loss when weights are given, otherwise with nothing of use. All in log space.
"""

from __future__ import annotations

import torch
from torch import Tensor

from argmaxable.layers.aims import Aims
from argmaxable.layers.pointwise import Factor, Workspace
from argmaxable.layers.vocabulary import Vocabulary


def softmax_loss(
    values: Tensor,
    aims: Aims,
    weights: Tensor | None,
    vocabulary: Vocabulary,
    factor: Factor | None = None,
) -> Tensor:
    """−Σ_c a_c log softmax(values)_c of each token, a what it aims at; and the z-loss.

    A factor (of the softmax's exponentials) is for tokens that aim at one class.
    """
    if not aims.is_one_class:
        return _soft_loss(values, aims, weights)
    columns, scale = aims.targets[:, None], aims.token_weights(values.dtype)
    at_target, top, total = vocabulary.exponentiate(values, columns, factor)
    log_sum = top + total.log()
    mass = None if scale is None else scale[:, None]
    if weights is not None:
        share = weights[:, None]
        values.mul_(_with_z(mass, log_sum, aims.z_loss) * share / total)
        vocabulary.add_at(values, columns, -share if mass is None else -share * mass)
    losses = log_sum - at_target
    return _with_z_loss(losses if mass is None else losses * mass, log_sum, aims.z_loss)


def _soft_loss(values: Tensor, aims: Aims, weights: Tensor | None) -> Tensor:
    wanted = aims.dense(values.shape[1], values.dtype)
    mass = wanted.sum(1, keepdim=True)
    # Each product on its own: a weight of 0 times a logit of −∞ counts 0, as it does in cross_entropy.
    top = values.amax(1, keepdim=True)
    values.sub_(top)
    aimed = torch.where(wanted == 0, 0, wanted * values).sum(1, keepdim=True)
    total = values.exp_().sum(1, keepdim=True)
    losses, log_sum = mass * total.log() - aimed, top + total.log()
    if weights is not None:
        share = weights[:, None]
        values.mul_(_with_z(mass, log_sum, aims.z_loss) * share / total).sub_(wanted.mul_(share))
    return _with_z_loss(losses, log_sum, aims.z_loss)


def _with_z(mass: Tensor | None, log_sum: Tensor, z_loss: float) -> Tensor | float:
    """What multiplies the softmax in the gradient: Σ a_c, and the z-loss's 2 z log Σ exp."""
    own: Tensor | float = 1.0 if mass is None else mass
    return own + 2 * z_loss * log_sum if z_loss else own


def _with_z_loss(losses: Tensor, log_sum: Tensor, z_loss: float) -> Tensor:
    return (losses + z_loss * log_sum.square() if z_loss else losses)[:, 0]


def mixture_loss(
    values: Tensor,
    aims: Aims,
    weights: Tensor | None,
    log_prior: Tensor,
    work: Workspace,
    vocabulary: Vocabulary,
    factor: Factor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """−Σ_c a_c log Σ_k π_k softmax_k(c) of each token, and what each component has in it (tokens × mixtures).

    That share, times the weight, is minus the gradient by log π; None without weights.
    """
    if not aims.is_one_class:
        return _soft_mixture_loss(values, aims, weights, log_prior, work)
    columns = aims.targets.repeat_interleave(log_prior.shape[1])[:, None]
    at_target, top, total = vocabulary.exponentiate(values, columns, factor)
    joint = (at_target - top - total.log()).view_as(log_prior) + log_prior
    log_prob = joint.logsumexp(1, keepdim=True)
    scale = aims.token_weights(values.dtype)
    losses = -log_prob[:, 0] if scale is None else -log_prob[:, 0] * scale
    if weights is None:
        return losses, None
    weights = weights if scale is None else weights * scale
    shares = (joint - log_prob).exp_().mul_(weights[:, None])
    by_row = shares.view(-1, 1)
    vocabulary.add_at(values.mul_(by_row / total), columns, -by_row)
    return losses, shares


def _soft_mixture_loss(
    values: Tensor, aims: Aims, weights: Tensor | None, log_prior: Tensor, work: Workspace
) -> tuple[Tensor, Tensor | None]:
    """Every class counts, so each has shares of its own, π_k p_k(c) / P(c)."""
    mixtures, classes = log_prior.shape[1], values.shape[1]
    values.sub_(values.logsumexp(1, keepdim=True))
    log_probs = values.view(-1, mixtures, classes)  # of each component
    shares = torch.add(log_probs, log_prior[:, :, None], out=work.take("shares", log_probs))
    mixed = shares.logsumexp(1)  # log P(c)
    wanted = aims.dense(classes, mixed.dtype)
    losses = -torch.where(wanted == 0, 0, wanted * mixed).sum(1)
    if weights is None:
        return losses, None
    shares.sub_(mixed[:, None]).exp_().mul_(wanted[:, None])
    claims = shares.sum(2, keepdim=True)
    by_token = weights[:, None, None]
    log_probs.exp_().mul_(claims).sub_(shares).mul_(by_token)
    return losses, (claims * by_token)[:, :, 0]
