"""What goes through plain operations: second derivatives, torch.func, torch.export; and classes ruled out."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from layer_references import NAMES, naive_log_prob, small_head
from torch import Tensor, nn

from argmaxable.layers import SoftmaxHead

FEATURES, CLASSES = 4, 7
TARGETS = torch.tensor([1, 2, -100, 6, 0])


def features() -> Tensor:
    generator = torch.Generator().manual_seed(2)
    return torch.randn(5, FEATURES, generator=generator, dtype=torch.float64).requires_grad_()


def gradient_penalty(loss: Tensor, h: Tensor, head: SoftmaxHead) -> list[Tensor]:
    """The gradient of ‖∂loss/∂h‖², a second derivative."""
    (gradient,) = torch.autograd.grad(loss, h, create_graph=True)
    parameters = [h, *head.parameters()]
    found = torch.autograd.grad(
        gradient.square().sum(), parameters, allow_unused=True, materialize_grads=True
    )
    return list(found)


def reference(head: SoftmaxHead, h: Tensor, smoothing: float) -> Tensor:
    return F.cross_entropy(naive_log_prob(head, h), TARGETS, label_smoothing=smoothing)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_a_gradient_penalty_through_the_loss_is_that_of_the_formula(name: str, smoothing: float) -> None:
    head, h = small_head(name, FEATURES, CLASSES).double(), features()
    expected = gradient_penalty(reference(head, h, smoothing), h, head)
    found = gradient_penalty(head.loss(h, TARGETS, label_smoothing=smoothing), h, head)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_a_gradient_penalty_through_single_losses_and_logits_is_the_same(name: str) -> None:
    head, h = small_head(name, FEATURES, CLASSES).double(), features()
    expected = gradient_penalty(reference(head, h, 0.0), h, head)
    losses = head.loss(h, TARGETS, reduction="none").sum() / (TARGETS >= 0).sum()
    for loss in (losses, F.cross_entropy(head(h), TARGETS)):
        for one, other in zip(gradient_penalty(loss, h, head), expected, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_gradgradcheck(name: str) -> None:
    head, h = small_head(name, FEATURES, CLASSES).double(), features()
    assert torch.autograd.gradgradcheck(lambda x: head.loss(x, TARGETS), (h,))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("through", ["loss", "logits"])
def test_a_class_ruled_out_by_its_bias_leaves_all_gradients_finite(name: str, through: str) -> None:
    head, h = small_head(name, FEATURES, CLASSES), features().detach().float().requires_grad_()
    assert head.bias is not None
    with torch.no_grad():
        head.bias[3] = -torch.inf
    loss = head.loss(h, TARGETS) if through == "loss" else F.cross_entropy(head(h), TARGETS)
    loss.backward()  # type: ignore[no-untyped-call]
    assert loss.isfinite()
    for each in (h, *head.parameters()):
        assert each.grad is not None
        assert bool(each.grad.isfinite().all())
    assert bool((head.log_prob(h)[:, 3].exp() == 0).all())


@pytest.mark.parametrize("name", NAMES)
def test_torch_func_sees_the_same_loss(name: str) -> None:
    head, h = small_head(name, FEATURES, CLASSES).double(), features()
    (expected,) = torch.autograd.grad(head.loss(h, TARGETS), h)
    torch.testing.assert_close(torch.func.grad(lambda x: head.loss(x, TARGETS))(h), expected)
    each = torch.func.vmap(lambda x, y: head.loss(x[None], y[None]))(h, TARGETS)
    torch.testing.assert_close(each, head.loss(h, TARGETS, reduction="none"))


class _Loss(nn.Module):
    def __init__(self, head: SoftmaxHead) -> None:
        super().__init__()
        self.head = head

    def forward(self, h: Tensor, targets: Tensor) -> Any:
        return self.head.loss(h, targets)


@pytest.mark.parametrize("name", NAMES)
def test_the_loss_can_be_exported(name: str) -> None:
    head, h = small_head(name, FEATURES, CLASSES).double(), features()
    exported = torch.export.export(_Loss(head), (h, TARGETS)).module()
    torch.testing.assert_close(exported(h, TARGETS), head.loss(h, TARGETS))


def test_an_ignored_token_counts_nothing_in_torch_func_though_class_0_is_ruled_out() -> None:
    head = small_head("linear", 4, 6)
    assert head.bias is not None
    with torch.no_grad():
        head.bias[0] = -torch.inf
    h, targets = torch.randn(3, 4), torch.tensor([1, -100, 2])
    gradient, loss = torch.func.grad_and_value(lambda x: head.loss(x, targets))(h)
    torch.testing.assert_close(loss, head.loss(h, targets))
    assert gradient.isfinite().all()
