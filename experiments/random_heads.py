"""Random heads: 10,000 classes, bias included, and ever fewer of them unargmaxable as features are added.

The heads are the paper's own: drawn as its code draws them, with NumPy's legacy generator and seed 13;
further seeds where a head is cheap. Every class gets a proven verdict over the box of ±100. For normal
weights the expected number of unargmaxable classes has a formula, which stands beside what was counted.

    python -m experiments.random_heads --smoke
    python -m experiments.random_heads
    python -m experiments.random_heads --paper      ten seeds of every head
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import argmaxable as am
from argmaxable.models.random_heads import Distribution
from argmaxable.questions.argmax import verify
from argmaxable.report.figures.random_heads import Measured, random_heads
from argmaxable.report.figures.style import INK
from experiments.harness.cells import Cell, Experiment, Scale, Settings
from experiments.harness.command import main
from experiments.harness.markdown import markdown_table
from experiments.heads.gaussian import expected_unargmaxable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER_SEED = 13
PATIENCE = 2500
FEATURES = (2, 4, 6, 8, 10, 15, 20, 30, 40, 50)
# Below this a head takes the better part of a minute, nearly all of it proofs.
CHEAP_FEATURES = 20
# The paper's claim is about heads with more features than this.
PAPER_LIMIT = 30


def cells(scale: Scale) -> list[Settings]:
    if scale is Scale.SMOKE:
        return [_settings(kind, features, PAPER_SEED, 200) for kind in Distribution for features in (2, 8)]
    return [
        _settings(kind, features, PAPER_SEED + number, 10_000)
        for kind in (Distribution.UNIFORM, Distribution.NORMAL)
        for features in FEATURES
        for number in range(_seeds(scale, features))
    ]


def _settings(distribution: Distribution, features: int, seed: int, classes: int) -> Settings:
    return {"distribution": distribution.value, "features": features, "seed": seed, "classes": classes}


def _seeds(scale: Scale, features: int) -> int:
    if scale is Scale.PAPER:
        return 10
    return 3 if features >= CHEAP_FEATURES else 1


def measure(settings: Settings, text: Path | None) -> Mapping[str, Any]:
    """Verify the head, then see how many reflections find what is argmaxable.

    An unargmaxable class is not reflected: that no number of steps finds it is proven.
    """
    distribution = Distribution(settings["distribution"])
    head = head_of_the_paper(
        settings["classes"], settings["features"], seed=settings["seed"], distribution=distribution
    )
    result = am.verify(head, engine=am.Engine(workers=1))
    steps = reflections_needed(head, [verdict.class_id for verdict in result.argmaxable])
    # Never empty: the class with the largest ‖w‖²/2 + b wins at x = w.
    steps_found = steps[steps <= PATIENCE]
    found = {
        "unargmaxable": len(result.unargmaxable),
        "undecided": len(result.undecided),
        "solves": result.cost.solves,
        "mean_steps_found": float(steps_found.mean()),
        "median_steps_found": float(np.median(steps_found)),
        "not_found": len(steps) - len(steps_found),
    }
    if distribution is Distribution.NORMAL:
        found["expected"] = expected_unargmaxable(head.classes, head.features, has_bias=True)
    return found


def head_of_the_paper(classes: int, features: int, *, seed: int, distribution: Distribution) -> am.Head:
    """A random head with bias (float64), drawn as the paper's code draws it.

    argmaxable.models.random_heads draws from NumPy's new generators, which give other numbers.
    """
    generator = np.random.RandomState(seed)

    def draw(*shape: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        if distribution is Distribution.UNIFORM:
            return generator.uniform(-1, 1, shape)
        return generator.normal(0, 1, shape)

    weight = draw(classes, features)
    return am.Head(weight, draw(classes), name=f"random {distribution} head of the paper, seed {seed}")


def reflections_needed(head: am.Head, classes: Sequence[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Steps after which braid reflection from x = w_c wins inside the box, PATIENCE + 1 where it does not."""
    result = verify(
        head, only=classes, method=am.Algorithm.REFLECTION, patience=PATIENCE, engine=am.Engine(workers=1)
    )
    is_found = np.array([verdict.status is am.Status.ARGMAXABLE for verdict in result.verdicts])
    return np.where(is_found, [verdict.steps for verdict in result.verdicts], PATIENCE + 1)


