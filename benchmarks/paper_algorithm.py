"""How much faster than the algorithm of Grivas, Bogoychev & Lopez (2022) as written?

Theirs: one class at a time on one core; braid reflection from x = w_c with a patience of 2500 steps, then
the Chebyshev linear programme over all classes (here in HiGHS with the tolerances it comes with; theirs used
Gurobi). It is timed on a
sample of easy classes (settled within 30 reflections) and of hard ones, and extrapolated. Ours: verify() with
every answer checked, and the whole command. Both in this run, so that the ratio is about the algorithms.

    python benchmarks/paper_algorithm.py [--hard 16] [--easy 60] [NAME ...]
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import time

import _models
import _record
import numpy as np
from threadpoolctl import threadpool_limits

import argmaxable as am
from argmaxable.prove.highs import maximise
from argmaxable.questions.argmax import verify

PATIENCE = 2500
EASY_STEPS = 30
# What HiGHS comes with. It is too coarse for verdicts, but faster, and the paper does not set one.
HIGHS_TOLERANCE = 1e-7


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=["ppocrv4_rec_ch", "ppocrv3_rec_ch"])
    parser.add_argument("--hard", type=int, default=16, help="hard classes timed")
    parser.add_argument("--easy", type=int, default=60, help="easy classes timed")
    options = parser.parse_args()
    heads = {name: measure(name, options.hard, options.easy) for name in options.names}
    _record.write("paper_algorithm", {"heads": heads})


def measure(name: str, hard: int, easy: int) -> dict[str, object]:
    head = _models.head(name)
    ours = min((verified(head) for _ in range(3)), key=lambda result: result.cost.seconds)
    command = min(command_seconds(name) for _ in range(3))
    theirs = paper_seconds(head, hard, easy)
    return {
        "classes": head.classes,
        "features": head.features,
        "unargmaxable": len(ours.unargmaxable),
        "undecided": len(ours.undecided),
        "seconds": round(ours.cost.seconds, 3),
        "phases": {phase: round(seconds, 3) for phase, seconds in ours.cost.phases.items()},
        "solves": ours.cost.solves,
        "mean_steps": round(ours.cost.mean_steps, 2),
        "mean_rows": round(ours.cost.mean_rows, 1),
        "command_seconds": round(command, 2),
        "paper": theirs,
        "times_faster": round(theirs["seconds"] / ours.cost.seconds, 1),
    }


def verified(head: am.Head) -> am.Result:
    return am.verify(head, am.Box(-100, 100))


def command_seconds(name: str) -> float:
    """Wall seconds of the whole command, start of Python included."""
    code = "from argmaxable.cli import main; main()"
    command = [sys.executable, "-c", code, "verify", str(_models.onnx_file(name)), "--json"]
    start = time.perf_counter()
    finished = subprocess.run(command, stdout=subprocess.DEVNULL, env=dict(os.environ))
    assert finished.returncode in (0, 1), finished
    return time.perf_counter() - start


def paper_seconds(head: am.Head, hard: int, easy: int) -> dict[str, float]:
    """Seconds of the paper's algorithm for all classes, extrapolated from a sample on one core."""
    weight, bias = head.weight.astype(np.float32), head.biases().astype(np.float32)
    generator = np.random.default_rng(0)
    with threadpool_limits(1):
        is_hard = hard_classes(head)
        hard_ids, easy_ids = np.flatnonzero(is_hard), np.flatnonzero(~is_hard)
        easy_sample = generator.choice(easy_ids, min(easy, len(easy_ids)), replace=False)
        hard_sample = generator.choice(hard_ids, min(hard, len(hard_ids)), replace=False)
        easy_seconds = np.mean([timed(weight, bias, int(c)) for c in easy_sample])
        hard_seconds = np.mean([timed(weight, bias, int(c)) for c in hard_sample])
    total = float(easy_seconds * len(easy_ids) + hard_seconds * len(hard_ids))
    return {
        "seconds": round(total, 1),
        "hard_classes": len(hard_ids),
        "hard_sample": len(hard_sample),
        "easy_sample": len(easy_sample),
        "seconds_per_hard_class": round(float(hard_seconds), 3),
        "seconds_per_easy_class": round(float(easy_seconds), 5),
    }


def hard_classes(head: am.Head) -> np.ndarray:
    """Classes that 30 reflections from w_c do not settle."""
    result = verify(head, method="reflection", patience=EASY_STEPS, engine=am.Engine(workers=1))
    return np.array([verdict.status is not am.Status.ARGMAXABLE for verdict in result.verdicts])


def timed(weight: np.ndarray, bias: np.ndarray, class_id: int) -> float:
    start = time.perf_counter()
    if not reflected(weight, bias, class_id):
        chebyshev(weight, bias, class_id)
    return time.perf_counter() - start


def reflected(weight: np.ndarray, bias: np.ndarray, class_id: int) -> bool:
    """Algorithm 2 of the paper."""
    x = weight[class_id].copy()
    for _ in range(PATIENCE):
        winner = int((weight @ x + bias).argmax())
        if winner == class_id:
            return True
        normal = weight[class_id] - weight[winner]
        score = normal @ x + bias[class_id] - bias[winner]
        x -= (2 * score / (normal @ normal)) * normal
    return False


def chebyshev(weight: np.ndarray, bias: np.ndarray, class_id: int) -> None:
    """Section 3.3.1 of the paper: the Chebyshev centre over all classes, box ±100."""
    rivals = np.arange(len(weight)) != class_id
    normals = (weight[rivals] - weight[class_id]).astype(np.float64)
    lengths = np.sqrt((normals * normals).sum(axis=1))
    limits = (bias[class_id] - bias[rivals]).astype(np.float64)
    size = weight.shape[1]
    cost = np.append(np.zeros(size), 1.0)
    lo, hi = np.append(np.full(size, -100.0), -math.inf), np.append(np.full(size, 100.0), math.inf)
    maximise(cost, np.hstack([normals, lengths[:, None]]), limits, lo, hi, tolerance=HIGHS_TOLERANCE)


if __name__ == "__main__":
    main()
