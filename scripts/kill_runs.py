"""Kills runs again and again, and tells whether that cost anything: a verdict, a file, a line of JSON.

    python scripts/kill_runs.py [ENGINE ...] [--kills N] [--terms N]     ENGINE: alone, processes, ray

Each engine verifies one head into one database. The run is interrupted by SIGKILL (of the command itself and
of one of its workers in turn) and by SIGTERM, at random moments counted in progress messages, and resumed by
the same command each time. A run that gets to its end is compared with one that nobody disturbed, and the
next starts anew. Only interruptions that hit a run before its end count.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ENGINES = {
    "alone": ["--workers", "1"],
    "processes": ["--workers", "2"],
    "ray": ["--ray", "local", "--workers", "1"],
}
# The command with a line on stderr for every progress message: what it has got to, without a clock.
PROGRAM = """
import sys
from contextlib import contextmanager
import argmaxable.cli.verify as verify
from argmaxable.cli import main

@contextmanager
def told(_):
    yield lambda progress: print("progress", progress.phase, file=sys.stderr, flush=True)

verify.progress_bar = told
main()
"""
# Of progress messages that one process sends before it is interrupted.
_MOST_MESSAGES = 120
_WORKER, _RAY_WORKER = b"argmaxable.run.engines.worker", b"ray::Settler"
# Ray gives its own processes half a minute to start, whatever else the machine does.
_NO_START = "Ray did not start on this machine"


class NotStarted(Exception):
    """Ray gave up: nothing was interrupted, and it is tried again."""


@dataclass
class Findings:
    """What an engine went through, and what went wrong."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def require(self, is_fine: bool, fault: str) -> None:
        if not is_fine:
            print(fault, file=sys.stderr, flush=True)
            self.faults.append(fault)


class Command:
    """`argmaxable verify`, with a temporary folder and a database of its own."""

    def __init__(self, folder: Path, engine: str) -> None:
        self.folder, self._engine = folder, engine
        self._output = folder / "stdout"
        self.temporary = folder / "t"
        self.temporary.mkdir()

    def start(self, database: str = "runs.db") -> subprocess.Popen[str]:
        arguments = ["verify", "head.npz", "--json", "--db", database, *ENGINES[self._engine]]
        # Into a file: a pipe that nobody reads yet would stop a run that ends before it is interrupted.
        with self._output.open("w") as output:
            return subprocess.Popen(
                [sys.executable, "-c", PROGRAM, *arguments],
                cwd=self.folder,
                env={**os.environ, "TMPDIR": str(self.temporary)},
                stdout=output,
                stderr=subprocess.PIPE,
                text=True,
            )

    def printed(self) -> str:
        """What the command has written to stdout since it was last started."""
        return self._output.read_text()

    def left_behind(self) -> list[str]:
        return sorted(str(path.relative_to(self.temporary)) for path in self.temporary.iterdir())


def workers_of(temporary: Path) -> list[int]:
    """Processes that settle classes for a command with this temporary folder.

    Our own have it in their environment. Ray's overwrite theirs with a title, but their parent has it in its
    command line.
    """
    mark, found = os.fsencode(temporary), []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            title = (path / "cmdline").read_bytes()
            parent = (path / "stat").read_text().rpartition(")")[2].split()[1]
            is_ours = _WORKER in title and b"TMPDIR=" + mark in (path / "environ").read_bytes().split(b"\0")
            is_rays = title.startswith(_RAY_WORKER) and mark in Path(f"/proc/{parent}/cmdline").read_bytes()
        except OSError:
            continue  # it has just ended
        if is_ours or is_rays:
            found.append(int(path.name))
    return found


def wait_for(process: subprocess.Popen[str], messages: int) -> str:
    """Read so many progress messages, or to the end; returns whatever else was said."""
    assert process.stderr is not None
    said = ""
    while messages and (line := process.stderr.readline()):
        if line.startswith("progress "):
            messages -= 1
        else:
            said += line
    return said


def finish(command: Command, process: subprocess.Popen[str], findings: Findings, said: str) -> dict[str, Any]:
    """Let it end by itself; its output must be one JSON object and nothing else."""
    _, rest = process.communicate()
    out = command.printed()
    said += "".join(line for line in rest.splitlines(keepends=True) if not line.startswith("progress "))
    if _NO_START in said:
        raise NotStarted
    findings.require("Traceback" not in said, f"a traceback: {said[-400:]}")
    findings.require(process.returncode in (0, 1, 3), f"exit code {process.returncode}: {said[-400:]}")
    try:
        record: dict[str, Any] = json.loads(out)
    except ValueError:
        findings.require(
            False, f"stdout is not JSON: {out[:400]!r}, code {process.returncode}: {said[-400:]}"
        )
        return {}
    findings.counts["JSON read"] += 1
    return record


