"""Seeds and sizes: how much models of one recipe differ in what is easy to verify.

Grivas et al. 2022 found that models of one ensemble, which differ in the seed alone, need the exact algorithm
for 8, 3 or 366 tokens, and that small students of a large teacher are easier to verify than the teacher. Here
each seed trains a teacher (d = 64), students on a text that the teacher speaks (d = 16 and 32), and models of
the students' sizes on the text itself, so that size and schooling can be told apart. Every head is settled
in the paper's two steps: reflections, then a solver for the tokens they leave.

  python -m experiments.seeds_and_sizes --smoke
  python -m experiments.seeds_and_sizes --text data/wikitext-2
  python -m experiments.seeds_and_sizes --paper    10,000 words, d = 128 and 256 taught by 512: hours
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from argmaxable.core.verdict import Status
from argmaxable.report.figures.style import LINE_COLOURS, PAGE, STATUS_COLOURS, drawing, grouped
from experiments.harness.cells import Cell, Experiment, Scale, Settings
from experiments.harness.command import main
from experiments.harness.corpus import Corpus, corpus
from experiments.harness.markdown import markdown_table
from experiments.heads.settling import SOLVED, UNARGMAXABLE, settle, tally

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from experiments.models.training import Trained

PATIENCE = 2500  # reflections, as in the paper
SEEDS = 3
TEACHER, STUDENT, PLAIN = "teacher", "student", "on the text"
# Section 4.2: three members of the ensemble zh-en.l2r, none with unargmaxable tokens.
PAPERS_ROW = ("paper: zh-en.l2r, 3 seeds", "500 or 512", "", "", "", "8, 3, 366", "0, 0, 0")


def cells(scale: Scale) -> list[dict[str, Any]]:
    if scale is Scale.SMOKE:
        return [_cell(0, vocabulary=80, epochs=1, teacher=12, students=[6])]
    if scale is Scale.PAPER:
        return [
            _cell(seed, vocabulary=10_000, epochs=20, teacher=512, students=[128, 256])
            for seed in range(SEEDS)
        ]
    return [_cell(seed, vocabulary=1_000, epochs=2, teacher=64, students=[16, 32]) for seed in range(SEEDS)]


def _cell(seed: int, **sizes: Any) -> dict[str, Any]:
    return {"seed": seed, "patience": PATIENCE, **sizes}


def measure(settings: Settings, text: Path | None) -> dict[str, Any]:
    """Everything that one seed trains; the order is that of the table."""
    from experiments.models.small_lstm import small_model, speak

    seed, epochs, patience = settings["seed"], settings["epochs"], settings["patience"]
    words = corpus(text, vocabulary=settings["vocabulary"])
    teacher = small_model(words, features=settings["teacher"], epochs=epochs, seed=seed)
    # Validation and test text stay the same, so that perplexities compare.
    spoken = replace(words, train=speak(teacher.model, words, length=len(words.train), seed=seed))
    models = [_described(TEACHER, teacher, words, patience)]
    for features in settings["students"]:
        for role, lesson in ((STUDENT, spoken), (PLAIN, words)):
            trained = small_model(lesson, features=features, epochs=epochs, seed=seed)
            models.append(_described(role, trained, words, patience))
    return {"models": models}


def _described(role: str, trained: Trained, words: Corpus, patience: int) -> dict[str, Any]:
    from experiments.models.small_lstm import head_of

    head = head_of(trained, words)
    settled = settle(head, patience=patience)
    return {
        "role": role,
        "features": head.features,
        "test": round(trained.test, 2),
        "outcomes": tally(settled.outcome),
        "mean_steps": settled.mean_steps(),
    }


# ---------------------------------------------------------------------- showing

Kind = tuple[str, int]
_MARKS = (
    ("found by the solver", "o", STATUS_COLOURS[Status.ARGMAXABLE], SOLVED),
    ("unargmaxable", "X", STATUS_COLOURS[Status.UNARGMAXABLE], UNARGMAXABLE),
)


def table(found: Sequence[Cell]) -> str:
    classes = sum(found[0].found["models"][0]["outcomes"])
    columns = [
        "model",
        "d",
        "test perplexity",
        f"found at the first try, of {classes:,}",
        "mean steps (reflections) of those found",
        "left to the solver",
        "unargmaxable of these",
    ]
    return markdown_table(
        columns, [PAPERS_ROW, *(_row(kind, seeds) for kind, seeds in _by_kind(found).items())]
    )


def _row(kind: Kind, seeds: Sequence[dict[str, Any]]) -> list[object]:
    role, features = kind
    return [
        f"{len(seeds)} seeds, {role}",
        features,
        _listed([f"{each['test']:.0f}" for each in seeds]),
        _listed([each["outcomes"][0] for each in seeds]),
        _listed(["–" if each["mean_steps"] is None else f"{each['mean_steps']:.1f}" for each in seeds]),
        _listed([_left(each) for each in seeds]),
        _listed([each["outcomes"][UNARGMAXABLE] for each in seeds]),
    ]


def _by_kind(found: Sequence[Cell]) -> dict[Kind, list[dict[str, Any]]]:
    """The models of all seeds, those of a kind together."""
    kinds: dict[Kind, list[dict[str, Any]]] = {}
    for cell in found:
        for model in cell.found["models"]:
            kinds.setdefault((model["role"], model["features"]), []).append(model)
    return kinds


def _left(model: dict[str, Any]) -> int:
    """Tokens that no number of reflections within patience settles."""
    return int(sum(model["outcomes"][SOLVED:]))


def _listed(values: Sequence[object]) -> str:
    return ", ".join(map(str, values))


def figures(found: Sequence[Cell]) -> dict[str, Figure]:
    """A mark for each seed: steps of the tokens found, and the counts of the solver's answers."""
    from matplotlib.ticker import LogLocator

    kinds = _by_kind(found)
    with drawing(PAGE, 0.8 + 0.5 * len(kinds)) as figure:
        steps, tokens = figure.subplots(1, 2, sharey=True)
        for place, seeds in enumerate(kinds.values()):
            places = _beside(place, len(seeds))
            means = [math.nan if each["mean_steps"] is None else each["mean_steps"] for each in seeds]
            steps.plot(means, places, "o", color=LINE_COLOURS[6], markersize=4)
            for (name, marker, colour, kind), shift in zip(_MARKS, (-0.18, 0.18), strict=True):
                counts = [each["outcomes"][kind] for each in seeds]
                label = name if place == 0 else None
                tokens.plot(
                    counts,
                    np.add(places, shift),
                    marker,
                    color=colour,
                    markersize=4,
                    label=label,
                    clip_on=False,
                )
        steps.set(xlabel="mean steps (reflections) of the tokens found", xscale="log")
        steps.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        # Linear up to the first few tokens, so that none, one and two are told apart.
        tokens.set_xscale("symlog", linthresh=2, linscale=0.6)
        tokens.set_xticks([0, 1, 2, 5, 10, 100, 1000])
        tokens.set(xlabel="tokens left to the solver", xlim=(0, 1000))
        for axes in (steps, tokens):
            axes.xaxis.set_major_formatter(grouped)
            axes.xaxis.set_minor_formatter("")
            axes.grid(axis="x")
        steps.set_yticks(range(len(kinds)), labels=[f"{role}, d = {size}" for role, size in kinds])
        steps.invert_yaxis()
        figure.legend(loc="outside upper right", ncols=2)
    return {"seeds_and_sizes": figure}


def _beside(place: int, seeds: int) -> list[float]:
    """Heights around a place, one for each seed, so that equal values don't hide each other."""
    return [place + 0.28 * (seed - (seeds - 1) / 2) / max(seeds - 1, 1) for seed in range(seeds)]


EXPERIMENT = Experiment(
    name="seeds_and_sizes",
    source="Grivas et al. 2022, sections 4.2 and 5.2, Figure 9",
    expected="seeds of one ensemble leave 8, 3 and 366 tokens to the exact algorithm; students with d = 256 "
    "and 512 are easier to verify than teachers with d = 1024.",
    cells=cells,
    measure=measure,
    table=table,
    figures=figures,
    needs_text=True,
)

if __name__ == "__main__":
    main(EXPERIMENT, __doc__)
