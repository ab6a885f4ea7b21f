"""The command line: exit codes, one JSON object or plain text on stdout, errors in one line on stderr."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from running import PROGRAM, Command, Ran, in_a_process, is_one_clear_line, without_progress

from argmaxable.core.version import VERSION
from argmaxable.store import State, open_store

# A shell's background jobs, perhaps these tests too, start with SIGINT ignored, under nohup also SIGHUP;
# Python and the program then leave it so.
LISTENING = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "signal.signal(signal.SIGHUP, signal.SIG_DFL); "
)
INTERRUPTIBLE = [sys.executable, "-c", LISTENING + PROGRAM[2]]


# ---------------------------------------------------------------------- models


@pytest.fixture
def square(tmp_path: Path) -> Path:
    """Four corners, all argmaxable."""
    path = tmp_path / "square.npz"
    np.savez(path, W=np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]]))
    return path


@pytest.fixture
def lossy(tmp_path: Path) -> Path:
    """Four corners, their centre, which is unargmaxable, and a twin of the first corner: two ties."""
    path = tmp_path / "lossy.npz"
    weight = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1], [0, 0], [1, 1]])
    np.savez(path, W=weight, b=np.zeros(6), labels=np.array(["a", "é", "c", "d", "middle", "😀"]))
    return path


@pytest.fixture
def clustered(tmp_path: Path) -> Path:
    """300 × 8 with some classes that no cheap search settles."""
    path = tmp_path / "clustered.npz"
    np.savez(path, W=np.random.default_rng(3).normal(size=(300, 8)).astype(np.float32))
    return path


@pytest.fixture(scope="module")
def hard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """2500 × 96 with 1600 rows near the boundary of the others' hull: ten seconds of solves."""
    generator = np.random.default_rng(0)
    weight = generator.normal(size=(2500, 96)).astype(np.float32)
    weight[:1600] *= 0.2
    path = tmp_path_factory.mktemp("hard") / "hard.npz"
    np.savez(path, W=weight, b=np.where(np.arange(2500) < 1600, -5, 0).astype(np.float32))
    return path


# ---------------------------------------------------------------------- verify


def test_verify_exits_with_0_when_every_class_is_argmaxable(command: Command, square: Path) -> None:
    ran = command("verify", square)
    assert ran.code == 0
    assert "All 4 classes can be predicted for features within ±100." in ran.out


def test_verify_exits_with_1_and_names_the_unargmaxable_classes(command: Command, lossy: Path) -> None:
    ran = command("verify", lossy)
    assert ran.code == 1
    assert "3 of 6 classes can never be predicted" in ran.out
    assert "\nmiddle\n" in ran.out
    assert "\na  😀\n" in ran.out


def test_verify_exits_with_3_when_classes_are_undecided(command: Command, clustered: Path) -> None:
    ran = command("verify", clustered, "--method", "own-direction")
    assert ran.code == 3
    assert "undecided" in ran.out


def test_verify_prints_nothing_on_stderr_that_is_no_terminal(command: Command, lossy: Path) -> None:
    assert command("verify", lossy).err == ""


def test_json_has_the_documented_keys(command: Command, lossy: Path) -> None:
    record = command("verify", lossy, "--json").record
    assert record.keys() >= {
        "model", "classes", "features", "bias", "domain", "verified", "argmaxable", "unargmaxable", "tied",
        "undecided", "complete", "seconds", "solves", "unargmaxable_classes", "undecided_classes",
    }  # fmt: skip


def test_json_describes_head_and_domain(command: Command, lossy: Path) -> None:
    record = command("verify", lossy, "--json", "--domain", "box:7").record
    described = {key: record[key] for key in ("model", "classes", "features", "bias", "domain")}
    assert described == {
        "model": "lossy.npz", "classes": 6, "features": 2, "bias": True, "domain": "box ±7"
    }  # fmt: skip


