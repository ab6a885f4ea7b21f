"""Temporary folders: gone at the end, and those of killed processes gone with the next one."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from argmaxable.core.scratch import scratch_folder, temporary_home

HOLD = """
import sys
from argmaxable.core.scratch import scratch_folder
with scratch_folder() as folder:
    (folder / "weight").write_bytes(bytes(1000))
    print(folder, flush=True)
    sys.stdin.read()
"""


# Prints the name of each file that is opened in the temporary folder.
OPENED = """
import os, sys
from argmaxable.core.scratch import scratch_folder
def told(event, arguments):
    if event == "open" and os.path.dirname(os.fsdecode(arguments[0])) == os.environ["TMPDIR"]:
        print(os.path.basename(arguments[0]))
sys.addaudithook(told)
with scratch_folder():
    pass
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def holder() -> tuple[subprocess.Popen[str], Path]:
    """A process that has such a folder, until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_a_folder_is_for_its_user_alone_and_gone_at_the_end(home: Path) -> None:
    with scratch_folder() as folder:
        assert folder.parent == home
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "below").mkdir()
        (folder / "below" / "file").touch()
    assert list(home.iterdir()) == []


def test_only_files_that_the_next_process_removes_are_ever_made(home: Path) -> None:
    done = subprocess.run([sys.executable, "-c", OPENED], stdout=subprocess.PIPE, text=True, check=True)
    names = done.stdout.split()
    assert names
    assert all(name.startswith("argmaxable-") for name in names)


def test_where_the_usual_folder_is_missing_another_serves(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(home / "missing"))
    assert temporary_home().is_dir()


def test_an_exception_leaves_nothing_behind(home: Path) -> None:
    with pytest.raises(KeyboardInterrupt), scratch_folder():
        raise KeyboardInterrupt
    assert list(home.iterdir()) == []


def test_the_folder_of_a_killed_process_goes_with_the_next_one(home: Path) -> None:
    process, left = holder()
    process.kill()
    process.communicate()
    assert (left / "weight").exists()
    with scratch_folder() as mine:
        assert sorted(path.name for path in home.iterdir()) == [mine.name, f"{mine.name}.lock"]
    assert list(home.iterdir()) == []


def test_the_folder_of_a_process_at_work_stays(home: Path) -> None:
    process, other = holder()
    with scratch_folder():
        pass
    assert (other / "weight").exists()
    process.communicate("")
    assert list(home.iterdir()) == []


def test_a_lock_without_its_folder_is_removed(home: Path) -> None:
    (home / "argmaxable-0123abcd.lock").touch()  # killed between the two
    with scratch_folder():
        pass
    assert list(home.iterdir()) == []


def test_what_is_not_ours_is_left_alone(home: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "precious"
    elsewhere.touch()
    (home / "argmaxable-link.lock").symlink_to(elsewhere)
    (home / "argmaxable-link").mkdir()
    (home / "argmaxable-postgres").mkdir()  # no lock: somebody else's
    if os.geteuid() == 0:
        (home / "argmaxable-nobody.lock").touch()
        os.chown(home / "argmaxable-nobody.lock", 65534, 65534)
    before = sorted(home.iterdir())
    with scratch_folder():
        pass
    assert sorted(home.iterdir()) == before
    assert elsewhere.exists()
