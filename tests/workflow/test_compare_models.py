"""Comparing model files: quantisations of one head beside the original."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import gguf_writer
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Type
from gguf.quants import quantize
from keeping import CORNERS, LABELS
from running import Command, is_one_clear_line


def write(path: Path, change: dict[int, list[float]] | None = None) -> Path:
    weight = CORNERS.copy()
    for class_id, row in (change or {}).items():
        weight[class_id] = row
    np.savez(path, W=weight, b=np.zeros(6), labels=np.array(LABELS))
    return path


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write(tmp_path / "base.npz")


@pytest.fixture
def worse(tmp_path: Path) -> Path:
    """é went inside, c became a twin of d, the middle went out."""
    return write(tmp_path / "worse.npz", {1: [0.25, 0.125], 2: [-1.0, -1.0], 4: [3.0, 0.0]})


@pytest.fixture(scope="module")
def quants(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A head of which four bits a weight lose a class: it leads by less than a step of its row."""
    folder = tmp_path_factory.mktemp("quants")
    generator = np.random.default_rng(1)
    weight = generator.normal(size=(40, 32)).astype(np.float32)
    weight[0] = weight[1:].mean(axis=0)  # inside
    weight[1] = weight[2]
    weight[1, 0] += 0.05  # apart from its twin by more than a step of eight bits and less than one of four
    tokens = tuple(f"t{number}" for number in range(40))
    stored = {"F32": (weight, Type.F32), "Q8_0": (quantize(weight, Type.Q8_0), Type.Q8_0)}
    stored["Q4_0"] = quantize(weight, Type.Q4_0), Type.Q4_0
    for name, array in stored.items():
        gguf_writer.write(folder / f"m-{name}.gguf", {"output.weight": array}, tokens=tokens)
    return folder


def test_two_model_files_are_verified_and_compared(command: Command, base: Path, worse: Path) -> None:
    ran = command("compare", base, worse)
    assert ran.code == 0
    assert "4 of 6 classes have a different verdict:" in ran.out
    assert "argmaxable → unargmaxable: 3, 2 of them tied with an identical class\n    é  c  d\n" in ran.out
    assert "unargmaxable → argmaxable: 1\n    middle\n" in ran.out


def test_a_second_comparison_computes_nothing(command: Command, base: Path, worse: Path) -> None:
    command("compare", base, worse)
    command("compare", base, worse)
    assert command("runs", "--json").out.count('"run"') == 2


def test_without_a_database_nothing_is_stored(command: Command, base: Path, worse: Path) -> None:
    assert "middle" in command("compare", base, worse, "--no-db").out
    assert "worse.npz" not in command("runs").out


def test_a_model_file_and_a_stored_run_can_be_compared(command: Command, base: Path, worse: Path) -> None:
    command("verify", base)
    record = command("compare", "1", worse, "--json").record
    assert [pair["label"] for pair in record["changed"]] == ["é", "c", "d", "middle"]
    assert record["weights"] == {"before": "float64", "after": "float64"}


def test_models_that_lose_a_class_can_fail(command: Command, base: Path, worse: Path) -> None:
    assert command("compare", base, worse, "--fail-on-new").code == 1
    assert command("compare", base, base, "--fail-on-new").code == 0


def test_a_directory_of_quantisations_is_one_table(command: Command, quants: Path) -> None:
    ran = command("compare", quants)
    lines = ran.out.splitlines()
    assert lines[0].split("  ")[0] == "model"
    assert [line.split()[:2] for line in lines[1:4]] == [
        ["m-F32.gguf", "float32"], ["m-Q8_0.gguf", "Q8_0"], ["m-Q4_0.gguf", "Q4_0"]
    ]  # fmt: skip
    assert "m-Q8_0.gguf: no class became unargmaxable." in ran.out
    assert "m-Q4_0.gguf: 2 classes became unargmaxable: t1  t2" in ran.out


def test_the_table_of_several_models_can_be_csv_and_json(command: Command, quants: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(command("compare", quants, "--format", "csv").out, newline="")))
    assert [(row["unargmaxable"], row["tied"], row["new"]) for row in rows] == [
        ("1", "0", ""), ("1", "0", "0"), ("3", "2", "2")
    ]  # fmt: skip
    records = command("compare", quants, "--json").record["comparisons"]
    assert [each["after"]["model"] for each in records] == ["m-Q8_0.gguf", "m-Q4_0.gguf"]


def test_classes_that_only_just_win_are_named(command: Command, tmp_path: Path) -> None:
    """The lead of é shrinks to less than bf16 can tell apart."""
    wide = write(tmp_path / "wide.npz")
    narrow = write(tmp_path / "narrow.npz", {4: [1.0001, -0.9999]})
    ran = command("compare", wide, narrow, "--dtype", "bf16")
    assert "only just win now, not by more than the rounding errors of logits: " in ran.out
    record = command("compare", wide, narrow, "--dtype", "bf16", "--json").record
    assert set(record["only_just"]) == {"é", "middle"}
    assert "No further class only just wins." in command("compare", wide, wide, "--dtype", "bf16").out


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["base.npz"], "nothing to compare it with"),
        (["base.npz", "nowhere"], "no run of a model named nowhere"),
        (["base.npz", "base.npz", "--domain", "nonsense"], "is not a domain"),
    ],
)
def test_a_wrong_wish_is_one_clear_line(
    command: Command, base: Path, monkeypatch: pytest.MonkeyPatch, names: list[str], said: str
) -> None:
    monkeypatch.chdir(base.parent)
    ran = command("compare", *names)
    assert ran.code == 2
    assert is_one_clear_line(ran)
    assert said in ran.err