def interrupt(command: Command, what: str, moments: random.Random, findings: Findings) -> bool:
    """Start the command and interrupt it; whether that came before its end."""
    process = command.start()
    # One SIGKILL in four comes anywhere, perhaps before the first message.
    is_early = what == "command" and moments.random() < 0.25
    said = wait_for(process, moments.randrange(2) if is_early else moments.randrange(1, _MOST_MESSAGES))
    if what == "command":
        process.kill()
        process.communicate()
        is_hit = process.returncode == -signal.SIGKILL and not command.printed()
        findings.counts["SIGKILL of the command"] += is_hit
        is_all_or_nothing = not command.printed() or command.printed().endswith("}\n")
        findings.require(is_all_or_nothing, f"a killed command printed {command.printed()[:200]!r}")
        return is_hit
    is_hit = what == "term"
    if what == "worker":
        while not (found := workers_of(command.temporary)) and process.poll() is None:
            said += wait_for(process, 1)  # Ray's take their time
        for pid in found[:1]:
            os.kill(pid, signal.SIGKILL)
            findings.counts["SIGKILL of a worker"] += 1
            is_hit = True
        said += wait_for(process, moments.randrange(1, _MOST_MESSAGES))
    process.send_signal(signal.SIGTERM)
    record = finish(command, process, findings, said)
    findings.require(command.left_behind() == [], f"left after SIGTERM: {command.left_behind()}")
    if not record.get("complete"):
        findings.counts["SIGTERM"] += 1
        return is_hit
    findings.counts["finished first"] += 1
    compare(command, findings)
    return is_hit and what == "worker"


def compare(command: Command, findings: Findings) -> None:
    """A run that has ended must say what one says that nobody disturbed; the next then starts anew."""
    same = verdicts_of(command.folder, "runs.db") == verdicts_of(command.folder, "undisturbed.db")
    findings.require(same, "the verdicts differ from those of a run that nobody disturbed")
    findings.counts["runs compared"] += 1
    for path in command.folder.glob("runs.db*"):
        path.unlink()


def left_alone(command: Command, findings: Findings, database: str = "runs.db") -> dict[str, Any]:
    """What a run says that nobody disturbs."""
    while True:
        try:
            return finish(command, command.start(database), findings, "")
        except NotStarted:
            findings.counts["Ray did not start"] += 1


def verdicts_of(folder: Path, database: str) -> list[str]:
    program = "from argmaxable.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "export", "head.npz", "--format", "jsonl", "--db", database],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [json.loads(line)["status"] for line in done.stdout.splitlines()]


def torment(engine: str, kills: int, terms: int, seed: int) -> Findings:
    findings, moments = Findings(), random.Random(seed)
    folder = Path(tempfile.mkdtemp(prefix="k", dir="/tmp"))  # a short name: Ray's sockets lie below
    try:
        np.savez(folder / "head.npz", **slow_head())
        command = Command(folder, engine)
        victims = ["command", "command" if engine == "alone" else "worker"]
        plan = [victims[number % 2] for number in range(kills)] + ["term"] * terms
        moments.shuffle(plan)
        left_alone(command, findings, "undisturbed.db")
        while plan:
            try:
                if interrupt(command, plan[-1], moments, findings):
                    plan.pop()
            except NotStarted:
                findings.counts["Ray did not start"] += 1
            print(f"{engine}: {len(plan)} left, {dict(findings.counts)}", file=sys.stderr, flush=True)
        record = left_alone(command, findings)
        findings.require(bool(record.get("complete")), "the run left alone did not finish")
        findings.require(command.left_behind() == [], f"left at the end: {command.left_behind()}")
        compare(command, findings)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return findings


def slow_head() -> dict[str, Any]:
    """1,600 classes to solve for, many of them unargmaxable."""
    generator = np.random.default_rng(5)
    weight = generator.normal(size=(2000, 48)).astype(np.float32)
    weight[:1600] *= 0.15
    return {"W": weight, "b": np.where(np.arange(2000) < 1600, -8, 0).astype(np.float32)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill runs and see what that costs.")
    parser.add_argument("engines", nargs="*", metavar="ENGINE", help="alone, processes, ray (default: all)")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--terms", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    all_findings = {
        name: torment(name, given.kills, given.terms, given.seed) for name in given.engines or ENGINES
    }
    print(
        json.dumps(
            {name: {**each.counts, "faults": each.faults} for name, each in all_findings.items()}, indent=1
        )
    )
    sys.exit(any(each.faults for each in all_findings.values()))


if __name__ == "__main__":
    main()
