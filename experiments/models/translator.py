"""A small translation Transformer saved by fairseq, run over pairs of sentences up to its output layer.

Only what these checkpoints use: layers that normalise first, sinusoidal positions, ReLU, and an output layer
that shares the target's embeddings. As in Appendix F of Grivas et al. 2022, the decoder reads the given
translation, not its own words.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from argmaxable.models.pytorch.tensors import tensors_of

# fairseq's dictionaries begin with these, and a file lists the rest.
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
_PAD, _END, _UNKNOWN = (SPECIAL.index(name) for name in ("<pad>", "</s>", "<unk>"))
_LONGEST = 1000  # positions that the checkpoints were trained for, and some room
_HEADS = 8  # of both checkpoints; the shapes of their weights do not tell


class PieceSplitter:
    """Words into pieces by the merges of subword-nmt, version 0.2: all but a word's last piece end in @@."""

    def __init__(self, merges: Sequence[str]) -> None:
        version, *pairs = merges
        if version.strip() != "#version: 0.2":
            raise ValueError(f"Merges of the version {version.strip()!r}; expected '#version: 0.2'.")
        self._ranks = {tuple(pair.split()): rank for rank, pair in enumerate(pairs)}

    def split(self, text: str) -> list[str]:
        return [piece for word in text.split() for piece in self._word(word)]

    def _word(self, word: str) -> list[str]:
        pieces = [*word[:-1], word[-1] + "</w>"]
        while len(pieces) > 1:
            ranked = [self._ranks.get(pair, len(self._ranks)) for pair in pairwise(pieces)]
            best = min(ranked)
            if best == len(self._ranks):
                break
            pieces = _merged(pieces, ranked, best)
        return [*(piece + "@@" for piece in pieces[:-1]), pieces[-1].removesuffix("</w>")]


def _merged(pieces: Sequence[str], ranked: Sequence[int], best: int) -> list[str]:
    """The pieces with every pair of this rank merged, from left to right."""
    merged, place = [], 0
    while place < len(pieces):
        is_pair = place < len(ranked) and ranked[place] == best
        merged.append("".join(pieces[place : place + 1 + is_pair]))
        place += 1 + is_pair
    return merged


def numbers(dictionary: Sequence[str]) -> dict[str, int]:
    """Token numbers of one of fairseq's dictionaries, a line "token count" each."""
    return {
        token: place
        for place, token in enumerate([*SPECIAL, *(line.rpartition(" ")[0] for line in dictionary)])
    }


@dataclass(frozen=True, eq=False)
class Translator:
    """The weights by fairseq's names, and how many heads attend."""

    weights: Mapping[str, Tensor]
    heads: int

    @classmethod
    def read(cls, checkpoint: Path) -> Translator:
        """Read as data: nothing in the file is executed."""
        source = tensors_of(checkpoint)
        return cls({name: torch.tensor(source.read_array(name)) for name in source.tensors}, _HEADS)

    def features(self, source: Sequence[int], target: Sequence[int]) -> Tensor:
        """What the output layer gets (tokens × features), a row for each token of the target and its end."""
        ends = torch.tensor([*source, _END]), torch.tensor([_END, *target])
        with torch.inference_mode():
            memory = self._stack("encoder", self._embed("encoder", ends[0]), None)
            return self._stack("decoder", self._embed("decoder", ends[1]), memory)

    def logits(self, features: Tensor) -> Tensor:
        return features @ self.weights["decoder.output_projection.weight"].T

    def _embed(self, side: str, tokens: Tensor) -> Tensor:
        weight = self.weights[f"{side}.embed_tokens.weight"]
        return weight[tokens] * math.sqrt(weight.shape[1]) + _positions(len(tokens), weight.shape[1])

    def _stack(self, side: str, x: Tensor, memory: Tensor | None) -> Tensor:
        layers = sum(name.endswith("fc1.weight") and name.startswith(side) for name in self.weights)
        for number in range(layers):
            at = f"{side}.layers.{number}"
            before = self._norm(f"{at}.self_attn_layer_norm", x)
            x = x + self._attend(f"{at}.self_attn", before, before, is_causal=memory is not None)
            if memory is not None:
                before = self._norm(f"{at}.encoder_attn_layer_norm", x)
                x = x + self._attend(f"{at}.encoder_attn", before, memory, is_causal=False)
            before = self._norm(f"{at}.final_layer_norm", x)
            x = x + self._linear(f"{at}.fc2", functional.relu(self._linear(f"{at}.fc1", before)))
        return self._norm(f"{side}.layer_norm", x)

    def _attend(self, at: str, x: Tensor, memory: Tensor, *, is_causal: bool) -> Tensor:
        query, key, value = (
            self._linear(f"{at}.{name}_proj", each).unflatten(1, (self.heads, -1)).transpose(0, 1)
            for name, each in (("q", x), ("k", memory), ("v", memory))
        )
        found = functional.scaled_dot_product_attention(query, key, value, is_causal=is_causal)
        return self._linear(f"{at}.out_proj", found.transpose(0, 1).flatten(1))

    def _linear(self, at: str, x: Tensor) -> Tensor:
        return functional.linear(x, self.weights[f"{at}.weight"], self.weights[f"{at}.bias"])

    def _norm(self, at: str, x: Tensor) -> Tensor:
        return functional.layer_norm(x, x.shape[1:], self.weights[f"{at}.weight"], self.weights[f"{at}.bias"])


def _positions(count: int, features: int) -> Tensor:
    """fairseq's sinusoids, which count from the number after that of <pad>."""
    half = features // 2
    rates = torch.exp(torch.arange(half) * (-math.log(10_000) / (half - 1)))
    angles = (torch.arange(count) + _PAD + 1)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=1)


@dataclass
class Seen:
    """How many tokens the decoder was given, and of how many the given one was the argmax."""

    tokens: int = 0
    right: int = 0


def run(folder: Path, pairs: Iterable[tuple[str, str]], seen: Seen) -> Iterator[NDArray[Any]]:
    """The output layer's inputs for each pair of sentences; `folder` is laid out as fairseq's interface
    expects it: checkpoints/checkpoint_best.pt, data/bpe.code, and data/dict.roman.txt and dict.nqo.txt."""
    translator = Translator.read(folder / "checkpoints" / "checkpoint_best.pt")
    splitter = PieceSplitter(_lines(folder / "data" / "bpe.code"))
    roman, nqo = (numbers(_lines(folder / "data" / f"dict.{script}.txt")) for script in ("roman", "nqo"))
    for source, target in pairs:
        ids = [roman.get(piece, _UNKNOWN) for piece in splitter.split(source.lower())]
        wanted = [nqo.get(piece, _UNKNOWN) for piece in splitter.split(target)]
        if not wanted or max(len(ids), len(wanted)) > _LONGEST:
            continue
        features = translator.features(ids, wanted)
        best = translator.logits(features).argmax(dim=1)
        seen.tokens += len(best)
        seen.right += int((best == torch.tensor([*wanted, _END])).sum())
        yield np.asarray(features)


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").rstrip("\n").split("\n")
