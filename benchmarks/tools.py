"""What the tools around a verdict cost, each beside a yardstick that is timed in the same run.

| tool | yardstick |
|---|---|
| explain: first lines, and all | the linear programme of the same class's margin over all rows, in HiGHS |
| repair | two verifications of the head: the least that a proven repair can take |
| top-k 5 | verdicts on the same classes by the interior point alone |
| ceilings of 400 classes | L-BFGS-B on the same convex function, from 0, on a sample, extrapolated |
| check | the verification that wrote the bundle |
| inspect, the whole command | `argmaxable --version`: what it takes to start |
| export of a stored run as a bundle, the whole command | the same |

A ratio is the tool's seconds over the yardstick's. What was found is recorded beside it, such as the classes
left open and the largest change of a repair.

    python benchmarks/tools.py [--sample 8] [--skip repair ...] [NAME ...]

By default all tools on PP-OCRv4, and ceilings on PP-OCRv5: a few minutes on two idle cores. Every ten
seconds a line on stderr tells how far it is.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import _models
import _record
import numpy as np
from scipy.optimize import minimize

import argmaxable as am
from argmaxable.prove.highs import maximise
from argmaxable.questions.explain.explain import Explainer

BOX = am.Box(-100.0, 100.0)
TOP_K = 5
MOST_CEILINGS = 400
COMMAND = (sys.executable, "-c", "from argmaxable.cli import main; main()")
# The tools for each head when none is named.
DEFAULT = {
    "ppocrv4_rec_ch": ("explain", "repair", "top-k", "ceilings", "check", "inspect", "export"),
    "ppocrv5": ("ceilings",),
}
# Seconds between two lines about the progress.
PAUSE = 10.0
T = TypeVar("T")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=list(DEFAULT))
    parser.add_argument("--sample", type=int, default=8, help="classes that are explained, or descended for")
    parser.add_argument("--skip", nargs="*", default=[], choices=TOOLS, help="tools to leave out")
    options = parser.parse_args()
    heads = {}
    for name in options.names:
        head = _models.head(name)
        seconds, result = timed(lambda head=head: am.verify(head, BOX, progress=Teller(head.name)))
        rows = {"verify": {"seconds": round(seconds, 3), "unargmaxable": len(result.unargmaxable)}}
        for tool, measure in TOOLS.items():
            is_asked_for = tool in DEFAULT.get(name, TOOLS) or name in sys.argv
            if is_asked_for and tool not in options.skip:
                print(f"{name} {tool} …", file=sys.stderr, flush=True)
                rows[tool] = measure(head, result, seconds, options.sample)
                print(name, tool, rows[tool], flush=True)
        heads[name] = rows
    _record.write("tools", {"heads": heads})


class Teller:
    """A progress callback that writes a line on stderr from time to time."""

    def __init__(self, what: str) -> None:
        self.what, self.last = what, time.perf_counter()

    def __call__(self, progress: am.Progress) -> None:
        if time.perf_counter() - self.last >= PAUSE:
            self.last = time.perf_counter()
            told = progress.note or f"{progress.done:,} of {progress.total:,}"
            print(f"… {self.what}, {progress.phase}: {told}", file=sys.stderr, flush=True)


def timed(work: Callable[[], T]) -> tuple[float, T]:
    started = time.perf_counter()
    done = work()
    return time.perf_counter() - started, done


def compared(seconds: float, yardstick: float, **found: Any) -> dict[str, Any]:
    return {
        "seconds": round(seconds, 3),
        "yardstick_seconds": round(yardstick, 3),
        "ratio": round(seconds / yardstick, 3),
        **found,
    }


def some(result: am.Result, sample: int) -> list[int]:
    """Unargmaxable classes, evenly chosen."""
    ids = [verdict.class_id for verdict in result.unargmaxable]
    return ids[:: max(1, len(ids) // sample)][:sample]


def explain(head: am.Head, result: am.Result, verifying: float, sample: int) -> dict[str, Any]:
    first, whole, programme, exact = [], [], [], 0
    for class_id in some(result, sample):
        started = time.perf_counter()
        explainer = Explainer(head, BOX, [class_id])
        begun = explainer.begun(class_id)
        first.append(time.perf_counter() - started)
        done = explainer.completed(begun)
        whole.append(time.perf_counter() - started)
        exact += done.rank is not None and done.rank.is_exact
        programme.append(timed(lambda class_id=class_id: margin_programme(head, class_id))[0])
    yardstick = float(np.median(programme))
    return {
        "first_lines": compared(float(np.median(first)), yardstick),
        "all": compared(float(np.median(whole)), yardstick, exact_ranks=exact, classes=len(first)),
    }


def margin_programme(head: am.Head, class_id: int) -> float:
    """The largest margin of a class: maximise t over x of the box, all other rows as constraints."""
    rows, biases = head.rows(slice(None)), head.biases()
    others = np.delete(np.arange(head.classes), class_id)
    table = np.hstack([rows[others] - rows[class_id], np.ones((len(others), 1))])
    cost = np.append(np.zeros(head.features), 1.0)
    sides = np.append(np.full(head.features, 100.0), np.inf)
    solution = maximise(cost, table, biases[class_id] - biases[others], -sides, sides)
    return float(solution.x[-1])


def repair(head: am.Head, result: am.Result, verifying: float, sample: int) -> dict[str, Any]:
    seconds, done = timed(lambda: am.repair(head, BOX, progress=Teller("repair")))
    return compared(
        seconds, 2 * verifying, classes=len(done.chosen), largest_change=done.largest, reached=done.reached,
        least=done.least, rows_moved=len(done.moved),
    )  # fmt: skip


def top_k(head: am.Head, result: am.Result, verifying: float, sample: int) -> dict[str, Any]:
    never = [verdict.class_id for verdict in result.verdicts if verdict.status is not am.Status.ARGMAXABLE]
    yardstick, _ = timed(lambda: am.verify(head, BOX, only=never, method="interior-point"))
    tell = Teller("top-k")
    seconds, ranks = timed(lambda: am.best_ranks(head, BOX, result=result, top_k=TOP_K, progress=tell))
    answers = [rank.is_among_first(TOP_K).value for rank in ranks]
    return compared(seconds, yardstick, answers={each: answers.count(each) for each in sorted(set(answers))})


def ceilings(head: am.Head, result: am.Result, verifying: float, sample: int) -> dict[str, Any]:
    ids = some(result, MOST_CEILINGS)
    descents = [
        timed(lambda class_id=class_id: by_descent(head, class_id))[0] for class_id in some(result, sample)
    ]
    seconds, found = timed(lambda: am.ceilings(head, BOX, only=ids, progress=Teller("ceilings")))
    return compared(seconds, len(ids) * float(np.mean(descents)), classes=len(ids), open=len(found.open))


def by_descent(head: am.Head, class_id: int) -> float:
    """The largest probability of a class that L-BFGS-B finds, with SciPy's default tolerances."""
    rows, biases = head.rows(slice(None)), head.biases()
    rows, biases = rows - rows[class_id], biases - biases[class_id]

    def log_inverse(x: np.ndarray) -> tuple[float, np.ndarray]:
        scores = rows @ x + biases
        top = scores.max()
        shares = np.exp(scores - top)
        total = shares.sum()
        return float(top + np.log(total)), rows.T @ (shares / total)

    start = np.zeros(head.features)
    sides = [(-100.0, 100.0)] * head.features
    return float(np.exp(-minimize(log_inverse, start, jac=True, bounds=sides, method="L-BFGS-B").fun))


