"""The chunked loss: values and gradients against the naive formulas, and nothing large ever held."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from layer_references import NAMES, naive_log_prob, naive_loss, small_head
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from argmaxable.core.errors import InputError
from argmaxable.layers import SoftmaxHead
from argmaxable.layers import loss as loss_module

TOKENS, FEATURES, CLASSES = 23, 8, 200
EPSILON = torch.finfo(torch.float32).eps


@pytest.fixture
def many_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of a few tokens and blocks of one, so that small problems meet every boundary."""
    monkeypatch.setattr(loss_module, "_CHUNK_ROWS", 8)
    monkeypatch.setattr(loss_module, "_CHUNK_BYTES", 1)
    monkeypatch.setattr(loss_module, "BLOCK_LOGITS", 3 * CLASSES)


def batch(dtype: torch.dtype = torch.float32, *, ignored: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    h = torch.randn(TOKENS, FEATURES, generator=generator, dtype=torch.float64).to(dtype)
    targets = torch.randint(CLASSES, (TOKENS,), generator=generator)
    targets[torch.randperm(TOKENS, generator=generator)[:ignored]] = -100
    return h.requires_grad_(), targets


def gradients(loss: Tensor, h: Tensor, head: SoftmaxHead) -> list[Tensor]:
    return [gradient.double() for gradient in torch.autograd.grad(loss, [h, *head.parameters()])]


def distance(one: list[Tensor], other: list[Tensor]) -> float:
    """The largest difference, each tensor in units of the largest entry of the other."""
    return max(
        float((a - b).abs().max() / b.abs().max().clamp(min=1e-30)) for a, b in zip(one, other, strict=True)
    )


# ---------------------------------------------------------------------- values and gradients


@pytest.mark.parametrize("name", NAMES)
def test_the_loss_is_as_close_to_float64_as_the_naive_float32_formula(name: str, many_chunks: None) -> None:
    head = small_head(name, FEATURES, CLASSES)
    h, targets = batch()
    exact = naive_loss(copy.deepcopy(head).double(), h.double(), targets).item()
    naive_error = abs(naive_loss(head, h, targets).item() - exact)
    assert abs(head.loss(h, targets).item() - exact) <= naive_error + 2 * EPSILON * exact


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_as_close_to_float64_as_those_of_the_naive_formula(
    name: str, many_chunks: None
) -> None:
    head = small_head(name, FEATURES, CLASSES)
    h, targets = batch()
    double, h64 = copy.deepcopy(head).double(), h.detach().double().requires_grad_()
    exact = gradients(naive_loss(double, h64, targets), h64, double)
    naive = gradients(naive_loss(head, h, targets), h, head)
    ours = gradients(head.loss(h, targets), h, head)
    assert distance(ours, exact) <= distance(naive, exact) + 8 * EPSILON


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_in_float64_value_and_gradient_are_those_of_cross_entropy(
    name: str, smoothing: float, reduction: str, many_chunks: None
) -> None:
    head = small_head(name, FEATURES, CLASSES).double()
    h, targets = batch(torch.float64, ignored=5)
    # Any weights will do: "none" gets one for each token, the others one for all.
    weights = torch.linspace(-1, 2, TOKENS, dtype=torch.float64) if reduction == "none" else torch.tensor(3.0)
    ours = head.loss(h, targets, label_smoothing=smoothing, reduction=reduction)
    naive = F.cross_entropy(naive_log_prob(head, h), targets, label_smoothing=smoothing, reduction=reduction)
    torch.testing.assert_close(ours, naive, rtol=1e-12, atol=1e-12)
    mine, theirs = (gradients((each * weights).sum(), h, head) for each in (ours, naive))
    assert distance(mine, theirs) < 1e-11


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_gradcheck_in_float64(name: str, smoothing: float) -> None:
    head = small_head(name, 2, 4).double()
    h = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([0, 3, -100, 1])

    def loss(*_: Tensor) -> Tensor:
        return head.loss(h, targets, label_smoothing=smoothing)

    assert torch.autograd.gradcheck(loss, (h, *head.parameters()))


def test_a_second_backward_gives_the_same_gradient_again() -> None:
    head = small_head("mos-plif", FEATURES, CLASSES)
    h, targets = batch()
    loss = head.loss(h, targets)
    (first,) = torch.autograd.grad(loss, h, retain_graph=True)
    (second,) = torch.autograd.grad(loss, h)
    torch.testing.assert_close(first, second)


@pytest.mark.parametrize("name", NAMES)
def test_frozen_parameters_get_no_gradient_and_change_none(name: str) -> None:
    head = small_head(name, FEATURES, CLASSES)
    h, targets = batch()
    expected = torch.autograd.grad(head.loss(h, targets), h)[0]
    head.requires_grad_(False)
    assert torch.equal(torch.autograd.grad(head.loss(h, targets), h)[0], expected)


def test_without_grad_mode_nothing_is_kept_for_backward() -> None:
    h, targets = batch()
    with torch.no_grad():
        assert not small_head("mos", FEATURES, CLASSES).loss(h, targets).requires_grad


@pytest.mark.parametrize("name", NAMES)
def test_runs_repeat_to_the_last_bit(name: str) -> None:
    h, targets = batch()
    runs = []
    for _ in range(2):
        head = small_head(name, FEATURES, CLASSES, seed=3)
        runs.append(gradients(head.loss(h, targets), h, head))
    assert all(torch.equal(one, other) for one, other in zip(*runs, strict=True))


def test_leading_dimensions_are_kept() -> None:
    head = small_head("mos", FEATURES, CLASSES)
    h, targets = torch.randn(2, 3, FEATURES), torch.randint(CLASSES, (2, 3))
    each = head.loss(h, targets, reduction="none")
    assert each.shape == (2, 3)
    torch.testing.assert_close(each.mean(), head.loss(h, targets))


@pytest.mark.parametrize("name", ["sigsoftmax", "lms-plif", "mos-plif"])
def test_logits_of_ten_thousand_are_finite(name: str) -> None:
    head = small_head(name, FEATURES, CLASSES)
    with torch.no_grad():
        head.weight.mul_(1e4 / float(head.weight.abs().max()))
    h, targets = batch()
    loss = head.loss(h, targets)
    assert loss.isfinite()
    assert all(gradient.isfinite().all() for gradient in gradients(loss, h, head))
    assert head.log_prob(h).isfinite().all()


def test_a_nan_feature_makes_a_nan_loss_and_no_crash() -> None:
    head = small_head("lms-plif", FEATURES, CLASSES)
    h, targets = batch()
    with torch.no_grad():
        h[0, 0] = torch.nan
    assert head.loss(h, targets).isnan()


# ---------------------------------------------------------------------- precision


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", NAMES)
def test_under_autocast_the_loss_is_that_of_float32(name: str, dtype: torch.dtype) -> None:
    head = small_head(name, FEATURES, CLASSES)
    h, targets = batch()
    plain = gradients(head.loss(h, targets), h, head)
    with torch.autocast("cpu", dtype):
        loss = head.loss(h, targets)
    assert loss.dtype == torch.float32
    assert all(torch.equal(one, other) for one, other in zip(gradients(loss, h, head), plain, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_parameters_in_bfloat16_are_computed_with_in_float32(name: str) -> None:
    head = small_head(name, FEATURES, CLASSES).to(torch.bfloat16)
    h, targets = batch(torch.bfloat16)
    loss = head.loss(h, targets)
    expected = copy.deepcopy(head).float().loss(h.float(), targets)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, expected)
    assert all(gradient.isfinite().all() for gradient in gradients(loss, h, head))


# ---------------------------------------------------------------------- memory


class LargestTensor(TorchDispatchMode):
    """Remembers the largest tensor that any operation returned."""

    entries = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for each in result if isinstance(result, tuple | list) else (result,):
            if isinstance(each, Tensor):
                self.entries = max(self.entries, each.numel())
        return result


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_no_tensor_is_as_large_as_tokens_times_classes(name: str, reduction: str, many_chunks: None) -> None:
    head = small_head(name, FEATURES, CLASSES)
    h, targets = batch()
    with LargestTensor() as largest:
        head.loss(h, targets, reduction=reduction).sum().backward()
    assert 0 < largest.entries < TOKENS * CLASSES / 2


# ---------------------------------------------------------------------- odd arguments


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("tokens", [0, 4], ids=["empty batch", "all ignored"])
def test_no_tokens_make_a_loss_of_zero_with_zero_gradients(name: str, reduction: str, tokens: int) -> None:
    head = small_head(name, FEATURES, CLASSES)
    h = torch.randn(tokens, FEATURES, requires_grad=True)
    targets = torch.full((tokens,), -100)
    loss = head.loss(h, targets, reduction=reduction)
    assert loss.item() == 0
    assert all(not gradient.any() for gradient in gradients(loss, h, head))
    assert head.loss(h, targets, reduction="none").tolist() == [0.0] * tokens


def test_ignored_tokens_get_no_gradient() -> None:
    head = small_head("mos", FEATURES, CLASSES)
    h, targets = batch(ignored=9)
    head.loss(h, targets).backward()
    assert h.grad is not None
    assert torch.equal((h.grad != 0).any(1), targets != -100)


@pytest.mark.parametrize("stray", [CLASSES, -1, 10**9])
def test_a_target_that_is_no_class_is_named(stray: int) -> None:
    h, targets = batch()
    targets[3] = stray
    with pytest.raises(InputError, match=f"target {stray} is not a class: the head has classes 0 to 199"):
        small_head("linear", FEATURES, CLASSES).loss(h, targets)


BAD_CALLS: list[tuple[dict[str, Any], str]] = [
    ({"targets": torch.zeros(3, dtype=torch.long)}, r"targets must be integers of shape \(23,\)"),
    ({"targets": torch.zeros(TOKENS)}, "found torch.float32"),
    ({"h": torch.zeros(TOKENS, 5)}, r"expected vectors of 8 features, found shape \(23, 5\)"),
    ({"reduction": "median"}, "unknown reduction 'median': choose one of mean, sum, none"),
    ({"label_smoothing": 1.5}, "label smoothing must be between 0 and 1, found 1.5"),
]


@pytest.mark.parametrize(("changed", "message"), BAD_CALLS)
def test_a_bad_argument_is_named(changed: dict[str, Any], message: str) -> None:
    h, targets = batch()
    with pytest.raises(InputError, match=message):
        small_head("linear", FEATURES, CLASSES).loss(**{"h": h, "targets": targets, **changed})


@pytest.mark.parametrize("name", NAMES)
def test_half_precision_gradients_are_rounded_after_the_loss_is_scaled(name: str) -> None:
    head, (h, targets) = small_head(name, FEATURES, CLASSES), batch()
    factor = 2.0**16  # a gradient scaler's: without it most of these gradients are below float16's reach
    half = (h.detach() / 1000).half().requires_grad_()
    single = half.detach().float().requires_grad_()
    with torch.no_grad():
        head.weight.div_(1000)
    (scaled,) = torch.autograd.grad(head.loss(half, targets) * factor, half)
    (expected,) = torch.autograd.grad(head.loss(single, targets) * factor, single)
    assert (scaled != 0).any()
    assert torch.equal(scaled, expected.half())


@pytest.mark.parametrize("dtype", [torch.bool, torch.complex64, torch.float32])
def test_targets_that_are_no_integers_are_named(dtype: torch.dtype) -> None:
    with pytest.raises(InputError, match="integers"):
        small_head("linear", FEATURES, CLASSES).loss(torch.zeros(3, FEATURES), torch.zeros(3, dtype=dtype))


@pytest.mark.parametrize("shift", [0.0, -59.0, -61.0, -80.0, -300.0, 90.0])
@pytest.mark.parametrize("mixtures", [1, 3])
def test_sigsoftmax_is_exact_wherever_its_logits_are(shift: float, mixtures: int, many_chunks: None) -> None:
    torch.manual_seed(0)
    head = SoftmaxHead.from_name("sigsoftmax", FEATURES, CLASSES, mixtures=mixtures)
    assert head.bias is not None
    with torch.no_grad():
        head.weight.mul_(5)
        head.bias.fill_(shift)
    h, targets = batch()
    double, h64 = copy.deepcopy(head).double(), h.detach().double().requires_grad_()
    exact = F.cross_entropy(double(h64), targets)
    naive = F.cross_entropy(head(h), targets)
    loss = head.loss(h, targets)
    assert abs(loss.item() - exact.item()) <= abs(naive.item() - exact.item()) + 2 * EPSILON * exact.item()
    expected = gradients(exact, h64, double)
    # Far to the left f is about 2z: storing it in float32 moves a probability by a share of 2|z| EPSILON.
    slack = (8 + 2 * max(0.0, -shift)) * EPSILON
    error = distance(gradients(naive, h, head), expected)
    assert distance(gradients(loss, h, head), expected) <= error + slack
