"""Hard classes in many features, just inside and just outside the hull, beside the full linear programme.

Random normal rows; a share of them is replaced by mixtures of d/16 others (which lie on the hull's
surface when there are many features), moved towards the mean by a thousandth of their distance from it (so
they are inside for certain) or away from it. No bias, so proofs must be exact. The yardstick is the
Chebyshev linear programme over all rows in HiGHS, as the paper has it, on one of the same classes for each
number of features, in the same run, cut off after so many seconds: a lower bound then. A file of results for
each number of features.

    python benchmarks/hard_classes.py [--classes 32000] [--features 512 1024] [--timed 20] [--limit 200]
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import Any

import _record
import numpy as np
from numpy.typing import NDArray

import argmaxable as am
from argmaxable.prove.highs import maximise

SHARES = (0.001, 0.01)
MARGIN = 1e-3


@dataclass(frozen=True, eq=False)
class Planted:
    """A head and its planted classes."""

    head: am.Head
    inside: NDArray[np.intp]
    outside: NDArray[np.intp]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--classes", type=int, default=32_000)
    parser.add_argument("--features", type=int, nargs="+", default=[512, 1024])
    parser.add_argument(
        "--timed", type=int, default=20, help="planted classes of each kind that are verified"
    )
    parser.add_argument("--limit", type=float, default=200, help="seconds for a linear programme")
    options = parser.parse_args()
    for features in options.features:
        cases = {share: planted(options.classes, features, share) for share in SHARES}
        first = cases[SHARES[0]]
        programme = programme_seconds(first.head, int(first.outside[0]), options.limit)
        print(f"{features} features: the linear programme took {programme:.1f} s", flush=True)
        rows = [measure(case, share, options.timed, programme) for share, case in cases.items()]
        record = {"margin": MARGIN, "programme_limit": options.limit, "rows": rows}
        _record.write(f"hard_classes_{features}", record)


def planted(classes: int, features: int, share: float) -> Planted:
    generator = np.random.default_rng((classes, features, int(1 / share)))
    rows = generator.standard_normal((classes, features)).astype(np.float32)
    ids = generator.permutation(classes)
    count = max(1, int(share * classes) // 2)
    inside, outside, others = ids[:count], ids[count : 2 * count], ids[2 * count :]
    mean = rows[others].mean(axis=0)
    for class_id in ids[: 2 * count]:
        some = generator.choice(others, features // 16, replace=False)
        mixture = generator.dirichlet(np.ones(len(some))) @ rows[some]
        factor = 1 - MARGIN if class_id in set(inside.tolist()) else 1 + MARGIN
        rows[class_id] = mean + factor * (mixture - mean)
    return Planted(am.Head(rows, name=f"{classes}×{features}, {share:.1%} planted"), inside, outside)


def measure(case: Planted, share: float, timed: int, programme: float) -> dict[str, Any]:
    inside, outside = case.inside[:timed], case.outside[:timed]
    result = am.verify(case.head, only=[*inside.tolist(), *outside.tolist()])
    unargmaxable = {verdict.class_id for verdict in result.unargmaxable}
    found = {verdict.class_id for verdict in result.argmaxable}
    seconds = {verdict.class_id: verdict.seconds for verdict in result.verdicts}
    per_class = result.cost.seconds / len(result.verdicts)
    row = {
        "classes": case.head.classes,
        "features": case.head.features,
        "planted_share": share,
        "verified": len(result.verdicts),
        "inside_proven": len(unargmaxable & set(inside.tolist())),
        "outside_won": len(found & set(outside.tolist())),
        "wrong": len(found & set(inside.tolist())) + len(unargmaxable & set(outside.tolist())),
        "undecided": len(result.undecided),
        "inside_seconds_each": round(float(np.mean([seconds[c] for c in inside.tolist()])), 2),
        "outside_seconds_each": round(float(np.mean([seconds[c] for c in outside.tolist()])), 2),
        "mean_steps": round(result.cost.mean_steps, 1),
        "wall_seconds_each": round(per_class, 2),
        "programme_seconds": round(programme, 1),
        "times_faster_at_least": round(programme / per_class),
    }
    print(row, flush=True)
    return row


def programme_seconds(head: am.Head, class_id: int, limit: float) -> float:
    """Seconds until HiGHS has solved the paper's programme for the class, or gave up."""
    others = np.delete(np.arange(head.classes), class_id)
    differences = head.rows(others) - head.rows(np.array([class_id]))
    lengths = np.sqrt((differences * differences).sum(axis=1, keepdims=True))
    rows = np.hstack([differences, lengths])
    reach = np.append(np.full(head.features, 100.0), np.inf)
    cost = np.append(np.zeros(head.features), 1.0)
    started = time.perf_counter()
    maximise(cost, rows, np.zeros(len(others)), -reach, reach, seconds=limit)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
