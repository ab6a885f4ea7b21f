"""Engines on one machine: a run shared with Ray workers against the same run with a process pool.

The head is PP-OCRv5's (18,385 × 120, thousands of solves). Each repetition runs both, one after the other;
Ray's start-up is reported on its own and not counted, as on a cluster that is there already.

    python benchmarks/engines.py [--repetitions 3] [--name ppocrv5]
"""

from __future__ import annotations

import argparse
import statistics
import time

import _models
import _record

import argmaxable as am

WORKERS = 2


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--name", default="ppocrv5", choices=_models.ONNX_HEADS)
    options = parser.parse_args()
    head = _models.head(options.name)
    rows = []
    for _ in range(options.repetitions):
        rows.append({"processes": measure(head, None), "ray": measure(head, "local")})
        print(rows[-1], flush=True)
    ratios = [row["ray"]["seconds_without_start"] / row["processes"]["seconds_without_start"] for row in rows]
    _record.write(
        "engines",
        {
            "head": options.name,
            "workers": WORKERS,
            "ray_over_processes": [round(ratio, 3) for ratio in ratios],
            "median": round(statistics.median(ratios), 3),
            "rows": rows,
        },
    )


def measure(head: am.Head, ray: str | None) -> dict[str, float]:
    start = time.perf_counter()
    result = am.verify(head, engine=am.Engine(workers=WORKERS, ray=ray))
    seconds = time.perf_counter() - start
    return {
        "unargmaxable": len(result.unargmaxable),
        "undecided": len(result.undecided),
        "solves": result.cost.solves,
        "start_seconds": round(result.cost.phases["engine"], 2),
        "solving_seconds": round(result.cost.phases["solving"], 2),
        "seconds_without_start": round(seconds - result.cost.phases["engine"], 2),
    }


if __name__ == "__main__":
    main()
