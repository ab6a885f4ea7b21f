"""Numbers that a bundle has in place of labels must not be the labels of other classes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from running import Command

import argmaxable as am
from argmaxable.proofs.bundle import write_bundle

ROOT = Path(__file__).resolve().parents[2]
WEIGHT = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """Proofs about a head without labels."""
    write_bundle(am.verify(am.Head(WEIGHT), am.Box(-1, 1)), tmp_path / "proofs")
    return tmp_path / "proofs"


@pytest.mark.parametrize(
    ("labels", "code"), [(["1", "0", "2"], 1), (["a", "b", "c"], 0), (["0", "1", "2"], 0)]
)
def test_numbers_that_are_labels_of_other_classes_are_refused(
    bundle: Path, tmp_path: Path, command: Command, labels: list[str], code: int
) -> None:
    model = tmp_path / "head.npz"
    np.savez(model, W=WEIGHT, labels=np.array(labels))
    ran = command("check", bundle, model)
    assert ran.code == code
    assert ("the label of another class" in ran.out + ran.err) == bool(code)
    checker = [sys.executable, str(ROOT / "docs" / "checker.py"), str(bundle), str(model)]
    assert subprocess.run(checker, capture_output=True, check=False).returncode == code


def test_whole_weights_are_checked_by_both(tmp_path: Path, command: Command) -> None:
    model = tmp_path / "head.npz"
    np.savez(model, W=WEIGHT.astype(np.int64))
    write_bundle(am.verify(am.load_head(model), am.Box(-1, 1)), tmp_path / "proofs")
    assert command("check", tmp_path / "proofs", model).code == 0
    checker = [sys.executable, str(ROOT / "docs" / "checker.py"), str(tmp_path / "proofs"), str(model)]
    assert subprocess.run(checker, capture_output=True, check=False).returncode == 0
