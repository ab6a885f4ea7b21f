"""Heads in TorchScript archives, which PyTorch itself writes."""

from __future__ import annotations

import json
import random
import shutil
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from fuzz_files import disturbed
from torch import nn
from torch.nn import functional
from torch_programs import (
    CLASSES,
    FEATURES,
    ConvNet,
    Tied,
    array,
    edited,
    given_to,
    image,
    scripted,
    traced,
)

from argmaxable import AmbiguousError, Box, HeadError, LayerNorm, LoadError, find_head, load_head
from argmaxable.core.boxes import Everywhere
from argmaxable.models.registry import find_format

ROWS = torch.linspace(-1, 1, 3 * FEATURES).reshape(3, FEATURES)


class Headed(nn.Module):
    """Something with a head; what happens to its logits is up to each test."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(FEATURES, CLASSES)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A traced convolutional classifier."""
    return traced(ConvNet(), image(), tmp_path_factory.mktemp("saved") / "model.pt")


# ---------------------------------------------------------------------- which layer


@pytest.mark.parametrize("how", ["trace", "script", "freeze"])
def test_the_logits_that_pytorch_computes_are_those_of_the_head(tmp_path: Path, how: str) -> None:
    model, path = ConvNet(), tmp_path / "model.pt"
    path = traced(model, image(), path) if how == "trace" else scripted(model, path, freeze=how == "freeze")
    finding, head = find_head(path), load_head(path)
    assert (finding.format, finding.activation) == ("torchscript", "softmax")
    assert np.array_equal(head.weight, array(model.fc.weight))
    assert np.array_equal(head.biases(), array(model.fc.bias))
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answers = torch.jit.load(path)(image()).numpy()
    logits = given_to(model.fc, model, image()) @ head.weight.T + head.biases()
    assert np.array_equal(logits.argmax(1), answers.argmax(1))
    assert np.allclose(np.exp(logits) / np.exp(logits).sum(1, keepdims=True), answers, atol=1e-6)
    assert finding.inputs is not None
    assert finding.inputs.domain == Box(np.array(0.0), np.array(np.inf))


def test_a_tied_head_is_behind_its_norm(tmp_path: Path) -> None:
    model, ids = Tied(), torch.arange(5)[None]
    path = traced(model, ids, tmp_path / "model.pt")
    finding = find_head(path)
    assert finding.inputs is not None
    assert isinstance(finding.inputs.domain, LayerNorm)
    assert np.array_equal(load_head(path).weight, array(model.embeddings.weight))


def test_a_transposed_product_and_a_later_bias_are_followed(tmp_path: Path) -> None:
    class Model(Headed):
        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            hidden = functional.gelu(x)
            return {"hidden": hidden, "logits": torch.matmul(hidden, self.fc.weight.t()) + self.fc.bias}

    model = Model()
    head = load_head(scripted(model, tmp_path / "model.pt"))
    assert np.array_equal(head.weight, array(model.fc.weight))
    assert np.array_equal(head.biases(), array(model.fc.bias))


def test_a_softmax_over_the_second_of_two_axes_is_over_the_classes(tmp_path: Path) -> None:
    class Model(Headed):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.softmax(self.fc(x), 1)

    model = Model()
    assert find_head(traced(model, ROWS, tmp_path / "flat.pt")).classes == CLASSES
    deep = traced(model, ROWS[:, None], tmp_path / "deep.pt")
    with pytest.raises(LoadError, match="not the axis of its 7 classes"):
        find_head(deep)
    with pytest.raises(LoadError, match="not known how many axes"):
        find_head(scripted(model, tmp_path / "unknown.pt"))
    assert find_head(deep, tensor="fc.weight").classes == CLASSES


# ---------------------------------------------------------------------- programs that change things


def test_a_weight_that_the_program_changes_in_place_is_not_a_constant(tmp_path: Path) -> None:
    class Model(Headed):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            weight = self.fc.weight.detach().view(-1)
            weight.mul_(0.5)
            return self.fc(x)

    with pytest.raises(LoadError, match="no linear layer"):
        find_head(scripted(Model(), tmp_path / "model.pt"))


def test_an_attribute_that_the_program_assigns_is_not_known(tmp_path: Path) -> None:
    class Model(Headed):
        def __init__(self) -> None:
            super().__init__()
            self.state = torch.ones(CLASSES, FEATURES)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = functional.linear(x, self.state)
            self.state = self.state * 2
            return y

    with pytest.raises(LoadError, match="no linear layer"):
        find_head(scripted(Model(), tmp_path / "model.pt"))


def test_features_changed_in_place_lose_their_bounds(tmp_path: Path) -> None:
    class Model(Headed):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = torch.relu(x)
            x[:, 0].sub_(5.0)
            return self.fc(x)

    inputs = find_head(scripted(Model(), tmp_path / "model.pt")).inputs
    assert inputs is not None
    assert inputs.domain == Everywhere()


def test_an_activation_in_place_bounds_features(tmp_path: Path) -> None:
    class Model(Headed):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x + 1.0
            functional.relu(x, inplace=True)
            if x.shape[0] > 100:
                raise ValueError("too many")
            return self.fc(x)

    inputs = find_head(scripted(Model(), tmp_path / "model.pt")).inputs
    assert inputs is not None
    assert inputs.domain == Box(np.array(0.0), np.array(np.inf))


