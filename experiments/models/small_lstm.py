"""Language models small enough to be trained by the dozen: one LSTM layer, a plain softmax with bias whose
weights are the embedding's.

The layer has as many units as the head has features. Its outputs lie in [−1, 1]: each is the product of a
sigmoid and a tanh.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

import argmaxable as am
from experiments.harness.corpus import END_OF_LINE, Corpus
from experiments.models.awd_lstm import AWDLSTM, Drop, Shape, State
from experiments.models.training import Schedule, Trained, train

# Every feature that such a model can show its head.
REACHABLE = am.Box(-1.0, 1.0)
# A few passes over the text overfit nothing, so that nothing is dropped and no activation is punished.
_NO_DROPOUT = Drop(words=0.0, inputs=0.0, between=0.0, outputs=0.0, recurrent=0.0)
# The published rate is for dropout and 500 epochs; without, half of it reaches a lower perplexity in two.
_RATE = 15.0
_STREAMS = 200  # of text that a model speaks side by side


def small_model(text: Corpus, *, features: int, epochs: int, seed: int) -> Trained:
    """A model trained on the text; weights are averages from the second epoch on."""
    shape = Shape("linear", len(text.words), features=features, layers=1, drop=_NO_DROPOUT)
    schedule = Schedule(
        seed=seed, epochs=epochs, stretch=35, rate=_RATE, activation=0.0, change=0.0, average_after=1
    )
    return train(shape, schedule, text)


def head_of(trained: Trained, text: Corpus) -> am.Head:
    """The model's output layer, with its bias and the words."""
    return am.Head.from_module(trained.model.head, text.words)


def without_bias(head: am.Head) -> am.Head:
    """The weights alone: a class is argmaxable then exactly if its row is a vertex of the rows' hull."""
    return am.Head(head.weight, None, head.labels, name=head.name)


@torch.no_grad()
def speak(model: AWDLSTM, text: Corpus, *, length: int, seed: int) -> NDArray[np.int64]:
    """About `length` tokens of the model's own, each drawn from its distribution after those before."""
    device = model.embedding.weight.device
    generator = torch.Generator(device).manual_seed(seed)
    streams = min(_STREAMS, length)
    tokens = torch.full((1, streams), text.words.index(END_OF_LINE), device=device)
    states: tuple[State, ...] | None = None
    spoken = []
    model.eval()
    for _ in range(length // streams):
        read = model(tokens, states)
        states = read.states
        tokens = model.head.sample(read.hidden, generator=generator)
        spoken.append(tokens)
    # One stream after the other, as the text would be read.
    return torch.cat(spoken).T.flatten().cpu().numpy()
