"""argmaxable runs and show: listing, choosing and deleting kept runs, and what they found."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from keeping import BOX, CORNERS, keep, keep_some, lossy, plan_of
from running import PROGRAM, Command, is_one_clear_line

import argmaxable as am
from argmaxable.compute.prepared import centre_of
from argmaxable.report.text import as_record, summary
from argmaxable.store import open_store


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs: a head of the family "toys" over two domains, and another of none."""
    path = tmp_path_factory.mktemp("kept") / "runs.db"
    keep(path, lossy(), origin="org/lossy", task="letters", family="toys")
    keep(path, lossy(), am.Box(-1, 1), origin="org/lossy", task="letters", family="toys")
    keep(path, am.Head(CORNERS[:4], name="square.npz"))
    return path


@pytest.fixture
def db(kept: Path, tmp_path: Path) -> Path:
    """A copy of them that a test may change."""
    return Path(shutil.copy(kept, tmp_path))


def listed(text: str) -> list[str]:
    """The run numbers of a listing."""
    return [line.split()[0] for line in text.splitlines()[1:]]


# ---------------------------------------------------------------------- runs


def test_runs_are_listed_newest_first(command: Command, db: Path) -> None:
    ran = command("runs", "--db", db)
    assert (ran.code, listed(ran.out)) == (0, ["3", "2", "1"])


def test_a_line_tells_model_domain_state_and_counts(command: Command, db: Path) -> None:
    line = command("runs", "1", "--db", db).out.splitlines()[1]
    assert re.match(
        r"  1  lossy\.npz  box ±100  finished        6      3          0      \d+\.\d  \d{4}-\d\d-\d\d ", line
    )


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (["--name", "loss"], ["2", "1"]),
        (["--family", "toys"], ["2", "1"]),
        (["--task", "letters", "--limit", "1"], ["2"]),
        (["--state", "finished"], ["3", "2", "1"]),
        (["--limit", "2"], ["3", "2"]),
        (["2", "square.npz"], ["2", "3"]),
        (["lossy.npz", "2"], ["2"]),
    ],
)
def test_runs_can_be_chosen(command: Command, db: Path, filters: list[str], expected: list[str]) -> None:
    assert listed(command("runs", *filters, "--db", db).out) == expected


def test_runs_as_json_are_one_object(command: Command, db: Path) -> None:
    newest, *_, oldest = command("runs", "--db", db, "--json").record["runs"]
    assert newest["model"] == "square.npz"
    assert (oldest["unargmaxable"], oldest["tied"], oldest["open"]) == (3, 2, 0)
    assert (oldest["origin"], oldest["task"], oldest["family"]) == ("org/lossy", "letters", "toys")
    assert oldest["sha256"] == lossy().sha256()


def test_no_runs_is_said_in_words_and_as_an_empty_list(command: Command, db: Path, tmp_path: Path) -> None:
    ran = command("runs", "--db", tmp_path / "new.db")
    assert (ran.code, ran.out) == (2, "")
    assert "there is no database" in ran.err
    assert not (tmp_path / "new.db").exists()
    open_store(str(tmp_path / "new.db")).close()
    assert command("runs", "--db", tmp_path / "new.db").out.startswith("No runs in ")
    assert command("runs", "--name", "nothing like it", "--db", db).out.endswith("match.\n")
    assert command("runs", "--name", "nothing like it", "--db", db, "--json").record == {
        "runs": [],
        "sets": [],
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["99"], "argmaxable runs"),
        (["lossy"], "Did you mean lossy.npz?"),
        (["nothing"], "no run of a model named nothing"),
        (["1", "--name", "lossy"], "pass RUN or filters, not both"),
        (["--limit", "0"], "--limit must be 1 or more, found 0"),
        (["--delete"], "which runs to delete?"),
        (["--delete", "1"], "Pass --yes"),
        (["9" * 40], "argmaxable runs"),
    ],
)
def test_a_wrong_wish_is_one_clear_line(
    command: Command, db: Path, arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open(os.devnull) as nobody:
        monkeypatch.setattr("sys.stdin", nobody)
        ran = command("runs", *arguments, "--db", db)
    assert ran.code == 2
    assert is_one_clear_line(ran)
    assert said in ran.err


def test_a_folder_is_no_database(command: Command, tmp_path: Path) -> None:
    ran = command("runs", "--db", tmp_path)
    assert ran.code == 2
    assert is_one_clear_line(ran)


def test_deleted_runs_are_gone_and_the_others_stay(command: Command, db: Path) -> None:
    assert command("runs", "--delete", "1", "3", "--yes", "--db", db).out == "Deleted 2 runs.\n"
    assert listed(command("runs", "--db", db).out) == ["2"]


def test_deleting_a_run_that_is_not_there_deletes_none(command: Command, db: Path) -> None:
    assert command("runs", "--delete", "1", "99", "--yes", "--db", db).code == 2
    assert len(listed(command("runs", "--db", db).out)) == 3


def in_a_terminal(*arguments: str | Path, typed: str = "", columns: int = 80) -> tuple[int, str]:
    """Run the program in a terminal of that width; returns its exit code and what it showed."""
    driver, terminal = pty.openpty()
    os.write(driver, typed.encode())
    process = subprocess.Popen(
        [*PROGRAM, *map(str, arguments)],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**os.environ, "COLUMNS": str(columns), "TERM": "xterm"},
    )
    os.close(terminal)
    shown = b""
    while True:
        try:
            part = os.read(driver, 65536)
        except OSError:  # Linux says so when the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(driver)
    return process.wait(), shown.decode()


