"""SoftmaxHead: one construction, six names; distributions, choices, and living with the rest of PyTorch."""

from __future__ import annotations

import copy
import os
import shutil
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from layer_references import NAMES, naive_log_prob, small_head
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import argmaxable as am
from argmaxable.core.errors import HeadError, InputError
from argmaxable.layers import (
    PLIF,
    Identity,
    Kernel,
    MonotonicNetwork,
    SigSoftmax,
    SoftCap,
    SoftmaxHead,
    SphericalLinear,
    Transform,
    VoronoiLinear,
)
from argmaxable.layers import head as head_module

FEATURES, CLASSES = 6, 40
ONE_COMPONENT = [name for name in NAMES if not name.startswith("mos")]
NEEDS_COMPILER = pytest.mark.skipif(
    shutil.which(os.environ.get("CXX", "g++")) is None, reason="torch.compile needs a C++ compiler"
)


def some_features(count: int = 9) -> Tensor:
    return torch.randn(count, FEATURES, generator=torch.Generator().manual_seed(2))


def test_without_pytorch_the_error_names_the_extra() -> None:
    program = "import sys; sys.modules['torch'] = None; import argmaxable.layers"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "InputError: argmaxable.layers needs PyTorch: pip install 'argmaxable[torch]'" in done.stderr


# ---------------------------------------------------------------------- six settings of one construction


@pytest.mark.parametrize(
    ("name", "mixtures", "transform"),
    [
        ("linear", 1, Identity),
        ("sigsoftmax", 1, SigSoftmax),
        ("lms", 1, MonotonicNetwork),
        ("lms-plif", 1, PLIF),
        ("mos", 15, Identity),
        ("mos-plif", 15, PLIF),
    ],
)
def test_a_name_stands_for_the_papers_setting(name: str, mixtures: int, transform: type[Transform]) -> None:
    head = SoftmaxHead.from_name(name, FEATURES, CLASSES)
    assert (head.mixtures, type(head.transform)) == (mixtures, transform)


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="no head is called 'moss': choose one of linear, sigsoftmax"):
        SoftmaxHead.from_name("moss", FEATURES, CLASSES)


@pytest.mark.parametrize("sizes", [(0, 5, 1), (5, 0, 1), (5, 5, 0)])
def test_sizes_below_one_are_refused(sizes: tuple[int, int, int]) -> None:
    with pytest.raises(InputError, match="of at least 1, found 0"):
        SoftmaxHead(*sizes)


@pytest.mark.parametrize("name", NAMES)
def test_settings_build_the_same_head_again(name: str) -> None:
    head = small_head(name, FEATURES, CLASSES)
    again = SoftmaxHead.from_settings(head.settings())
    again.load_state_dict(head.state_dict())
    assert torch.equal(again(some_features()), head(some_features()))


# ---------------------------------------------------------------------- distributions


@pytest.mark.parametrize("name", NAMES)
def test_log_probabilities_are_as_close_to_float64_as_the_naive_formula(name: str) -> None:
    head, h = small_head(name, FEATURES, CLASSES), some_features(50)
    exact = naive_log_prob(copy.deepcopy(head).double(), h.double())
    naive_error = (naive_log_prob(head, h) - exact).abs().max()
    tolerance = 2 * torch.finfo(torch.float32).eps * exact.abs().max()
    assert (head.log_prob(h) - exact).abs().max() <= naive_error + tolerance


@pytest.mark.parametrize("name", NAMES)
def test_probabilities_sum_to_one(name: str) -> None:
    totals = small_head(name, FEATURES, CLASSES).double().log_prob(some_features().double()).exp().sum(-1)
    torch.testing.assert_close(totals, torch.ones_like(totals))


@pytest.mark.parametrize("name", NAMES)
def test_forward_gives_logits_of_the_same_distribution(name: str) -> None:
    head, h = small_head(name, FEATURES, CLASSES).double(), some_features().double()
    torch.testing.assert_close(head(h).log_softmax(-1), head.log_prob(h))