# ---------------------------------------------------------------------- showing


def table(measured: Sequence[Cell]) -> str:
    """A row for each number of features."""
    effort = ["solves", "steps if found", "not found"]
    columns = [
        "features", "paper, uniform", "ours, uniform", *effort, "ours, normal", "expected, normal", *effort
    ]  # fmt: skip
    rows = []
    for features in sorted({cell.settings["features"] for cell in measured}):
        uniform, normal = (
            _of(measured, kind, features) for kind in (Distribution.UNIFORM, Distribution.NORMAL)
        )
        entries = [
            str(features), "none expected" if features > PAPER_LIMIT else "",
            _unargmaxable(uniform), *_effort(uniform),
            _unargmaxable(normal), _rounded(normal[0].found["expected"]), *_effort(normal),
        ]  # fmt: skip
        rows.append(entries)
    return markdown_table(columns, rows, text_columns=0)


def _of(measured: Sequence[Cell], kind: Distribution, features: int) -> list[Cell]:
    return [
        cell
        for cell in measured
        if cell.settings["distribution"] == kind and cell.settings["features"] == features
    ]


def _unargmaxable(some: Sequence[Cell]) -> str:
    is_any_undecided = any(cell.found["undecided"] for cell in some)
    return _each(some, "unargmaxable") + (" + undecided" if is_any_undecided else "")


def _effort(some: Sequence[Cell]) -> tuple[str, str, str]:
    mean, median = (
        np.mean([cell.found[name] for cell in some]) for name in ("mean_steps_found", "median_steps_found")
    )
    return _each(some, "solves"), f"{mean:,.2f} ({median:g})", _each(some, "not_found")


def _each(some: Sequence[Cell], name: str) -> str:
    return ", ".join(f"{cell.found[name]:,}" for cell in some)


def _rounded(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def figures(measured: Sequence[Cell]) -> dict[str, Figure]:
    """Unargmaxable classes, and the steps needed, against the features, for each distribution."""
    drawn = {
        f"random_heads_{kind}": random_heads(
            [_as_measured(cell) for cell in measured if cell.settings["distribution"] == kind]
        )
        for kind in Distribution
    }
    _add_expected(drawn[f"random_heads_{Distribution.NORMAL}"], measured)
    return drawn


def _as_measured(cell: Cell) -> Measured:
    return Measured(
        classes=cell.settings["classes"], features=cell.settings["features"], seed=cell.settings["seed"],
        distribution=Distribution(cell.settings["distribution"]), unargmaxable=cell.found["unargmaxable"],
        steps=cell.found["mean_steps_found"], not_found=cell.found["not_found"],
    )  # fmt: skip


def _add_expected(figure: Figure, measured: Sequence[Cell]) -> None:
    """The formula's curve, between the measured numbers of features too."""
    classes = measured[0].settings["classes"]
    measured_at = [cell.settings["features"] for cell in measured]
    dims = range(min(measured_at), max(measured_at) + 1)
    expected = [expected_unargmaxable(classes, features, has_bias=True) for features in dims]
    axes = figure.axes[0]
    axes.plot(dims, expected, ":", color=INK, label="expected")
    axes.legend(fontsize=7, frameon=False)  # the figure's style is no longer in force


EXPERIMENT = Experiment(
    name="random_heads",
    source="Grivas, Bogoychev & Lopez 2022, Figure 10 and section 5.2",
    expected="with 10,000 classes drawn from U(−1, 1), unargmaxable tokens are not expected to exist after "
    "d = 30, and any random parameters can be checked by reflection with fewer steps as d increases (in a "
    "picture, without counts).",
    cells=cells,
    measure=measure,
    table=table,
    figures=figures,
    weight=lambda settings: 1.0 if settings["features"] >= CHEAP_FEATURES else 20.0,
)

if __name__ == "__main__":
    main(EXPERIMENT, __doc__)
