"""`teach` and `observe` as the shell runs them: a model and a page, or one clear line for a mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_writer
import pytest
from onnx_writer import node
from running import Command, is_one_clear_line
from teaching_world import LABELS, NEVER, arrays, head

from argmaxable.models import load_head


def save_model(folder: Path) -> Path:
    path = folder / "model.npz"
    np.savez(path, W=head().weight, b=head().biases().astype(np.float32), labels=np.array(LABELS))
    return path


def save_examples(folder: Path, *, new: str | None = None, **changes: Any) -> Path:
    """The examples of the small world; `new` is the label of a class that is not there."""
    features, labels, sources = arrays(new=new or "")
    content = {"features": features, "labels": np.array(labels), "source": np.array(sources)} | changes
    path = folder / "examples.npz"
    np.savez(path, **{name: value for name, value in content.items() if value is not None})
    return path


def test_a_class_is_taught_written_and_reported(command: Command, tmp_path: Path) -> None:
    model, given, out = save_model(tmp_path), save_examples(tmp_path), tmp_path / "out.npz"
    page = tmp_path / "page.html"
    ran = command(
        "teach", model, LABELS[NEVER], "-o", out, "--features", given, "--hold-out", "right",
        "--report", page, "--workers", "1",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "1 class can be predicted, at the features of a real example" in ran.out
    assert "6 of 6 held-out examples are read (before: 0)" in ran.out
    assert "(95 % bound)" in ran.out
    assert f"written to {out}" in ran.out
    changed = np.flatnonzero((load_head(out).weight != head().weight).any(axis=1))
    assert changed.tolist() == [NEVER]
    text = page.read_text(encoding="utf-8")
    assert "1 class taught: 6 of 6 held-out examples read" in text
    assert text.count("<script") == 0


def test_json_tells_what_is_proven_from_what_is_measured(command: Command, tmp_path: Path) -> None:
    model, given = save_model(tmp_path), save_examples(tmp_path)
    ran = command(
        "teach", model, "--all-unargmaxable", "--features", given, "--dry-run", "--json", "--workers", "1"
    )
    assert ran.code == 0, ran.err
    record = ran.record
    assert [each["label"] for each in record["classes"]] == [LABELS[NEVER]]
    assert record["proven"]["unargmaxable"] == 0
    assert record["measured"]["ordinary_changed"]["bound"] < 0.2
    assert record["output"] is None
    assert list(tmp_path.glob("out*")) == []


def test_a_new_label_is_added_to_an_onnx_model_before_its_space(command: Command, tmp_path: Path) -> None:
    weight, labels = head().weight, LABELS[1:-1]
    nodes = [node("MatMul", "x W", "p"), node("Add", "p b", "y")]
    constants = {"W": np.ascontiguousarray(weight.T), "b": head().biases().astype(np.float32)}
    model = onnx_writer.build(nodes, constants, character="\n".join(labels))
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = weight.shape[1]
    source, out = tmp_path / "model.onnx", tmp_path / "out.onnx"
    onnx.save(model, source)
    names = np.array(["" if label in (LABELS[0], LABELS[-1]) else label for label in arrays(new="赟")[1]])
    given = save_examples(tmp_path, labels=names)
    ran = command(
        "teach", source, "--add", "赟", "-o", out, "--features", given, "--look-alikes", "--workers", "1"
    )
    assert ran.code == 0, ran.err
    assert "1 of them new: 赟" in ran.out
    assert load_head(out).labels == ("<blank>", *labels, "赟", " ")


@pytest.mark.parametrize(
    ("arguments", "changes", "message"),
    [
        (["c5"], {"labels": None}, "no array 'labels'"),
        (["c5"], {"features": np.zeros((600, 3))}, "3 features a row; the head has 8"),
        (["c5"], {"features": np.full((600, 8), np.nan)}, "NaN or infinite"),
        (["c5"], {"labels": np.array(["c1"] * 600)}, "no example of c5"),
        (["c5"], {"labels": np.array(["c5", "zz"] * 300)}, "the examples name zz"),
        (["c5"], {"labels": np.array(["c5"] * 3)}, "3 labels for 600 rows"),
        (["c5"], {"features": np.zeros((0, 8)), "labels": np.array([], str)}, "no examples"),
        (["--add", "c5"], {}, "the head has a class c5 already"),
        (["c1"], {}, "c1 (class 1) wins at all"),
        (["nobody"], {}, "no class has the label 'nobody'"),
        ([], {}, "nothing to teach"),
        (["c5", "--hold-out", "mars"], {}, "no example has this source (there are left, right)"),
        (["c5", "--hold-out", "1.5"], {}, "expected a share between 0 and 1"),
        (["c5", "--max-change", "0"], {}, "--max-change allows 0 %"),
        (["c5", "--time-limit", "0.000001"], {}, "time limit"),
    ],
)
def test_a_mistake_ends_in_one_clear_line_and_nothing_is_written(
    command: Command, tmp_path: Path, arguments: list[str], changes: dict[str, Any], message: str
) -> None:
    given, out = save_examples(tmp_path, **changes), tmp_path / "out.npz"
    ran = command("teach", save_model(tmp_path), *arguments, "-o", out, "--features", given, "--workers", "1")
    assert ran.code == 2
    assert is_one_clear_line(ran)
    assert message in ran.err
    assert not out.exists()


def test_the_model_itself_is_never_overwritten(command: Command, tmp_path: Path) -> None:
    model = save_model(tmp_path)
    before = model.read_bytes()
    ran = command("teach", model, "c5", "-o", model, "--features", save_examples(tmp_path), "--overwrite")
    assert (ran.code, model.read_bytes()) == (2, before)
    assert "is the model itself" in ran.err


def test_missing_examples_and_targets_are_told_before_any_work(command: Command, tmp_path: Path) -> None:
    model = save_model(tmp_path)
    assert "--features FILE.npz" in command("teach", model, "c5", "--dry-run").err
    assert (
        "no such file" in command("teach", model, "c5", "--dry-run", "--features", tmp_path / "none.npz").err
    )
    assert "Pass -o OUT" in command("teach", model, "c5").err
    added = command("teach", model, "--add", "c5", "--dry-run", "--features", tmp_path / "none.npz")
    assert "the head has a class c5 already" in added.err


def test_observe_tells_grades_from_proofs(command: Command, tmp_path: Path) -> None:
    model, given = save_model(tmp_path), save_examples(tmp_path)
    ran = command("observe", model, "--features", given, "--workers", "1")
    assert ran.code == 0, ran.err
    assert "proven      1 class can never be predicted: c5" in ran.out
    assert "(held out in turn: left, right)" in ran.out
    record = command("observe", model, "--features", given, "--workers", "1", "--json").record
    assert record["classes"][NEVER]["grade"] == "unargmaxable"
    assert record["classes"][1] == {"class": 1, "label": "c1", "grade": "wins", "examples": 12, "read": 12}
