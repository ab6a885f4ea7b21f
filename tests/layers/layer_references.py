"""What the layers must agree with: heads of all settings with parameters off their start, and the papers'
formulas written down naively, in any precision.
"""

from __future__ import annotations

import torch
from torch import Tensor

from argmaxable.layers import (
    PLIF,
    Identity,
    MonotonicNetwork,
    SigSoftmax,
    SoftCap,
    SoftmaxHead,
    Transform,
)

NAMES = ("linear", "sigsoftmax", "lms", "lms-plif", "mos", "mos-plif")
BINS, BOUND, MIXTURES = 24, 3.0, 3


def small_head(name: str, features: int, classes: int, *, seed: int = 0, bias: bool = True) -> SoftmaxHead:
    """A head of that name, small, with every parameter moved away from where it starts."""
    torch.manual_seed(seed)
    settings: dict[str, object] = {"bias": bias}
    if name.startswith("mos"):
        settings["mixtures"] = MIXTURES
    if name.endswith("plif"):
        settings["transform"] = PLIF(BINS, BOUND)
    head = SoftmaxHead.from_name(name, features, classes, **settings)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
    return head


def naive_transform(transform: Transform, z: Tensor) -> Tensor:
    """f(z) straight from the definitions, in the precision of z."""
    if isinstance(transform, Identity):
        return z
    if isinstance(transform, SigSoftmax):
        return 2 * z - torch.log(1 + torch.exp(z))
    if isinstance(transform, MonotonicNetwork):
        u, v, a, linear = (table.to(z.dtype) for table in transform.tables())
        return (v * torch.sigmoid(z[..., None] * u + a)).sum(-1) + linear.sum() * z
    if isinstance(transform, SoftCap):
        scaled = z * transform.scale
        capped = scaled if transform.cap is None else transform.cap * torch.tanh(scaled / transform.cap)
        return naive_transform(transform.inner, capped)
    assert isinstance(transform, PLIF)
    slopes = torch.log2(1 + 2 ** transform.raw.to(z.dtype))
    width = transform.width
    index = ((z + transform.bound) / width).floor().clamp(0, transform.bins - 1).long()
    before = torch.cat([slopes.new_zeros(1), slopes.cumsum(0)[:-1]])
    left = index.to(z.dtype) * width - transform.bound
    return transform.shift.to(z.dtype) - transform.bound + before[index] * width + slopes[index] * (z - left)


def naive_log_prob(head: SoftmaxHead, h: Tensor) -> Tensor:
    """Log-probabilities in the precision of h; mixtures as in zihangdai/mos, with its log(p + 1e-8)."""
    if head.latent is None or head.prior is None:
        return torch.log_softmax(naive_transform(head.transform, _linear(head, h)), -1)
    latent = torch.tanh(_linear(head.latent, h)).view(-1, head.weight.shape[1])
    prob = torch.softmax(naive_transform(head.transform, _linear(head, latent)), -1)
    prior = torch.softmax(h @ head.prior.weight.to(h.dtype).T, -1)
    mixed = (prob.view(-1, head.mixtures, head.classes) * prior[:, :, None]).sum(1)
    return torch.log(mixed + 1e-8) if h.dtype == torch.float32 else torch.log(mixed)


def naive_loss(head: SoftmaxHead, h: Tensor, targets: Tensor) -> Tensor:
    return -naive_log_prob(head, h).gather(1, targets[:, None]).mean()


def _linear(layer: torch.nn.Module, x: Tensor) -> Tensor:
    return x @ layer.weight.to(x.dtype).T + layer.bias.to(x.dtype)  # type: ignore[operator,union-attr]
