"""Products of bfloat16 factors, as a device with units for them makes them; products by oneDNN and by MKL.

No such device is needed: on a processor the factors are rounded, widened and multiplied, which gives the same
numbers but for the order of sums. The yardstick is the error of the naive loss under autocast.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

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


@pytest.fixture
def onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products by oneDNN, which any processor can make, though not any faster than MKL."""
    linear = products._working_linear()
    assert linear is not None
    monkeypatch.setattr(products, "_onednn_linear", lambda: linear)


@pytest.fixture
def mkl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "_onednn_linear", lambda: None)


# Rows and columns of the first factor, columns of the second: one more row than is added to a sum at a time.
SIZES = pytest.mark.parametrize("sizes", [(1, 1, 1), (7, 5, 3), (products._ROWS_AT_ONCE + 1, 40, 24)])


def factors(rows: int, inner: int, columns: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return tuple(
        torch.randn(*shape, generator=generator) for shape in ((rows, inner), (inner, columns), (columns,))
    )


def is_close(found: Tensor, exact: Tensor, scale: Tensor) -> bool:
    """Whether errors are within the bound of any order of summation, u for each of at most 64 operations."""
    return bool(((found.double() - exact).abs() <= 64 * 2.0**-24 * scale).all())


@pytest.mark.parametrize("library", ["onednn", "mkl"])
@pytest.mark.parametrize("by_columns", [False, True])
@SIZES
def test_products_and_sums_are_right_to_rounding(
    library: str, by_columns: bool, sizes: tuple[int, int, int], request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue(library)
    a, b, bias = factors(*sizes)
    if by_columns:
        a, b = a.T.contiguous().T, b.T.contiguous().T
    exact, scale = a.double() @ b.double(), a.double().abs() @ b.double().abs()
    assert is_close(products.product(a, b), exact, scale)
    assert is_close(products.product(a, b, bias=bias), exact + bias, scale + bias.abs())
    total = torch.ones(len(a), b.shape[1])
    products.add_product(total, a, b)
    assert is_close(total, exact + 1, scale + 1)


@pytest.mark.parametrize(
    "unsuited",
    [
        pytest.param(lambda each: each.double(), id="double"),
        pytest.param(lambda each: each.repeat(1, 2)[:, ::2], id="every other column"),
        pytest.param(lambda each: each.repeat(2, 2)[: len(each), : each.shape[1]], id="a part"),
    ],
)
def test_onednn_multiplies_only_what_it_is_fast_with(
    unsuited: Callable[[Tensor], Tensor], onednn: None
) -> None:
    a, b, _ = factors(6, 5, 4)
    assert products._linear_for(a, b) is not None
    assert products._linear_for(unsuited(a), b) is None
    assert products._linear_for(a, unsuited(b)) is None


def test_without_features_a_product_is_zero(onednn: None) -> None:
    assert torch.equal(products.product(torch.ones(3, 0), torch.ones(0, 2)), torch.zeros(3, 2))


def test_a_version_of_pytorch_without_that_function_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(*arguments: object) -> Tensor:
        raise RuntimeError("_linear_pointwise() expected at most 2 arguments")

    monkeypatch.setattr(torch.ops.mkldnn, "_linear_pointwise", changed)
    assert products._working_linear() is None


@pytest.mark.parametrize(
    ("capability", "is_amd", "is_used"),
    [("AVX512", True, True), ("AVX512", False, False), ("AVX2", True, False)],
)
def test_onednn_is_used_only_where_mkl_is_slow(
    capability: str, is_amd: bool, is_used: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(products, "_is_amd", lambda: is_amd)
    assert (products._onednn_linear.__wrapped__() is not None) == is_used


def test_without_linux_the_maker_is_what_the_platform_names(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(path: Path, **settings: str) -> str:
        raise FileNotFoundError(path)

    monkeypatch.setattr(Path, "read_text", missing)
    for name in ("AMD64 Family 25 Model 97 Stepping 2, AuthenticAMD", "Intel64 Family 6, GenuineIntel"):
        monkeypatch.setattr(products.platform, "processor", lambda name=name: name)
        assert products._is_amd() == name.endswith("AMD")


def test_whether_onednn_works_does_not_depend_on_the_default_dtype() -> None:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        assert products._working_linear() is not None
    finally:
        torch.set_default_dtype(before)
