"""A small language model on real text with each setting: it learns, resumes to the same losses, and
exports."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from layer_references import NAMES
from torch import Tensor, nn

from argmaxable.layers import PLIF, SoftmaxHead

ROOT = Path(__file__).parent.parent.parent
WORDS = (ROOT / "docs" / "method.md").read_text(encoding="utf-8").split()
VOCABULARY = sorted(set(WORDS))
IDS = torch.tensor([VOCABULARY.index(word) for word in WORDS])
CONTEXT, WIDTH, STEPS = 8, 16, 12


class LanguageModel(nn.Module):
    """Words, a recurrent layer, and the head under test, tied to the words."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.words = nn.Embedding(len(VOCABULARY), WIDTH)
        self.body = nn.GRU(WIDTH, WIDTH, batch_first=True)
        settings = {"transform": PLIF(1000, 10.0)} if name.endswith("plif") else {}
        if name.startswith("mos"):
            settings["mixtures"] = 4
        self.head = SoftmaxHead.from_name(name, WIDTH, len(VOCABULARY), tie_to=self.words, **settings)

    def features(self, ids: Tensor) -> Tensor:
        hidden: Tensor = self.body(self.words(ids))[0]
        return hidden

    def forward(self, ids: Tensor) -> Tensor:
        logits: Tensor = self.head(self.features(ids))
        return logits


class Run:
    """A model in training: steps go through the text in order, so that a resumed run sees the same."""

    def __init__(self, name: str) -> None:
        torch.manual_seed(0)
        self.model = LanguageModel(name)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.02)
        self.step = 0

    def train(self, steps: int) -> list[float]:
        losses = []
        for _ in range(steps):
            starts = (torch.arange(16) * 37 + self.step * 11) % (len(IDS) - CONTEXT - 1)
            spans = IDS[starts[:, None] + torch.arange(CONTEXT + 1)]
            self.optimizer.zero_grad()
            loss = self.model.head.loss(self.model.features(spans[:, :-1]), spans[:, 1:])
            loss.backward()
            self.optimizer.step()
            self.step += 1
            losses.append(loss.item())
        return losses

    def save(self, path: Path) -> None:
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
        }
        torch.save(state, path)

    def load(self, path: Path) -> None:
        state = torch.load(path)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step = state["step"]


@pytest.mark.parametrize("name", NAMES)
def test_training_learns_and_resumes_to_the_same_losses(name: str, tmp_path: Path) -> None:
    run = Run(name)
    before = run.train(STEPS)
    run.save(tmp_path / "checkpoint.pt")
    after = run.train(STEPS)
    assert np.mean(after) < np.mean(before) - 0.3
    resumed = Run(name)
    resumed.load(tmp_path / "checkpoint.pt")
    assert resumed.train(STEPS) == after


@pytest.fixture(scope="module")
def trained() -> dict[str, LanguageModel]:
    """Models of all settings, trained a little."""
    runs = {name: Run(name) for name in NAMES}
    for run in runs.values():
        run.train(3)
    return {name: run.model.eval() for name, run in runs.items()}


@pytest.mark.parametrize("name", NAMES)
def test_a_trained_model_exports(name: str, trained: dict[str, LanguageModel]) -> None:
    model = trained[name]
    length = torch.export.Dim("length", min=2, max=64)
    program = torch.export.export(model.head, (torch.randn(5, WIDTH),), dynamic_shapes=({0: length},))
    with torch.no_grad():
        h = model.features(IDS[None, :11])[0]
        torch.testing.assert_close(program.module()(h), model.head(h))


class Heads(nn.Module):
    """Heads that share their features: each export costs the exporter two seconds, whatever it holds."""

    def __init__(self, heads: list[SoftmaxHead]) -> None:
        super().__init__()
        self.heads = nn.ModuleList(heads)

    def forward(self, h: Tensor) -> tuple[Tensor, ...]:
        return tuple(head(h) for head in self.heads)


def test_the_onnx_file_of_a_head_computes_the_same(trained: dict[str, LanguageModel], tmp_path: Path) -> None:
    heads, h, path = (
        [model.head for model in trained.values()],
        torch.randn(5, WIDTH),
        tmp_path / "heads.onnx",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own: it uses deprecated parts of torch
        torch.onnx.export(Heads(heads), (h,), path, dynamo=True, verbose=False, input_names=["h"])
    found = onnxruntime.InferenceSession(path).run(None, {"h": h.numpy()})
    for name, head, values in zip(trained, heads, found, strict=True):
        expected = head(h).detach().numpy()
        np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-5, err_msg=name)
