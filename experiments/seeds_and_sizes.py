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

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argmaxable.figures.style import LINE_COLOURS, PAGE, drawing
from experiments._corpus import Corpus, corpus
from experiments._experiment import Cell, Experiment, Scale, Settings, main
from experiments._settling import LOST, SOLVED, settle, tally

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from experiments._training import Trained

PATIENCE = 2500  # reflections, as in the paper
SEEDS = 3
TEACHER, STUDENT, PLAIN = "teacher", "student", "on the text"
COLOURS = {TEACHER: LINE_COLOURS[0], STUDENT: LINE_COLOURS[1], PLAIN: LINE_COLOURS[2]}
# Section 4.2: three members of the ensemble zh-en.l2r, none with unargmaxable tokens.
PAPERS_ROW = "| paper: zh-en.l2r, 3 seeds | 500 or 512 | | | | 8, 3, 366 | 0, 0, 0 |"


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
    from experiments._small_models import small_model, speak

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
    from experiments._small_models import head_of

    head = head_of(trained, words)
    settled = settle(head, patience=patience)
    return {
        "role": role,
        "features": head.features,
        "test": round(trained.test, 2),
        "outcomes": tally(settled.outcome),
        "mean_tries": settled.mean_tries,
    }


# ---------------------------------------------------------------------- showing

Kind = tuple[str, int]


def table(found: Sequence[Cell]) -> str:
    classes = sum(found[0].found["models"][0]["outcomes"])
    head = (
        f"model | d | test perplexity | found at the first try, of {classes:,} | mean tries of those found | "
        "left to the solver | unargmaxable"
    )
    rows = [_row(kind, seeds) for kind, seeds in _by_kind(found).items()]
    rule = " | ".join(["---", *["---:"] * head.count(" | ")])
    return "\n".join([f"| {head} |", f"| {rule} |", PAPERS_ROW, *rows])


def _row(kind: Kind, seeds: Sequence[dict[str, Any]]) -> str:
    role, features = kind
    values = [
        f"{len(seeds)} seeds, {role}",
        features,
        _listed([f"{each['test']:.0f}" for each in seeds]),
        _listed([each["outcomes"][0] for each in seeds]),
        _listed(["–" if each["mean_tries"] is None else f"{each['mean_tries']:.1f}" for each in seeds]),
        _listed([_left(each) for each in seeds]),
        _listed([each["outcomes"][LOST] for each in seeds]),
    ]
    return f"| {' | '.join(map(str, values))} |"


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
    """A dot for each seed: tries of the tokens found, tokens left to the solver, tokens lost."""
    kinds = _by_kind(found)
    views: tuple[tuple[str, Callable[[dict[str, Any]], float]], ...] = (
        ("tries of a token found, mean", lambda model: model["mean_tries"] or 0.0),
        ("tokens left to the solver", _left),
        ("tokens unargmaxable", lambda model: model["outcomes"][LOST]),
    )
    with drawing(PAGE, 2.2) as figure:
        every = figure.subplots(1, len(views), sharey=True)
        for axes, (name, value) in zip(every, views, strict=True):
            for place, ((role, _), seeds) in enumerate(kinds.items()):
                places = [place] * len(seeds)
                axes.scatter([value(each) for each in seeds], places, s=18, color=COLOURS[role], alpha=0.7)
            axes.set(xlabel=name)
            axes.set_xlim(left=0)
            axes.grid(axis="y")
        every[0].set_yticks(range(len(kinds)), labels=[f"{role}, d = {size}" for role, size in kinds])
        every[0].invert_yaxis()
    return {"seeds_and_sizes": figure}


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