@pytest.mark.parametrize("name", ["linear", "lms-plif"])
def test_a_fresh_head_is_the_linear_softmax_to_the_last_bit(name: str) -> None:
    torch.manual_seed(0)
    head, linear = SoftmaxHead.from_name(name, FEATURES, CLASSES), nn.Linear(FEATURES, CLASSES)
    linear.load_state_dict({"weight": head.weight, "bias": head.bias})
    h = some_features(200)
    assert torch.equal(head(h), linear(h))
    assert torch.equal(head.log_prob(h), linear(h).log_softmax(-1))


def test_a_fresh_plif_head_has_the_loss_and_gradients_of_the_plain_head_to_the_last_bit() -> None:
    torch.manual_seed(0)
    plain = SoftmaxHead.from_name("linear", FEATURES, CLASSES)
    plif = SoftmaxHead.from_name("lms-plif", FEATURES, CLASSES)
    plif.load_state_dict(plain.state_dict(), strict=False)
    h, targets = some_features(64), torch.randint(CLASSES, (64,))
    losses = [head.loss(h, targets) for head in (plain, plif)]
    assert losses[0] == losses[1]
    for loss in losses:
        loss.backward()
    assert torch.equal(plain.weight.grad, plif.weight.grad)


def test_mixtures_are_computed_in_chunks_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    head = small_head("mos-plif", FEATURES, CLASSES).double()
    h = some_features().double().requires_grad_()
    whole = head.log_prob(h)
    (expected,) = torch.autograd.grad(whole.square().sum(), h)
    monkeypatch.setattr(head_module, "_CHUNK_LOGITS", 2 * CLASSES * head.mixtures)
    parts = head.log_prob(h)
    torch.testing.assert_close(parts, whole)
    torch.testing.assert_close(torch.autograd.grad(parts.square().sum(), h)[0], expected)


@pytest.mark.parametrize("name", NAMES)
def test_under_autocast_distributions_are_those_of_float32(name: str) -> None:
    head, h = small_head(name, FEATURES, CLASSES), some_features()
    with torch.autocast("cpu", torch.bfloat16):
        found = head.log_prob(h)
    assert found.dtype == torch.float32
    assert torch.equal(found, head.log_prob(h))


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_batch_has_empty_answers(name: str) -> None:
    head, none = small_head(name, FEATURES, CLASSES), torch.zeros(0, FEATURES)
    assert head.log_prob(none).shape == (0, CLASSES)
    assert head.argmax(none).shape == (0,)
    assert head.top_k(none, 3)[1].shape == (0, 3)
    assert head.sample(none).shape == (0,)


# ---------------------------------------------------------------------- choosing classes


@pytest.mark.parametrize("name", NAMES)
def test_argmax_and_top_k_are_those_of_the_probabilities(name: str) -> None:
    head, h = small_head(name, FEATURES, CLASSES).double(), some_features().double().view(3, 3, FEATURES)
    values, ids = head.log_prob(h).topk(4)
    best, chosen = head.top_k(h, 4)
    assert torch.equal(chosen, ids)
    torch.testing.assert_close(best, values)
    assert torch.equal(head.argmax(h), ids[..., 0])


def test_argmax_of_one_component_does_not_suffer_from_a_saturated_transform() -> None:
    head = SoftmaxHead(1, 3, transform=MonotonicNetwork(2, linear=False), bias=False)
    with torch.no_grad():
        head.weight.copy_(torch.tensor([[1000.0], [1001.0], [1002.0]]))
    h = torch.ones(1, 1)
    assert head(h).unique().numel() == 1  # in float32 the three are equal
    assert head.argmax(h).tolist() == [2]


@pytest.mark.parametrize("name", ["sigsoftmax", "mos"])
def test_samples_follow_the_distribution(name: str) -> None:
    head, h = small_head(name, FEATURES, 5), some_features(1)
    drawn = head.sample(h, samples=20_000, generator=torch.Generator().manual_seed(0))
    assert drawn.shape == (1, 20_000)
    shares = drawn[0].bincount(minlength=5) / 20_000
    # Five standard deviations of a share.
    assert (shares - head.log_prob(h)[0].exp()).abs().max() < 5 * 0.5 / 20_000**0.5


def test_samples_repeat_with_the_same_generator_and_shape_follows_features() -> None:
    head, h = small_head("mos-plif", FEATURES, CLASSES), some_features(8).view(2, 4, FEATURES)
    one, two = (head.sample(h, generator=torch.Generator().manual_seed(7)) for _ in range(2))
    assert torch.equal(one, two)
    assert one.shape == (2, 4)