@pytest.mark.parametrize(("typed", "code", "left"), [("y\n", 0, 2), ("\n", 0, 3), ("\x04", 3, 3)])
def test_deleting_asks_and_goes_by_the_answer(db: Path, typed: str, code: int, left: int) -> None:
    ended, shown = in_a_terminal("runs", "--delete", "2", "--db", db, typed=typed)
    assert ended == code
    assert "Delete 1 run with all verdicts and proofs?" in shown
    with open_store(str(db)) as store:
        assert len(store.runs()) == left


def test_a_narrow_terminal_gets_two_lines_for_each_run_and_nothing_is_cut(tmp_path: Path) -> None:
    db = tmp_path / "runs.db"
    keep(db, lossy(name="a-rather-long-name-of-a-model-" * 3))
    code, shown = in_a_terminal("runs", "--db", db, columns=50)
    first, second = shown.splitlines()
    assert code == 0
    assert first == "1  " + "a-rather-long-name-of-a-model-" * 3
    assert second.startswith("   box ±100, finished; 6 classes, 3 never, 0 undecided, ")


def test_a_pipe_gets_a_line_for_each_run_however_long(tmp_path: Path) -> None:
    db = tmp_path / "runs.db"
    keep(db, lossy(name="a-rather-long-name-of-a-model-" * 9))
    done = subprocess.run([*PROGRAM, "runs", "--db", db], capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) == 2


def test_a_name_can_not_steer_the_terminal(command: Command, tmp_path: Path) -> None:
    db = tmp_path / "runs.db"
    keep(db, lossy(name="\x1b[31mred[bold]\nnext"))
    for ran in (command("runs", "--db", db), command("show", "1", "--db", db), command("table", "--db", db)):
        assert "\x1b" not in ran.out
        assert "\\u{1b}" in ran.out.replace("\\\\", "\\").replace("\\{", "{").replace("\\}", "}")
    assert "[bold]" in command("runs", "--db", db).out


