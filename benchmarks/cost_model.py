"""A cost model: seconds against classes C, features d and hard classes H, fitted to a grid of planted heads.

    seconds ≈ C² (a0 + a1 d)        one look at every pair of classes
            + H (b1 d + b3 d³)      a solve for each hard class

The heads have no bias, so proofs have to be exact: hence the d³. The first part is compared with the bare
float32 product W Wᵀ in the same run. docs/scale.md uses the fit.

    python benchmarks/cost_model.py
"""

from __future__ import annotations

import argparse

import _record
import numpy as np
from growth import planted_head
from numpy.typing import NDArray
from real_heads import product_seconds
from scipy.optimize import nnls

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
    """Non-negative least squares of relative errors, each pair of terms to its own phase."""
    classes, features, hard = (
        np.array([row[name] for row in rows]) for name in ("classes", "features", "hard")
    )
    search, solve, seconds, product = (
        np.array([row[f"{name}seconds"] for row in rows]) for name in ("search_", "solve_", "", "product_")
    )
    a0, a1 = relative_fit(np.column_stack([classes**2, classes**2 * features]), search)
    b1, b3 = relative_fit(np.column_stack([hard * features, hard * features**3.0]), solve)
    predicted = classes**2 * (a0 + a1 * features) + hard * (b1 * features + b3 * features**3.0)
    off = np.exp(np.abs(np.log(predicted / seconds)))
    return {
        "a0": a0,
        "a1": a1,
        "b1": b1,
        "b3": b3,
        "median_factor_off": round(float(np.median(off)), 2),
        "largest_factor_off": round(float(off.max()), 2),
        "search_over_product": round(float(np.median(search / product)), 2),
    }


def relative_fit(terms: NDArray[np.float64], measured: NDArray[np.float64]) -> tuple[float, float]:
    first, second = nnls(terms / measured[:, None], np.ones(len(measured)))[0]
    return float(first), float(second)


if __name__ == "__main__":
    main()
