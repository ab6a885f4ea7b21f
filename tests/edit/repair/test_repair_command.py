"""argmaxable repair, as the shell runs it: every format, every mistake."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from damaged import BIASES, LABELS, ROWS
from onnx_writer import build, node
from running import Command

import argmaxable as am
from argmaxable.edit.prune import _safetensors
from argmaxable.models import load_head

WEIGHT, BIAS = ROWS.astype(np.float32), BIASES.astype(np.float32)
SUFFIXES = [".npz", ".safetensors", ".pt", ".onnx"]


def model_in(folder: Path, suffix: str = ".npz", *, bias: bool = True) -> Path:
    path = folder / f"model{suffix}"
    if suffix == ".npz":
        np.savez(path, W=WEIGHT, labels=np.array(LABELS), **({"b": BIAS} if bias else {}))
    elif suffix == ".safetensors":
        path.write_bytes(_safetensors(am.Head(WEIGHT, BIAS), ("lm_head.weight", "lm_head.bias")))
    elif suffix == ".pt":
        torch.save(
            {"fc.weight": torch.from_numpy(WEIGHT.copy()), "fc.bias": torch.from_numpy(BIAS.copy())}, path
        )
    else:
        wide = np.zeros((6, 4), np.float32)
        wide[:, :2] = WEIGHT
        model = build([node("Gemm", "x W b", "y", transB=1)], {"W": wide, "b": BIAS})
        path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_repaired_model_of_any_format_loses_no_class(command: Command, tmp_path: Path, suffix: str) -> None:
    model, out = model_in(tmp_path, suffix), tmp_path / f"out{suffix}"
    assert command("verify", model, "--no-db").code == 1
    done = command("repair", model, "-o", out, "--workers", "1")
    assert done.code == 0
    assert f"written to {out}" in done.out
    assert command("verify", out, "--no-db").code == 0


def test_a_repaired_onnx_model_gives_the_class_where_it_should(command: Command, tmp_path: Path) -> None:
    model, out = model_in(tmp_path, ".onnx"), tmp_path / "out.onnx"
    assert command("repair", model, "-o", out, "--classes", "4", "--workers", "1").code == 0
    session = onnxruntime.InferenceSession(out, providers=["CPUExecutionProvider"])
    # A win by 0.001 is seen on a grid this fine: between two of its points no gap changes by as much.
    points = np.stack(np.meshgrid(*[np.linspace(-0.2, 0.2, 1001)] * 2), -1).reshape(-1, 2)
    points = np.pad(points, ((0, 0), (0, 2)))
    head = am.load_head(out)
    scores = points @ head.rows(slice(None)).T + head.biases()
    best = points[(scores[:, 4] - np.delete(scores, 4, axis=1).max(axis=1)).argmax()]
    assert session.run(None, {"x": np.float32(best[None])})[0].argmax() == 4


def test_a_dry_run_shows_the_repair_and_writes_nothing(command: Command, tmp_path: Path) -> None:
    model = model_in(tmp_path)
    done = command("repair", model, "--dry-run", "--workers", "1")
    assert done.code == 0
    assert "2 classes" in done.out
    assert "nothing was written" in done.out
    assert [path.name for path in tmp_path.iterdir()] == ["model.npz"]


def test_of_a_range_without_end_the_part_within_100_is_repaired(command: Command, tmp_path: Path) -> None:
    weight = np.array([[2, 0], [0, 2], [0.5, 0.5], [-1, -1]], np.float32)
    model = build(
        [node("Relu", "x", "h"), node("Gemm", "h W b", "y", transB=1)],
        {"W": weight, "b": np.zeros(4, np.float32)},
    )
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    record = json.loads(command("repair", path, "--dry-run", "--json", "--workers", "1").out)
    assert (record["domain"], record["domain_source"]["basis"]) == ("box [0, 100]", "assumed")
    assert record["classes"] == [2, 3]


def test_the_record_says_what_was_done(command: Command, tmp_path: Path) -> None:
    model, out = model_in(tmp_path), tmp_path / "out.npz"
    done = command("repair", model, "-o", out, "--margin", "0.25", "--json", "--workers", "1")
    record = json.loads(done.out)
    assert record["classes"] == [4, 5]
    assert min(record["margins"]) >= 0.25
    assert record["least"] <= record["reached"]
    assert record["unargmaxable"] == 0
    raised = load_head(out).biases() - BIAS
    assert record["largest_bias_change"] == pytest.approx(raised.max())
    assert record["largest_logit_movement"] >= raised.max()


def test_a_class_is_chosen_by_its_label(command: Command, tmp_path: Path) -> None:
    model, out = model_in(tmp_path), tmp_path / "out.npz"
    assert command("repair", model, "-o", out, "--tokens", "beside", "--workers", "1").code == 0
    assert np.flatnonzero(load_head(out).biases() != BIAS).tolist() == [5]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["-o", "OUT", "--classes", "9"], "class 9 does not exist"),
        (["-o", "OUT", "--tokens", "nobody"], "no class has the label 'nobody'"),
        (["-o", "OUT", "--classes", "0"], r"class 0 \('a'\) is argmaxable already"),
        (["-o", "OUT", "--margin", "0"], "margin must be"),
        (["-o", "OUT", "--domain", "everywhere"], "bounded domain"),
        (["-o", "MODEL"], "is the model itself"),
        (["-o", "MISSING"], "is not a folder"),
        (["-o", "OTHER"], r"should end in \.npz"),
        ([], "Pass -o OUT"),
    ],
)
def test_a_mistake_is_named_and_nothing_written(
    command: Command, tmp_path: Path, arguments: list[str], complaint: str
) -> None:
    model = model_in(tmp_path)
    before = model.read_bytes()
    places = {
        "OUT": tmp_path / "out.npz",
        "MODEL": model,
        "MISSING": tmp_path / "no" / "out.npz",
        "OTHER": tmp_path / "out.onnx",
    }
    done = command("repair", model, *(places.get(word, word) for word in arguments), "--workers", "1")
    assert done.code == 2
    assert re.search(complaint, done.err)
    assert model.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["model.npz"]


def test_a_head_without_bias_and_bias_only_is_a_mistake(command: Command, tmp_path: Path) -> None:
    model = model_in(tmp_path, bias=False)
    done = command("repair", model, "-o", tmp_path / "out.npz", "--bias-only", "--workers", "1")
    assert done.code == 2
    assert "has no bias" in done.err
    assert not (tmp_path / "out.npz").exists()


def test_an_existing_output_is_kept_unless_told_otherwise(command: Command, tmp_path: Path) -> None:
    model, out = model_in(tmp_path), tmp_path / "out.npz"
    out.write_bytes(b"precious")
    assert command("repair", model, "-o", out, "--workers", "1").code == 2
    assert out.read_bytes() == b"precious"
    assert command("repair", model, "-o", out, "--overwrite", "--workers", "1").code == 0
    assert load_head(out).classes == 6
