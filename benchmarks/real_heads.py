"""Real heads: counts, time, solves, peak memory, and time against one float32 product W Wᵀ.

Each head runs in a process of its own, so that peak memory is its own. The product is timed in the same
process, by the same BLAS with the same threads, in blocks of rows (a C × C matrix is never formed).

    python benchmarks/real_heads.py [NAME ...]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import _models
import _record

import argmaxable as am

NAMES = [*_models.ONNX_HEADS, "minilm"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one)))
        return
    heads = {}
    for name in options.names:
        command = [sys.executable, __file__, "--one", name]
        heads[name] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    _record.write("real_heads", {"heads": heads})


def measure(name: str) -> dict[str, object]:
    head = _models.head(name)
    before = peak_bytes()
    result = am.verify(head, am.Box(-100, 100))
    peak = peak_bytes()
    product = min(product_seconds(head) for _ in range(3))
    return {
        "classes": head.classes,
        "features": head.features,
        "argmaxable": len(result.argmaxable),
        "unargmaxable": len(result.unargmaxable),
        "tied": len(result.tied),
        "undecided": len(result.undecided),
        "seconds": round(result.cost.seconds, 2),
        "phases": {phase: round(seconds, 2) for phase, seconds in result.cost.phases.items()},
        "solves": result.cost.solves,
        "mean_steps": round(result.cost.mean_steps, 2),
        "mean_rows": round(result.cost.mean_rows, 1),
        "product_seconds": round(product, 2),
        "times_the_product": round(result.cost.seconds / product, 2),
        "head_float64_mb": round(head.classes * head.features * 8 / 1e6, 1),
        "peak_mb": round(peak / 1e6, 1),
        "peak_before_verify_mb": round(before / 1e6, 1),
        "peak_is_at_most_head_plus_1gb": peak <= head.classes * head.features * 8 + 1e9,
    }


def peak_bytes() -> float:
    """Peak memory of this process plus the largest of its finished workers."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    workers = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return float(own + workers) * 1024


def product_seconds(head: am.Head) -> float:
    rows = head.weight.astype("float32")
    start = time.perf_counter()
    for first in range(0, len(rows), 1024):
        rows[first : first + 1024] @ rows.T
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
