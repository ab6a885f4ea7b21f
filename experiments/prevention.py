"""Prevention: rows of equal norm, or a bias of −‖w‖²/2, leave no class unargmaxable.

Random normal heads of 500 classes and 10 features, as in the paper's own check, each with proven verdicts for
all classes; the same heads as drawn, for comparison. The theorems speak of exact numbers. A model stores
rounded ones, so the heads are verified as stored in float64, float32 and float16 too, and with 2 features,
where neighbours are closest.

    python -m experiments.prevention --smoke
    python -m experiments.prevention
    python -m experiments.prevention --paper        1,000 seeds
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import argmaxable as am
from argmaxable.models.random_heads import random_head, with_equal_norms, with_voronoi_bias
from experiments.harness.cells import Cell, Experiment, Scale, Settings
from experiments.harness.command import main
from experiments.harness.markdown import markdown_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOTHING, EQUAL_NORMS = "none, no bias", "equal norms"
NOTHING_BIAS, VORONOI = "none, random bias", "bias −‖w‖²/2"
PREVENTIONS = (NOTHING, EQUAL_NORMS, NOTHING_BIAS, VORONOI)
FORMATS = ("float64", "float32", "float16")
PAPER_FEATURES = 10
# Heads as drawn and heads with 2 features take half a second each, the others a fiftieth.
SEEDS = {
    Scale.SMOKE: {"paper": 2, "drawn": 1, "narrow": 1},
    Scale.COMMITTED: {"paper": 100, "drawn": 15, "narrow": 25},
    Scale.PAPER: {"paper": 1000, "drawn": 1000, "narrow": 1000},
}


def cells(scale: Scale) -> list[Settings]:
    classes = 60 if scale is Scale.SMOKE else 500
    return [
        {"prevention": kind, "stored": stored, "features": features, "classes": classes,
         "seeds": _seeds(scale, kind, features)}
        for features in (PAPER_FEATURES, 2)
        for kind in PREVENTIONS
        for stored in (("float32",) if kind in (NOTHING, NOTHING_BIAS) else FORMATS)
    ]  # fmt: skip


def _seeds(scale: Scale, kind: str, features: int) -> int:
    if kind in (NOTHING, NOTHING_BIAS):
        return SEEDS[scale]["drawn"]
    return SEEDS[scale]["paper" if features == PAPER_FEATURES else "narrow"]


def measure(settings: Settings, text: Path | None) -> Mapping[str, Any]:
    """The number of unargmaxable classes of each head."""
    results = [
        am.verify(prevented(settings, seed), engine=am.Engine(workers=1)) for seed in range(settings["seeds"])
    ]
    return {
        "unargmaxable": [len(result.unargmaxable) for result in results],
        "undecided": sum(len(result.undecided) for result in results),
    }


def prevented(settings: Settings, seed: int) -> am.Head:
    """A random head with that prevention, rounded to the format that stores it."""
    kind, stored = settings["prevention"], settings["stored"]
    head = random_head(settings["classes"], settings["features"], seed=seed, bias=kind == NOTHING_BIAS)
    if kind in (NOTHING, NOTHING_BIAS):
        return head
    head = with_equal_norms(head) if kind == EQUAL_NORMS else with_voronoi_bias(head)
    bias = None if head.bias is None else head.biases().astype(stored)
    return am.Head(head.rows(slice(None)).astype(stored), bias, name=f"{head.name}, {stored}")


# ---------------------------------------------------------------------- showing


def table(measured: Sequence[Cell]) -> str:
    """A row for each kind of head."""
    columns = [
        "prevention", "stored as", "features", "heads", "paper: heads with unargmaxable classes", "ours",
        "unargmaxable classes per head, mean (maximum)",
    ]  # fmt: skip
    rows = []
    for cell in measured:
        unargmaxable = np.array(cell.found["unargmaxable"])
        entries = [
            cell.settings["prevention"], cell.settings["stored"], str(cell.settings["features"]),
            str(len(unargmaxable)), _paper(cell.settings), str(int((unargmaxable > 0).sum())),
            f"{unargmaxable.mean():.4g} ({unargmaxable.max()})",
        ]  # fmt: skip
        if cell.found["undecided"]:
            entries[-1] += f" + {cell.found['undecided']} undecided in all"
        rows.append(entries)
    return markdown_table(columns, rows, text_columns=2)


def _paper(settings: Settings) -> str:
    """What the paper's check says: of heads of 10 features, without a word on how they are stored."""
    if settings["features"] != PAPER_FEATURES:
        return ""
    return "some" if settings["prevention"] in (NOTHING, NOTHING_BIAS) else "none"


def figures(measured: Sequence[Cell]) -> dict[str, Figure]:
    """A dot for each head: how many of its classes are unargmaxable."""
    from argmaxable.report.figures.style import PAGE, STATUS_COLOURS, drawing, grouped

    colour = STATUS_COLOURS[am.Status.UNARGMAXABLE]
    features = sorted({cell.settings["features"] for cell in measured}, reverse=True)
    with drawing(PAGE, 2.4, "unargmaxable classes with and without prevention") as figure:
        panels = figure.subplots(1, len(features), sharey=True, squeeze=False)[0]
        for axes, number in zip(panels, features, strict=True):
            some = [cell for cell in measured if cell.settings["features"] == number]
            for row, cell in enumerate(some):
                unargmaxable = np.array(cell.found["unargmaxable"])
                spread = np.linspace(-0.3, 0.3, len(unargmaxable)) if len(unargmaxable) > 1 else np.zeros(1)
                axes.scatter(unargmaxable, row + spread, s=5, alpha=0.6, linewidths=0, color=colour)
            most = max(cell.settings["classes"] for cell in some)
            axes.set_xscale("symlog", linthresh=1)
            axes.set(xlim=(-0.3, 1.5 * most), xlabel=f"unargmaxable of {most} classes, {number} features")
            axes.set_xticks([tick for tick in (0, 1, 10, 100, 500) if tick <= most])
            axes.xaxis.set_major_formatter(grouped)
            axes.set_yticks(range(len(some)), labels=[_name(cell.settings) for cell in some])
            axes.grid(axis="x")
        panels[0].invert_yaxis()
    return {"prevention": figure}


def _name(settings: Settings) -> str:
    return f"{settings['prevention']}, {settings['stored']}"


EXPERIMENT = Experiment(
    name="prevention",
    source="Grivas, Bogoychev & Lopez 2022, the check `stollen_prevention` of its code",
    reporter="The README of that code says",
    expected="no class of a random head is unargmaxable once its rows have equal norms, or its bias is "
    "−‖w‖²/2; without either some are.",
    cells=cells,
    measure=measure,
    table=table,
    figures=figures,
    weight=lambda settings: settings["seeds"] * (1.0 if settings["features"] == PAPER_FEATURES else 10.0),
)

if __name__ == "__main__":
    main(EXPERIMENT, __doc__)