def check(head: am.Head, result: am.Result, verifying: float, sample: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        am.write_bundle(result, folder)
        seconds, checked = timed(lambda: am.recheck(am.read_bundle(folder), head))
    return compared(seconds, verifying, failures=len(checked.failures))


def command(*arguments: str) -> float:
    """Seconds that a whole command takes; what it prints is dropped."""
    seconds, done = timed(lambda: subprocess.run((*COMMAND, *arguments), stdout=subprocess.DEVNULL))
    if done.returncode > 1:  # 1: some class is unargmaxable
        raise SystemExit(f"argmaxable {arguments[0]} ended with exit code {done.returncode}")
    return seconds


def inspect(head: am.Head, result: am.Result, verifying: float, sample: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        file = _saved(head, folder)
        return compared(command("inspect", file), command("--version"), bytes=Path(file).stat().st_size)


def export(head: am.Head, result: am.Result, verifying: float, sample: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        database, bundle = str(Path(folder) / "runs.db"), Path(folder) / "proofs"
        command("verify", _saved(head, folder), "--domain", "box:100", "--db", database)
        seconds = command("export", "1", "--format", "bundle", "--output", str(bundle), "--db", database)
        written = sum(file.stat().st_size for file in bundle.iterdir())
    return compared(seconds, command("--version"), bytes=written)


def _saved(head: am.Head, folder: str) -> str:
    """The head as a file of its own."""
    file = str(Path(folder) / "head.npz")
    np.savez(file, W=head.weight, b=head.bias)
    return file


TOOLS = {
    "explain": explain,
    "repair": repair,
    "top-k": top_k,
    "ceilings": ceilings,
    "check": check,
    "inspect": inspect,
    "export": export,
}


if __name__ == "__main__":
    main()