def test_the_database_is_the_one_named_in_the_environment(
    command: Command, db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARGMAXABLE_DB", str(db))
    assert len(listed(command("runs").out)) == 3


# ---------------------------------------------------------------------- show


def test_show_prints_the_summary_that_verify_printed(command: Command, db: Path) -> None:
    result = am.verify(lossy(), BOX, engine=am.Engine(workers=1))
    headline, _, *shown = command("show", "1", "--db", db).out.splitlines()
    assert headline.startswith("Run 1 (org/lossy, letters, toys): started ")
    assert shown[:-1] == summary(result)[:-1]  # the last line has the seconds


def test_show_as_json_has_what_verify_said_and_what_is_known_of_the_run(command: Command, db: Path) -> None:
    record = command("show", "lossy.npz", "--db", db, "--json").record
    expected = as_record(am.verify(lossy(), am.Box(-1, 1), engine=am.Engine(workers=1)))
    timed = {"seconds", "phases"}
    assert {key: record[key] for key in expected.keys() - timed} == {
        key: expected[key] for key in expected.keys() - timed
    }
    assert (record["run"], record["state"], record["family"]) == (2, "finished", "toys")


def test_show_knows_where_the_domain_came_from(command: Command, tmp_path: Path) -> None:
    np.savez(tmp_path / "head.npz", W=np.eye(3))
    db = tmp_path / "runs.db"
    verified = command("verify", tmp_path / "head.npz", "--db", db)
    shown = command("show", "1", "--db", db)
    assert "Domain: box ±100, an assumption" in verified.out
    assert shown.out.splitlines()[2:4] == verified.out.splitlines()[:2]
    source = command("show", "1", "--db", db, "--json").record["domain_source"]
    assert source == command("verify", tmp_path / "head.npz", "--no-db", "--json").record["domain_source"]


def test_twenty_classes_are_listed_unless_all_are_asked_for(command: Command, tmp_path: Path) -> None:
    labels = [f"w{number}" for number in range(34)]
    inner = np.random.default_rng(0).uniform(-0.4, 0.4, (30, 2))
    corners = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    np.savez(
        tmp_path / "head.npz", W=np.concatenate([corners, inner]), b=np.zeros(34), labels=np.array(labels)
    )
    db = tmp_path / "runs.db"
    few = command("verify", tmp_path / "head.npz", "--db", db).out
    assert "30 of 34 classes" in few
    every = command("verify", tmp_path / "head.npz", "--no-db", "--json").record["unargmaxable_classes"]
    ahead = [each["ahead"] for each in every]
    assert ahead == sorted(ahead, reverse=True)
    first = "  ".join(each["label"] for each in every[:20])
    assert f"Farthest off first: {first}  … and 10 more (--all lists them)" in few
    assert f"{ahead[0]} for {every[0]['label']}, {ahead[-1]} for " in few
    anew = command("verify", tmp_path / "head.npz", "--no-db", "--seed", "7", "--workers", "1").out
    assert f"Farthest off first: {first}  …" in anew
    assert f"Farthest off first: {first}  …" in command("show", "1", "--db", db).out
    for every in (["verify", tmp_path / "head.npz"], ["show", "1"]):
        out = command(*every, "--all", "--db", db).out
        assert "--all" not in out
        assert all(f"w{number}" in out for number in range(4, 34))


def test_a_device_that_is_not_there_leaves_no_run_behind(command: Command, tmp_path: Path) -> None:
    np.savez(tmp_path / "head.npz", W=np.eye(3))
    ran = command("verify", tmp_path / "head.npz", "--device", "nowhere", "--db", tmp_path / "runs.db")
    assert ran.code == 2
    assert "Install" in ran.err
    assert command("runs", "--db", tmp_path / "runs.db", "--json").record == {"runs": [], "sets": []}


def test_show_tells_how_far_a_stopped_run_got(command: Command, tmp_path: Path) -> None:
    db = tmp_path / "runs.db"
    keep_some(db, lossy(), (0, 1, 5))
    ran = command("show", "1", "--db", db)
    assert "interrupted" in ran.out
    assert "3 of 6 classes have a verdict so far" in ran.out
    assert command("show", "1", "--db", db, "--json").record["complete"] is False


def test_show_of_a_stopped_run_does_not_say_that_all_classes_can_be_predicted(
    command: Command, tmp_path: Path
) -> None:
    db = tmp_path / "runs.db"
    keep_some(db, lossy(), (1, 2))
    out = command("show", "1", "--db", db).out
    assert "All" not in out
    assert out.splitlines()[2] == (
        "Not finished: 4 of 6 classes are undecided. The other 2 can be predicted for features within ±100."
    )


def test_a_running_run_shows_its_progress(command: Command, tmp_path: Path) -> None:
    db, head = tmp_path / "runs.db", lossy()
    with open_store(str(db)) as store, store.begin(plan_of(head), centre=centre_of(head)) as run:
        result = am.verify(head, BOX, only=(4,), engine=am.Engine(workers=1))
        run.record(result.verdicts, result.cost)
        assert "running, started" in command("show", "1", "--db", db).out
        assert "running" in command("runs", "--db", db).out
        ran = command("runs", "--delete", "1", "--yes", "--db", db)
    assert ran.code == 2
    assert "being worked on" in ran.err


def test_commands_over_runs_print_no_path(command: Command, db: Path) -> None:
    for arguments in ("runs --json", "show 1 --json", "show 1", "compare 1 2 --json", "table"):
        out = command(*arguments.split(), "--db", db).out
        assert str(db.parent) not in out


def test_a_head_without_labels_shows_class_numbers(command: Command, tmp_path: Path) -> None:
    db = tmp_path / "runs.db"
    keep(db, am.Head(np.array([[1.0], [0.0], [-1.0]]), name="line"))
    assert "\n\n1\n\n" in command("show", "line", "--db", db).out