def test_both_ways_of_a_condition_must_lead_to_one_layer(tmp_path: Path) -> None:
    class Model(Headed):
        def __init__(self) -> None:
            super().__init__()
            self.other = nn.Linear(FEATURES, CLASSES)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.fc(x) if bool(x.sum() > 0) else self.other(x)

    with pytest.raises(LoadError, match="branches of an If lead"):
        find_head(scripted(Model(), tmp_path / "model.pt"))


def test_what_a_loop_of_unknown_length_changes_is_not_known(tmp_path: Path) -> None:
    class Model(Headed):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.fc(x)
            for _ in range(x.shape[0]):
                y = y * y
            return y

    with pytest.raises(LoadError, match=r"the trace ends at aten:loop.*fc\.weight"):
        find_head(scripted(Model(), tmp_path / "model.pt"))


# ---------------------------------------------------------------------- which files


@pytest.mark.parametrize("name", ["model.pth", "model.bin", "model.jit", "model"])
def test_an_archive_is_recognised_by_what_is_in_it(tmp_path: Path, saved: Path, name: str) -> None:
    path = shutil.copy(saved, tmp_path / name)
    assert find_format(Path(path)).name == "torchscript"
    torch.save({"fc.weight": torch.ones(2, 2)}, path)
    assert not name.endswith((".pth", ".bin")) or find_format(Path(path)).name == "pytorch"


def test_labels_come_from_files_beside(tmp_path: Path, saved: Path) -> None:
    path = Path(shutil.copy(saved, tmp_path / "model.pt"))
    labels = {str(number): f"class {number}" for number in range(CLASSES)}
    (tmp_path / "config.json").write_text(json.dumps({"id2label": labels}))
    assert load_head(path).labels == tuple(labels.values())


def test_a_model_for_the_lite_interpreter_is_refused_with_advice(tmp_path: Path, saved: Path) -> None:
    path = edited(Path(shutil.copy(saved, tmp_path / "model.ptl")), {}, {"bytecode.pkl": b"\x80\x02)."})
    with pytest.raises(LoadError, match=r"lite interpreter.*torch\.jit\.save"):
        find_head(path)


def test_a_quantised_head_is_refused_with_advice(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = torch.ao.quantization.quantize_dynamic(
            nn.Sequential(nn.Linear(FEATURES, CLASSES)), {nn.Linear}
        )
    with pytest.raises(LoadError, match="PyTorch has quantised can't be read: save the state_dict"):
        find_head(scripted(model, tmp_path / "model.pt"))


def test_where_the_program_is_not_followed_the_head_is_found_by_name(tmp_path: Path) -> None:
    def with_block(code: bytes) -> bytes:
        return code.replace(b"    return ", b"    with self:\n      pass\n    return ", 1)

    path = traced(Tied(), torch.arange(3)[None], tmp_path / "model.pt")
    finding = find_head(edited(path, {"class Tied(": with_block}))
    assert finding.weight.name == "lm_head.weight"
    assert "the program can't be followed to its head, because it has a With statement" in finding.notes[-1]


# ---------------------------------------------------------------------- files to refuse


def _again(code: bytes) -> bytes:
    """A method once more."""
    return code + code[code.index(b"  def forward") :]


def _two_of_a_name(data: bytes) -> bytes:
    return data.replace(b"\x04\0\0\0conv", b"\x04\0\0\0norm")


@pytest.mark.parametrize(
    ("member", "change", "what"),
    [
        ("class Linear(", lambda code: code + code, "defined twice"),
        ("class Linear(", _again, "two methods called 'forward'"),
        ("/data.pkl", _two_of_a_name, "two attributes called 'norm'"),
    ],
)
def test_what_is_there_twice_is_refused(
    tmp_path: Path, saved: Path, member: str, change: Callable[[bytes], bytes], what: str
) -> None:
    path = edited(Path(shutil.copy(saved, tmp_path / "model.pt")), {member: change})
    with pytest.raises(AmbiguousError, match=what):
        find_head(path)


def test_a_storage_of_another_size_is_refused(tmp_path: Path, saved: Path) -> None:
    path = edited(Path(shutil.copy(saved, tmp_path / "model.pt")), {"/data/0": lambda data: data + bytes(4)})
    with pytest.raises(LoadError, match="bytes, expected 432"):
        find_head(path)


@pytest.mark.parametrize(
    "nested", ["(" * 500, "x" + ".y" * 100_000, "-" * 100_000, "f" + "()" * 100_000, "[" * 90_000]
)
def test_deeply_nested_code_does_no_harm(tmp_path: Path, saved: Path, nested: str) -> None:
    def change(code: bytes) -> bytes:
        return code.replace(b"    return ", f"    {nested}\n    return ".encode(), 1)

    with suppress(LoadError):  # where it can be parsed all the same, the head is found by name
        find_head(edited(Path(shutil.copy(saved, tmp_path / "model.pt")), {"class ConvNet(": change}))


def test_a_pickle_that_holds_nothing_is_refused(tmp_path: Path, saved: Path) -> None:
    path = edited(Path(shutil.copy(saved, tmp_path / "model.pt")), {"constants.pkl": lambda _: b"\x80\x02."})
    with pytest.raises(LoadError, match="its pickle is damaged, at an instruction STOP"):
        find_head(path)


def test_damaged_files_are_refused(tmp_path: Path, saved: Path) -> None:
    path, data = tmp_path / "model.pt", saved.read_bytes()
    for number in range(60):
        path.write_bytes(disturbed(random.Random(number), data))
        try:
            load_head(path)
        except (LoadError, HeadError):
            continue
