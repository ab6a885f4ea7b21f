"""Output layers of language models, every class: seconds and memory beside the float32 product W Wᵀ.

Each model runs in a process of its own, whose peak memory (VmHWM, its worker's added) is read before the
second product is timed; memory-mapped files count. The product is timed on blocks of rows spread over the
head, before and after the run, and scaled to all rows: that is the yardstick, in the same run. "total" is
everything a user waits for: loading, verifying with every verdict checked, writing the bundle. "recheck"
is `argmaxable check` on it; --no-recheck leaves it out.

    python benchmarks/language_models.py [smollm2 gemma3-270m] [--memory 6GB] [--no-recheck NAME]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _models
import _record
import numpy as np

import argmaxable as am
from argmaxable.compute.budget import parse_bytes

# Rows multiplied at a time for the yardstick, with so many others; such blocks on each side of the run.
BLOCK, PIECE, BLOCKS = 2048, 8192, 3

Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=list(_models.LANGUAGE_MODELS))
    parser.add_argument("--memory", default="6GB")
    parser.add_argument(
        "--no-recheck", nargs="*", default=[], help="models whose bundle is not checked again"
    )
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        is_checked = options.child not in options.no_recheck
        print(json.dumps(measure(options.child, parse_bytes(options.memory), is_checked=is_checked)))
        return
    models = {}
    for name in options.names:
        command = [sys.executable, __file__, "--child", name, "--memory", options.memory]
        command += ["--no-recheck", *options.no_recheck]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        models[name] = json.loads(done.stdout)
        print(name, models[name], flush=True)
    _record.write("language_models", {"memory_limit": options.memory, "models": models})


def measure(name: str, memory: int, *, is_checked: bool) -> Row:
    path = _models.language_model_file(name)
    loading, head = timed(lambda: am.load_head(path))
    before = block_seconds(head)
    verifying, result = timed(lambda: am.verify(head, engine=am.Engine(memory=memory)))
    with tempfile.TemporaryDirectory() as folder:
        writing, _ = timed(lambda: am.write_bundle(result, folder))
        rechecked: Row = recheck(head, folder) if is_checked else {}
        bundle = sum(file.stat().st_size for file in Path(folder).iterdir())
    peak = peak_bytes()
    product = (before + block_seconds(head)) / 2 * head.classes / BLOCK
    total = loading + verifying + writing
    groups = {verdict.tie_group for verdict in result.unargmaxable if verdict.tie_group}
    return {
        "classes": head.classes,
        "features": head.features,
        "unargmaxable": len(result.unargmaxable),
        "tied": sum(bool(verdict.tie_group) for verdict in result.unargmaxable),
        "tie_groups": sorted(len(group) for group in groups),
        "undecided": len(result.undecided),
        "seconds": {
            "loading": round(loading, 1),
            "verifying": round(verifying, 1),
            "writing": round(writing, 1),
            "total": round(total, 1),
        },
        "phases": {phase: round(seconds, 1) for phase, seconds in result.cost.phases.items()},
        "solves": result.cost.solves,
        "classes_per_second": round(head.classes / total),
        "product_seconds": round(product, 1),
        "total_over_product": round(total / product, 2),
        "peak_gb": round(peak / 1e9, 2),
        "bundle_mb": round(bundle / 1e6, 1),
    } | (
        {
            "recheck": rechecked,
            "total_and_recheck_over_product": round((total + rechecked["seconds"]) / product, 2),
        }
        if rechecked
        else {}
    )


def recheck(head: am.Head, folder: str) -> Row:
    seconds, found = timed(lambda: am.recheck(am.read_bundle(folder), head))
    return {"proven": found.proven, "failures": len(found.failures), "seconds": round(seconds, 1)}


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    done = work()
    return time.perf_counter() - started, done


def block_seconds(head: am.Head) -> float:
    """Mean seconds for BLOCK rows times all rows in float32, in pieces so that it takes little memory."""
    rows = head.weight[:].astype(np.float32, copy=False)
    starts = np.linspace(0, head.classes - BLOCK, BLOCKS).astype(int)
    piece = np.empty((BLOCK, PIECE), np.float32)
    np.matmul(rows[:BLOCK], rows[:PIECE].T, out=piece)  # wakes the threads
    started = time.perf_counter()
    for first in starts:
        for other in range(0, head.classes - PIECE + 1, PIECE):
            np.matmul(rows[first : first + BLOCK], rows[other : other + PIECE].T, out=piece)
    whole = head.classes / (head.classes // PIECE * PIECE)
    return (time.perf_counter() - started) / BLOCKS * whole


def peak_bytes() -> int:
    """Peak of this process and that of its largest child: one worker runs beside it on two cores."""
    lines = Path("/proc/self/status").read_text().splitlines()
    own = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    return own + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


if __name__ == "__main__":
    main()
