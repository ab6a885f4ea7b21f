"""A cost model: seconds against classes C, features d and hard classes H, fitted to a grid of planted heads.

    seconds ≈ a · C² d  (one look at every pair of classes)  +  b · H · d^p  (a solve for each hard class)

The first term is compared with the bare float32 product W Wᵀ in the same run. docs/scale.md uses the fit.

    python benchmarks/cost_model.py
"""

from __future__ import annotations

import argparse

import _record
import numpy as np
from growth import planted_head
from real_heads import product_seconds

import argmaxable as am

CLASSES = [4_000, 16_000, 32_000]
FEATURES = [64, 128, 256, 512]
SHARES = [0.0025, 0.01, 0.04]
# Solves of one size that are timed; more would only take longer.
MOST_HARD = 320


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    measure(1_000, 32, 0.01)  # the first run pays for loading libraries
    rows = [
        measure(classes, features, share)
        for classes in CLASSES
        for features in FEATURES
        for share in SHARES
        if share * classes <= MOST_HARD
    ]
    _record.write("cost_model", {"fit": fit(rows), "rows": rows})


def measure(classes: int, features: int, share: float) -> dict[str, float]:
    head, planted = planted_head(classes, features, share)
    result = am.verify(head)
    lost = {verdict.class_id for verdict in result.unargmaxable}
    assert planted <= lost, "a planted class was not found"
    phases = result.cost.phases
    row = {
        "classes": classes,
        "features": features,
        "hard": len(planted),
        "undecided": len(result.undecided),
        "search_seconds": round(phases["own direction"] + phases["reflection"], 4),
        "solve_seconds": round(phases["solving"], 4),
        "product_seconds": round(product_seconds(head), 4),
        "seconds": round(result.cost.seconds, 4),
    }
    print(row, flush=True)
    return row


def fit(rows: list[dict[str, float]]) -> dict[str, float]:
    """Least squares in logarithms, each term from its own phase; the errors are those of the whole."""
    pairs = np.array([row["classes"] ** 2 * row["features"] for row in rows])
    search = np.array([row["search_seconds"] for row in rows])
    hard, features = (np.array([row[name] for row in rows]) for name in ("hard", "features"))
    per_solve = np.array([row["solve_seconds"] for row in rows]) / hard
    power, factor = np.polyfit(np.log(features), np.log(per_solve), 1)
    a = float(np.exp(np.mean(np.log(search / pairs))))
    predicted = a * pairs + np.exp(factor) * hard * features**power
    off = np.exp(np.abs(np.log(predicted / np.array([row["seconds"] for row in rows]))))
    return {
        "a": a,
        "b": float(np.exp(factor)),
        "p": round(float(power), 3),
        "median_factor_off": round(float(np.median(off)), 2),
        "largest_factor_off": round(float(off.max()), 2),
        "search_over_product": round(
            float(np.median(search / np.array([row["product_seconds"] for row in rows]))), 2
        ),
    }


if __name__ == "__main__":
    main()
