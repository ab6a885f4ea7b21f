"""Random heads: 10,000 classes, bias included, and fewer and fewer of them lost as features are added.

The heads are the paper's own: drawn as its code draws them, with NumPy's legacy generator and seed 13;
further seeds where a head is cheap. Every class gets a proven verdict over the box of ±100. For normal
weights the expected number of unargmaxable classes has a formula, which stands beside what was counted.

    python -m experiments.random_heads --smoke
    python -m experiments.random_heads
    python -m experiments.random_heads --paper      ten seeds of every head
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import erfcx, gammaln, log_ndtr, logsumexp

import argmaxable as am
from argmaxable.random_heads import Distribution
from experiments._experiment import Cell, Experiment, Scale, Settings, main

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER_SEED = 13
PATIENCE = 2500
FEATURES = (2, 4, 6, 8, 10, 15, 20, 30, 40, 50)
# Below this a head takes the better part of a minute, nearly all of it proofs.
CHEAP_FEATURES = 20
# Terms of the sum that the expected number is: later ones are below any float where they matter.
_TERMS = 250


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
    result = am.verify(head, workers=1)
    steps = reflections_needed(head, [verdict.class_id for verdict in result.argmaxable])
    found = {
        "unargmaxable": len(result.unargmaxable),
        "undecided": len(result.undecided),
        "solves": result.cost.solves,
        "mean_steps": float(steps.mean()),
        "median_steps": float(np.median(steps)),
        "not_found": int((steps > PATIENCE).sum()),
    }
    if distribution is Distribution.NORMAL:
        found["expected"] = expected_unargmaxable(head.classes, head.features)
    return found


def head_of_the_paper(classes: int, features: int, *, seed: int, distribution: Distribution) -> am.Head:
    """A random head with bias (float64), drawn as the paper's code draws it.

    argmaxable.random_heads draws from NumPy's new generators, which give other numbers.
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
    result = am.verify(head, only=classes, method=am.Algorithm.REFLECTION, patience=PATIENCE, workers=1)
    is_found = np.array([verdict.status is am.Status.ARGMAXABLE for verdict in result.verdicts])
    return np.where(is_found, [verdict.steps for verdict in result.verdicts], PATIENCE + 1)


# ---------------------------------------------------------------------- what to expect


def expected_unargmaxable(classes: int, features: int) -> float:
    """The expected number of unargmaxable classes of a normal head with a normal bias, over all of space.

    The rows (w, b) are the vertices of a regular simplex seen from a random side: their hull is a Gaussian
    polytope, and n classes lose Σ_{m ≥ d+2} m·C(n, m)·β_m·γ_m of theirs (after Affentranger & Schneider 1992,
    Baryshnikov & Vitale 1994), where the regular simplex of m vertices has the angle β_m at each of them and
    the outer angle γ_m as a face of the one with n. A head without bias, their polytope in d dimensions,
    loses twice every second term of this. A head with bias, the upper hull in d + 1 dimensions, has half the
    vertices of the polytope in d + 1 and half of those in d: that makes it all terms.
    """
    return float(sum(_term(classes, m) for m in range(features + 2, min(classes, features + _TERMS) + 1)))


@cache
def _term(n: int, m: int) -> float:
    faces = gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1)
    return float(np.exp(np.log(m) + faces + log_inner_angle(m) + _log_outer_angle(m, n)))


def log_inner_angle(m: int) -> float:
    """Log of the solid angle at a vertex of the regular simplex with m vertices, as a share of the sphere.

    √(m/2π) ∫ exp(m y²/2) Φ(y)^(m−1) dy along a vertical line (Kabluchko & Zaporozhets 2020 have it on the
    imaginary axis, where it cancels to nothing); through the saddle at y ≈ −√(m − 1) hardly anything cancels.
    """
    t = np.linspace(-12, 12, 4801)
    y = -np.sqrt(max(m - 1, 1)) + 1j * t
    # exp(y²/2) Φ(y) = erfcx(−y/√2)/2 neither overflows nor underflows.
    logs = y * y / 2 + (m - 1) * np.log(erfcx(-y / np.sqrt(2)) / 2)
    top = logs.real.max()
    total = np.exp(logs - top).real.sum() * (t[1] - t[0]) * np.sqrt(m / (2 * np.pi))
    return float(top + np.log(total))


