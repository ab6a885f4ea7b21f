"""Models as flair saves them with `torch.save`: a state_dict, settings and a dictionary of labels."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch


class Dictionary:
    """With the attributes of flair.data's, in the same order."""

    def __init__(self, items: Sequence[str]) -> None:
        self.item2idx = {item.encode(): number for number, item in enumerate(items)}
        self.idx2item = [item.encode() for item in items]
        self.add_unk = False
        self.multi_label = False
        self.span_labels = False


Dictionary.__module__, Dictionary.__qualname__ = "flair.data", "Dictionary"


@contextmanager
def _as_flair() -> Iterator[None]:
    """pickle looks a class up before it writes its name."""
    modules = {name: ModuleType(name) for name in ("flair", "flair.data")}
    vars(modules["flair.data"])["Dictionary"] = Dictionary
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name in modules:
            del sys.modules[name]


def save(path: Path, model: dict[str, Any]) -> Path:
    with _as_flair():
        torch.save(model, path, pickle_protocol=4)
    return path


class Tagger(torch.nn.Module):
    """The layers of a SequenceTagger."""

    def __init__(self, tags: int) -> None:
        super().__init__()
        self.embedding2nn = torch.nn.Linear(5, 5)
        self.rnn = torch.nn.LSTM(5, 4, batch_first=True, bidirectional=True)
        self.linear = torch.nn.Linear(8, tags)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.linear(self.rnn(self.embedding2nn(x))[0])
        return scores


def tagger(tags: Sequence[str], **settings: Any) -> tuple[Tagger, dict[str, Any]]:
    """A tagger, and what its `_get_state_dict` gives."""
    torch.manual_seed(1)
    network = Tagger(len(tags))
    embeddings = {"name": "glove", "field": None, "__cls__": "WordEmbeddings"}
    return network, {
        "state_dict": network.state_dict(),
        "__cls__": "SequenceTagger",
        "embeddings": {"embeddings": [embeddings], "__cls__": "StackedEmbeddings"},
        "hidden_size": 4,
        "tag_dictionary": Dictionary(tags),
        "tag_format": "BIOES",
        "tag_type": "ner",
        "use_crf": False,
        "use_rnn": True,
        "rnn_layers": 1,
        "use_dropout": 0.0,
        "rnn_type": "LSTM",
        "weight_dict": None,
        **settings,
    }