def test_json_counts_are_consistent(command: Command, lossy: Path) -> None:
    record = command("verify", lossy, "--json").record
    assert (record["argmaxable"], record["unargmaxable"], record["tied"], record["undecided"]) == (3, 3, 2, 0)
    assert record["verified"] == record["argmaxable"] + record["unargmaxable"] + record["undecided"]
    assert len(record["unargmaxable_classes"]) == record["unargmaxable"]
    assert len(record["undecided_classes"]) == record["undecided"]
    assert record["complete"] is True


def test_json_gives_label_and_margin_bounds_of_each_unargmaxable_class(command: Command, lossy: Path) -> None:
    unargmaxable = command("verify", lossy, "--json").record["unargmaxable_classes"]
    # Farthest off first; of tied classes nobody is ahead.
    assert [(entry["class"], entry["label"]) for entry in unargmaxable] == [
        (4, "middle"),
        (0, "a"),
        (5, "😀"),
    ]
    for entry in unargmaxable:
        assert entry["upper"] <= 0
        assert entry["lower"] is None or entry["lower"] <= entry["upper"]
    assert [entry.get("tied_with") for entry in unargmaxable] == [None, [5], [0]]


def test_json_exits_with_the_same_code_as_text(command: Command, square: Path, lossy: Path) -> None:
    assert [command("verify", path, "--json").code for path in (square, lossy)] == [0, 1]


def test_json_is_valid_where_stdout_can_not_encode_a_label(lossy: Path) -> None:
    ran = in_a_process("verify", lossy, "--no-db", "--json", "--only", "5", PYTHONIOENCODING="latin-1")
    assert ran.record["unargmaxable_classes"][0]["label"] == "😀"


def test_labels_that_stdout_can_not_encode_are_escaped(lossy: Path) -> None:
    ran = in_a_process("verify", lossy, "--no-db", "--only", "5", PYTHONIOENCODING="latin-1")
    assert ran.code == 1
    assert "\\U0001f600" in ran.out


@pytest.mark.parametrize(
    ("only", "classes"), [("4", 1), ("0,4", 2), (" 1 , 2 ", 2), ("0-5", 6), ("1-1", 1), ("0-2,2-4,4", 5)]
)
def test_only_takes_numbers_and_ranges(only: str, classes: int, command: Command, lossy: Path) -> None:
    assert command("verify", lossy, "--only", only, "--json").record["verified"] == classes


@pytest.mark.parametrize(
    "only",
    [
        "", ",", "1,", "5-", "-5", "a", "1-b", "2-1", "1.5", "0x1", "²", "1--2", "0-6", "6", "0-999999999",
        "99999999999999999999", "9" * 5000, "0-99999999999999999999",
    ],
    ids=lambda only: only[:24],
)  # fmt: skip
def test_only_that_names_no_classes_of_the_head_is_bad_input(
    only: str, command: Command, lossy: Path
) -> None:
    ran = command("verify", lossy, f"--only={only}")
    assert ran.code == 2
    assert is_one_clear_line(ran)


@pytest.mark.parametrize(
    ("domain", "name"),
    [
        ("everywhere", "everywhere"),
        ("box:2.5", "box ±2.5"),
        ("box:0:inf", "box [0, inf]"),
        ("box:-1:3", "box [-1, 3]"),
        ("ball:10", "ball of radius 10"),
    ],
)
def test_domain_takes_every_documented_form(domain: str, name: str, command: Command, square: Path) -> None:
    ran = command("verify", square, "--domain", domain, "--json")
    assert ran.record["domain"] == name
    assert ran.code in (0, 1)


@pytest.mark.parametrize(
    "domain",
    [
        "", "cube:3", "box", "box:", "box:0", "box:-1", "box:nan", "box:2:1", "box:1:2:3", "box:a",
        "box:inf:inf", "ball", "ball:0", "ball:-1", "ball:inf", "ball:nan", "everywhere:1",
    ],
)  # fmt: skip
def test_domain_of_another_form_is_bad_input(domain: str, command: Command, square: Path) -> None:
    ran = command("verify", square, f"--domain={domain}")
    assert ran.code == 2
    assert is_one_clear_line(ran)


