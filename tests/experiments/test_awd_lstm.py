"""The model is AWD-LSTM: what it drops, what it shares, and what is left when nothing is dropped."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from argmaxable.layers import PLIF
from experiments.models.awd_lstm import (
    AWDLSTM,
    HEADS,
    Drop,
    Shape,
    drop_features,
    parameters,
    with_parameters,
)

NOTHING = Drop(words=0, inputs=0, between=0, outputs=0, recurrent=0)
SMALL = Shape("linear", vocabulary=11, features=4, hidden=6, layers=2, mixtures=2, bins=8, drop=NOTHING)


def model_of(shape: Shape) -> AWDLSTM:
    torch.manual_seed(0)
    return AWDLSTM(shape)


def some_tokens(steps: int = 7, batch: int = 3) -> Tensor:
    return torch.randint(0, SMALL.vocabulary, (steps, batch), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("head", HEADS)
def test_every_head_has_the_embedding_as_its_weight(head: str) -> None:
    model = model_of(replace(SMALL, head=head))
    assert model.head.weight is model.embedding.weight


def test_with_nothing_dropped_it_is_a_stack_of_lstms_on_an_embedding() -> None:
    model, tokens = model_of(SMALL), some_tokens()
    expected = nn.functional.embedding(tokens, model.embedding.weight)
    for layer in model.layers:
        expected, _ = layer(expected)
    read = model(tokens)
    torch.testing.assert_close(read.hidden, expected)
    torch.testing.assert_close(read.raw, expected)


def test_reading_goes_on_from_the_states() -> None:
    model, tokens = model_of(SMALL), some_tokens()
    first = model(tokens[:3])
    torch.testing.assert_close(model(tokens[3:], first.states).hidden, model(tokens).hidden[3:])


def test_variational_dropout_drops_the_same_features_at_every_step() -> None:
    torch.manual_seed(0)
    kept = drop_features(torch.ones(5, 3, 40), 0.5, training=True)
    assert (kept == kept[0]).all()
    assert sorted(kept.unique().tolist()) == [0.0, 2.0]


def test_a_dropped_word_is_dropped_wherever_it_stands() -> None:
    model = model_of(replace(SMALL, drop=replace(NOTHING, words=0.5)))
    vectors = model._embed(torch.arange(SMALL.vocabulary).repeat(4, 1))
    is_dropped = (vectors == 0).all(dim=2)
    assert (is_dropped == is_dropped[0]).all()
    assert 0 < int(is_dropped[0].sum()) < SMALL.vocabulary


def test_dropped_recurrent_weights_get_no_gradient_and_stay_as_they_were() -> None:
    model = model_of(replace(SMALL, drop=replace(NOTHING, recurrent=0.5)))
    weight = model.layers[0].get_parameter("weight_hh_l0")
    before = weight.detach().clone()
    model(some_tokens()).hidden.sum().backward()
    assert torch.equal(weight, before)
    assert weight.grad is not None
    assert 0.3 < float((weight.grad == 0).float().mean()) < 0.7


def test_nothing_is_dropped_in_evaluation() -> None:
    model = model_of(replace(SMALL, drop=Drop())).eval()
    plain = model_of(SMALL)
    torch.testing.assert_close(model(some_tokens()).hidden, plain(some_tokens()).hidden)


def test_the_random_plif_does_not_learn() -> None:
    model = model_of(replace(SMALL, head="random-plif"))
    assert isinstance(model.head.transform, PLIF)
    assert not model.head.transform.raw.requires_grad
    assert float(model.head.transform.raw.std()) > 0
    assert parameters(replace(SMALL, head="random-plif")) == parameters(SMALL)


@pytest.mark.parametrize("head", HEADS)
def test_parameters_counts_what_learns(head: str) -> None:
    shape = replace(SMALL, head=head)
    assert parameters(shape) == sum(
        each.numel() for each in AWDLSTM(shape).parameters() if each.requires_grad
    )


@pytest.mark.parametrize("wanted", [150, 700, 701, 5_000])
def test_hidden_units_are_chosen_as_close_to_the_wanted_parameters_as_can_be(wanted: int) -> None:
    shape = replace(SMALL, head="mos")
    every = [replace(shape, hidden=hidden) for hidden in range(1, 60)]
    best = min(abs(parameters(each) - wanted) for each in every)
    assert abs(parameters(with_parameters(shape, wanted)) - wanted) == best


def test_an_unknown_head_is_refused() -> None:
    with pytest.raises(ValueError, match="No head is called 'cosine': choose one of linear"):
        replace(SMALL, head="cosine")
