"""Training follows the published recipe, and gives the same numbers again."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from experiments.harness.corpus import Corpus, corpus
from experiments.models.awd_lstm import AWDLSTM, Shape
from experiments.models.training import (
    Epoch,
    Schedule,
    Trained,
    _Average,
    _stalls,
    _streams,
    _stretches,
    contexts,
    perplexity,
    step_bytes,
    train,
)

SCHEDULE = Schedule(epochs=3, batch=10, stretch=20, rate=5.0, slope_rate=5.0, patience=1, average_after=1)


@pytest.fixture(scope="module")
def text() -> Corpus:
    whole = corpus(None, vocabulary=60)
    return replace(whole, train=whole.train[:2_000], valid=whole.valid[:500], test=whole.test[:500])


@pytest.fixture(scope="module")
def shape(text: Corpus) -> Shape:
    return Shape("lms-plif", len(text.words), features=4, hidden=6, layers=2, bins=20)


@pytest.fixture(scope="module")
def trained(shape: Shape, text: Corpus) -> Trained:
    return train(shape, SCHEDULE, text)


def test_the_same_training_gives_the_same_numbers_again(trained: Trained, shape: Shape, text: Corpus) -> None:
    again = train(shape, SCHEDULE, text)
    assert [each.validation for each in again.epochs] == [each.validation for each in trained.epochs]
    assert again.test == trained.test


def test_another_seed_gives_other_numbers(trained: Trained, shape: Shape, text: Corpus) -> None:
    assert train(shape, replace(SCHEDULE, seed=1), text).test != trained.test


def test_training_borrows_the_global_generator(shape: Shape, text: Corpus) -> None:
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    train(shape, replace(SCHEDULE, epochs=1), text)
    assert torch.equal(torch.rand(1), expected)


def test_it_learns(trained: Trained, text: Corpus) -> None:
    assert trained.validation < len(text.words) / 2


def test_the_model_has_the_weights_of_its_best_epoch(trained: Trained, text: Corpus) -> None:
    assert trained.validation == min(each.validation for each in trained.epochs)
    assert perplexity(trained.model, text.valid) == pytest.approx(trained.validation, rel=1e-6)


def test_averages_begin_when_told(trained: Trained) -> None:
    assert [each.is_averaged for each in trained.epochs] == [False, True, True]


def test_perplexity_is_that_of_one_long_stretch(trained: Trained, text: Corpus) -> None:
    streams = _streams(text.test, 10)
    with torch.no_grad():
        logits = trained.model.head(trained.model(streams[:-1]).hidden)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), streams[1:].flatten())
    assert perplexity(trained.model, text.test, stretch=13) == pytest.approx(math.exp(float(loss)), rel=1e-5)


def test_contexts_are_what_the_head_sees(trained: Trained, text: Corpus) -> None:
    hidden = contexts(trained.model, text.valid, limit=33, stretch=2)
    with torch.no_grad():
        expected = trained.model(_streams(text.valid, 10)[:4]).hidden.flatten(0, 1)[:33]
    torch.testing.assert_close(hidden, expected)


def test_streams_lie_side_by_side() -> None:
    assert _streams(np.arange(7), 2).T.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_text_too_short_for_its_streams_is_refused() -> None:
    with pytest.raises(ValueError, match="7 tokens is too short to be read in 5 streams"):
        _streams(np.arange(7), 5)


def test_stretches_of_varying_length_cover_the_text() -> None:
    ends = list(_stretches(1_000, 35, np.random.default_rng(0)))
    assert ends[0][0] == 0
    assert ends[-1][1] == 1_000
    assert all(end == start for (_, end), (start, _) in pairwise(ends))
    assert len({end - start for start, end in ends}) > 5


def test_the_average_is_the_mean_of_what_was_added() -> None:
    layer = nn.Linear(1, 1, bias=False)
    average = _Average(layer)
    for value in (1.0, 2.0, 6.0):
        layer.weight.data.fill_(value)
        average.add()
    with average.in_use():
        assert layer.weight.item() == pytest.approx(3.0)
    assert layer.weight.item() == 6.0


@pytest.mark.parametrize(
    ("validations", "expected"),
    [
        ([5, 4, 3], False),
        ([3, 4], False),  # too early: nothing was `patience` epochs ago
        ([3, 2, 4], True),  # worse than the best of all but the last epoch
        ([3, 2, 2.5], False),  # worse than the last one alone
    ],
)  # fmt: skip
def test_the_trigger_looks_back_beyond_its_patience(validations: list[float], expected: bool) -> None:
    epochs = [Epoch(0.0, 0.0, value, False) for value in validations]
    assert _stalls(epochs, Schedule(patience=1)) is expected


def test_an_infinite_loss_is_an_error_that_names_the_rate(shape: Shape, text: Corpus) -> None:
    with pytest.raises(FloatingPointError, match=r"lower the rate \(1e\+38\)"):
        train(shape, replace(SCHEDULE, rate=1e38, average_after=None), text)


def test_models_of_one_size_start_alike_under_every_head(shape: Shape, text: Corpus) -> None:
    starts = [
        train(replace(shape, head=head), replace(SCHEDULE, epochs=1, rate=0.0, slope_rate=0.0), text)
        for head in ("linear", "lms-plif")
    ]
    # A PLIF starts as the identity, so that the models are the same, dropout included.
    assert starts[0].epochs[0].training == pytest.approx(starts[1].epochs[0].training, rel=1e-6)


def test_a_longer_stretch_takes_more_memory(shape: Shape, text: Corpus) -> None:
    short, long = (step_bytes(shape, replace(SCHEDULE, stretch=length), text) for length in (10, 40))
    assert 0 < short < long


def test_evaluation_leaves_the_mode_as_it_was(shape: Shape, text: Corpus) -> None:
    model = AWDLSTM(shape).train()
    perplexity(model, text.valid)
    assert model.training
