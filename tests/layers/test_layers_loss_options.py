"""Options of the loss: class weights, probabilities as targets, z-loss, soft cap; and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from layer_references import NAMES, naive_log_prob, naive_transform, small_head
from torch import Tensor

from argmaxable.core.errors import InputError
from argmaxable.layers import HeadMonitor, SoftCap, SoftmaxHead
from argmaxable.layers import loss as loss_module

TOKENS, FEATURES, CLASSES = 11, 5, 20
ONE_COMPONENT = [name for name in NAMES if not name.startswith("mos")]
EACH_HEAD = pytest.mark.parametrize("name", NAMES)
SMOOTHING = pytest.mark.parametrize("smoothing", [0.0, 0.2])
REDUCTION = pytest.mark.parametrize("reduction", ["mean", "sum", "none"])


@pytest.fixture(autouse=True)
def many_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss_module, "_CHUNK_ROWS", 4)
    monkeypatch.setattr(loss_module, "_CHUNK_BYTES", 1)
    monkeypatch.setattr(loss_module, "BLOCK_LOGITS", 2 * CLASSES)


def some(seed: int = 1) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Features, classes (some ignored), probabilities, class weights (one of them 0)."""
    generator = torch.Generator().manual_seed(seed)
    h = torch.randn(TOKENS, FEATURES, generator=generator, dtype=torch.float64).requires_grad_()
    targets = torch.randint(CLASSES, (TOKENS,), generator=generator)
    targets[2] = targets[7] = -100
    probabilities = torch.rand(TOKENS, CLASSES, generator=generator, dtype=torch.float64)
    probabilities[:, 4] = 0
    weights = torch.rand(CLASSES, generator=generator, dtype=torch.float64)
    weights[6] = 0
    return h, targets, probabilities / probabilities.sum(1, keepdim=True), weights


def require_same(ours: Tensor, theirs: Tensor, inputs: list[Tensor]) -> None:
    """The value, the gradient for a weight of each entry, and the gradient of the gradient's square."""
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    outer = torch.linspace(-1, 2, ours.numel(), dtype=ours.dtype).view_as(ours)
    found, expected = (torch.autograd.grad(each, inputs, outer, retain_graph=True) for each in (ours, theirs))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)
    second = []
    for each in (ours, theirs):
        (gradient,) = torch.autograd.grad(each, inputs[:1], outer, create_graph=True)
        second.append(torch.autograd.grad(gradient.square().sum(), inputs[:2]))
    for one, other in zip(*second, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-10)


@EACH_HEAD
@SMOOTHING
@REDUCTION
def test_class_weights_mean_what_they_mean_to_cross_entropy(
    name: str, smoothing: float, reduction: str
) -> None:
    head = small_head(name, FEATURES, CLASSES).double()
    h, targets, _, weights = some()
    how: dict[str, Any] = {"label_smoothing": smoothing, "reduction": reduction}
    ours = head.loss(h, targets, class_weights=weights, **how)
    theirs = F.cross_entropy(naive_log_prob(head, h), targets, weights, **how)
    require_same(ours, theirs, [h, *head.parameters()])


@EACH_HEAD
@SMOOTHING
@REDUCTION
@pytest.mark.parametrize("weighted", [False, True])
def test_probabilities_as_targets_mean_what_they_mean_to_cross_entropy(
    name: str, smoothing: float, reduction: str, weighted: bool
) -> None:
    head = small_head(name, FEATURES, CLASSES).double()
    h, _, probabilities, weights = some()
    chosen = weights if weighted else None
    how: dict[str, Any] = {"label_smoothing": smoothing, "reduction": reduction}
    ours = head.loss(h, probabilities, class_weights=chosen, **how)
    theirs = F.cross_entropy(naive_log_prob(head, h), probabilities, chosen, **how)
    require_same(ours, theirs, [h, *head.parameters()])


@pytest.mark.parametrize("name", ONE_COMPONENT)
@SMOOTHING
@pytest.mark.parametrize("soft", [False, True])
def test_the_z_loss_is_the_square_of_the_logarithm_of_the_normaliser(
    name: str, smoothing: float, soft: bool
) -> None:
    head = small_head(name, FEATURES, CLASSES).double()
    h, targets, probabilities, _ = some()
    chosen = probabilities if soft else targets
    ours = head.loss(h, chosen, z_loss=0.3, label_smoothing=smoothing, reduction="none")
    assert head.bias is not None
    logits = naive_transform(head.transform, h @ head.weight.T + head.bias)
    theirs = F.cross_entropy(logits, chosen, label_smoothing=smoothing, reduction="none")
    counts = torch.ones(TOKENS, dtype=torch.float64) if soft else (targets != -100).double()
    require_same(ours, theirs + 0.3 * counts * logits.logsumexp(1).square(), [h, *head.parameters()])