def _log_outer_angle(m: int, n: int) -> float:
    """log E Φ(Z/√m)^(n−m): the outer angle at a face of m vertices of the regular simplex with n."""
    u = np.linspace(-12, 12, 4801)
    total = logsumexp(-m * u * u / 2 + (n - m) * log_ndtr(u))
    return float(total + np.log((u[1] - u[0]) * np.sqrt(m / (2 * np.pi))))


# ---------------------------------------------------------------------- showing


def table(measured: Sequence[Cell]) -> str:
    """A row for each number of features."""
    lines = [
        "| features | paper, uniform | ours, uniform | solves | steps | not found "
        "| ours, normal | expected, normal | solves | steps | not found |",
        "|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for features in sorted({cell.settings["features"] for cell in measured}):
        entries = [str(features), "none expected" if features >= 30 else "some"]
        for kind in (Distribution.UNIFORM, Distribution.NORMAL):
            some = _of(measured, kind, features)
            entries.append(_each(some, "unargmaxable") + (" + undecided" if _any_undecided(some) else ""))
            if kind is Distribution.NORMAL:
                entries.append(f"{some[0].found['expected']:,.2g}" if features >= 30 else _rounded(some))
            means, medians = (_mean(some, name) for name in ("mean_steps", "median_steps"))
            entries += [_each(some, "solves"), f"{means:,.2f} ({medians:g})", _each(some, "not_found")]
        lines.append(f"| {' | '.join(entries)} |")
    return "\n".join(lines)


def _of(measured: Sequence[Cell], kind: Distribution, features: int) -> list[Cell]:
    return [
        cell
        for cell in measured
        if cell.settings["distribution"] == kind and cell.settings["features"] == features
    ]


def _each(some: Sequence[Cell], name: str) -> str:
    return ", ".join(f"{cell.found[name]:,}" for cell in some)


def _mean(some: Sequence[Cell], name: str) -> float:
    return float(np.mean([cell.found[name] for cell in some]))


def _rounded(some: Sequence[Cell]) -> str:
    return f"{some[0].found['expected']:,.0f}"


def _any_undecided(some: Sequence[Cell]) -> bool:
    return any(cell.found["undecided"] for cell in some)


def figures(measured: Sequence[Cell]) -> dict[str, Figure]:
    """The share lost and the steps needed against the features, for each distribution."""
    from argmaxable.figures.random_heads import Measured, random_heads

    drawn = {}
    for kind in Distribution:
        heads = [
            Measured(
                classes=cell.settings["classes"], features=cell.settings["features"],
                seed=cell.settings["seed"], distribution=kind,
                share=cell.found["unargmaxable"] / cell.settings["classes"], steps=cell.found["mean_steps"],
            )
            for cell in measured
            if cell.settings["distribution"] == kind
        ]  # fmt: skip
        figure = drawn[f"random_heads_{kind}"] = random_heads(heads)
        if kind is Distribution.NORMAL:
            _add_expected(figure, [cell for cell in measured if cell.settings["distribution"] == kind])
    return drawn


def _add_expected(figure: Figure, measured: Sequence[Cell]) -> None:
    from argmaxable.figures.style import INK

    some = sorted(measured, key=lambda cell: float(cell.settings["features"]))
    shares = [100 * cell.found["expected"] / cell.settings["classes"] for cell in some]
    axes = figure.axes[0]
    axes.plot([cell.settings["features"] for cell in some], shares, ":", color=INK, label="expected")
    axes.legend(fontsize=7, frameon=False)  # the figure's style is no longer in force


EXPERIMENT = Experiment(
    name="random_heads",
    source="Grivas, Bogoychev & Lopez 2022, Figure 10 and section 5.2",
    expected="with 10,000 classes drawn from U(−1, 1), no unargmaxable class is expected after 30 features, "
    "and reflection needs fewer steps the more features there are.",
    cells=cells,
    measure=measure,
    table=table,
    figures=figures,
    weight=lambda settings: 1.0 if settings["features"] >= CHEAP_FEATURES else 20.0,
)

if __name__ == "__main__":
    main(EXPERIMENT, __doc__)
