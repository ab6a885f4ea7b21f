"""AWD-LSTM (Merity, Keskar & Socher 2018) with any `argmaxable.layers.SoftmaxHead` on top.

Recurrent weights, words, and whole features over a stretch of text are dropped; the embedding is also the
head's weight. All sizes and rates are in a `Shape`, so that a model is built from plain values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple, final

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import dropout

from argmaxable.layers import PLIF, SoftmaxHead, Transform

# The names of argmaxable.layers, and the control of Parthiban, Mao & Inkpen 2021: a PLIF that never learns.
RANDOM_PLIF = "random-plif"
HEADS = ("linear", "sigsoftmax", "lms-plif", RANDOM_PLIF, "mos", "mos-plif")
_RECURRENT = "weight_hh_l0"
_LARGEST_EMBEDDING = 0.1  # words start out in [−0.1, 0.1], as in the authors' code
# The control's slopes log₂(1 + 2^v), v normal with this deviation, have mean 1.12 and deviation 0.62. That is
# what Table 2 of Ganea et al. has (1.10 and 0.62), and what a PLIF has whose slopes log(1 + e^v) start from
# normal v around slope 1.
_RANDOM_SLOPES = 1.2

State = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Drop:
    """Probabilities of being dropped, as published for Penn Treebank."""

    words: float = 0.1  # of the embedding, all their occurrences at once
    inputs: float = 0.4  # features of the embedded words
    between: float = 0.25  # features from layer to layer
    outputs: float = 0.4  # features in front of the head
    recurrent: float = 0.5  # weights from a layer's last output to its gates


@dataclass(frozen=True)
class Shape:
    """The sizes of a model. The last layer has as many outputs as a word has features."""

    head: str
    vocabulary: int
    features: int = 400
    hidden: int = 1150
    layers: int = 3
    mixtures: int = 15  # of the heads that are mixtures
    bins: int = 100_000  # of the heads with a PLIF
    bound: float = 20.0
    drop: Drop = Drop()

    def __post_init__(self) -> None:
        if self.head not in HEADS:
            raise ValueError(f"No head is called '{self.head}': choose one of {', '.join(HEADS)}.")
        if self.layers < 1:
            raise ValueError(f"A model needs at least one layer, found {self.layers}.")

    @property
    def has_plif(self) -> bool:
        return self.head in ("lms-plif", RANDOM_PLIF, "mos-plif")

    @property
    def is_mixture(self) -> bool:
        return self.head.startswith("mos")


class Read(NamedTuple):
    """What the layers made of a stretch of text (steps × batch × features)."""

    hidden: Tensor  # for the head, with features dropped
    raw: Tensor  # the same before any were dropped
    states: tuple[State, ...]


@final
class AWDLSTM(nn.Module):
    """Embedding, weight-dropped LSTM layers and a head that shares the embedding."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        widths = [shape.features, *[shape.hidden] * (shape.layers - 1), shape.features]
        self.embedding = nn.Embedding(shape.vocabulary, shape.features)
        nn.init.uniform_(self.embedding.weight, -_LARGEST_EMBEDDING, _LARGEST_EMBEDDING)
        self.layers = nn.ModuleList(nn.LSTM(inputs, outputs) for inputs, outputs in pairwise(widths))
        self.head = _head(shape, self.embedding)

    def forward(self, tokens: Tensor, states: tuple[State, ...] | None = None) -> Read:
        """Read tokens (steps × batch), going on from the states that an earlier call returned."""
        drop, training = self.shape.drop, self.training
        x = drop_features(self._embed(tokens), drop.inputs, training=training)
        left, raw = [], x
        for number, layer in enumerate(self.layers):
            weight = dropout(layer.get_parameter(_RECURRENT), drop.recurrent, training)
            state = None if states is None else states[number]
            raw, after = functional_call(layer, {_RECURRENT: weight}, (x, state))
            left.append(after)
            is_last = number == len(self.layers) - 1
            x = drop_features(raw, drop.outputs if is_last else drop.between, training=training)
        return Read(x, raw, tuple(left))

    def _embed(self, tokens: Tensor) -> Tensor:
        """The words' vectors, without those words that this call drops."""
        weight = self.embedding.weight
        if self.training:
            weight = weight * dropout(torch.ones_like(weight[:, :1]), self.shape.drop.words)
        return nn.functional.embedding(tokens, weight)


def drop_features(x: Tensor, p: float, *, training: bool) -> Tensor:
    """Variational dropout: of x (steps × batch × features), the same features at every step."""
    return x * dropout(torch.ones_like(x[:1]), p) if training else x


def detached(states: tuple[State, ...]) -> tuple[State, ...]:
    """The states, through which no gradient flows back into earlier text."""
    return tuple((hidden.detach(), cell.detach()) for hidden, cell in states)


def parameters(shape: Shape) -> int:
    """How many numbers such a model learns."""
    with torch.device("meta"):
        model = AWDLSTM(shape)
    return sum(each.numel() for each in model.parameters() if each.requires_grad)


def with_parameters(shape: Shape, wanted: int) -> Shape:
    """The shape with the number of hidden units that brings its parameters closest to `wanted`."""
    low, high = 1, 2
    while parameters(replace(shape, hidden=high)) < wanted:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if parameters(replace(shape, hidden=middle)) < wanted:
            low = middle
        else:
            high = middle
    return min(
        (replace(shape, hidden=hidden) for hidden in (low, high)),
        key=lambda each: abs(parameters(each) - wanted),
    )


def _head(shape: Shape, embedding: nn.Embedding) -> SoftmaxHead:
    name = "lms-plif" if shape.head == RANDOM_PLIF else shape.head
    settings = {"mixtures": shape.mixtures} if shape.is_mixture else {}
    transform = {"transform": _plif(shape)} if shape.has_plif else {}
    return SoftmaxHead.from_name(
        name, shape.features, shape.vocabulary, tie_to=embedding, **settings, **transform
    )


def _plif(shape: Shape) -> Transform:
    plif = PLIF(shape.bins, shape.bound)
    if shape.head == RANDOM_PLIF:
        nn.init.normal_(plif.raw, std=_RANDOM_SLOPES)
        plif.raw.requires_grad_(False)
    return plif
