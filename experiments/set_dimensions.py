"""How many features it takes until sets of k items can be the top k, for random rows and for the best ones.

Weller et al. 2025 optimise free vectors and fit the largest number of items n(d) at which all pairs can be
the top 2: n = −10.5322 + 4.0309 d + 0.0520 d² + 0.0037 d³. Against that stands the cyclic polytope: on the
trigonometric (or moment) curve 2k features make every set of k feasible, for any n. Random rows are
neither.

    python -m experiments.set_dimensions --smoke
    python -m experiments.set_dimensions
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import argmaxable as am
from argmaxable.theory.sign_patterns import trigonometric_rows
from experiments.harness.cells import Cell, Experiment, Scale, Settings
from experiments.harness.command import main
from experiments.harness.markdown import markdown_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RANDOM, CURVE = "normal", "curve"
FEATURES = (4, 8, 12, 16, 24, 32, 48, 64)
SIZES = (2, 5, 10)


def cells(scale: Scale) -> list[Settings]:
    if scale is Scale.SMOKE:
        return [_settings(RANDOM, 4, 2, 40, 5), _settings(CURVE, 4, 2, 40, 5)]
    random = [_settings(RANDOM, features, size, 1000, 100) for features in FEATURES for size in SIZES]
    # Beyond, neighbours of 1,000 on the curve are closer than float64 can tell for sets that lie together.
    return random + [_settings(CURVE, 2 * size, size, 1000, 100) for size in (2, 5)]


def _settings(rows: str, features: int, size: int, items: int, asked: int) -> Settings:
    return {"rows": rows, "features": features, "size": size, "items": items, "asked": asked, "seed": 0}


def measure(settings: Settings, text: Path | None) -> Mapping[str, Any]:
    """Random sets as the top k, over all query vectors."""
    generator = np.random.default_rng(settings["seed"])
    rows = _rows(settings, generator)
    asked = [
        np.asarray(generator.choice(len(rows), size=settings["size"], replace=False)).tolist()
        for _ in range(settings["asked"])
    ]
    found = am.sets(am.Head(rows), am.Everywhere(), asked, kind="top", engine=am.Engine(workers=1))
    return {
        "asked": len(found.claims),
        "infeasible": len(found.having(am.Feasibility.INFEASIBLE)),
        "undecided": len(found.having(am.Feasibility.UNDECIDED)),
    }


def _rows(settings: Settings, generator: np.random.Generator) -> np.ndarray[Any, np.dtype[np.float64]]:
    if settings["rows"] == RANDOM:
        return generator.standard_normal((settings["items"], settings["features"]))
    # The constant column makes no difference to a ranking.
    return trigonometric_rows(settings["items"], settings["features"] // 2)[:, 1:]


def items_of_weller(features: float) -> float:
    """The number of items up to which Weller et al. found all pairs feasible, by their fit."""
    return -10.5322 + 4.0309 * features + 0.0520 * features**2 + 0.0037 * features**3


# ---------------------------------------------------------------------- showing


def table(measured: Sequence[Cell]) -> str:
    """A row for each number of features."""
    sizes = sorted({cell.settings["size"] for cell in measured})
    columns = [
        "rows",
        "features",
        *(f"infeasible sets of {size}" for size in sizes),
        "undecided",
        "n(d) of Weller's fit",
    ]
    rows = []
    for kind in (RANDOM, CURVE):
        for features in sorted(
            {cell.settings["features"] for cell in measured if cell.settings["rows"] == kind}
        ):
            some = {
                cell.settings["size"]: cell.found
                for cell in measured
                if (cell.settings["rows"], cell.settings["features"]) == (kind, features)
            }
            shares = [
                f"{some[size]['infeasible']} of {some[size]['asked']}" if size in some else ""
                for size in sizes
            ]
            open_ = sum(found["undecided"] for found in some.values())
            rows.append([kind, features, *shares, open_, f"{max(0.0, items_of_weller(features)):,.0f}"])
    return markdown_table(columns, rows)


def figures(measured: Sequence[Cell]) -> dict[str, Figure]:
    """The share of infeasible sets against the features; dots where 2k features suffice on the curve."""
    from argmaxable.report.figures.style import PAGE, drawing

    with drawing(PAGE, 2.6, "share of sets that can't be the top k, by the number of features") as figure:
        axes = figure.subplots()
        for size in sorted({cell.settings["size"] for cell in measured}):
            some = [each for each in measured if each.settings["size"] == size]
            random = sorted(
                (e for e in some if e.settings["rows"] == RANDOM), key=lambda e: e.settings["features"]
            )
            (line,) = axes.plot(
                [each.settings["features"] for each in random], [_share(each) for each in random], "o-",
                markersize=3, label=f"random rows, k = {size}",
            )  # fmt: skip
            curve = [each for each in some if each.settings["rows"] == CURVE]
            dots = [each.settings["features"] for each in curve]
            axes.plot(dots, [_share(each) for each in curve], "*", color=line.get_color(), markersize=9)
        items = measured[0].settings["items"]
        axes.set(xlabel=f"features (★: {items:,} rows on the curve, 2k features)", ylabel="infeasible share")
        axes.set_ylim(-0.03, 1.03)
        axes.grid(axis="y")
        axes.legend(fontsize=7, frameon=False)
    return {"set_dimensions": figure}


def _share(cell: Cell) -> float:
    return float(cell.found["infeasible"] / cell.found["asked"])


EXPERIMENT = Experiment(
    name="set_dimensions",
    source="Weller et al. 2025 (LIMIT), and the cyclic polytope",
    expected="with freely optimised vectors all pairs of n items can be the top 2 up to n(d) as "
    "fitted; by theory 2k "
    "features suffice for every set of k of any number of items.",
    cells=cells,
    measure=measure,
    table=table,
    figures=figures,
    weight=lambda settings: float(settings["features"] ** 2),
)

if __name__ == "__main__":
    main(EXPERIMENT, __doc__)
