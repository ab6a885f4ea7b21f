"""DFTLinear: what it computes, learns, promises, and how it gets into a model."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import nn

import argmaxable as am
from argmaxable.layers import DFTLinear, replace_head
from argmaxable.layers.multilabel import places_of
from argmaxable.theory.sign_patterns import trigonometric_rows

FLOATS = (torch.float32, torch.float64)


def test_its_first_columns_are_the_fourier_rows() -> None:
    layer = DFTLinear(7, 20, active=2, dtype=torch.float64)
    assert layer.weight.shape == (20, 7)
    assert np.allclose(layer.weight.detach()[:, :5], trigonometric_rows(20, 2), atol=1e-14)


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_logits_are_those_of_a_linear_layer(learned: bool, bias: bool) -> None:
    layer = DFTLinear(6, 10, active=1, learned=learned, bias=bias)
    x = torch.randn(3, 4, 6, generator=torch.Generator().manual_seed(0))
    expected = nn.functional.linear(x, layer.weight, layer.bias)
    assert torch.equal(layer(x), expected)
    assert am.Head.from_module(layer).features == 6


@pytest.mark.parametrize("learned", [False, True])
def test_it_learns_sparse_sets_and_its_promise_is_proven_afterwards(learned: bool) -> None:
    torch.manual_seed(0)
    layer = DFTLinear(5, 12, active=2, learned=learned)
    model = nn.Sequential(nn.Linear(12, 5), layer)
    inputs = torch.eye(12)
    targets = torch.eye(12) + torch.eye(12).roll(5, 1)
    before = layer.weight.detach().clone()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _ in range(60):
        loss = nn.functional.binary_cross_entropy_with_logits(model(inputs), targets)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.8 * losses[0]
    assert torch.equal(before, layer.weight.detach()) != learned
    assert layer.guarantees()


def test_rounding_takes_the_promise_back() -> None:
    layer = DFTLinear(25, 9000, active=12)
    assert not layer.guarantees()
    assert layer.proven_active == 1
    assert layer.guarantees(1)
    assert not DFTLinear(5, 200, active=2, dtype=torch.bfloat16).guarantees()


def test_fewer_features_than_the_theorem_takes_are_refused() -> None:
    with pytest.raises(am.InputError, match="at most 3 labels takes 7 features"):
        DFTLinear(6, 100, active=3)
    with pytest.raises(am.InputError):
        DFTLinear(6, 100, active=0)


def test_it_takes_the_place_of_a_multi_label_models_output_layer() -> None:
    model = nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 10))
    old = model[2]
    head = DFTLinear(6, 10, active=2)
    assert replace_head(model, head) is old
    assert model[2] is head
    assert torch.equal(head.weight[:, 5:], old.weight[:, 5:])
    assert torch.equal(head.bias, old.bias)
    assert head.guarantees()
    assert model(torch.randn(2, 3)).shape == (2, 10)


def test_its_state_is_saved_and_loaded() -> None:
    one, two = (DFTLinear(6, 10, active=2, learned=True) for _ in range(2))
    with torch.no_grad():
        one.gaps.normal_()
    two.load_state_dict(one.state_dict())
    assert torch.equal(one.weight, two.weight)
    assert one.guarantees() == two.guarantees()


# ---------------------------------------------------------------------- several circles


def test_no_two_labels_share_two_places() -> None:
    for labels, circles in ((1, 2), (9, 3), (20, 3), (100, 5), (9000, 4)):
        places = np.array(places_of(labels, circles))
        assert places.shape == (labels, circles)
        for one in range(circles):
            for two in range(one):
                assert len(np.unique(places[:, [one, two]], axis=0)) == labels


def test_several_circles_keep_more_of_the_promise_after_rounding() -> None:
    assert [DFTLinear(25, 9000, active=12, dtype=dtype).proven_active for dtype in FLOATS] == [1, 2]
    assert [DFTLinear(13, 9000, active=2, circles=3, dtype=dtype).proven_active for dtype in FLOATS] == [2, 2]
    assert [DFTLinear(25, 9000, active=3, circles=4, dtype=dtype).proven_active for dtype in FLOATS] == [2, 3]


@pytest.mark.parametrize("learned", [False, True])
def test_on_several_circles_every_set_that_is_promised_is_feasible(learned: bool) -> None:
    torch.manual_seed(0)
    layer = DFTLinear(14, 23, active=2, circles=3, learned=learned)
    if learned:
        with torch.no_grad():
            layer.gaps.normal_(std=0.3)
            layer.lengths.normal_()
    nn.init.normal_(layer.bias)
    assert layer.guarantees()
    pairs = [(), *((i,) for i in range(23)), *itertools.combinations(range(23), 2)]
    found = am.sets(am.Head.from_module(layer), am.Everywhere(), pairs, engine=am.Engine(workers=1))
    assert len(found.having(am.Feasibility.FEASIBLE)) == len(pairs)
    x = torch.randn(5, 14)
    assert torch.equal(layer(x), nn.functional.linear(x, layer.weight, layer.bias))
    layer(x).sum().backward()
    assert not learned or (layer.gaps.grad is not None and layer.gaps.shape == (3, 5))


def test_too_few_circles_or_features_are_refused() -> None:
    with pytest.raises(am.InputError, match="takes 13 features on 3 circles"):
        DFTLinear(12, 100, active=2, circles=3)
    with pytest.raises(am.InputError, match="more than 2 circles, or one"):
        DFTLinear(25, 100, active=2, circles=2)
