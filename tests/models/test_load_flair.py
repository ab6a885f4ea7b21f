"""Heads of flair's models: read without flair, labelled by its dictionary, and nothing is built."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import flair_writer
import numpy as np
import pytest
import torch

from argmaxable.core.boxes import Box
from argmaxable.core.errors import LoadError
from argmaxable.models import find_head, load_head

TAGS = ("O", "S-PER", "B-PER", "E-PER", "I-PER", "<START>", "<STOP>")


def saved(folder: Path, **settings: Any) -> Path:
    return flair_writer.save(folder / "model.pt", flair_writer.tagger(TAGS, **settings)[1])


def test_a_tagger_is_read_with_its_tags(tmp_path: Path) -> None:
    network, model = flair_writer.tagger(TAGS)
    path = flair_writer.save(tmp_path / "model.pt", model)
    finding, head = find_head(path), load_head(path)
    assert finding.format == "flair"
    assert head.labels == TAGS
    assert finding.special == {5, 6}
    x = torch.randn(9, 3, 5)
    with torch.no_grad():
        given, answer = network.rnn(network.embedding2nn(x))[0].numpy(), network(x).numpy()
    assert np.allclose(given @ head.weight.T + head.bias, answer, atol=1e-5)


def test_an_lstm_proves_a_box_and_other_inputs_nothing(tmp_path: Path) -> None:
    inputs = find_head(saved(tmp_path)).inputs
    assert inputs is not None
    assert inputs.domain == Box(-1.0, 1.0)
    for setting in ({"use_rnn": False}, {"rnn_type": "GRU"}):
        other = find_head(saved(tmp_path, **setting)).inputs
        assert other is None or other.domain is None


def test_a_crf_is_noted(tmp_path: Path) -> None:
    assert any("CRF" in note for note in find_head(saved(tmp_path, use_crf=True)).notes)
    assert not any("CRF" in note for note in find_head(saved(tmp_path)).notes)


def test_a_classifier_is_read_with_its_labels(tmp_path: Path) -> None:
    layer = torch.nn.Linear(6, 3)
    model = {
        "state_dict": {f"decoder.{name}": value for name, value in layer.state_dict().items()},
        "__cls__": "TextClassifier",
        "label_dictionary": flair_writer.Dictionary(("good", "bad", "neither")),
        "multi_label": True,
    }
    path = flair_writer.save(tmp_path / "model.pt", model)
    assert load_head(path).labels == ("good", "bad", "neither")
    assert find_head(path).activation == "sigmoid"
    assert np.array_equal(load_head(path).weight, layer.weight.detach().numpy())


def test_modules_beside_the_weights_become_records(tmp_path: Path) -> None:
    beside = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout())
    state = flair_writer.tagger(TAGS)[1]["state_dict"]
    path = flair_writer.save(tmp_path / "m.pt", {**flair_writer.tagger(TAGS)[1], "decoder": beside})
    assert np.array_equal(load_head(path).weight, state["linear.weight"].numpy())


class Payload:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch /nowhere",)


class Changes:
    """A call that sets the head's weights to zero where the file is loaded with Python's pickle."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __reduce__(self) -> tuple[Any, ...]:
        return torch.nn.init.zeros_, (self.tensor,)


def test_what_would_run_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"system, which is neither"):
        load_head(saved(tmp_path, extra=Payload()))
    model = flair_writer.tagger(TAGS)[1]
    model["extra"] = Changes(model["state_dict"]["linear.weight"])
    with pytest.raises(LoadError, match=r"torch.nn.init.zeros_, which is neither"):
        load_head(flair_writer.save(tmp_path / "model.pt", model))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"state_dict": None}, "without a state_dict"),
        ({"tag_dictionary": None, "label_type": flair_writer.Dictionary("ab")}, "kind 'SequenceTagger'"),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    with pytest.raises(LoadError, match=said):
        load_head(saved(tmp_path, **changed))


def test_labels_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="2 labels for 7 classes"):
        load_head(saved(tmp_path, tag_dictionary=flair_writer.Dictionary("ab")))