@pytest.mark.parametrize("domain", ["ball:1e100", "ball:1e-100", "box:1e300", "box:1e-300", "box:inf"])
def test_wide_and_narrow_domains_are_verified(domain: str, command: Command, square: Path) -> None:
    assert command("verify", square, "--domain", domain).code == 0


@pytest.mark.parametrize(
    "domain", ["ball:1e200", "ball:1e-200", "ball:1e-320", "box:1e300", "box:1e-300", "box:5e-324", "box:inf"]
)
def test_an_extreme_domain_is_verified_or_refused(domain: str, command: Command, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    np.savez(tmp_path / "biased.npz", W=generator.normal(size=(40, 3)), b=generator.normal(size=40))
    ran = command("verify", tmp_path / "biased.npz", "--domain", domain)
    assert is_one_clear_line(ran) if ran.code == 2 else ran.code in (1, 3) and not ran.err


@pytest.mark.parametrize("method", ["auto", "interior-point", "chebyshev"])
def test_methods_that_prove_decide_every_class(method: str, command: Command, lossy: Path) -> None:
    ran = command("verify", lossy, "--method", method, "--json")
    assert ran.code == 1
    assert ran.record["undecided"] == 0


@pytest.mark.parametrize("method", ["own-direction", "reflection"])
def test_methods_that_search_never_say_unargmaxable(method: str, command: Command, clustered: Path) -> None:
    ran = command("verify", clustered, "--method", method, "--patience", "5", "--json")
    assert ran.code == 3
    assert ran.record["unargmaxable"] == 0
    assert ran.record["argmaxable"] > 0


def test_chebyshev_refuses_a_domain_without_bounds(command: Command, square: Path) -> None:
    ran = command("verify", square, "--method", "chebyshev", "--domain", "everywhere")
    assert ran.code == 2
    assert is_one_clear_line(ran)


def test_more_patience_finds_no_fewer_classes(command: Command, clustered: Path) -> None:
    found = [
        command("verify", clustered, "--method", "reflection", "--patience", patience, "--json").record[
            "argmaxable"
        ]
        for patience in ("0", "1", "3", "100")
    ]
    assert found == sorted(found)
    assert found[0] < found[-1]


def test_workers_and_seed_change_no_verdict(command: Command, clustered: Path) -> None:
    records = [
        command("verify", clustered, "--json", "--workers", workers, "--seed", seed).record
        for workers, seed in (("1", "0"), ("1", "7"), ("2", "7"))
    ]
    unargmaxable = [[entry["class"] for entry in record["unargmaxable_classes"]] for record in records]
    assert unargmaxable[0] == unargmaxable[1] == unargmaxable[2]
    assert all(record["undecided"] == 0 for record in records)


def test_a_time_limit_keeps_what_is_proven(command: Command, hard: Path) -> None:
    ran = command("verify", hard, "--workers", "1", "--time-limit", "0.5", "--json")
    assert ran.code == 3
    assert ran.record["complete"] is False
    assert ran.record["undecided"] == len(ran.record["undecided_classes"]) > 0
    decided = ran.record["argmaxable"] + ran.record["unargmaxable"]  # none, where the machine is busy
    assert decided + ran.record["undecided"] == ran.record["classes"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--workers", "0"], ["--workers", "-1"], ["--seed", "-1"], ["--patience", "-1"],
        ["--time-limit", "0"], ["--time-limit", "-1"], ["--time-limit", "nan"],
        ["--tensor", "nowhere"], ["--bias-tensor", "nowhere"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_an_option_out_of_range_is_bad_input(arguments: list[str], command: Command, square: Path) -> None:
    ran = command("verify", square, *arguments)
    assert ran.code == 2
    assert is_one_clear_line(ran)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--nonsense"], ["--method", "magic"], ["--workers", "two"], ["--seed", "1.5"],
        ["--time-limit", "soon"], ["another.npz"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_an_option_that_can_not_be_read_is_bad_input(
    arguments: list[str], command: Command, square: Path
) -> None:
    ran = command("verify", square, *arguments)
    assert ran.code == 2
    assert is_one_clear_line(ran)
    assert "`argmaxable verify --help`" in ran.err


def test_no_db_is_accepted(command: Command, square: Path) -> None:
    assert command("verify", square, "--no-db").code == 0


def test_a_transposed_weight_can_be_turned(command: Command, tmp_path: Path) -> None:
    np.savez(tmp_path / "turned.npz", W=np.ones((2, 5)))
    record = command("verify", tmp_path / "turned.npz", "--transpose", "--json").record
    assert (record["classes"], record["features"]) == (5, 2)


# ---------------------------------------------------------------------- bad files


def test_a_missing_file_is_bad_input(command: Command, tmp_path: Path) -> None:
    ran = command("verify", tmp_path / "nowhere.npz")
    assert ran.code == 2
    assert is_one_clear_line(ran)
    assert "nowhere.npz" in ran.err


def test_a_folder_is_bad_input(command: Command, tmp_path: Path) -> None:
    ran = command("verify", tmp_path)
    assert ran.code == 2
    assert is_one_clear_line(ran)


@pytest.mark.parametrize("name", ["garbage.npz", "garbage.npy", "garbage.onnx", "garbage.txt", "garbage"])
@pytest.mark.parametrize("content", [b"", b"\x00\xff" * 50, b"PK\x03\x04 not really"], ids=ascii)
def test_garbage_is_bad_input(name: str, content: bytes, command: Command, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    ran = command("verify", tmp_path / name)
    assert ran.code == 2
    assert is_one_clear_line(ran)


def test_a_head_of_nan_is_bad_input(command: Command, tmp_path: Path) -> None:
    np.savez(tmp_path / "nan.npz", W=np.full((3, 2), np.nan))
    ran = command("verify", tmp_path / "nan.npz")
    assert ran.code == 2
    assert is_one_clear_line(ran)
    assert "finite" in ran.err


def install_format(folder: Path, body: str) -> str:
    """A third party's file format that does that when it looks at a file; returns PYTHONPATH."""
    (folder / "third_party.py").write_text(
        "import signal, sys\n"
        "class Slow:\n"
        "    name, suffixes = 'slow', ('.slow',)\n"
        f"    def recognises(self, path): {body}\n"
        "    def find(self, path, options): raise NotImplementedError\n"
        "slow = Slow()\n"
    )
    info = folder / "third_party-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: third-party\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[argmaxable.formats]\nslow = third_party:slow\n")
    (folder / "model.slow").touch()
    return os.pathsep.join([str(folder), *filter(None, sys.path)])


def test_a_crash_exits_with_4_and_says_so(tmp_path: Path) -> None:
    path = install_format(tmp_path, "raise RuntimeError('out of paper')")
    ran = in_a_process("verify", tmp_path / "model.slow", "--no-db", PYTHONPATH=path)
    assert ran.code == 4
    assert "RuntimeError: out of paper" in ran.err
    assert ran.err.endswith("argmaxable: this is a bug; please report it with the lines above.\n")
    assert not ran.out


# ---------------------------------------------------------------------- proof bundles


def test_a_bundle_written_by_verify_passes_check(command: Command, lossy: Path, tmp_path: Path) -> None:
    written = command("verify", lossy, "--output", tmp_path / "proofs")
    assert written.code == 1
    assert f"argmaxable check {tmp_path / 'proofs'} {lossy}" in written.out
    checked = command("check", tmp_path / "proofs", lossy)
    assert checked.code == 0
    assert checked.out.startswith("6 of 6 verdicts proven over the domain box ±100.")


def test_json_and_a_bundle_go_together(command: Command, lossy: Path, tmp_path: Path) -> None:
    assert command("verify", lossy, "--json", "--output", tmp_path / "proofs").record["unargmaxable"] == 3
    assert command("check", tmp_path / "proofs", lossy).code == 0


def test_check_proves_unargmaxable_classes_by_rationals_when_asked(
    command: Command, lossy: Path, tmp_path: Path
) -> None:
    command("verify", lossy, "--output", tmp_path / "proofs")
    checked = command("check", tmp_path / "proofs", lossy, "--rational")
    assert checked.code == 0
    assert "3 of 3 unargmaxable classes proven by rational numbers alone." in checked.out
    assert "rational numbers" not in command("check", tmp_path / "proofs", lossy).out


def test_check_exits_with_1_and_names_the_class_that_was_tampered_with(
    command: Command, lossy: Path, tmp_path: Path
) -> None:
    command("verify", lossy, "--output", tmp_path)
    path = tmp_path / "verdicts.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[1]["lower"] = 1e6
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    ran = command("check", tmp_path, lossy)
    assert ran.code == 1
    assert "class 1: verdict NOT PROVEN" in ran.out
    assert ran.out.startswith("5 of 6 verdicts proven")


def test_check_with_another_model_is_bad_input(
    command: Command, lossy: Path, square: Path, tmp_path: Path
) -> None:
    command("verify", lossy, "--output", tmp_path)
    ran = command("check", tmp_path, square)
    assert ran.code == 2
    assert is_one_clear_line(ran)


def test_check_exits_with_3_when_classes_are_missing(command: Command, lossy: Path, tmp_path: Path) -> None:
    command("verify", lossy, "--only", "0-2", "--output", tmp_path)
    ran = command("check", tmp_path, lossy)
    assert ran.code == 3
    assert "3 of 6 verdicts proven" in ran.out
    assert "3 classes without a verdict" in ran.out


@pytest.mark.parametrize("damage", ["no folder", "an empty folder", "a garbled line", "a garbled domain"])
def test_check_of_what_is_no_bundle_is_bad_input(
    damage: str, command: Command, lossy: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "proofs"
    if damage == "an empty folder":
        folder.mkdir()
    elif damage != "no folder":
        command("verify", lossy, "--output", folder)
    if damage == "a garbled line":
        (folder / "verdicts.jsonl").write_text("{")
    if damage == "a garbled domain":
        manifest = folder / "manifest.json"
        manifest.write_text(manifest.read_text().replace('"box"', '"hexagon"'))
    ran = command("check", folder, lossy)
    assert ran.code == 2
    assert is_one_clear_line(ran)


def test_an_output_folder_that_can_not_be_made_is_bad_input(
    command: Command, lossy: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        ran = command("verify", lossy, "--output", folder)
        assert ran.code == 2
        assert is_one_clear_line(ran)


# ---------------------------------------------------------------------- processes, pipes and terminals


def children_of(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def is_importing(pid: int) -> bool:
    """Whether a worker, no longer a copy of its parent, has begun to load its libraries."""
    command_line, maps = (Path(f"/proc/{pid}/{name}").read_text() for name in ("cmdline", "maps"))
    return "argmaxable.run.engines.worker" in command_line and "_multiarray_umath" in maps


def is_deaf_to_ctrl_c(pid: int, group: int) -> bool:
    """Whether the terminal's signal to the group does not reach the process, or is ignored by it."""
    ignored = re.search(r"^SigIgn:\s*(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert ignored is not None
    return os.getpgid(pid) != group or bool(int(ignored[1], 16) >> (signal.SIGINT - 1) & 1)


@dataclass
class Started:
    """The program with stderr on a terminal of its own, so that it shows its progress."""

    process: subprocess.Popen[bytes]
    terminal: int
    shown: str = ""

    def wait_for(self, text: str) -> None:
        while text not in self.shown:
            self.shown += self._read()
            assert self.process.poll() is None, self.shown

    def wait_for_child(self) -> list[int]:
        while not (children := children_of(self.process.pid)):
            assert self.process.poll() is None
            time.sleep(0.002)
        return children

    def finish(self) -> Ran:
        # A terminal holds a few kB: the program would wait for a reader in the middle of a line.
        reader = threading.Thread(target=self._read_all)
        reader.start()
        out, _ = self.process.communicate()
        reader.join()
        return Ran(self.process.returncode, out.decode(), self.shown)

    def _read_all(self) -> None:
        while rest := self._read():
            self.shown += rest

    def _read(self) -> str:
        try:
            return os.read(self.terminal, 4096).decode(errors="replace")
        except OSError:  # how a terminal says that its other side has gone
            return ""


Start = Callable[..., Started]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start the program; whatever the test does, it has ended when the test has."""
    all_started: list[Started] = []

    def start_one(*arguments: str | Path, **environment: str) -> Started:
        terminal, other_side = pty.openpty()
        process = subprocess.Popen(
            [*INTERRUPTIBLE, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=other_side,
            env={**os.environ, "TERM": "xterm", **environment},
            start_new_session=True,
        )
        os.close(other_side)
        all_started.append(Started(process, terminal))
        return all_started[-1]

    yield start_one
    for started in all_started:
        started.process.kill()
        with started.process:  # which closes its pipe and waits
            os.close(started.terminal)


def test_progress_goes_to_the_terminal_and_never_to_stdout(start: Start, hard: Path) -> None:
    started = start("verify", hard, "--workers", "1", "--json", "--no-db")
    started.wait_for("argmaxable,")
    started.process.send_signal(signal.SIGINT)
    assert started.finish().record["complete"] is False


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_to_end_keeps_what_is_proven_and_leaves_nothing_behind(
    start: Start, hard: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "temporary").mkdir()
    started = start(
        "verify", hard, "--workers", "2", "--json", "--output", tmp_path, TMPDIR=str(tmp_path / "temporary")
    )
    started.wait_for("solving")
    children = started.wait_for_child()
    assert len(list((tmp_path / "temporary").iterdir())) == 2  # the copy of the head, and its lock
    started.process.send_signal(getattr(signal, name))
    ran = started.finish()
    assert list((tmp_path / "temporary").iterdir()) == []
    assert ran.code == 3
    assert ran.record["complete"] is False
    assert ran.record["argmaxable"] > 0
    assert ran.record["undecided"] > 0
    assert ran.record["verified"] == 2500
    assert "Traceback" not in ran.err
    assert len(children) == 1
    assert not any(map(is_running, children))
    assert json.loads((tmp_path / "manifest.json").read_text())["complete"] is False


def test_ctrl_c_at_a_terminal_reaches_no_worker_and_shows_no_traceback(start: Start, hard: Path) -> None:
    # A terminal signals the whole foreground group. The worker is deaf to that while it imports already.
    started = start("verify", hard, "--workers", "2", "--json", "--no-db")
    (child,) = started.wait_for_child()
    while not is_importing(child):
        time.sleep(0.001)
    assert is_deaf_to_ctrl_c(child, started.process.pid)
    started.wait_for("argmaxable")  # the head is prepared, and the run has begun
    os.killpg(started.process.pid, signal.SIGINT)
    ran = started.finish()
    assert ran.code == 3
    assert ran.record["complete"] is False
    assert "Traceback" not in ran.err
    assert not is_running(child)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_while_the_model_is_read_exits_with_3(start: Start, tmp_path: Path, name: str) -> None:
    path = install_format(tmp_path, "print('reading', file=sys.stderr, flush=True); signal.pause()")
    started = start("verify", tmp_path / "model.slow", "--no-db", PYTHONPATH=path)
    started.wait_for("reading")
    started.process.send_signal(getattr(signal, name))
    ran = started.finish()
    assert ran.code == 3
    assert not ran.out
    assert "Traceback" not in ran.err


def test_a_terminal_that_is_closed_ends_the_run_in_good_order(
    hard: Path, tmp_path: Path, database: Path
) -> None:
    terminal, other_side = pty.openpty()
    control = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    process = subprocess.Popen(
        [sys.executable, "-c", control + INTERRUPTIBLE[2], "verify", str(hard), "--workers", "2"],
        stdin=other_side,
        stdout=other_side,
        stderr=other_side,
        env={**os.environ, "TERM": "xterm", "TMPDIR": str(tmp_path)},
        start_new_session=True,
    )
    os.close(other_side)
    shown = ""
    while "solving" not in shown:
        shown += os.read(terminal, 4096).decode(errors="replace")
    os.close(terminal)
    assert process.wait() == 3
    assert list(tmp_path.glob("argmaxable-*")) == []
    with open_store(str(database)) as store:
        assert [run.state for run in store.runs()] == [State.INTERRUPTED]


@pytest.mark.parametrize(
    ("prelude", "code"),
    [
        ("signal.signal(signal.SIGHUP, signal.SIG_DFL); ", 3),
        ("signal.signal(signal.SIGHUP, signal.SIG_IGN); ", 4),
    ],
)
def test_a_command_under_nohup_hears_no_hangup(tmp_path: Path, prelude: str, code: int) -> None:
    path = install_format(tmp_path, "signal.raise_signal(signal.SIGHUP); raise RuntimeError('went on')")
    program = [sys.executable, "-c", f"import signal; {prelude}{PROGRAM[2]}"]
    done = subprocess.run(
        [*program, "verify", tmp_path / "model.slow", "--no-db"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code
    assert ("went on" in done.stderr) == (code == 4)


def test_a_reader_that_leaves_early_hears_no_complaint_and_no_false_verdict(tmp_path: Path) -> None:
    # Most points of a cloud in the plane stay undecided here: a longer list than a pipe holds.
    np.savez(tmp_path / "cloud.npz", W=np.random.default_rng(0).normal(size=(3000, 2)))
    process = subprocess.Popen(
        [*PROGRAM, "verify", str(tmp_path / "cloud.npz"), "--method", "own-direction", "--json", "--no-db"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.read(10) == b'{"answer":'
    process.stdout.close()
    error = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait() != 1  # nothing was proven unargmaxable
    assert without_progress(error) == ""


def test_a_closed_stdout_causes_no_traceback(square: Path) -> None:
    program = " ".join(f"'{word}'" for word in [*PROGRAM, "verify", "--no-db", str(square)])
    done = subprocess.run(["sh", "-c", f"{program} >&-"], capture_output=True, check=False)
    assert b"Traceback" not in done.stderr


def test_a_narrow_terminal_gets_the_same_text(
    command: Command, lossy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = []
    for columns in ("40", "200"):
        monkeypatch.setenv("COLUMNS", columns)
        shown.append(re.sub(r"[0-9.]+ s;", "", command("verify", lossy, "--no-db").out))
    assert shown[0] == shown[1]


def test_help_fits_a_narrow_terminal(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    ran = command("verify", "--help")
    assert ran.code == 0
    assert "argmaxable verify model.onnx" in ran.out


# ---------------------------------------------------------------------- random and prevent


def test_random_agrees_with_qhull(command: Command) -> None:
    ran = command("random", "--classes", "150", "--dim", "6", "--seed", "3")
    assert ran.code == 1
    assert "precision 100%, recall 100%" in ran.out


@pytest.mark.parametrize("dim", ["1", "2", "3"])
def test_random_agrees_with_qhull_in_few_dimensions(dim: str, command: Command) -> None:
    assert "precision 100%, recall 100%" in command("random", "--classes", "40", "--dim", dim).out


def test_random_with_bias_makes_no_comparison(command: Command) -> None:
    ran = command("random", "--classes", "60", "--dim", "4", "--bias")
    assert ran.code == 1
    assert "with bias" in ran.out
    assert "Qhull" not in ran.out


def test_random_makes_no_comparison_over_a_domain_without_all_directions(command: Command) -> None:
    ran = command("random", "--classes", "40", "--dim", "2", "--domain", "box:1:2")
    assert ran.code == 1
    assert "precision" not in ran.out


def test_random_draws_uniform_heads_too(command: Command) -> None:
    ran = command("random", "--classes", "100", "--dim", "3", "--distribution", "uniform")
    assert ran.code == 1
    assert "uniform" in ran.out
    assert "precision 100%, recall 100%" in ran.out


def test_random_with_reflection_alone_says_what_the_comparison_counts(command: Command) -> None:
    ran = command("random", "--classes", "200", "--dim", "5", "--method", "reflection", "--patience", "2")
    assert ran.code == 3
    assert "counting undecided classes as unargmaxable" in ran.out
    assert "recall 100%" in ran.out


def test_the_seed_fixes_the_random_head(command: Command) -> None:
    first, again, other = (
        re.sub(r"[0-9.]+ s", "", command("random", "--classes", "30", "--seed", seed).out)
        for seed in ("1", "1", "2")
    )
    assert first == again != other


@pytest.mark.parametrize(("dim", "name"), [("2", "hull.png"), ("3", "hull.PNG"), ("2", "hull.svg")])
def test_plot_draws_the_hull(dim: str, name: str, command: Command, tmp_path: Path) -> None:
    ran = command("random", "--classes", "12", "--dim", dim, "--plot", tmp_path / name)
    assert ran.code == 1
    magic = b"\x89PNG" if name.lower().endswith("png") else b"<?xml"
    assert (tmp_path / name).read_bytes().startswith(magic)


@pytest.mark.parametrize("classes", ["1", "2"])
def test_plot_draws_heads_without_a_hull(classes: str, command: Command, tmp_path: Path) -> None:
    assert command("random", "--classes", classes, "--plot", tmp_path / "hull.png").code == 0


@pytest.mark.parametrize(
    ("dim", "name"), [("5", "hull.png"), ("1", "hull.png"), ("2", "hull.txt"), ("2", "nowhere/hull.png")]
)
def test_a_picture_that_can_not_be_drawn_is_bad_input(
    dim: str, name: str, command: Command, tmp_path: Path
) -> None:
    ran = command("random", "--dim", dim, "--plot", tmp_path / name)
    assert ran.code == 2
    assert "Traceback" not in ran.err
    assert ran.err.startswith("argmaxable: ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--classes", "0"], ["--classes", "-5"], ["--dim", "0"], ["--seed", "-1"],
        ["--distribution", "cauchy"],
    ],
    ids=" ".join,
)  # fmt: skip
@pytest.mark.parametrize("name", ["random", "prevent"])
def test_a_head_that_can_not_be_drawn_is_bad_input(name: str, arguments: list[str], command: Command) -> None:
    ran = command(name, *arguments)
    assert ran.code == 2
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("options", [[], ["--bias"], ["--distribution", "uniform"]], ids=" ".join)
def test_prevent_leaves_no_class_lost(options: list[str], command: Command) -> None:
    ran = command("prevent", "--classes", "200", "--dim", "6", *options)
    assert ran.code == 0
    assert "All 200 classes can be predicted for features within ±100." in ran.out


@pytest.mark.parametrize("options", [[], ["--bias"]], ids=" ".join)
def test_prevent_off_shows_unargmaxable_classes(options: list[str], command: Command) -> None:
    ran = command("prevent", "--classes", "200", "--dim", "6", "--off", *options)
    assert ran.code == 0
    assert "can never be predicted" in ran.out


def test_prevent_off_exits_with_1_when_nothing_is_lost(command: Command) -> None:
    ran = command("prevent", "--classes", "5", "--dim", "40", "--off")
    assert ran.code == 1
    assert "Every class can win here" in ran.out


# ---------------------------------------------------------------------- help


@pytest.mark.parametrize("name", ["verify", "check", "random", "prevent"])
def test_every_command_has_help_with_an_example_and_exit_codes(name: str, command: Command) -> None:
    ran = command(name, "--help")
    assert ran.code == 0
    assert re.search(rf"Examples?:\n +argmaxable {name} ", ran.out)
    assert "Exit codes:" in ran.out


def test_the_program_s_help_lists_every_command(command: Command) -> None:
    ran = command("--help")
    assert ran.code == 0
    assert all(f"\n  {name} " in ran.out for name in ("verify", "check", "random", "prevent"))


def test_version_prints_name_and_version(command: Command) -> None:
    assert command("--version") == Ran(0, f"argmaxable {VERSION}\n", "")


@pytest.mark.parametrize(
    "arguments", [[], ["nonsense"], ["--nonsense"], ["verify"], ["check", "proofs"]], ids=str
)
def test_a_call_without_what_it_needs_is_bad_input(arguments: list[str], command: Command) -> None:
    assert command(*arguments).code == 2
