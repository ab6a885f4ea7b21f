"""argmaxable verify --ceiling, and argmaxable check of what it wrote."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from convex_truth import random_head
from running import Command, is_one_clear_line

import argmaxable as am


@pytest.fixture
def model(tmp_path: Path) -> Path:
    head = random_head(0)
    path = tmp_path / "head.npz"
    np.savez(path, W=head.weight, b=head.bias)
    return path


def test_ceilings_are_printed_from_the_lowest(command: Command, model: Path) -> None:
    ran = command("verify", model, "--ceiling", "--domain", "ball:2", "--no-db")
    found = am.ceilings(random_head(0), am.Ball(2.0)).lowest()
    assert "Largest probability of each class (softmax): known to within" in ran.out
    listed = [line for line in ran.out.splitlines() if " to " in line and "  class " in line]
    assert [int(line.split("class ")[1].split()[0]) for line in listed] == [c.class_id for c in found]


def test_the_exit_code_is_that_of_the_verdicts(command: Command, model: Path) -> None:
    alone = command("verify", model, "--domain", "ball:2", "--no-db")
    assert command("verify", model, "--ceiling", "--domain", "ball:2", "--no-db").code == alone.code


def test_json_has_all_ceilings_and_the_nucleus(command: Command, model: Path) -> None:
    ran = command("verify", model, "--ceiling", "--top-p", "0.5", "--temperature", "2", "--json", "--no-db")
    record = ran.record
    assert record["ceilings"]["temperature"] == 2.0
    assert record["ceilings"]["open"] == 0
    assert record["ceilings"]["widest"] <= 1e-6
    assert len(record["ceilings"]["classes"]) == 9
    assert sum(len(record["nucleus"][answer]) for answer in ("yes", "no", "unknown")) == 9


def test_check_proves_the_ceilings_of_a_bundle(command: Command, model: Path, tmp_path: Path) -> None:
    proofs = tmp_path / "proofs"
    command("verify", model, "--ceiling", "--top-p", "0.9", "--output", proofs, "--no-db")
    ran = command("check", proofs, model)
    assert ran.code == 0
    assert "9 of 9 ceilings proven at temperature 1." in ran.out


def test_check_refuses_a_forged_ceiling(command: Command, model: Path, tmp_path: Path) -> None:
    proofs = tmp_path / "proofs"
    command("verify", model, "--ceiling", "--domain", "ball:1", "--output", proofs, "--no-db")
    path = proofs / "ceilings.jsonl"
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    lines[3]["upper"], lines[3]["lower"] = lines[3]["lower"] / 2, 0.0
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    ran = command("check", proofs, model)
    assert ran.code == 1
    assert "8 of 9 ceilings proven" in ran.out
    assert "class 3: ceiling NOT PROVEN" in ran.out


def test_a_bundle_written_without_ceilings_keeps_none_of_an_earlier_one(
    command: Command, model: Path, tmp_path: Path
) -> None:
    proofs = tmp_path / "proofs"
    command("verify", model, "--ceiling", "--output", proofs, "--no-db")
    assert (proofs / "ceilings.json").exists()
    command("verify", model, "--output", proofs, "--no-db")
    assert not list(proofs.glob("ceilings*"))


def test_only_chosen_classes_get_a_ceiling(command: Command, model: Path) -> None:
    record = command("verify", model, "--only", "2,5", "--ceiling", "--json", "--no-db").record
    assert sorted(ceiling["class"] for ceiling in record["ceilings"]["classes"]) == [2, 5]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--temperature", "2"], "--ceiling"),
        (["--top-p", "0.9"], "--ceiling"),
        (["--ceiling", "--top-p", "0"], "top-p"),
        (["--ceiling", "--top-p", "1.2"], "top-p"),
        (["--ceiling", "--temperature", "0"], "temperature"),
        (["--ceiling", "--temperature", "inf"], "temperature"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    command: Command, model: Path, options: list[str], said: str
) -> None:
    ran = command("verify", model, *options, "--no-db")
    assert ran.code == 2
    assert is_one_clear_line(ran)
    assert said in ran.err
