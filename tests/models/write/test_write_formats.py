"""Changed heads in copies of model files: the head is the new one, every other byte the old."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
import safetensors.numpy
import torch
from numpy.typing import NDArray
from onnx_writer import build, constant_node, node

import argmaxable as am
from argmaxable.models import find_head, load_head, read_head
from argmaxable.models.write import write_head

CLASSES, FEATURES = 6, 4
WEIGHT = np.random.default_rng(1).standard_normal((CLASSES, FEATURES)).astype(np.float32)
BIAS = np.random.default_rng(2).standard_normal(CLASSES).astype(np.float32)
OTHER = np.random.default_rng(3).standard_normal((3, FEATURES)).astype(np.float32)


def write_safetensors(path: Path) -> None:
    tensors = {"body.weight": OTHER, "lm_head.weight": WEIGHT, "lm_head.bias": BIAS, "tail": OTHER}
    safetensors.numpy.save_file(tensors, path, metadata={"made": "here"})


def write_npz(path: Path) -> None:
    np.savez(path, other=OTHER, W=WEIGHT, b=BIAS, labels=np.array(list("abcdef")))


def write_compressed_npz(path: Path) -> None:
    np.savez_compressed(path, other=OTHER, W=WEIGHT, b=BIAS)


def write_column_major_npz(path: Path) -> None:
    np.savez(path, W=np.asfortranarray(WEIGHT), b=BIAS)


def write_transposed_npz(path: Path) -> None:
    np.savez(path, ff_logit_W=np.ascontiguousarray(WEIGHT.T), ff_logit_b=BIAS, other=OTHER)


def write_pytorch(path: Path) -> None:
    layers = {"body.weight": OTHER, "lm_head.weight": WEIGHT, "lm_head.bias": BIAS, "tail": OTHER}
    torch.save({name: torch.from_numpy(values.copy()) for name, values in layers.items()}, path)


def write_gemm(path: Path) -> None:
    model = build([node("Gemm", "x W b", "y", transB=1)], {"W": WEIGHT, "b": BIAS})
    path.write_bytes(model.SerializeToString())


def write_matmul(path: Path) -> None:
    nodes = [node("MatMul", "x W", "p"), node("Add", "p b", "s"), node("Softmax", "s", "y")]
    model = build(nodes, {"other": OTHER, "W": np.ascontiguousarray(WEIGHT.T), "b": BIAS})
    path.write_bytes(model.SerializeToString())


def write_constants(path: Path) -> None:
    nodes = [constant_node("W", WEIGHT), constant_node("b", BIAS), node("Gemm", "x W b", "y", transB=1)]
    path.write_bytes(build(nodes, {}).SerializeToString())


def write_float_data(path: Path) -> None:
    """Numbers in the field for floats, as older exporters put them."""
    model = build([node("Gemm", "x W b", "y", transB=1)], {"W": WEIGHT, "b": BIAS})
    for tensor in model.graph.initializer:
        values = onnx.numpy_helper.to_array(tensor).reshape(-1).tolist()
        tensor.ClearField("raw_data")
        tensor.float_data.extend(values)
    path.write_bytes(model.SerializeToString())


WRITERS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "safetensors": (".safetensors", write_safetensors),
    "npz": (".npz", write_npz),
    "npz, by columns": (".npz", write_column_major_npz),
    "npz, by feature": (".npz", write_transposed_npz),
    "pytorch": (".pt", write_pytorch),
    "onnx, Gemm": (".onnx", write_gemm),
    "onnx, MatMul": (".onnx", write_matmul),
    "onnx, Constant": (".onnx", write_constants),
    "onnx, float_data": (".onnx", write_float_data),
}


def changed(head: am.Head) -> am.Head:
    """Two rows and one bias are others."""
    weight, bias = np.array(head.weight), None if head.bias is None else np.array(head.bias)
    weight[1] += 0.5
    weight[4, 2] = -7
    if bias is not None:
        bias[3] = 2.5
    return am.Head(weight, bias, head.labels, name=head.name)


def rewritten(source: Path, target: Path, **options: Any) -> tuple[am.Head, am.Head]:
    """Write the changed head of the source to the target; what was meant, and what the target holds."""
    finding = find_head(source, **options)
    before = read_head(finding, source)
    after = changed(before)
    write_head(str(source), finding, before, after, target, **options)
    return after, load_head(target, **options)


def assert_same(found: am.Head, meant: am.Head) -> None:
    assert found.weight.dtype == meant.weight.dtype
    assert np.array_equal(found.weight, meant.weight)
    assert np.array_equal(found.biases(), meant.biases())
    assert found.labels == meant.labels


def bytes_that_differ(left: Path, right: Path) -> int:
    one, two = left.read_bytes(), right.read_bytes()
    assert len(one) == len(two)
    return sum(a != b for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("name", WRITERS)
def test_the_copy_holds_the_changed_head(name: str, tmp_path: Path) -> None:
    suffix, write = WRITERS[name]
    source, target = tmp_path / f"model{suffix}", tmp_path / f"out{suffix}"
    write(source)
    meant, found = rewritten(source, target)
    assert_same(found, meant)


@pytest.mark.parametrize("name", WRITERS)
def test_only_the_changed_numbers_and_their_checksums_differ(name: str, tmp_path: Path) -> None:
    suffix, write = WRITERS[name]
    source, target = tmp_path / f"model{suffix}", tmp_path / f"out{suffix}"
    write(source)
    rewritten(source, target)
    numbers = (FEATURES + 1 + 1) * 4
    checksums = 2 * 2 * 4 if zipfile.is_zipfile(source) else 0
    assert 0 < bytes_that_differ(source, target) <= numbers + checksums


@pytest.mark.parametrize("name", WRITERS)
def test_writing_leaves_the_model_and_nothing_else_behind(name: str, tmp_path: Path) -> None:
    suffix, write = WRITERS[name]
    source, target = tmp_path / f"model{suffix}", tmp_path / f"out{suffix}"
    write(source)
    before = source.read_bytes()
    rewritten(source, target)
    assert source.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {source.name, target.name}


@pytest.mark.parametrize("name", ["npz", "npz, by columns", "pytorch"])
def test_checksums_of_archives_fit(name: str, tmp_path: Path) -> None:
    suffix, write = WRITERS[name]
    source, target = tmp_path / f"model{suffix}", tmp_path / f"out{suffix}"
    write(source)
    rewritten(source, target)
    with zipfile.ZipFile(target) as archive:
        assert archive.testzip() is None


def test_a_compressed_archive_keeps_its_other_members(tmp_path: Path) -> None:
    source, target = tmp_path / "model.npz", tmp_path / "out.npz"
    write_compressed_npz(source)
    meant, found = rewritten(source, target)
    assert_same(found, meant)
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target) as new:
        assert old.namelist() == new.namelist()
        assert old.read("other.npy") == new.read("other.npy")
        assert new.infolist()[0].compress_type == zipfile.ZIP_DEFLATED


def test_a_bare_array_is_written_as_one(tmp_path: Path) -> None:
    source, target = tmp_path / "model.npy", tmp_path / "out.npy"
    np.save(source, WEIGHT)
    meant, found = rewritten(source, target)
    assert_same(found, meant)


def test_an_onnx_copy_runs_and_answers_as_the_changed_head(tmp_path: Path) -> None:
    source, target = tmp_path / "model.onnx", tmp_path / "out.onnx"
    write_gemm(source)
    meant, _ = rewritten(source, target)
    x = np.float32([[0.5, -1, 2, 0.25]])
    session = onnxruntime.InferenceSession(target, providers=["CPUExecutionProvider"])
    (scores,) = session.run(None, {"x": x})
    assert np.allclose(scores, x @ meant.weight.T + meant.bias, atol=1e-5)


def test_pytorch_loads_the_copy_with_every_other_tensor_the_same(tmp_path: Path) -> None:
    source, target = tmp_path / "model.pt", tmp_path / "out.pt"
    write_pytorch(source)
    meant, _ = rewritten(source, target)
    loaded = torch.load(target, weights_only=True)
    assert np.array_equal(loaded["lm_head.weight"].numpy(), meant.weight)
    assert np.array_equal(loaded["body.weight"].numpy(), OTHER)
    assert np.array_equal(loaded["tail"].numpy(), OTHER)


def test_of_two_equal_tensors_the_heads_is_changed(tmp_path: Path) -> None:
    source, target = tmp_path / "model.pt", tmp_path / "out.pt"
    layers = {"copy": WEIGHT, "lm_head.weight": WEIGHT, "lm_head.bias": BIAS, "again": WEIGHT}
    torch.save({name: torch.from_numpy(values.copy()) for name, values in layers.items()}, source)
    meant, found = rewritten(source, target)
    assert_same(found, meant)
    loaded = torch.load(target, weights_only=True)
    assert np.array_equal(loaded["copy"].numpy(), WEIGHT)
    assert np.array_equal(loaded["again"].numpy(), WEIGHT)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, ml_dtypes.bfloat16])
def test_other_floats_are_written_bit_for_bit(dtype: Any, tmp_path: Path) -> None:
    source, target = tmp_path / "model.safetensors", tmp_path / "out.safetensors"
    tensors: dict[str, NDArray[Any]] = {"weight": WEIGHT.astype(dtype), "bias": BIAS.astype(dtype)}
    place, header, data = 0, {}, b""
    names = {np.float16: "F16", np.float64: "F64", ml_dtypes.bfloat16: "BF16"}
    for name, values in tensors.items():
        size = values.nbytes
        header[name] = {"dtype": names[dtype], "shape": values.shape, "data_offsets": [place, place + size]}
        place, data = place + size, data + values.tobytes()
    text = json.dumps(header).encode()
    source.write_bytes(len(text).to_bytes(8, "little") + text + data)
    meant, found = rewritten(source, target)
    assert_same(found, meant)


def external(folder: Path) -> Path:
    folder.mkdir()
    path = folder / "model.onnx"
    model = build([node("Gemm", "x W b", "y", transB=1)], {"W": WEIGHT, "b": BIAS})
    onnx.save_model(model, path, save_as_external_data=True, location="model.data", size_threshold=0)
    return path


def test_data_beside_a_model_is_copied_with_it(tmp_path: Path) -> None:
    source = external(tmp_path / "old")
    (tmp_path / "new").mkdir()
    target = tmp_path / "new" / "model.onnx"
    meant, found = rewritten(source, target)
    assert_same(found, meant)
    assert target.read_bytes() == source.read_bytes()
    assert {path.name for path in target.parent.iterdir()} == {"model.onnx", "model.data"}


def test_data_of_the_model_itself_is_never_overwritten(tmp_path: Path) -> None:
    source = external(tmp_path / "old")
    before = (source.parent / "model.data").read_bytes()
    with pytest.raises(am.InputError, match="another folder"):
        rewritten(source, source.with_name("out.onnx"))
    assert (source.parent / "model.data").read_bytes() == before
    assert not source.with_name("out.onnx").exists()


# ---------------------------------------------------------------------- what can't be written


def refused(source: Path, target: Path, match: str, error: type[Exception] = am.InputError) -> None:
    before = sorted((path.name, path.read_bytes()) for path in source.parent.iterdir() if path.is_file())
    with pytest.raises(error, match=match):
        rewritten(source, target)
    after = sorted((path.name, path.read_bytes()) for path in source.parent.iterdir() if path.is_file())
    assert before == after


def test_the_model_itself_is_never_overwritten(tmp_path: Path) -> None:
    source = tmp_path / "model.npz"
    write_npz(source)
    refused(source, source, "is the model itself")


def test_a_link_to_the_model_is_the_model(tmp_path: Path) -> None:
    source = tmp_path / "model.npz"
    write_npz(source)
    (tmp_path / "link.npz").symlink_to(source)
    refused(source, tmp_path / "link.npz", "is the model itself")


def test_a_file_that_exists_is_kept(tmp_path: Path) -> None:
    write_npz(tmp_path / "model.npz")
    (tmp_path / "out.npz").write_bytes(b"precious")
    refused(tmp_path / "model.npz", tmp_path / "out.npz", "exists already")


def test_overwriting_has_to_be_asked_for(tmp_path: Path) -> None:
    write_npz(tmp_path / "model.npz")
    (tmp_path / "out.npz").write_bytes(b"old")
    source = tmp_path / "model.npz"
    finding = find_head(source)
    before = read_head(finding, source)
    write_head(str(source), finding, before, changed(before), tmp_path / "out.npz", overwrite=True)
    assert_same(load_head(tmp_path / "out.npz"), changed(before))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write where nobody may")
def test_a_read_only_folder_is_left_alone(tmp_path: Path) -> None:
    source = tmp_path / "model.npz"
    write_npz(source)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    refused(source, closed / "out.npz", "read-only")


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    write_npz(tmp_path / "model.npz")
    refused(tmp_path / "model.npz", tmp_path / "nowhere" / "out.npz", "is not a folder")


def test_the_format_stays_the_same(tmp_path: Path) -> None:
    write_npz(tmp_path / "model.npz")
    refused(tmp_path / "model.npz", tmp_path / "out.onnx", r"should end in \.npz")


def test_the_old_format_of_pytorch_is_refused(tmp_path: Path) -> None:
    layers = {"weight": torch.from_numpy(WEIGHT.copy()), "bias": torch.from_numpy(BIAS.copy())}
    torch.save(layers, tmp_path / "model.pt", _use_new_zipfile_serialization=False)
    refused(tmp_path / "model.pt", tmp_path / "out.pt", "before 2020")


def test_a_tensor_that_is_stored_by_columns_is_refused(tmp_path: Path) -> None:
    weight = torch.from_numpy(np.ascontiguousarray(WEIGHT.T)).T
    torch.save(
        {"lm_head.weight": weight, "lm_head.bias": torch.from_numpy(BIAS.copy())}, tmp_path / "model.pt"
    )
    refused(tmp_path / "model.pt", tmp_path / "out.pt", "not stored row by row")


def test_a_quantised_head_is_refused(tmp_path: Path) -> None:
    nodes = [node("DequantizeLinear", "Q s z", "W"), node("Gemm", "x W b", "y", transB=1)]
    steps = {"Q": np.ones((CLASSES, FEATURES), np.int8), "s": np.float32(0.5), "z": np.int8(0), "b": BIAS}
    source = tmp_path / "model.onnx"
    source.write_bytes(build(nodes, {k: np.asarray(v) for k, v in steps.items()}).SerializeToString())
    refused(source, tmp_path / "out.onnx", "quantised, cast or scaled")


def test_a_scaled_head_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "model.onnx"
    model = build([node("Gemm", "x W b", "y", transB=1, alpha=0.5)], {"W": WEIGHT, "b": BIAS})
    source.write_bytes(model.SerializeToString())
    refused(source, tmp_path / "out.onnx", "does not read as the changed head")


def test_a_format_without_a_writer_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "model.npz"
    write_npz(source)
    finding = replace(find_head(source), format="gguf")
    head = read_head(finding, source)
    with pytest.raises(am.InputError, match="gguf files can't be written back"):
        write_head(str(source), finding, head, changed(head), tmp_path / "out.npz")


def test_a_directory_is_refused(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text("{}")
    finding = find_head(tmp_path)
    head = read_head(finding, tmp_path)
    with pytest.raises(am.InputError, match="is a directory"):
        write_head(str(tmp_path), finding, head, changed(head), tmp_path / "out.safetensors")
