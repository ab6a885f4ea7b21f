"""A head of 128,256 × 4,096 in bfloat16, memory-mapped, with planted interior rows: a sample of its classes.

Normal rows, a hundredth of them mixtures of 3d others and so unargmaxable. Too large to verify whole in a
benchmark: some blocks of ordinary classes and some planted ones are verified under a limit of memory, and
the rest is extrapolated. The yardstick is the float32 product of as many rows with all rows.

    python benchmarks/large_head.py [--classes 128256] [--features 4096] [--sample 2048] [--planted 128]
        [--memory 8GB]
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

import _models
import _record
import numpy as np
from language_models import peak_bytes, timed
from numpy.typing import NDArray

import argmaxable as am
from argmaxable.compute.budget import parse_bytes
from argmaxable.core.head import FLOAT_DTYPES

SHARE = 0.01
# Rows made at a time, and planted rows that are mixtures of the same others.
BLOCK, TOGETHER = 4096, 64


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--classes", type=int, default=128_256)
    parser.add_argument("--features", type=int, default=4096)
    parser.add_argument("--sample", type=int, default=2048, help="ordinary classes verified")
    parser.add_argument("--planted", type=int, default=128, help="planted classes verified")
    parser.add_argument("--memory", default="8GB")
    options = parser.parse_args()
    weight, planted = stored_head(options.classes, options.features)
    head = am.Head(weight, name="synthetic")
    ordinary = np.setdiff1d(np.arange(options.classes), planted)[: options.sample]
    _record.write(
        "large_head",
        {"memory_limit": options.memory}
        | measure(head, ordinary, planted[: options.planted], len(planted), parse_bytes(options.memory)),
    )


def stored_head(classes: int, features: int) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The weights, mapped from a file that is made on first use, and the planted classes."""
    generator = np.random.default_rng((classes, features))
    planted = np.sort(generator.choice(classes, max(1, int(SHARE * classes)), replace=False))
    path = _models.CACHE / f"synthetic-{classes}x{features}.bf16"
    dtype, shape = FLOAT_DTYPES["bfloat16"], (classes, features)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        write_head(np.memmap(unfinished, dtype, "w+", shape=shape), planted, generator)
        unfinished.rename(path)
    return np.memmap(path, dtype, "r", shape=shape), planted


def write_head(weight: NDArray[Any], planted: NDArray[np.intp], generator: np.random.Generator) -> None:
    classes, features = weight.shape
    for first in range(0, classes, BLOCK):
        count = min(BLOCK, classes - first)
        weight[first : first + count] = generator.standard_normal((count, features), np.float32)
    others = np.setdiff1d(np.arange(classes), planted)
    for first in range(0, len(planted), TOGETHER):
        some = np.sort(generator.choice(others, min(len(others), 3 * features), replace=False))
        mixtures = generator.dirichlet(np.full(len(some), 0.3), min(TOGETHER, len(planted) - first))
        weight[planted[first : first + TOGETHER]] = mixtures.astype(np.float32) @ weight[some].astype(
            np.float32
        )


def measure(
    head: am.Head, ordinary: NDArray[np.intp], planted: NDArray[np.intp], all_planted: int, memory: int
) -> dict[str, Any]:
    engine = am.Engine(memory=memory)
    searching, found = timed(lambda: am.verify(head, only=ordinary, engine=engine))
    solving, inside = timed(lambda: am.verify(head, only=planted, engine=engine))
    peak = peak_bytes()
    product = block_seconds(head, ordinary) / len(ordinary) * head.classes
    search_total = searching / len(ordinary) * (head.classes - all_planted)
    solve_total = solving / len(planted) * all_planted
    return {
        "classes": head.classes,
        "features": head.features,
        "sample": len(ordinary),
        "argmaxable": len(found.argmaxable),
        "planted_in_sample": len(planted),
        "planted_proven": len(inside.unargmaxable),
        "undecided": len(found.undecided) + len(inside.undecided),
        "seconds": {"sample": round(searching, 1), "planted": round(solving, 1)},
        "classes_per_second": round(len(ordinary) / searching, 1),
        "seconds_per_planted": round(solving / len(planted), 1),
        "product_seconds": round(product, 1),
        "sample_over_product": round(search_total / product, 2),
        "extrapolated_seconds": {"search": round(search_total), "planted": round(solve_total)},
        "peak_gb": round(peak / 1e9, 2),
        "largest_worker_gb": round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e9, 2),
    }


def block_seconds(head: am.Head, ids: NDArray[np.intp]) -> float:
    """Seconds for these rows times all rows in float32, conversion not counted."""
    points, seconds = head.weight[ids].astype(np.float32), 0.0
    for first in range(0, head.classes, BLOCK):
        rows = head.weight[first : first + BLOCK].astype(np.float32)
        started = time.perf_counter()
        points @ rows.T
        seconds += time.perf_counter() - started
    return seconds


if __name__ == "__main__":
    main()
