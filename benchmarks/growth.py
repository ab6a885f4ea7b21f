"""How time and memory grow with classes C, features d and hard classes H: measured, fitted and plotted.

Heads are random normal rows without bias, which is the harder case (proofs must be exact). Hard classes
are those of hard_classes.py, half just inside the hull and half just outside. Each head is verified in a
process of its own, whose peak memory is read (its worker's added). All runs together are fitted by

    seconds ≈ C² (a0 + a1 d)  +  H (b1 d + b3 d³)      bytes ≈ c0 + c1 C d + c2 d²

    python benchmarks/growth.py [--most-classes 64000] [--most-features 1024] [--most-hard 512]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import _record
import numpy as np
from hard_classes import planted
from language_models import peak_bytes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from real_heads import product_seconds
from scipy.optimize import nnls

import argmaxable as am

CLASSES = [2_000, 4_000, 8_000, 16_000, 32_000, 64_000]
FEATURES = [64, 128, 256, 512, 1024]
HARD = [8, 32, 128, 512]
FIXED_CLASSES, FIXED_FEATURES, FIXED_HARD = 16_000, 128, 16
# Larger than anything fitted: classes, features and hard classes for which the fit is written down.
FORETOLD = [(128_256, 4_096, 128), (262_144, 640, 26), (1_000_000, 16_384, 1_000)]

Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--most-classes", type=int, default=CLASSES[-1])
    parser.add_argument("--most-features", type=int, default=FEATURES[-1])
    parser.add_argument("--most-hard", type=int, default=HARD[-1])
    parser.add_argument("--child", type=int, nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measure(*options.child)))
        return
    curves = {
        "classes": [in_child(c, FIXED_FEATURES, FIXED_HARD) for c in CLASSES if c <= options.most_classes],
        "features": [in_child(FIXED_CLASSES, d, FIXED_HARD) for d in FEATURES if d <= options.most_features],
        "hard": [in_child(FIXED_CLASSES, 2 * FIXED_FEATURES, h) for h in HARD if h <= options.most_hard],
    }
    found = fit([row for rows in curves.values() for row in rows])
    plot(curves, found, _record.RESULTS / "growth.svg")
    _record.write(
        "growth", {"fit": found, "foretold": [foretell(found, *size) for size in FORETOLD]} | curves
    )


def in_child(classes: int, features: int, hard: int) -> Row:
    command = [sys.executable, __file__, "--child", str(classes), str(features), str(hard)]
    row: Row = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    print(row, flush=True)
    return row


def measure(classes: int, features: int, hard: int) -> Row:
    case = planted(classes, features, hard / classes)
    am.verify(planted(500, 32, 0.01).head)  # the first run pays for loading libraries
    result = am.verify(case.head)
    peak = peak_bytes()
    unargmaxable = {verdict.class_id for verdict in result.unargmaxable}
    assert set(case.inside.tolist()) <= unargmaxable, "a planted class was not found"
    assert not set(case.outside.tolist()) & unargmaxable, "a class outside the hull was called unargmaxable"
    phases = result.cost.phases
    return {
        "classes": classes,
        "features": features,
        "hard": len(case.inside) + len(case.outside),
        "seconds": round(result.cost.seconds, 3),
        "solve_seconds": round(phases["solving"] + phases["engine"], 3),
        "product_seconds": round(product_seconds(case.head), 3),
        "peak_bytes": peak,
        "undecided": len(result.undecided),
        "solves": result.cost.solves,
        "mean_steps": round(result.cost.mean_steps, 1),
    }


def fit(rows: list[Row]) -> dict[str, float]:
    """Non-negative least squares of relative errors, each pair of terms to its own part of a run."""
    classes, features, hard, seconds, solving, product, peak = (
        np.array([row[name] for row in rows], float)
        for name in (
            "classes", "features", "hard", "seconds", "solve_seconds", "product_seconds", "peak_bytes"
        )
    )  # fmt: skip
    a0, a1 = relative_fit(np.column_stack([classes**2, classes**2 * features]), seconds - solving)
    b1, b3 = relative_fit(np.column_stack([hard * features, hard * features**3]), solving)
    c0, c1, c2 = relative_fit(np.column_stack([np.ones(len(rows)), classes * features, features**2]), peak)
    found = {"a0": a0, "a1": a1, "b1": b1, "b3": b3, "c0": c0, "c1": c1, "c2": c2}
    predicted = [foretell(found, *size) for size in zip(classes, features, hard, strict=True)]
    times = factor_off(np.array([each["seconds"] for each in predicted]), seconds)
    bytes_off = factor_off(np.array([each["gigabytes"] * 1e9 for each in predicted]), peak)
    return found | {
        "median_factor_off": round(float(np.median(times)), 2),
        "largest_factor_off": round(float(times.max()), 2),
        "largest_factor_off_in_bytes": round(float(bytes_off.max()), 2),
        "search_over_product": round(float(np.median((seconds - solving) / product)), 2),
    }


def factor_off(predicted: NDArray[np.float64], measured: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.exp(np.abs(np.log(predicted / measured))))


def relative_fit(terms: NDArray[np.float64], measured: NDArray[np.float64]) -> list[float]:
    found: list[float] = nnls(terms / measured[:, None], np.ones(len(measured)))[0].tolist()
    return found


def foretell(fitted: dict[str, float], classes: float, features: float, hard: float) -> dict[str, float]:
    """What the fit says about a size; with 0 for what a size without hard classes takes."""
    search = classes**2 * (fitted["a0"] + fitted["a1"] * features)
    solving = hard * (fitted["b1"] * features + fitted["b3"] * features**3)
    memory = fitted["c0"] + fitted["c1"] * classes * features + fitted["c2"] * features**2
    return {
        "classes": classes,
        "features": features,
        "hard": hard,
        "search_seconds": search,
        "seconds_for_each_hard_class": solving / max(hard, 1),
        "seconds": search + solving,
        "gigabytes": memory / 1e9,
    }


def plot(curves: dict[str, list[Row]], fitted: dict[str, float], path: Path) -> None:
    figure = Figure(figsize=(10, 5.4), layout="constrained")
    fixed = {
        "classes": f"{FIXED_FEATURES} features, {FIXED_HARD} hard classes",
        "features": f"{FIXED_CLASSES:,} classes, {FIXED_HARD} hard",
        "hard": f"{FIXED_CLASSES:,} classes, {2 * FIXED_FEATURES} features",
    }
    panels = figure.subplots(2, 3)
    for column, (name, rows) in enumerate(curves.items()):
        sizes = [row[name] for row in rows]
        said = [foretell(fitted, row["classes"], row["features"], row["hard"]) for row in rows]
        views = (
            ("seconds", [row["seconds"] for row in rows], [each["seconds"] for each in said]),
            ("peak memory (GB)", [row["peak_bytes"] / 1e9 for row in rows], [e["gigabytes"] for e in said]),
        )
        for axes, (what, measured, predicted) in zip(panels[:, column], views, strict=True):
            axes.loglog(sizes, measured, "o", color="#0072B2", label="measured")
            axes.loglog(sizes, predicted, "-", color="#D55E00", label="fit to all runs")
            axes.set_xlabel("hard classes" if name == "hard" else name)
            axes.set_ylabel(what)
            axes.set_xticks(sizes, labels=[f"{size:,}" for size in sizes], fontsize=8)
            axes.set_xticks([], minor=True)
            axes.grid(True, which="both", alpha=0.3)
        panels[0, column].set_title(fixed[name], fontsize=10)
    panels[0, 0].legend(frameon=False)
    figure.savefig(path)
    figure.savefig(path.with_suffix(".png"), dpi=120)


if __name__ == "__main__":
    main()