def test_a_low_temperature_samples_the_argmax() -> None:
    head, h = small_head("lms", FEATURES, CLASSES), some_features()
    assert torch.equal(head.sample(h, temperature=1e-4), head.argmax(h))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda head, h: head.top_k(h, 0), "k must be between 1 and the number of classes, 40; found 0"),
        (lambda head, h: head.top_k(h, 41), "found 41"),
        (lambda head, h: head.sample(h, samples=0), "at least 1, found 0"),
        (lambda head, h: head.sample(h, temperature=0.0), "above 0, found 0.0; use argmax"),
        (lambda head, h: head.log_prob(h[:, :2]), r"expected vectors of 6 features, found shape \(9, 2\)"),
        (lambda head, h: head(torch.tensor(1.0)), r"found shape \(\)"),
    ],
)
def test_bad_arguments_are_named(call: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(small_head("linear", FEATURES, CLASSES), some_features())  # type: ignore[operator]


# ---------------------------------------------------------------------- tied weights, copies, states


@pytest.mark.parametrize("name", NAMES)
def test_a_tied_head_uses_the_embedding_itself(name: str) -> None:
    embedding = nn.Embedding(CLASSES, FEATURES)
    head = SoftmaxHead.from_name(name, FEATURES, CLASSES, transform=Identity(), tie_to=embedding)
    assert head.weight is embedding.weight
    head.loss(some_features(), torch.arange(9)).backward()
    assert embedding.weight.grad is not None


def test_a_mixture_may_be_tied_to_rows_of_another_length() -> None:
    embedding = nn.Embedding(CLASSES, 3)
    head = SoftmaxHead(FEATURES, CLASSES, mixtures=2, tie_to=embedding)
    assert head(some_features()).shape == (9, CLASSES)


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (nn.Embedding(CLASSES, 3), r"shape \(40, 3\); expected 40 × 6"),
        (nn.Embedding(7, FEATURES), r"shape \(7, 6\)"),
        (nn.ReLU(), "ReLU has no weight to tie"),
    ],
)
def test_what_can_not_be_tied_is_refused(module: nn.Module, message: str) -> None:
    with pytest.raises(InputError, match=message):
        SoftmaxHead(FEATURES, CLASSES, tie_to=module)


@pytest.mark.parametrize("name", NAMES)
def test_a_copy_is_equal_and_independent(name: str) -> None:
    head, h = small_head(name, FEATURES, CLASSES), some_features()
    copied = copy.deepcopy(head)
    before = copied(h)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.add_(1)
    assert torch.equal(copied(h), before)


@pytest.mark.parametrize("name", NAMES)
def test_a_state_dict_carries_everything(name: str) -> None:
    head, other = small_head(name, FEATURES, CLASSES, seed=0), small_head(name, FEATURES, CLASSES, seed=1)
    other.load_state_dict(head.state_dict())
    assert torch.equal(other(some_features()), head(some_features()))


def test_a_transform_of_your_own_needs_only_a_formula_a_slope_and_a_kernel() -> None:
    class Doubled(Transform):
        def formula(self, z: Tensor) -> Tensor:
            return 2 * z

        def slopes(self, z: Tensor) -> Tensor:
            return torch.full_like(z, 2)

        def inverse(self, y: Tensor) -> Tensor:
            return y / 2

        def kernel(self, tables: tuple[Tensor, ...], *, learn: bool) -> Kernel:
            return DoubledKernel(tables, learn=learn)

    class DoubledKernel(Kernel):
        def values(self, z: Tensor) -> Tensor:
            return torch.mul(z, 2, out=self.work.take("values", z))

        def pull_back(self, z: Tensor, gradient: Tensor, out: Tensor) -> None:
            torch.mul(gradient, 2, out=out)

    head = SoftmaxHead(FEATURES, CLASSES, transform=Doubled()).double()
    h = some_features().double().requires_grad_()
    targets = torch.arange(9)
    expected = F.cross_entropy(2 * F.linear(h, head.weight, head.bias), targets)
    torch.testing.assert_close(head.loss(h, targets), expected)
    torch.testing.assert_close(
        torch.autograd.grad(head.loss(h, targets), h)[0], torch.autograd.grad(expected, h)[0]
    )
    assert not head.has_settings
    with pytest.raises(InputError, match="Doubled has no record of plain values"):
        head.settings()


