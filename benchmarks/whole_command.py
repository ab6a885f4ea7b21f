"""The whole command, `argmaxable verify HEAD.npz --no-db --json`, from Python's start to its end.

Seconds on the wall and of all processors, workers included, in medians over interleaved rounds. For some
heads the algorithm of Grivas, Bogoychev & Lopez (2022) is timed in the same run (paper_algorithm.py), so that
the ratio is about the algorithms. With `--against` the same is measured with the package of another checkout,
and the verdicts of both are compared class by class.

    python benchmarks/whole_command.py [--rounds N] [--hard N] [--paper NAMES] [--against CHECKOUT] [NAME ...]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import _models
import _record
import numpy as np
from paper_algorithm import paper_seconds

import argmaxable as am

ROOT = Path(__file__).resolve().parent.parent
COMMAND = "from argmaxable.cli import main; main()"
NAMES = ["ppocrv4_rec_ch", "ppocrv3_rec_ch", "ppocrv5", "ppocrv6-small"]
PAPER = "ppocrv4_rec_ch,ppocrv3_rec_ch"
COUNTS = ("classes", "features", "unargmaxable", "undecided", "solves", "mean_steps", "mean_rows")


@dataclass(frozen=True)
class Run:
    """One run of the command: seconds on the wall, seconds of all processors, and what it printed."""

    wall: float
    cpu: float
    printed: dict[str, object]

    @property
    def unargmaxable(self) -> set[int]:
        return {each["class"] for each in self.printed["unargmaxable_classes"]}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--hard", type=int, default=10, help="hard classes on which the paper's is timed")
    parser.add_argument("--easy", type=int, default=40, help="easy classes on which the paper's is timed")
    parser.add_argument("--paper", default=PAPER, help="heads on which the paper's is timed")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT")
    options = parser.parse_args()
    roots = {"this": ROOT} | ({} if options.against is None else {"against": options.against.resolve()})
    heads = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in options.names:
            head = _models.head(name)
            file = saved(head, Path(folder, f"{name}.npz"))
            heads[name] = measure(file, roots, options.rounds)
            if name in options.paper.split(","):
                paper = paper_seconds(head, options.hard, options.easy)
                ratio = paper["seconds"] / heads[name]["this"]["wall_seconds"]
                heads[name] |= {"paper": paper, "times_faster": round(ratio, 1)}
    commits = {where: _record.commit_of(root) for where, root in roots.items()}
    _record.write("whole_command", {"rounds": options.rounds, "checkouts": commits, "heads": heads})


def saved(head: am.Head, file: Path) -> Path:
    arrays = {"W": head.weight}
    if head.bias is not None:
        arrays["b"] = head.bias
    if head.labels is not None:
        arrays["labels"] = np.array(head.labels)
    np.savez(file, **arrays)
    return file


def measure(file: Path, roots: dict[str, Path], rounds: int) -> dict[str, object]:
    """Medians for each checkout; a first round, not counted, compiles the modules."""
    runs: dict[str, list[Run]] = {where: [] for where in roots}
    for number in range(rounds + 1):
        for where, root in roots.items():
            run = run_command(file, root)
            if number:
                runs[where].append(run)
    unargmaxable = {frozenset(run.unargmaxable) for each in runs.values() for run in each}
    assert len(unargmaxable) == 1, "verdicts differ from run to run"
    return {where: medians(each) for where, each in runs.items()}


def medians(runs: list[Run]) -> dict[str, object]:
    middle = sorted(runs, key=lambda run: run.wall)[len(runs) // 2].printed
    return {
        "wall_seconds": round(statistics.median(run.wall for run in runs), 3),
        "cpu_seconds": round(statistics.median(run.cpu for run in runs), 3),
        "verify_seconds": round(statistics.median(run.printed["seconds"] for run in runs), 3),
        "phases": middle["phases"],
        **{count: middle[count] for count in COUNTS},
    }


def run_command(file: Path, root: Path, *options: str) -> Run:
    """The command with the package of a checkout."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [sys.executable, "-c", COMMAND, "verify", str(file), "--no-db", "--json", *options]
    before, start = _processor_seconds(), time.perf_counter()
    done = subprocess.run(command, capture_output=True, env=environment | {"PYTHONPATH": str(root / "src")})
    wall = time.perf_counter() - start
    if done.returncode not in (0, 1):  # 1: some class is unargmaxable
        raise RuntimeError(f"{root}: {done.stderr.decode()}")
    return Run(wall, _processor_seconds() - before, json.loads(done.stdout))


def _processor_seconds() -> float:
    """Of all children that have ended, and theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
