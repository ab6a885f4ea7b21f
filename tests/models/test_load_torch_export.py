"""Heads in exported programs (.pt2), which PyTorch itself writes."""

from __future__ import annotations

import json
import random
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fuzz_files import disturbed
from torch_programs import ConvNet, Tied, array, edited, exported, given_to, image

from argmaxable import AmbiguousError, Box, HeadError, LayerNorm, LoadError, find_head, load_head
from argmaxable.models.registry import find_format


@pytest.fixture(scope="module")
def model() -> ConvNet:
    return ConvNet()


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory, model: ConvNet) -> Path:
    return exported(model, image(), tmp_path_factory.mktemp("saved") / "model.pt2")


@pytest.fixture
def copy(tmp_path: Path, saved: Path) -> Path:
    return Path(shutil.copy(saved, tmp_path / "model.pt2"))


def in_json(change: Callable[[Any], None]) -> Callable[[bytes], bytes]:
    """A change to the value of a JSON text."""

    def changed(text: bytes) -> bytes:
        value = json.loads(text)
        change(value)
        return json.dumps(value).encode()

    return changed


def nodes(value: Any) -> list[Any]:
    found: list[Any] = value["graph_module"]["graph"]["nodes"]
    return found


# ---------------------------------------------------------------------- which layer


def test_the_logits_that_pytorch_computes_are_those_of_the_head(saved: Path, model: ConvNet) -> None:
    finding, head = find_head(saved), load_head(saved)
    assert (finding.format, finding.weight.name, finding.activation) == (
        "torch.export",
        "fc.weight",
        "softmax",
    )
    assert np.array_equal(head.weight, array(model.fc.weight))
    assert np.array_equal(head.biases(), array(model.fc.bias))
    with torch.no_grad():
        answers = torch.export.load(saved).module()(image()).numpy()
    logits = given_to(model.fc, model, image()) @ head.weight.T + head.biases()
    assert np.array_equal(logits.argmax(1), answers.argmax(1))
    assert np.allclose(np.exp(logits) / np.exp(logits).sum(1, keepdims=True), answers, atol=1e-6)
    assert finding.inputs is not None
    assert finding.inputs.domain == Box(np.array(0.0), np.array(np.inf))


def test_a_tied_head_is_behind_its_norm(tmp_path: Path) -> None:
    model = Tied()
    path = exported(model, torch.arange(5)[None], tmp_path / "model.pt2")
    finding = find_head(path)
    assert finding.inputs is not None
    assert isinstance(finding.inputs.domain, LayerNorm)
    assert np.array_equal(load_head(path).weight, array(model.embeddings.weight))


def test_a_softmax_over_another_axis_is_refused(copy: Path) -> None:
    def over_rows(value: Any) -> None:
        nodes(value)[-1]["inputs"][1]["arg"] = {"as_int": 0}

    with pytest.raises(LoadError, match="not the axis of its 7 classes"):
        find_head(edited(copy, {"models/model.json": in_json(over_rows)}))


def test_a_weight_that_the_program_changes_is_not_a_constant(copy: Path) -> None:
    def changed_first(value: Any) -> None:
        arguments = [
            {"name": name, "arg": {"as_tensor": {"name": "p_fc_weight"}}, "kind": 1}
            for name in ("self", "other")
        ]
        nodes(value).insert(
            0,
            {"target": "torch.ops.aten.add_.Tensor", "inputs": arguments, "metadata": {}}
            | {"outputs": [{"as_tensor": {"name": "added"}}]},
        )

    with pytest.raises(LoadError, match="no linear layer"):
        find_head(edited(copy, {"models/model.json": in_json(changed_first)}))


# ---------------------------------------------------------------------- which files


def test_a_program_is_recognised_by_what_is_in_the_archive(tmp_path: Path, saved: Path) -> None:
    assert find_format(Path(shutil.copy(saved, tmp_path / "model.pt"))).name == "torch.export"


@pytest.mark.parametrize(
    ("members", "what"),
    [
        (["serialized_exported_program.json", "version"], r"first layout.*torch\.export\.save"),
        (["m/archive_format", "m/models/model.json", "m/data/weights/model.pt"], "pickled weights"),
        (["m/archive_format", "m/data/aotinductor/model/x.so"], "compiled code without a graph"),
        (["m/archive_format", "m/models/a.json", "m/models/b.json"], "2 programs"),
    ],
)
def test_other_layouts_are_refused_with_advice(tmp_path: Path, members: list[str], what: str) -> None:
    path = tmp_path / "model.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        for name in members:
            archive.writestr(name, b"{}")
    with pytest.raises(LoadError, match=what):
        find_head(path)


def _of_two_types(value: Any) -> None:
    entry = value["config"]["conv.bias"]
    entry["tensor_meta"]["dtype"] = 6
    entry["path_name"] = value["config"]["norm.weight"]["path_name"]


def _beyond_the_end(value: Any) -> None:
    value["config"]["fc.weight"]["tensor_meta"]["storage_offset"]["as_int"] = 1


def _named_twice(value: Any) -> None:
    nodes(value)[1]["outputs"] = nodes(value)[0]["outputs"]


def _of_another_version(value: Any) -> None:
    value["schema_version"]["major"] = 9


def _used_early(value: Any) -> None:
    nodes(value).reverse()


@pytest.mark.parametrize(
    ("member", "change", "what"),
    [
        ("weights_config.json", _of_two_types, "declared to be of two types"),
        ("weights_config.json", _beyond_the_end, "does not lie inside"),
        ("models/model.json", _named_twice, "two values of the program are called"),
        ("models/model.json", _of_another_version, "version .* of the layout, expected 8"),
        ("models/model.json", _used_early, "used too early"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(
    copy: Path, member: str, change: Callable[[Any], None], what: str
) -> None:
    with pytest.raises(LoadError, match=what) as caught:
        find_head(edited(copy, {member: in_json(change)}))
    assert isinstance(caught.value, AmbiguousError) == ("two" in what)


def test_a_key_twice_is_refused(copy: Path) -> None:
    def twice(text: bytes) -> bytes:
        return text.replace(b'"use_pickle": false', b'"use_pickle": false, "use_pickle": false', 1)

    with pytest.raises(AmbiguousError, match="occurs twice"):
        find_head(edited(copy, {"weights_config.json": twice}))


def test_damaged_files_are_refused(tmp_path: Path, saved: Path) -> None:
    path, data = tmp_path / "model.pt2", saved.read_bytes()
    for number in range(60):
        path.write_bytes(disturbed(random.Random(number), data))
        try:
            load_head(path)
        except (LoadError, HeadError):
            continue
