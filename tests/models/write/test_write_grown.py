"""Heads with more classes in copies of model files: the head is the new one, all other values the old."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import safetensors.numpy
import torch
from onnx import TensorProto, helper, numpy_helper
from onnx_writer import build, constant_node, node

import argmaxable as am
from argmaxable.models import find_head, load_head, read_head
from argmaxable.models.write import notes_on_growth, place_of_new_classes, write_head

CLASSES, FEATURES = 6, 4
WEIGHT = np.random.default_rng(1).standard_normal((CLASSES, FEATURES)).astype(np.float32)
BIAS = np.random.default_rng(2).standard_normal(CLASSES).astype(np.float32)
OTHER = np.random.default_rng(3).standard_normal((3, FEATURES)).astype(np.float32)
CHARACTERS = "a\nb\nc\nd"  # with a blank and a space six classes


def write_safetensors(path: Path) -> None:
    tensors = {"body.weight": OTHER, "lm_head.weight": WEIGHT, "lm_head.bias": BIAS, "tail": OTHER}
    safetensors.numpy.save_file(tensors, path, metadata={"made": "here"})


def write_npz(path: Path) -> None:
    np.savez(path, other=OTHER, W=WEIGHT, b=BIAS, labels=np.array(list("abcdef")))


def write_column_major_npz(path: Path) -> None:
    np.savez_compressed(path, W=np.asfortranarray(WEIGHT), b=BIAS)


def write_npy(path: Path) -> None:
    np.save(path, WEIGHT)


def shaped(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with declared shapes."""
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", CLASSES]))
    if any("p" in each.output for each in model.graph.node):
        model.graph.value_info.append(helper.make_tensor_value_info("p", TensorProto.FLOAT, ["n", CLASSES]))
    return model


def write_matmul(path: Path) -> None:
    nodes = [node("MatMul", "x W", "p"), node("Add", "p b", "s"), node("Softmax", "s", "y")]
    constants = {"other": OTHER, "W": np.ascontiguousarray(WEIGHT.T), "b": BIAS}
    path.write_bytes(shaped(build(nodes, constants, character=CHARACTERS)).SerializeToString())


def write_constants(path: Path) -> None:
    nodes = [constant_node("W", WEIGHT), constant_node("b", BIAS), node("Gemm", "x W b", "y", transB=1)]
    path.write_bytes(shaped(build(nodes, {})).SerializeToString())


WRITERS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "safetensors": (".safetensors", write_safetensors),
    "npz": (".npz", write_npz),
    "npz, by columns": (".npz", write_column_major_npz),
    "npy": (".npy", write_npy),
    "onnx, characters": (".onnx", write_matmul),
    "onnx, Constant": (".onnx", write_constants),
}


def grown(head: am.Head, at: int) -> am.Head:
    """Two more rows, and another one changed."""
    weight = np.insert(head.weight, at, np.full((2, FEATURES), 0.25, np.float32), axis=0)
    weight[1] += 1
    bias = None if head.bias is None else np.insert(head.bias, at, [3, 4]).astype(np.float32)
    labels = None if head.labels is None else [*head.labels[:at], "x", "yy", *head.labels[at:]]
    return am.Head(weight, bias, labels, name=head.name)


def written(name: str, folder: Path) -> tuple[Path, Path, am.Head]:
    suffix, write = WRITERS[name]
    source, target = folder / f"model{suffix}", folder / f"out{suffix}"
    write(source)
    finding = find_head(source)
    before = read_head(finding, source)
    after = grown(before, place_of_new_classes(finding))
    write_head(str(source), finding, before, after, target)
    return source, target, after


@pytest.mark.parametrize("name", WRITERS)
def test_the_copy_holds_the_larger_head(name: str, tmp_path: Path) -> None:
    _, target, meant = written(name, tmp_path)
    found = load_head(target)
    assert np.array_equal(found.weight, meant.weight)
    assert np.array_equal(found.biases(), meant.biases())
    assert found.labels == meant.labels


