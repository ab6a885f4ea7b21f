"""Products of bfloat16 factors, as a device with units for them makes them.

No such device is needed: on a processor the factors are rounded, widened and multiplied, which gives the same
numbers but for the order of sums. The yardstick is the error of the naive loss under autocast.
"""

from __future__ import annotations

import copy

import pytest
import torch
from layer_references import NAMES, naive_log_prob, small_head
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from argmaxable.layers import SoftmaxHead, products

TOKENS, FEATURES, CLASSES = 64, 32, 300
# A sixteenth of bfloat16's unit roundoff: the few entries of a transform's table are sums over all logits,
# whose errors cancel more in one computation or in the other by chance.
CHANCE = 2.0**-12
EACH_HEAD = pytest.mark.parametrize("name", NAMES)


@pytest.fixture
def has_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "has_half_units", lambda device: True)


def batch() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    h = torch.randn(TOKENS, FEATURES, generator=generator)
    return h.requires_grad_(), torch.randint(CLASSES, (TOKENS,), generator=generator)


def naive(head: SoftmaxHead, h: Tensor, targets: Tensor) -> Tensor:
    return -naive_log_prob(head, h).float().gather(1, targets[:, None])[:, 0]


def fused(head: SoftmaxHead, h: Tensor, targets: Tensor) -> Tensor:
    return head.loss(h, targets, reduction="none")


def found(losses: Tensor, h: Tensor, head: SoftmaxHead) -> list[Tensor]:
    """The losses of all tokens (errors of their mean may cancel) and the gradients of the mean, in
    float64."""
    gradients = torch.autograd.grad(losses.mean(), [h, *head.parameters()])
    return [each.double() for each in (losses.detach(), *gradients)]


def errors(ours: list[Tensor], exact: list[Tensor]) -> list[float]:
    """The norm of each difference, relative."""
    return [float((a - b).norm() / b.norm()) for a, b in zip(ours, exact, strict=True)]


@EACH_HEAD
def test_under_autocast_errors_are_at_most_those_of_the_naive_loss(name: str, has_units: None) -> None:
    head, (h, targets) = small_head(name, FEATURES, CLASSES), batch()
    double, wide = copy.deepcopy(head).double(), h.detach().double().requires_grad_()
    exact = found(fused(double, wide, targets), wide, double)
    with torch.autocast("cpu", torch.bfloat16):
        ours = found(fused(head, h, targets), h, head)
        theirs = found(naive(head, h, targets), h, head)
    single = found(fused(head, h, targets), h, head)
    for mine, yardstick, exactly in zip(
        errors(ours, exact), errors(theirs, exact), errors(single, exact), strict=True
    ):
        assert mine <= yardstick + CHANCE
        assert mine > exactly  # bfloat16 was used


@EACH_HEAD
def test_bfloat16_parameters_have_their_products_summed_in_float32(name: str, has_units: None) -> None:
    head, (h, targets) = small_head(name, FEATURES, CLASSES).bfloat16(), batch()
    half = h.detach().bfloat16().requires_grad_()
    double, wide = copy.deepcopy(head).double(), half.detach().double().requires_grad_()
    exact = found(fused(double, wide, targets), wide, double)
    losses = fused(head, half, targets)
    assert losses.dtype == torch.float32
    ours = errors(found(losses, half, head), exact)
    theirs = errors(found(naive(head, half, targets), half, head), exact)
    assert all(mine <= yardstick + CHANCE for mine, yardstick in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_processor_keeps_float32_products_under_autocast(dtype: torch.dtype) -> None:
    head, (h, targets) = small_head("lms-plif", FEATURES, CLASSES), batch()
    expected = found(fused(head, h, targets), h, head)
    with torch.autocast("cpu", dtype):
        ours = found(fused(head, h, targets), h, head)
    assert all(torch.equal(one, other) for one, other in zip(ours, expected, strict=True))


def test_the_product_on_a_gpu_is_one_that_torch_has() -> None:
    with FakeTensorMode(allow_non_fake_inputs=True):  # shapes and types only: no GPU is needed
        a, b = torch.empty(8, 16, device="cuda"), torch.empty(16, 24, device="cuda")
        result = products.product(a, b, half=True)
    assert (result.shape, result.dtype) == ((8, 24), torch.float32)
