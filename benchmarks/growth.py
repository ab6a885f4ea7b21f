"""How the cost grows with the number of classes C and features d, with fitted exponents and a plot.

Heads are random normal rows, a hundredth of them replaced by convex combinations of others and so
unargmaxable: without bias, which is the harder case (the proofs must be exact).

    python benchmarks/growth.py [--most-classes 64000] [--most-features 1024]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import _record
import numpy as np
from matplotlib.figure import Figure

import argmaxable as am

CLASSES = [1000, 2000, 4000, 8000, 16000, 32000, 64000]
FEATURES = [32, 64, 128, 256, 512, 1024]
FIXED_CLASSES, FIXED_FEATURES = 8000, 128
PLANTED_SHARE = 0.01


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--most-classes", type=int, default=CLASSES[-1])
    parser.add_argument("--most-features", type=int, default=FEATURES[-1])
    options = parser.parse_args()
    by_classes = [measure(c, FIXED_FEATURES) for c in CLASSES if c <= options.most_classes]
    by_features = [measure(FIXED_CLASSES, d) for d in FEATURES if d <= options.most_features]
    exponents = {
        "seconds_with_classes": exponent(
            [row["classes"] for row in by_classes], [row["seconds"] for row in by_classes]
        ),
        "seconds_with_features": exponent(
            [row["features"] for row in by_features], [row["seconds"] for row in by_features]
        ),
        "solve_ms_with_features": exponent(
            [row["features"] for row in by_features], [row["ms_per_solve"] for row in by_features]
        ),
    }
    plot(by_classes, by_features, exponents, _record.RESULTS / "growth.svg")
    _record.write("growth", {"exponents": exponents, "by_classes": by_classes, "by_features": by_features})


def measure(classes: int, features: int) -> dict[str, float]:
    head, planted = planted_head(classes, features)
    result = am.verify(head)
    lost = {verdict.class_id for verdict in result.unargmaxable}
    assert planted <= lost, "a planted class was not found"
    row = {
        "classes": classes,
        "features": features,
        "seconds": round(result.cost.seconds, 3),
        "unargmaxable": len(lost),
        "undecided": len(result.undecided),
        "solves": result.cost.solves,
        "mean_steps": round(result.cost.mean_steps, 2),
        "ms_per_solve": round(1e3 * result.cost.phases["solving"] / max(1, result.cost.solves), 2),
    }
    print(row, flush=True)
    return row


def planted_head(classes: int, features: int, share: float = PLANTED_SHARE) -> tuple[am.Head, set[int]]:
    """A random head and the classes in it that are convex combinations of others (up to rounding inwards)."""
    generator = np.random.default_rng((classes, features))
    rows = generator.standard_normal((classes, features)).astype(np.float32)
    planted = generator.choice(classes, max(1, int(share * classes)), replace=False)
    others = np.setdiff1d(np.arange(classes), planted)
    for class_id in planted:
        some = generator.choice(others, min(len(others), 3 * features), replace=False)
        rows[class_id] = generator.dirichlet(np.full(len(some), 0.3)) @ rows[some]
    return am.Head(rows, name=f"planted {classes}×{features}"), {int(class_id) for class_id in planted}


def exponent(sizes: list[float], costs: list[float]) -> float:
    """Slope of the log-log fit over the larger half, where constant costs no longer count."""
    half = len(sizes) // 2 - 1
    return round(float(np.polyfit(np.log(sizes[half:]), np.log(costs[half:]), 1)[0]), 2)


def plot(
    by_classes: list[dict[str, float]],
    by_features: list[dict[str, float]],
    exponents: dict[str, float],
    path: Path,
) -> None:
    figure = Figure(figsize=(9, 4), layout="constrained")
    panels = (
        ("classes", by_classes, f"{FIXED_FEATURES} features", "seconds_with_classes"),
        ("features", by_features, f"{FIXED_CLASSES} classes", "seconds_with_features"),
    )
    for axes, (name, rows, fixed, key) in zip(figure.subplots(1, 2), panels, strict=True):
        axes.loglog([row[name] for row in rows], [row["seconds"] for row in rows], "o-", color="#1b7837")
        axes.set(xlabel=name, ylabel="seconds, check included", title=f"{fixed}: exponent {exponents[key]}")
        axes.grid(True, which="both", alpha=0.3)
    figure.savefig(path)
    figure.savefig(path.with_suffix(".png"), dpi=120)


if __name__ == "__main__":
    main()