# ---------------------------------------------------------------------- verdicts


@pytest.mark.parametrize("name", ONE_COMPONENT)
def test_verdicts_of_one_component_are_those_of_the_linear_part(name: str) -> None:
    head = small_head(name, 3, 30)
    linear = am.verify(
        am.Head(head.weight.detach().numpy(), head.bias.detach().numpy()), engine=am.Engine(workers=1)
    )
    found = am.verify(am.Head.from_module(head), engine=am.Engine(workers=1))
    assert [verdict.status for verdict in found.verdicts] == [verdict.status for verdict in linear.verdicts]
    assert found.unargmaxable
    # And no input tried makes the head itself choose such a class.
    chosen = set(head.argmax(100 * torch.rand(20_000, 3) * 2 - 100).tolist())
    assert not chosen & {verdict.class_id for verdict in found.unargmaxable}


@pytest.mark.parametrize("name", ["mos", "mos-plif"])
@pytest.mark.parametrize("reader", [am.Head.from_module, am.Head.from_linear])
def test_linear_verdicts_are_refused_for_mixtures(name: str, reader: object) -> None:
    with pytest.raises(HeadError, match=r"mixes 3 softmaxes\. Linear verdicts do not apply"):
        reader(small_head(name, FEATURES, CLASSES))  # type: ignore[operator]


def test_the_argmax_of_a_mixture_need_not_be_that_of_any_component() -> None:
    head = SoftmaxHead(1, 3, mixtures=2, bias=False, tie_to=nn.Embedding(3, 2))
    with torch.no_grad():
        head.weight.copy_(torch.tensor([[5.0, 0.0], [-5.0, 0.0], [0.0, 5.0]]))
        head.latent.weight.copy_(torch.tensor([[2.0], [1.5], [-2.0], [1.5]]))
        head.latent.bias.zero_()
        head.prior.weight.zero_()
    h = torch.ones(1, 1)
    assert head.component_logits(h).argmax(-1).tolist() == [[0, 1]]
    assert head.argmax(h).tolist() == [2]


def test_a_class_dominated_over_the_range_of_tanh_is_never_first_in_a_mixture_without_transform() -> None:
    # Convexity of the exponential: s_c ≤ Σ λ_i s_i for every component makes P(c) ≤ Σ λ_i P(i).
    head = small_head("mos", 3, 30)
    linear = am.Head(head.weight.detach().numpy(), head.bias.detach().numpy())
    dominated = am.verify(linear, am.Box(-1, 1), engine=am.Engine(workers=1)).unargmaxable
    assert dominated
    chosen = set(head.argmax(20 * torch.randn(50_000, 3)).tolist())
    assert not chosen & {verdict.class_id for verdict in dominated}


# ---------------------------------------------------------------------- the rest of PyTorch


class Model(nn.Module):
    """A layer and a head, as a training script has them."""

    def __init__(self, head: SoftmaxHead) -> None:
        super().__init__()
        self.body = nn.Linear(FEATURES, FEATURES)
        self.head = head

    def forward(self, x: Tensor, targets: Tensor) -> Tensor:
        return self.head.loss(torch.tanh(self.body(x)), targets)


def gradients_of(model: nn.Module, loss: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(loss, list(model.parameters())))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("use_reentrant", [True, False])
def test_gradient_checkpointing_changes_nothing(name: str, use_reentrant: bool) -> None:
    torch.manual_seed(0)
    model = Model(small_head(name, FEATURES, CLASSES))
    x, targets = some_features().requires_grad_(), torch.arange(9)
    model(x, targets).backward()
    expected = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    checkpoint(model, x, targets, use_reentrant=use_reentrant).backward()
    found = [parameter.grad for parameter in model.parameters()]
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_a_compiled_model_has_the_same_loss_and_gradients(name: str) -> None:
    torch.manual_seed(0)
    model = Model(small_head(name, FEATURES, CLASSES))
    x, targets = some_features(), torch.arange(9)
    compiled = torch.compile(model, backend="aot_eager")
    expected, found = model(x, targets), compiled(x, targets)
    torch.testing.assert_close(found, expected)
    for one, other in zip(gradients_of(model, found), gradients_of(model, expected), strict=True):
        torch.testing.assert_close(one, other)


