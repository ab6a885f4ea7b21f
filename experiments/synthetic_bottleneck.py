"""Distributions without structure through a narrow head: which output layers come near them, and how near the
linear softmax provably can.

Each context has a distribution of its own, drawn from a Dirichlet distribution (with the concentration α =
0.01 a few classes have it all, with 1 it is flat), and a vector of its own that is learned jointly with the
head by cross-entropy. What is left of KL(P* ‖ Q) is the bottleneck alone. For the weights that the linear
head learned, Theorem 2 encloses the least KL that any context vectors could have; the paper did not compute
it.

Examples:
  python -m experiments.synthetic_bottleneck
  python -m experiments.synthetic_bottleneck --smoke
  python -m experiments.synthetic_bottleneck --long       (until it converges: a day on two cores)
  python -m experiments.synthetic_bottleneck --long --parts M100-alpha1       (an hour)
  python -m experiments.synthetic_bottleneck --paper      (N = 100,000 contexts: weeks on two cores)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.harness.cells import Cell, Experiment, Long, Scale, Settings
from experiments.harness.command import main
from experiments.synthetic.rounds import RATES, UNTIL, until_converged
from experiments.synthetic.tables import (
    ALPHAS,
    EQUATION_14,
    HEADS,
    SIZE,
    best_rate,
    figures,
    search_table,
    table,
)

if TYPE_CHECKING:
    from experiments.synthetic.learning import Judged, Learned


@dataclass(frozen=True)
class Column:
    """Sizes tried together: every head for each α, number of features and seed."""

    classes: int
    contexts: int
    features: tuple[int, ...]
    visits: int
    seeds: int
    alphas: tuple[float, ...] = ALPHAS
    heads: tuple[str, ...] = tuple(HEADS)
    until: float | None = None  # visits are doubled until that takes less than this share off the KL


# The last three of the committed sizes see each context twice as often: what the others would have gained.
SIZES: dict[Scale, tuple[Column, ...]] = {
    Scale.SMOKE: (
        Column(classes=20, contexts=20, features=(3,), visits=2, seeds=2, alphas=(0.1,)),
        Column(classes=20, contexts=20, features=(3,), visits=4, seeds=1, alphas=(0.1,), heads=("linear",)),
    ),
    Scale.COMMITTED: (
        Column(classes=100, contexts=10_000, features=(10,), visits=24, seeds=3),
        Column(classes=100, contexts=10_000, features=(30,), visits=24, seeds=3, alphas=(0.1,)),
        Column(classes=1000, contexts=10_000, features=(30,), visits=24, seeds=3),
        Column(classes=1000, contexts=10_000, features=(10, 100), visits=24, seeds=3, alphas=(0.1,)),
        Column(classes=10_000, contexts=1000, features=(10, 30, 100), visits=24, seeds=1, alphas=(0.1,)),
        Column(classes=100, contexts=10_000, features=(10,), visits=48, seeds=1, alphas=(0.1,)),
        Column(classes=1000, contexts=10_000, features=(30,), visits=48, seeds=1, alphas=(0.1,)),
        Column(classes=10_000, contexts=1000, features=(30,), visits=48, seeds=1, alphas=(0.1,)),
    ),
    Scale.PAPER: (
        Column(classes=100, contexts=100_000, features=(10, 30, 50), visits=100, seeds=3),
        Column(classes=1000, contexts=100_000, features=(10, 30, 100, 300), visits=100, seeds=3),
        Column(classes=10_000, contexts=100_000, features=(10, 30, 100, 300), visits=100, seeds=3),
    ),
    # N as in the paper. Averages are over so many contexts that one seed will do. How much seeds differ, one
    # problem shows.
    Scale.LONG: tuple(
        Column(classes, 100_000, features, visits=50, seeds=seeds, alphas=alphas, until=UNTIL)
        for classes, features, alphas, seeds in (
            (100, (10, 30, 50), (0.01, 1.0), 1),
            (100, (10, 50), (0.1,), 1),
            (100, (30,), (0.1,), 3),
            (1000, (30,), (0.1,), 1),
        )
    ),
}  # fmt: skip
# Time of a logit in each head, against one of the linear head.
_COSTS = {"linear": 1, "sigsoftmax": 1.2, "lms": 3, "lms-plif": 2, "mos": 4, EQUATION_14: 3}


def cells(scale: Scale) -> list[dict[str, Any]]:
    """Every head at every size."""
    return [
        {
            "alpha": alpha, "classes": column.classes, "contexts": column.contexts, "features": features,
            "visits": column.visits, "head": head, "seed": seed,
            **({} if column.until is None else {"until": column.until, "part": _part(column.classes, alpha)}),
        }
        for column in SIZES[scale]
        for features in column.features
        for alpha in column.alphas
        for head in column.heads
        for seed in range(column.seeds)
    ]  # fmt: skip


def _part(classes: int, alpha: float) -> str:
    """What `--parts` calls the cells of a long run with these sizes."""
    return f"M{classes}-alpha{alpha:g}"


def search() -> list[Settings]:
    """Every head with every multiple of the rates, on each problem of the long runs."""
    return [
        {**{name: value for name, value in cell.items() if name != "until"}, "rate": rate, "is_search": True}
        for cell in cells(Scale.LONG)
        if cell["seed"] == 0
        for rate in RATES
    ]


def long_cells(found: Sequence[Cell]) -> list[Settings]:
    """The cells of the long runs whose rates were all tried, with the best of them."""
    tried: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in found:
        tried.setdefault(_searched(cell.settings), []).append(cell)
    return [
        {**cell, "rate": best_rate(tried[_searched(cell)])}
        for cell in cells(Scale.LONG)
        if len(tried.get(_searched(cell), ())) == len(RATES)
    ]


def _searched(settings: Settings) -> tuple[Any, ...]:
    return tuple(settings[name] for name in (*SIZE, "head"))


def measure(settings: Settings, _text: Path | None) -> dict[str, Any]:
    """Learn one head and judge it; for the linear one also what is provably least. A search finds the KL."""
    from experiments.synthetic.learning import Problem, judge, learn, prove

    problem = Problem(settings["alpha"], settings["classes"], settings["contexts"], seed=settings["seed"])
    head, features, visits = settings["head"], settings["features"], settings["visits"]

    def attempt(visits: int) -> tuple[Learned, Judged]:
        learned = learn(problem, head, features=features, visits=visits, rate=settings.get("rate", 1.0))
        return learned, judge(problem, learned)

    if settings.get("is_search"):
        _, judged = attempt(visits)
        return {"divergence": judged.divergence if math.isfinite(judged.divergence) else None}
    if "until" in settings:
        learned, judged, by_visits = until_converged(attempt, visits, settings["until"])
        found: dict[str, Any] = {**asdict(judged), "by_visits": by_visits}
    else:
        learned, judged = attempt(visits)
        found = asdict(judged)
    found["parameters"] = sum(each.numel() for each in learned.head.parameters())
    if head == "linear":
        found["proven"] = asdict(prove(problem, learned, features=features))
    return found


def weight(settings: Settings) -> float:
    """Logits, times what one costs."""
    logits = settings["contexts"] * settings["classes"] * settings["visits"]
    return float(logits * (1 + settings["features"] / 100) * _COSTS[settings["head"]])


EXPERIMENT = Experiment(
    name="synthetic_bottleneck",
    source="Ganea et al. 2019, section 5.1, Figures 2, 3 and 5-8",
    expected="in most settings LMS is ahead of the linear softmax and of MoS, in mean KL and in modes "
    "matched, most so with few features and many classes (in figures, without numbers).",
    cells=cells,
    measure=measure,
    table=table,
    figures=figures,
    weight=weight,
    long=Long(search, long_cells, len(cells(Scale.LONG)), search_table),
)

if __name__ == "__main__":
    main(EXPERIMENT, __doc__)
