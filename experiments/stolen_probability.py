"""Stolen probability: small heads trained on one text, and how many of their tokens can never be predicted.

Demeter et al. 2020 found that language models with small heads keep words inside the hull of the others'
weights, and that the effect fades as d grows. Here the same text trains heads with d = 8 to 64, several seeds
each, and every token gets a proven verdict. Three questions: does its row lie in the hull (theirs: weights
alone); the same for a random head of that size; and is there no vector of features, out of all that the
LSTM below can produce, for which the token is predicted (with the bias).

  python -m experiments.stolen_probability --smoke
  python -m experiments.stolen_probability --text data/wikitext-2
  python -m experiments.stolen_probability --paper     a vocabulary of 10,000 and d up to 200: hours
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import argmaxable as am
from argmaxable.domain import Domain
from argmaxable.figures.style import FAINT, LINE_COLOURS, PAGE, drawing, grouped
from argmaxable.random_heads import Distribution, random_head
from argmaxable.verify import DEFAULT_DOMAIN
from experiments._corpus import corpus
from experiments._experiment import Cell, Experiment, Scale, Settings, main

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEATURES = (8, 12, 16, 24, 32, 48, 64)
SEEDS = 3
# Each question with its name in tables.
QUESTIONS = {
    "random": "random head",
    "weights": "weights alone",
    "reachable": "bias, features in [−1, 1]",
}
TRAINED = ("weights", "reachable")
COLOURS = {"random": FAINT, "weights": LINE_COLOURS[0], "reachable": LINE_COLOURS[1]}
TENTHS = 10


def cells(scale: Scale) -> list[dict[str, Any]]:
    if scale is Scale.SMOKE:
        return [_cell(features, 0, vocabulary=80, epochs=1) for features in (4, 8)]
    is_paper = scale is Scale.PAPER
    vocabulary, epochs = (10_000, 20) if is_paper else (1_000, 2)
    return [
        _cell(features, seed, vocabulary=vocabulary, epochs=epochs)
        for features in (*FEATURES, *((100, 200) if is_paper else ()))
        for seed in range(SEEDS)
    ]


def _cell(features: int, seed: int, *, vocabulary: int, epochs: int) -> dict[str, Any]:
    return {"features": features, "seed": seed, "vocabulary": vocabulary, "epochs": epochs}


def weight(settings: Settings) -> float:
    return float(40 + settings["features"])


def measure(settings: Settings, text: Path | None) -> dict[str, Any]:
    """Train one head and ask the three questions."""
    from experiments._small_models import REACHABLE, head_of, small_model, without_bias

    words = corpus(text, vocabulary=settings["vocabulary"])
    features, seed = settings["features"], settings["seed"]
    trained = small_model(words, features=features, epochs=settings["epochs"], seed=seed)
    head = head_of(trained, words)
    random = random_head(head.classes, features, seed=seed, distribution=Distribution.UNIFORM)
    return {
        "validation": round(trained.validation, 2),
        "test": round(trained.test, 2),
        "random": ask(random, DEFAULT_DOMAIN, words.counts),
        "weights": ask(without_bias(head), DEFAULT_DOMAIN, words.counts),
        "reachable": ask(head, REACHABLE, words.counts),
    }


def ask(head: am.Head, domain: Domain, counts: NDArray[np.int64]) -> dict[str, Any]:
    """How many classes are unargmaxable, and how frequent these are; the classes are ordered by count."""
    result = am.verify(head, domain, workers=1)
    lost = np.zeros(head.classes, bool)
    lost[[verdict.class_id for verdict in result.unargmaxable]] = True
    return {
        "unargmaxable": int(lost.sum()),
        "undecided": len(result.undecided),
        "tenths": [round(float(part.mean()), 4) for part in np.array_split(lost, TENTHS)],
        "share_of_text": round(float(counts[lost].sum() / counts.sum()), 4),
        "median_count": float(np.median(counts[lost])) if lost.any() else None,
    }


# ---------------------------------------------------------------------- showing


def table(found: Sequence[Cell]) -> str:
    classes = found[0].settings["vocabulary"]
    head = " | ".join(
        [
            "d",
            "test perplexity",
            *(f"unargmaxable of {classes:,}: {name}" for name in QUESTIONS.values()),
            *(f"their share of the text: {QUESTIONS[name]}" for name in TRAINED),
        ]
    )
    rows = [
        _row(features, [cell for cell in found if _features(cell) == features]) for features in _dims(found)
    ]
    rule = " | ".join(["---:"] * len(head.split(" | ")))
    return "\n".join([f"| {head} |", f"| {rule} |", *rows])


def _row(features: int, seeds: Sequence[Cell]) -> str:
    values = [
        features,
        _spread([cell.found["test"] for cell in seeds], ".0f"),
        *(_spread([cell.found[name]["unargmaxable"] for cell in seeds], ",.0f") for name in QUESTIONS),
        *(
            _spread([100 * cell.found[name]["share_of_text"] for cell in seeds], ".1f") + " %"
            for name in TRAINED
        ),
    ]
    return f"| {' | '.join(map(str, values))} |"


def _spread(values: Sequence[float], form: str) -> str:
    """The mean, and the least and the largest of the seeds where they differ."""
    mean, least, most = (format(value, form) for value in (np.mean(values), min(values), max(values)))
    return mean if least == most else f"{mean} ({least}–{most})"


def _dims(found: Sequence[Cell]) -> list[int]:
    return sorted({_features(cell) for cell in found})


def _features(cell: Cell) -> int:
    return int(cell.settings["features"])


def figures(found: Sequence[Cell]) -> dict[str, Figure]:
    """The number of lost tokens against d, and who they are."""
    with drawing(PAGE, 2.6) as figure:
        left, right = figure.subplots(1, 2)
        _draw_numbers(left, found)
        _draw_tenths(right, found)
    return {"stolen_probability": figure}


def _draw_numbers(axes: Any, found: Sequence[Cell]) -> None:
    dims = _dims(found)
    for name, label in QUESTIONS.items():
        every = [(_features(cell), cell.found[name]["unargmaxable"]) for cell in found]
        means = [np.mean([number for features, number in every if features == each]) for each in dims]
        axes.plot(dims, means, color=COLOURS[name], label=label)
        axes.scatter(*zip(*every, strict=True), s=8, color=COLOURS[name], linewidths=0)
    axes.set(xlabel="features d", ylabel="unargmaxable tokens", xscale="log")
    axes.set_xticks(dims, labels=map(str, dims))
    axes.set_xticks([], minor=True)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(grouped)
    axes.legend(loc="lower left", bbox_to_anchor=(-0.1, 1), ncols=2)


def _draw_tenths(axes: Any, found: Sequence[Cell]) -> None:
    for number, features in enumerate(_dims(found)):
        shares = [cell.found["reachable"]["tenths"] for cell in found if _features(cell) == features]
        axes.plot(
            range(1, TENTHS + 1), 100 * np.mean(shares, axis=0), label=f"d = {features}",
            color=LINE_COLOURS[number % len(LINE_COLOURS)],
        )  # fmt: skip
    axes.set(
        xlabel="tenth of the vocabulary, frequent → rare", ylabel="unargmaxable (%), features in [−1, 1]",
        ylim=(0, 103), xticks=range(1, TENTHS + 1),
    )  # fmt: skip
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


EXPERIMENT = Experiment(
    name="stolen_probability",
    source="Demeter et al. 2020, as told by Grivas et al. 2022, section 2.2",
    expected="words inside the hull in AWD-LSTM language models with small heads; the effect begins to "
    "dissipate as d grows to 200. (No counts are known to us.)",
    cells=cells,
    measure=measure,
    table=table,
    figures=figures,
    weight=weight,
    needs_text=True,
)

if __name__ == "__main__":
    main(EXPERIMENT, __doc__)
