"""argmaxable report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from keeping import CORNERS, LABELS, keep, lossy
from running import Command, in_a_process, is_one_clear_line

import argmaxable as am


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The head of `lossy` as a file."""
    path = tmp_path / "lossy.npz"
    np.savez(path, weight=CORNERS, bias=np.zeros(6), labels=np.array(LABELS))
    return path


def test_a_run_becomes_a_page(command: Command, database: Path, tmp_path: Path) -> None:
    run = keep(database, lossy())
    ran = command("report", run, "-o", tmp_path / "report.html")
    assert ran.code == 0
    assert ran.out.startswith(f"Report: {tmp_path / 'report.html'}")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<h1>3 of 6 classes can never be predicted for features within ±100.</h1>" in text


def test_a_run_is_found_by_its_model(command: Command, database: Path) -> None:
    keep(database, lossy())
    assert command("report", "lossy.npz", "--format", "markdown").out.startswith("# lossy.npz: ")


def test_a_bundle_becomes_a_page(command: Command, tmp_path: Path) -> None:
    am.write_bundle(am.verify(lossy(), engine=am.Engine(workers=1)), tmp_path / "proofs")
    assert "<h1>3 of 6 classes" in command("report", tmp_path / "proofs").out


def test_a_printed_page_is_utf_8_whatever_the_terminal_speaks(database: Path) -> None:
    ran = in_a_process("report", str(keep(database, lossy())), PYTHONIOENCODING="latin-1")
    assert ran.code == 0
    assert "😀" in ran.out.encode("latin-1").decode("utf-8")


def test_the_model_adds_its_weights(command: Command, database: Path, model: Path) -> None:
    ran = command("report", keep(database, lossy()), "--model", model)
    assert "Spectrum of the weights" in ran.out


def test_another_model_is_refused(command: Command, database: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", weight=2 * CORNERS, bias=np.zeros(6))
    ran = command("report", keep(database, lossy()), "--model", tmp_path / "other.npz")
    assert ran.code == 2
    assert is_one_clear_line(ran)
    assert "holds another head" in ran.err


def test_a_run_that_is_not_there_is_a_clear_error(command: Command) -> None:
    ran = command("report", 7)
    assert ran.code == 2
    assert is_one_clear_line(ran)


def test_a_file_that_cannot_be_written_is_a_clear_error(
    command: Command, database: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"")
    ran = command("report", keep(database, lossy()), "-o", tmp_path / "file" / "report.html")
    assert ran.code == 2
    assert is_one_clear_line(ran)
