"""Layers that can't lose a class: proven where they promise it, and seen to fail where they don't."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import argmaxable as am
from argmaxable.core.domain import Domain
from argmaxable.core.errors import InputError
from argmaxable.layers import (
    SphericalLinear,
    VoronoiLinear,
    make_spherical,
    make_voronoi,
    prevention_of,
)

FEATURES, CLASSES = 4, 80
KINDS = {"spherical": SphericalLinear, "voronoi": VoronoiLinear}


def moved_norm(kind: type[nn.Module] = nn.LayerNorm) -> nn.Module:
    """A norm with a gain and a shift, as after training."""
    torch.manual_seed(3)
    norm = kind(FEATURES)
    with torch.no_grad():
        for parameter in norm.parameters():
            parameter.add_(0.5 * torch.randn(FEATURES))
    return norm


def layer_of(kind: str, **settings: object) -> SphericalLinear | VoronoiLinear:
    """With rows drawn wide, so that norms differ and some are long."""
    torch.manual_seed(0)
    layer = KINDS[kind](FEATURES, CLASSES, **settings)  # type: ignore[arg-type]
    layer.weight = torch.randn(CLASSES, FEATURES)
    return layer


def unargmaxable(layer: nn.Module, domain: Domain) -> int:
    result = am.verify(am.Head.from_module(layer), domain, engine=am.Engine(workers=1))
    assert not result.undecided
    return len(result.unargmaxable)


# ---------------------------------------------------------------------- where the guarantee holds


HOLDING: list[tuple[str, dict[str, float], Domain]] = [
    ("spherical", {}, am.Everywhere()),
    ("spherical", {}, am.Box(-1, 1)),
    ("spherical", {}, am.Box(-100, 0.01)),
    ("spherical", {"radius": 7.0}, am.Ball(0.1)),
    ("spherical", {}, am.RMSNorm([1.0, 2.0, 0.5, 1.0], 0.3)),
    ("voronoi", {}, am.Everywhere()),
    ("voronoi", {}, am.Box(-9, 9)),
    ("voronoi", {"radius": 1.0}, am.Box(-1, 1)),
    ("voronoi", {"radius": 1.0}, am.Ball(1.01)),
]


@pytest.mark.parametrize(("kind", "settings", "domain"), HOLDING)
def test_over_a_guaranteed_domain_no_class_is_unargmaxable(
    kind: str, settings: dict[str, float], domain: Domain
) -> None:
    layer = layer_of(kind, **settings)
    assert layer.guarantees(domain)
    assert unargmaxable(layer, domain) == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("norm", [None, nn.LayerNorm, nn.RMSNorm])
def test_over_the_domain_a_layer_states_no_class_is_unargmaxable(
    kind: str, norm: type[nn.Module] | None
) -> None:
    layer = layer_of(kind, behind=None if norm is None else moved_norm(norm))
    assert layer.guarantees(layer.domain)
    assert unargmaxable(layer, layer.domain) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_the_variant_for_a_norm_finds_every_class_by_features_that_the_norm_puts_out(kind: str) -> None:
    norm = moved_norm()
    layer = layer_of(kind, behind=norm)
    prevention = prevention_of(layer)
    with torch.no_grad():
        winners = prevention.seen(layer.weight)  # the z of each class's own row, of mean 0
        x = norm.weight * winners + norm.bias
        assert layer(x).argmax(1).tolist() == list(range(CLASSES))
        # And x is what the norm makes of an input, but for its length.
        scale = math.sqrt(FEATURES) / winners.norm(dim=1, keepdim=True)
        torch.testing.assert_close(norm(1000 * winners), norm.weight * winners * scale + norm.bias)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("norm", [None, nn.LayerNorm])
def test_training_keeps_the_guarantee(kind: str, norm: type[nn.Module] | None) -> None:
    front = nn.Identity() if norm is None else moved_norm(norm)
    layer = layer_of(kind, behind=None if norm is None else front)
    model = nn.Sequential(nn.Linear(6, FEATURES), front, layer)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    x, targets = torch.randn(64, 6), torch.randint(5, (64,))  # most classes never occur
    for _ in range(30):
        optimizer.zero_grad()
        F.cross_entropy(model(x), targets).backward()
        optimizer.step()
    assert all(parameter.grad is not None for parameter in model.parameters())
    assert unargmaxable(layer, layer.domain) == 0


# ---------------------------------------------------------------------- where it fails


FAILING: list[tuple[str, dict[str, float], Domain]] = [
    ("spherical", {}, am.Box(0, math.inf)),  # behind a ReLU
    ("spherical", {}, am.LayerNorm(1.0)),
    ("spherical", {}, am.RMSNorm(1.0, 1.5)),
    ("voronoi", {}, am.Box(0, math.inf)),
    ("voronoi", {}, am.Box(-1, 1)),  # rows outside the box
    ("voronoi", {}, am.Ball(0.5)),
    ("voronoi", {}, am.LayerNorm(1.0)),
]


@pytest.mark.parametrize(("kind", "settings", "domain"), FAILING)
def test_where_nothing_is_promised_classes_are_unargmaxable(
    kind: str, settings: dict[str, float], domain: Domain
) -> None:
    layer = layer_of(kind, **settings)
    assert not layer.guarantees(domain)
    assert unargmaxable(layer, domain) > 0


def test_a_norm_with_another_gain_voids_the_guarantee() -> None:
    norm = moved_norm()
    layer = layer_of("spherical", behind=norm)
    stale = layer.domain
    with torch.no_grad():
        norm.weight.mul_(torch.tensor([3.0, 1.0, 0.2, 1.0]))
    assert not layer.guarantees(stale)
    assert layer.guarantees(layer.domain)
    assert unargmaxable(layer, layer.domain) == 0


def test_equal_rows_tie_in_every_kind() -> None:
    layer = layer_of("voronoi")
    rows = torch.randn(CLASSES, FEATURES)
    rows[1] = rows[0]
    layer.weight = rows
    result = am.verify(am.Head.from_module(layer), layer.domain, engine=am.Engine(workers=1))
    assert [verdict.class_id for verdict in result.tied] == [0, 1]
    assert len(result.unargmaxable) == 2


def test_nonnegative_voronoi_rows_survive_a_relu() -> None:
    layer = layer_of("voronoi")
    layer.weight = torch.rand(CLASSES, FEATURES)
    assert layer.guarantees(am.Box(0, math.inf))
    assert unargmaxable(layer, am.Box(0, math.inf)) == 0


# ---------------------------------------------------------------------- the layers themselves


def test_spherical_rows_have_the_radius_as_norm_and_no_bias() -> None:
    layer = layer_of("spherical", radius=2.5)
    torch.testing.assert_close(layer.weight.norm(dim=1), torch.full((CLASSES,), 2.5))
    assert layer.bias is None


def test_a_voronoi_layer_chooses_the_nearest_row() -> None:
    layer = layer_of("voronoi")
    x = torch.randn(200, FEATURES)
    assert torch.equal(layer(x).argmax(1), torch.cdist(x, layer.weight).argmin(1))


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_free_rows_are_learned(kind: str) -> None:
    layer = layer_of(kind, behind=moved_norm())
    assert [name for name, _ in layer.named_parameters()] == ["parametrizations.weight.original"]


@pytest.mark.parametrize("kind", KINDS)
def test_copies_and_state_dicts_keep_the_layer_and_its_norm_together(kind: str) -> None:
    norm = moved_norm()
    model = nn.Sequential(norm, layer_of(kind, behind=norm))
    copied = copy.deepcopy(model)
    assert prevention_of(copied[1]).behind.module is copied[0]
    with torch.no_grad():
        norm.weight[0] += 2
    x = torch.randn(3, FEATURES)
    assert not torch.allclose(copied(x), model(x))
    copied.load_state_dict(model.state_dict())
    torch.testing.assert_close(copied(x), model(x))


@pytest.mark.parametrize("make", [make_spherical, make_voronoi])
def test_an_existing_layer_is_changed_in_place(make: object) -> None:
    torch.manual_seed(0)
    layer = nn.Linear(FEATURES, CLASSES)
    before = layer.weight.detach().clone()
    assert make(layer) is layer  # type: ignore[operator]
    cosines = F.cosine_similarity(layer.weight, before)
    torch.testing.assert_close(cosines, torch.ones(CLASSES))
    torch.testing.assert_close(layer.weight.norm(dim=1).mean(), before.norm(dim=1).mean())
    assert unargmaxable(layer, prevention_of(layer).domain_of(layer.weight)) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SphericalLinear(3, 4, radius=0.0), "finite number above 0, found 0.0"),
        (lambda: VoronoiLinear(3, 4, radius=-1.0), "finite number above 0, found -1.0"),
        (lambda: VoronoiLinear(3, 4, behind=nn.BatchNorm1d(3)), "found BatchNorm1d"),
        (
            lambda: SphericalLinear(3, 4, behind=nn.LayerNorm(5)),
            r"over shape \(5,\), the layer has 3 features",
        ),
        (lambda: make_voronoi(SphericalLinear(3, 4)), "parametrized already"),
        (lambda: prevention_of(nn.Linear(3, 4)), "Linear does not constrain its rows"),
    ],
)
def test_bad_arguments_are_named(call: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()  # type: ignore[operator]


@pytest.mark.parametrize("behind", [None, nn.LayerNorm(FEATURES)])
def test_a_row_of_zeros_is_promised_nothing(behind: nn.Module | None) -> None:
    layer = SphericalLinear(FEATURES, CLASSES, behind=behind)
    with torch.no_grad():
        layer.parametrizations.weight.original[0] = 0
    assert not layer.guarantees(layer.domain)
    result = am.verify(am.Head.from_module(layer), layer.domain, only=[0], engine=am.Engine(workers=1))
    assert [verdict.class_id for verdict in result.unargmaxable] == [0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_of_zeros_learns_its_way_to_the_others(kind: str) -> None:
    layer = KINDS[kind](FEATURES, CLASSES, radius=1.0)
    raw = layer.parametrizations.weight.original
    with torch.no_grad():
        raw[0] = 0
    F.cross_entropy(layer(torch.randn(9, FEATURES)), torch.zeros(9, dtype=torch.long)).backward()
    assert raw.grad is not None
    assert 0 < float(raw.grad[0].norm()) < 10
    torch.optim.SGD(layer.parameters(), lr=0.1).step()
    assert layer.guarantees(layer.domain)


@pytest.mark.parametrize("make", [make_spherical, make_voronoi])
def test_only_linear_layers_are_made_safe(make: Any) -> None:
    with pytest.raises(InputError, match="found Conv2d"):
        make(nn.Conv2d(1, 1, 1))


def test_rows_that_rounding_makes_equal_are_promised_nothing() -> None:
    torch.manual_seed(0)
    layer = SphericalLinear(3, 200)
    assert layer.guarantees(layer.domain)
    layer.to(torch.bfloat16)
    assert unargmaxable(layer, layer.domain) > 0
    assert not layer.guarantees(layer.domain)