def test_a_transform_shows_its_settings() -> None:
    assert repr(PLIF(1000, 4.0)) == "PLIF(bins=1000, bound=4.0)"


@NEEDS_COMPILER
@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # the compiler's own use of torch.jit
def test_a_plif_fused_by_the_compiler_agrees_with_the_eager_one() -> None:
    torch.manual_seed(0)
    plif = PLIF(1000, 4.0)
    nn.init.normal_(plif.raw)
    z, weights = 3 * torch.randn(64, 50), torch.randn(64, 50)
    found = []
    # One thread, for otherwise the compiler starts processes that outlive the test.
    compiled = torch.compile(plif, fullgraph=True, options={"compile_threads": 1})
    for function in (plif, compiled):
        values = function(z.requires_grad_())
        found.append((values, *torch.autograd.grad((values * weights).sum(), [z, plif.raw])))
    for eager, fused in zip(*found, strict=True):
        torch.testing.assert_close(fused, eager, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_reset_parameters_starts_anew(name: str) -> None:
    head = small_head(name, FEATURES, CLASSES)
    fresh = SoftmaxHead.from_settings(head.settings())
    for each in (head, fresh):
        torch.manual_seed(4)
        each.reset_parameters()
    pairs = zip(head.state_dict().values(), fresh.state_dict().values(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)


@pytest.mark.parametrize("layer", [SphericalLinear, VoronoiLinear])
def test_rows_of_a_special_kind_are_so_after_a_reset(layer: type[SphericalLinear]) -> None:
    head = layer(FEATURES, CLASSES, radius=0.5)
    before = head.weight.detach().clone()
    head.reset_parameters()
    assert not torch.equal(head.weight, before)
    assert head.guarantees(head.domain)


def test_heads_show_what_they_are_made_of() -> None:
    shown = repr(SoftmaxHead(4, 9, 2, SoftCap(PLIF(100, 5.0), cap=30.0)))
    assert "features=4, classes=9, mixtures=2, bias=True" in shown
    assert "PLIF(bins=100, bound=5.0)" in shown
    assert "cap=30.0, scale=1.0" in shown
    norm = nn.LayerNorm(4)
    assert "features=4, classes=9, radius=1.0, behind=LayerNorm" in repr(SphericalLinear(4, 9, behind=norm))
    assert "features=4, classes=9, radius=2.0, behind=None" in repr(VoronoiLinear(4, 9, radius=2.0))


def test_a_transform_by_name_is_refused_with_advice() -> None:
    with pytest.raises(InputError, match="from_name"):
        SoftmaxHead(3, 4, transform="plif")  # type: ignore[arg-type]


@pytest.mark.parametrize("mixtures", [1, 2])
def test_component_logits_of_other_features_are_refused(mixtures: int) -> None:
    with pytest.raises(InputError, match="vectors of 3 features"):
        SoftmaxHead(3, 4, mixtures).component_logits(torch.zeros(2, 5))


def test_one_vector_of_features_is_enough() -> None:
    head, h = small_head("mos", 4, 6), torch.randn(4)
    assert head.sample(h).shape == ()
    assert head.sample(h, samples=3).shape == (3,)
    assert head.argmax(h).shape == ()
    assert head.loss(h, torch.tensor(2)).shape == ()


class _Wrapped(nn.Module):
    """What PEFT puts in a linear layer's place: it has the old weight and adds to the output."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias


@pytest.mark.parametrize("part", ["latent", "prior"])
def test_a_wrapped_layer_inside_the_head_is_refused(part: str) -> None:
    head = small_head("mos", 4, 6)
    setattr(head, part, _Wrapped(getattr(head, part)))
    for use in (lambda: head(torch.randn(2, 4)), lambda: head.loss(torch.randn(2, 4), torch.tensor([1, 2]))):
        with pytest.raises(InputError, match=rf"`{part}` was replaced by \S+\._Wrapped"):
            use()