@EACH_HEAD
def test_a_soft_cap_is_part_of_the_head_and_so_of_its_loss(name: str) -> None:
    plain = small_head(name, FEATURES, CLASSES).double()
    head = SoftmaxHead(FEATURES, CLASSES, plain.mixtures, SoftCap(plain.transform, cap=2.0)).double()
    head.load_state_dict(
        {k.replace("transform.", "transform.inner."): v for k, v in plain.state_dict().items()}
    )
    h, targets, _, weights = some()
    ours = head.loss(h, targets, class_weights=weights)
    require_same(ours, F.cross_entropy(naive_log_prob(head, h), targets, weights), [h, *head.parameters()])


@EACH_HEAD
@pytest.mark.parametrize("soft", [False, True])
def test_export_and_torch_func_know_the_options(name: str, soft: bool) -> None:
    head = small_head(name, FEATURES, CLASSES).double()
    h, targets, probabilities, weights = some()
    chosen = probabilities if soft else targets
    z_loss = 0.1 if head.mixtures == 1 else 0.0
    how: dict[str, Any] = {"class_weights": weights, "label_smoothing": 0.1, "z_loss": z_loss}
    (expected,) = torch.autograd.grad(head.loss(h, chosen, **how), h)
    torch.testing.assert_close(torch.func.grad(lambda x: head.loss(x, chosen, **how))(h), expected)
    each = torch.func.vmap(lambda x, y: head.loss(x[None], y[None], reduction="sum", **how))(h, chosen)
    torch.testing.assert_close(each, head.loss(h, chosen, reduction="none", **how))


@pytest.mark.parametrize("soft", [False, True])
def test_a_monitor_sees_the_same_share_with_certain_probabilities(soft: bool) -> None:
    head = small_head("lms-plif", FEATURES, CLASSES).double()
    h, targets, _, _ = some()
    targets = targets.clamp(min=0)
    chosen = F.one_hot(targets, CLASSES).double() if soft else targets
    monitor = HeadMonitor(head, every=1, time_limit=1e-3)
    head.loss(h, chosen).backward()
    found = monitor.measure().gradient_lost
    monitor.close()
    expected = HeadMonitor(head, every=1, time_limit=1e-3)
    F.cross_entropy(head(h), targets).backward()
    assert found == pytest.approx(expected.measure().gradient_lost, abs=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_weights_that_add_up_to_zero_have_no_mean_as_in_cross_entropy(name: str) -> None:
    head = small_head(name, FEATURES, CLASSES)
    h = torch.zeros(3, FEATURES)
    assert head.loss(h, torch.arange(3), class_weights=torch.zeros(CLASSES)).isnan()
    assert head.loss(h, torch.full((3,), -100), class_weights=torch.zeros(CLASSES)).item() == 0


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("linear", {"class_weights": torch.ones(3)}, "class_weights must be 20 floats"),
    ("linear", {"class_weights": torch.ones(CLASSES, dtype=torch.long)}, "class_weights must be 20 floats"),
    ("linear", {"class_weights": torch.ones(CLASSES).requires_grad_()}, r"pass class_weights.detach\(\)"),
    ("linear", {"z_loss": -1.0}, "z_loss must be a finite number of at least 0, found -1.0"),
    ("mos", {"z_loss": 1.0}, "z_loss needs a head with one component"),
    ("linear", {"targets": torch.ones(TOKENS, 3)}, r"probabilities of shape \(11, 20\)"),
    ("linear", {"targets": torch.ones(TOKENS, CLASSES).requires_grad_()}, r"pass targets.detach\(\)"),
]


@pytest.mark.parametrize(("name", "changed", "message"), REFUSED)
def test_what_the_loss_can_not_do_is_refused(name: str, changed: dict[str, Any], message: str) -> None:
    call = {"h": torch.zeros(TOKENS, FEATURES), "targets": torch.zeros(TOKENS, dtype=torch.long), **changed}
    with pytest.raises(InputError, match=message):
        small_head(name, FEATURES, CLASSES).loss(**call)
