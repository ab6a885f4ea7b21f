"""kill -9 at random moments, the same command again: the answers of a run that nobody disturbed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import argmaxable as am
from argmaxable.store import State, open_store

# The command with a line on stderr for every progress message, and what is proven by then stored: moments are
# counted in these, not in seconds. Each message takes a line of the input, until that ends: so a command that
# is to be killed does not get to its end first, however slow the killer.
PROGRAM = """
import sys
from contextlib import contextmanager
import argmaxable.cli.verify as verify
import argmaxable.run.session as session
from argmaxable.cli import main

@contextmanager
def told(doing):
    def tell(progress):
        print(progress.phase, file=sys.stderr, flush=True)
        sys.stdin.readline()

    yield tell

verify.progress_bar = told
session._SECONDS_BETWEEN_ENTRIES = 0.0
main()
"""
# Of the progress messages of one process, for workers after it has begun to solve: less than a run of the
# head has, more than it stores nothing in.
MESSAGES = {"driver": 24, "worker": 8, "both": 12}
# One kill each, and one with the other kind of database, to which it makes no difference who else is killed:
# a process takes seconds to start. scripts/kill_runs.py kills twenty times, for each engine.
VICTIMS = {"sqlite": ("driver", "worker", "both"), "postgresql": ("both",)}
CLASSES, SOLVED = 900, 700


def slow_head() -> am.Head:
    """700 classes to solve for, a few at a time, some of them unargmaxable: just enough that another process
    is started for them, and that some are open after every kill."""
    generator = np.random.default_rng(5)
    weight = generator.normal(size=(CLASSES, 48)).astype(np.float32)
    weight[:SOLVED] *= 0.15
    return am.Head(weight, np.where(np.arange(CLASSES) < SOLVED, -8, 0).astype(np.float32))


@pytest.fixture(scope="module")
def undisturbed() -> list[am.Status]:
    return [verdict.status for verdict in am.verify(slow_head(), engine=am.Engine(workers=1)).verdicts]


def children_of(pid: int) -> list[int]:
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, path.read_text().split())
        except OSError:
            continue  # the thread has just ended
    return found


def started(model: Path, place: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "verify", model, "--json", "--workers", "2"],
        env={**os.environ, "ARGMAXABLE_DB": place},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def heard(process: subprocess.Popen[str]) -> str:
    """The next message of a process, which goes on to the one after the next."""
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write("\n")
    process.stdin.flush()
    message = process.stderr.readline().strip()
    assert message, "the head is too easy for this test"
    return message


def kill(process: subprocess.Popen[str], victim: str, moments: random.Random) -> None:
    """Kill the victim at some moment; a driver that lost its worker goes on for a while, then dies too.

    One moment in four is near the beginning, the others may come after the solves have begun; a worker is
    there only then.
    """
    assert process.stdin is not None
    process.stdin.write("\n")  # so that the moment lies between two messages
    if victim != "driver":
        while heard(process) != "solving":
            pass
    for _ in range(moments.randrange(3 if moments.random() < 0.25 else MESSAGES[victim])):
        heard(process)
    if victim != "driver":
        workers = children_of(process.pid)
        assert workers, "the head is too easy for this test"
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
    if victim == "worker":
        for _ in range(moments.randrange(MESSAGES[victim])):
            heard(process)
    process.kill()
    process.communicate()


def test_a_run_killed_again_and_again_ends_with_the_same_statuses(
    new_place: str, tmp_path: Path, undisturbed: list[am.Status]
) -> None:
    kind = "postgresql" if new_place.startswith("postgresql") else "sqlite"
    moments, head = random.Random(kind), slow_head()
    np.savez(tmp_path / "slow.npz", W=head.weight, b=head.bias)
    decided = [0]
    for victim in VICTIMS[kind]:
        kill(started(tmp_path / "slow.npz", new_place), victim, moments)
        with open_store(new_place) as store:
            runs = store.runs()
        if runs:  # it may have been killed before it had even opened the database
            assert runs[0].state is not State.FINISHED, "the head is too easy for this test"
            decided.append(runs[0].counts.wanted - runs[0].counts.open)
    assert decided == sorted(decided)
    assert decided[-1] > decided[0]
    out, _ = started(tmp_path / "slow.npz", new_place).communicate()
    report = json.loads(out)
    assert report["complete"]
    with open_store(new_place) as store:
        assert [run.run_id for run in store.runs()] == [report["run"]]
        stored = list(store.verdicts(report["run"]))
    assert [verdict.class_id for verdict in stored] == list(range(CLASSES))
    assert [verdict.status for verdict in stored] == undisturbed