def test_new_characters_go_before_the_space_that_decoders_append(tmp_path: Path) -> None:
    _, target, _ = written("onnx, characters", tmp_path)
    assert load_head(target).labels == ("<blank>", "a", "b", "c", "d", "x", "yy", " ")
    (entry,) = onnx.load(target).metadata_props
    assert entry.value == f"{CHARACTERS}\nx\nyy"


@pytest.mark.parametrize("name", ["onnx, characters", "onnx, Constant"])
def test_a_runtime_accepts_the_copy_and_other_logits_are_the_same(name: str, tmp_path: Path) -> None:
    source, target, after = written(name, tmp_path)
    onnx.checker.check_model(str(target), full_check=True)
    session = onnxruntime.InferenceSession(str(target), providers=["CPUExecutionProvider"])
    assert session.get_outputs()[0].shape[-1] == CLASSES + 2
    x = np.ones((1, FEATURES), np.float32)
    (y,) = session.run(None, {"x": x})
    logits = x @ after.weight.T + after.biases()
    scores = logits if name.endswith("Constant") else np.exp(logits) / np.exp(logits).sum()
    assert y == pytest.approx(scores, abs=1e-5)
    assert source.stat().st_size < target.stat().st_size


@pytest.mark.parametrize("name", ["onnx, characters", "onnx, Constant"])
def test_all_else_in_a_graph_stays_as_it_is(name: str, tmp_path: Path) -> None:
    source, target, _ = written(name, tmp_path)
    models = [onnx.load(path) for path in (source, target)]
    for model in models:
        for tensor in model.graph.initializer:
            if tensor.name in "Wb":
                tensor.CopyFrom(numpy_helper.from_array(np.zeros(1, np.float32), tensor.name))
        for each in model.graph.node:
            if each.op_type == "Constant":
                each.ClearField("attribute")
        for value in (*model.graph.output, *model.graph.value_info):
            value.type.tensor_type.shape.dim[-1].dim_value = 0
        del model.metadata_props[:]
    assert models[0].SerializeToString() == models[1].SerializeToString()


def test_other_members_of_an_archive_are_the_same(tmp_path: Path) -> None:
    source, target, _ = written("npz", tmp_path)
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target) as new:
        assert old.namelist() == new.namelist()
        assert old.read("other.npy") == new.read("other.npy")


def test_other_tensors_move_and_stay_the_same(tmp_path: Path) -> None:
    source, target, _ = written("safetensors", tmp_path)
    tensors = safetensors.numpy.load_file(target)
    assert np.array_equal(tensors["tail"], OTHER)
    assert np.array_equal(tensors["body.weight"], OTHER)
    with safetensors.safe_open(target, "numpy") as file:
        assert file.metadata() == {"made": "here"}
    assert "vocab_size" in notes_on_growth(find_head(source))[0]


def refused(source: Path, message: str) -> None:
    finding = find_head(source)
    before = read_head(finding, source)
    target = source.with_name(f"out{source.suffix}")
    with pytest.raises(am.InputError, match=message):
        write_head(str(source), finding, before, grown(before, CLASSES), target)
    assert not target.exists()


def test_a_format_without_room_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "model.pt"
    torch.save({"lm_head.weight": torch.from_numpy(WEIGHT), "lm_head.bias": torch.from_numpy(BIAS)}, source)
    refused(source, "classes can't be added to pytorch files yet")


def test_a_graph_with_a_constant_for_each_class_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "model.onnx"
    nodes = [node("Gemm", "x W b", "p", transB=1), node("Reshape", "p shape", "y")]
    model = build(nodes, {"W": WEIGHT, "b": BIAS, "shape": np.array([1, CLASSES], np.int64)})
    source.write_bytes(model.SerializeToString())
    refused(source, "the constant 'shape' of a Reshape is made for 6 classes")


def test_weights_beside_the_model_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "model.onnx"
    model = build([node("Gemm", "x W b", "y", transB=1)], {"W": WEIGHT, "b": BIAS})
    onnx.save(model, source, save_as_external_data=True, location="data.bin", size_threshold=0)
    refused(source, "stored in a file beside the model")
