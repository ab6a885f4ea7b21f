"""Results that can't be written where they are to go are refused before the work, not after it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from running import Command, is_one_clear_line

from argmaxable.cli.places import require_file_place, require_folder_place
from argmaxable.core.errors import InputError


@pytest.fixture
def taken(tmp_path: Path) -> Path:
    (tmp_path / "file").write_text("", encoding="utf-8")
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.parametrize("place", ["new", "folder", "new/newer", "folder/new"])
def test_a_folder_may_be_there_or_not(taken: Path, place: str) -> None:
    require_folder_place("--output", taken / place)
    assert sorted(each.name for each in taken.iterdir()) == ["file", "folder"]  # nothing was made


@pytest.mark.parametrize("place", ["file", "file/new"])
def test_a_file_is_not_a_folder(taken: Path, place: str) -> None:
    with pytest.raises(InputError, match=r"--output .*file is a file\. Name a folder"):
        require_folder_place("--output", taken / place)


def test_a_files_folder_may_be_missing_but_not_be_a_file(taken: Path) -> None:
    require_file_place("--report", taken / "file")
    require_file_place("--report", taken / "folder" / "new.html")
    require_file_place("--report", taken / "missing" / "new.html")
    with pytest.raises(InputError, match="file is a file"):
        require_file_place("--report", taken / "file" / "new.html")
    with pytest.raises(InputError, match="this is a folder"):
        require_file_place("--report", taken / "folder")


def test_where_nobody_can_write_is_found_out_by_writing() -> None:
    place = Path("/proc/argmaxable")
    if not place.parent.is_dir():
        pytest.skip("no /proc here")
    with pytest.raises(InputError, match="can't write into /proc"):
        require_folder_place("--output", place)


@pytest.mark.parametrize("option", ["--output", "--report"])
def test_verify_asks_first(command: Command, taken: Path, option: str) -> None:
    np.savez(taken / "head.npz", W=np.eye(3))
    ran = command("verify", taken / "head.npz", option, taken / "file" / "x", "--db", taken / "runs.db")
    assert ran.code == 2
    assert is_one_clear_line(ran)
    assert not (taken / "runs.db").exists()


def test_a_report_may_lie_among_the_proofs(command: Command, taken: Path) -> None:
    np.savez(taken / "head.npz", W=np.eye(3))
    proofs = taken / "missing" / "proofs"
    ran = command(
        "verify", taken / "head.npz", "--output", proofs, "--report", proofs / "report.html", "--no-db"
    )
    assert ran.code == 0
    assert (proofs / "report.html").is_file()
