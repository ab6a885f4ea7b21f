"""Stolen probability: small heads trained on one text, and how many of their tokens can never be predicted.

Demeter et al. 2020 found that language models with small heads keep words inside the hull of the others'
weights, and that the effect fades as d grows. Here the same text trains heads with d = 8 to 64, several seeds
each, and every token gets a proven verdict. Two questions: does its row lie in the hull (theirs: weights
alone), and is there no vector of features, out of all that the LSTM below can produce, for which the token
is predicted (with the bias)? Random heads of that size, without bias, stand beside the first: what uniform
ones lose is counted, what normal ones, which lose more, are expected to lose has a formula.

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
from argmaxable.core.domain import Domain
from argmaxable.models.random_heads import Distribution, random_head
from argmaxable.questions.argmax import DEFAULT_DOMAIN
from argmaxable.report.figures.style import FAINT, INK, LINE_COLOURS, PAGE, drawing, grouped, paint
from experiments.harness.cells import Cell, Experiment, Scale, Settings
from experiments.harness.command import main
from experiments.harness.corpus import corpus
from experiments.harness.markdown import markdown_table
from experiments.heads.gaussian import expected_unargmaxable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEATURES = (8, 12, 16, 24, 32, 48, 64)
SEEDS = 3
# Each question about the trained heads with its name in tables and figures.
QUESTIONS = {"weights": "weights alone", "reachable": "bias, features in [−1, 1]"}
UNIFORM, NORMAL = "uniform random head", "normal random head, expected"
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
    """Train one head, ask both questions, and see what random heads of its size lose."""
    from experiments.models.small_lstm import REACHABLE, head_of, small_model, without_bias

    words = corpus(text, vocabulary=settings["vocabulary"])
    features, seed = settings["features"], settings["seed"]
    trained = small_model(words, features=features, epochs=settings["epochs"], seed=seed)
    head = head_of(trained, words)
    uniform = random_head(head.classes, features, seed=seed, distribution=Distribution.UNIFORM)
    return {
        "test": round(trained.test, 2),
        "uniform": count(am.verify(uniform, engine=am.Engine(workers=1))),
        "normal_expected": expected_unargmaxable(head.classes, features, has_bias=False),
        "weights": ask(without_bias(head), DEFAULT_DOMAIN, words.counts),
        "reachable": ask(head, REACHABLE, words.counts),
    }


def count(result: am.Result) -> dict[str, int]:
    return {"unargmaxable": len(result.unargmaxable), "undecided": len(result.undecided)}


def ask(head: am.Head, domain: Domain, counts: NDArray[np.int64]) -> dict[str, Any]:
    """How many classes are unargmaxable, which share of each tenth of the vocabulary and of the text that is;
    the classes are ordered by count."""
    result = am.verify(head, domain, engine=am.Engine(workers=1))
    unargmaxable = np.zeros(head.classes, bool)
    unargmaxable[[verdict.class_id for verdict in result.unargmaxable]] = True
    return {
        **count(result),
        "tenths": [round(float(part.mean()), 4) for part in np.array_split(unargmaxable, TENTHS)],
        "share_of_text": round(float(counts[unargmaxable].sum() / counts.sum()), 4),
    }


# ---------------------------------------------------------------------- showing


def table(found: Sequence[Cell]) -> str:
    """A row for each d."""
    classes = found[0].settings["vocabulary"]
    names = [
        "d",
        "test perplexity",
        *(f"unargmaxable of {classes:,}: {name}" for name in (UNIFORM, NORMAL, *QUESTIONS.values())),
        *(f"their share of the text: {name}" for name in QUESTIONS.values()),
    ]
    rows = [
        _row(features, [cell for cell in found if _features(cell) == features]) for features in _dims(found)
    ]
    return markdown_table(names, rows, text_columns=0)


def _row(features: int, seeds: Sequence[Cell]) -> list[str]:
    expected = seeds[0].found["normal_expected"]
    return [
        str(features),
        _spread([cell.found["test"] for cell in seeds], ".0f"),
        _unargmaxable(seeds, "uniform"),
        f"{expected:,.0f}" if expected >= 1 else f"{expected:.1g}" if expected >= 0.001 else "< 0.001",
        *(_unargmaxable(seeds, name) for name in QUESTIONS),
        *(
            _spread([100 * cell.found[name]["share_of_text"] for cell in seeds], ".1f") + " %"
            for name in QUESTIONS
        ),
    ]


def _unargmaxable(seeds: Sequence[Cell], name: str) -> str:
    is_any_undecided = any(cell.found[name]["undecided"] for cell in seeds)
    unargmaxable = _spread([cell.found[name]["unargmaxable"] for cell in seeds], ",.0f")
    return unargmaxable + (" + undecided" if is_any_undecided else "")


def _spread(values: Sequence[float], form: str) -> str:
    """The mean, and the least and the largest of the seeds where they differ."""
    mean, least, most = (format(value, form) for value in (np.mean(values), min(values), max(values)))
    return mean if least == most else f"{mean} ({least}–{most})"


def _dims(found: Sequence[Cell]) -> list[int]:
    return sorted({_features(cell) for cell in found})


def _features(cell: Cell) -> int:
    return int(cell.settings["features"])


def figures(found: Sequence[Cell]) -> dict[str, Figure]:
    """The number of unargmaxable tokens against d, and who they are."""
    with drawing(PAGE, 2.8) as figure:
        left, *others = figure.subplots(1, 3, width_ratios=(1.3, 1, 1))
        _draw_numbers(left, found)
        for axes, name in zip(others, QUESTIONS, strict=True):
            _draw_tenths(axes, found, name)
        others[0].set_ylabel("unargmaxable (%)")
        others[-1].legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return {"stolen_probability": figure}


def _draw_numbers(axes: Any, found: Sequence[Cell]) -> None:
    dims = _dims(found)
    for name, label, colour in (
        ("reachable", QUESTIONS["reachable"], LINE_COLOURS[1]),
        ("weights", QUESTIONS["weights"], LINE_COLOURS[0]),
        ("uniform", UNIFORM, FAINT),
    ):
        every = [(_features(cell), cell.found[name]["unargmaxable"]) for cell in found]
        means = [np.mean([number for features, number in every if features == each]) for each in dims]
        axes.plot(dims, means, color=colour, label=label)
        axes.scatter(*zip(*every, strict=True), s=8, color=colour, linewidths=0)
    expected = {_features(cell): cell.found["normal_expected"] for cell in found}
    axes.plot(dims, [expected[features] for features in dims], ":", color=INK, label=NORMAL)
    axes.set(xlabel="features d", ylabel="unargmaxable tokens", xscale="log")
    axes.set_xticks(dims, labels=map(str, dims))
    axes.set_xticks([], minor=True)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(grouped)
    axes.legend(loc="lower left", bbox_to_anchor=(-0.1, 1))


def _draw_tenths(axes: Any, found: Sequence[Cell], name: str) -> None:
    dims = _dims(found)
    # One colour, darker with d; those of the questions mean something else.
    darkness = np.linspace(0, 1, len(dims))
    for features, dark in zip(dims, darkness, strict=True):
        shares = [cell.found[name]["tenths"] for cell in found if _features(cell) == features]
        axes.plot(
            range(1, TENTHS + 1), 100 * np.mean(shares, axis=0), label=f"d = {features}",
            color=paint(LINE_COLOURS[2], pale=0.65 * (1 - dark), light=1 - 0.75 * dark),
        )  # fmt: skip
    axes.set(
        title=QUESTIONS[name], xlabel="tenth of the vocabulary,\nfrequent → rare",
        ylim=(0, 103), xticks=range(1, TENTHS + 1),
    )  # fmt: skip


EXPERIMENT = Experiment(
    name="stolen_probability",
    source="Demeter et al. 2020, as reported by Grivas et al. 2022, section 2.2",
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
