"""Tables and figures of the language models: perplexities beside the papers', costs, PLIFs, curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import TYPE_CHECKING, Any

import numpy as np

from argmaxable.report.figures.style import FAINT, INK, LINE_COLOURS, PAGE, drawing
from experiments.harness.cells import Cell
from experiments.harness.markdown import markdown_table
from experiments.harness.statistics import half_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEADS = {
    "linear": "linear",
    "sigsoftmax": "SigSoftmax",
    "lms-plif": "PLIF",
    "random-plif": "frozen random PLIF",
    "mos": "MoS",
    "mos-plif": "MoS + PLIF",
}
# A PLIF whose slopes have a rate of their own, far below that of the weights.
SLOW_PLIF = "slow-plif"
NAMES = {**HEADS, SLOW_PLIF: "PLIF, slow slopes"}
# Test perplexity and seconds an epoch of Ganea et al., Table 1 (the mixture on WikiText-2 is the published
# number of Yang et al. 2018, which they did not run again); test perplexity and rank of log P as Parthiban,
# Mao & Inkpen 2021 report them (Penn Treebank, 11 seeds; beside the control's 56.82 the PLIF had 56.81).
PENN_TREEBANK = {
    "linear": "58.37 (60 s)",
    "lms-plif": "57.25 (70 s)",
    "mos": "56.43 (150 s)",
    "mos-plif": "56.02 (220 s)",
}
WIKITEXT_2 = {"linear": "65.22 (120 s)", "lms-plif": "64.86 (150 s)", "mos": "63.33³ (550 s)"}
CONTROLLED = {
    "linear": "57.08 (402)",
    "sigsoftmax": "57.05 (5,113)",
    "lms-plif": "56.80 (496)",
    "random-plif": "56.82",
    "mos": "54.91 (9,981)",
}
PAPER_COST = {"linear": "1", "lms-plif": "1.17–1.25 ×", "mos": "2.5–4.6 ×", "mos-plif": "3.7 ×"}  # of Table 1
SLOPES = {"mean": 1.10, "deviation": 0.62, "least": 0.02, "greatest": 5.16}  # Table 2


@dataclass(frozen=True)
class Kind:
    """What the cells of one head found, in the order of their seeds and rates."""

    head: str
    name: str
    mixtures: int
    rates: Sequence[float]
    found: Sequence[Mapping[str, Any]]

    def all(self, key: str) -> list[Any]:
        return [each[key] for each in self.found]

    @property
    def colour(self) -> str:
        return LINE_COLOURS[list(NAMES).index(self.head) % len(LINE_COLOURS)]


def kinds(cells: Sequence[Cell]) -> list[Kind]:
    """The heads that there are cells of, a mixture of each size by itself (named where sizes may differ)."""
    has_sizes = any("part" in cell.settings for cell in cells)  # of the mixtures, that of a part is its own
    found = []
    for head, name in NAMES.items():
        own = [cell for cell in cells if cell.settings["head"] == head]
        for mixtures in sorted({_mixtures(cell) for cell in own}):
            chosen = sorted(
                (cell for cell in own if _mixtures(cell) == mixtures),
                key=lambda cell: (int(cell.settings["seed"]), _rate(cell)),
            )
            size = f", K = {mixtures}" if head.startswith("mos") and has_sizes else ""
            found.append(
                Kind(head, name + size, mixtures, [*map(_rate, chosen)], [cell.found for cell in chosen])
            )
    return found


def _mixtures(cell: Cell) -> int:
    return int(cell.settings.get("shape", {}).get("mixtures", 0))


def parts(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    """The cells by size; those that are not of the long runs have one."""
    together: dict[str, list[Cell]] = {}
    for cell in cells:
        together.setdefault(cell.settings.get("part", ""), []).append(cell)
    return together


def table(cells: Sequence[Cell]) -> str:
    """Perplexities beside the papers', then what each head costs and can say, then the PLIFs' slopes."""
    shown = []
    for part, some in parts(cells).items():
        found = kinds(some)
        if part:
            shown.append(f"**{part}: {some[0].settings['vocabulary']:,} words**")
        shown += [
            _perplexities(found, has_papers=not part),
            _costs(found, is_long=bool(part)),
            _slopes(found),
        ]
    return "\n\n".join(filter(None, shown))


def search_table(search: Sequence[Cell], cells: Sequence[Cell]) -> str:
    """Of the long runs: validation with each rate, and how long the heads trained with the best of them."""
    shown = []
    for part, some in parts(search).items():
        rates = sorted({_rate(cell) for cell in some})
        columns = [
            "head", *(f"rate {rate:g}" for rate in rates), "best epoch", "training perplexity then",
            "processor minutes a run",
        ]  # fmt: skip
        rows = [
            [kind.name, *_tried(kind, rates), *_taken(kind.head, kind.mixtures, parts(cells).get(part, []))]
            for kind in kinds(some)
        ]
        epochs = some[0].settings["schedule"]["epochs"]
        shown.append(
            f"*{part}, the search:* validation perplexity after {epochs} epochs (seed 0), the chosen rate in "
            "bold; then the epoch of each seed's best validation, and the perplexity on the training text in "
            f"that epoch, with dropout (where it was recorded).\n\n{markdown_table(columns, rows)}"
        )
    return "\n\n".join(shown)


def _rate(cell: Cell) -> float:
    return float(cell.settings.get("schedule", {}).get("rate", 0.0))  # the published sizes have one rate


def _tried(kind: Kind, rates: Sequence[float]) -> list[str]:
    """Validation with each rate, none where it diverged; the best is bold when all rates were tried."""
    values = {rate: value for rate, value in zip(kind.rates, kind.all("validation"), strict=True) if value}
    best = min(values.values(), default=None) if len(kind.rates) == len(rates) else None
    shown = {rate: f"{value:.2f}" for rate, value in values.items()}
    return [
        f"**{shown[rate]}**" if rate in values and values[rate] == best else shown.get(rate, "")
        for rate in rates
    ]


def _taken(head: str, mixtures: int, cells: Sequence[Cell]) -> list[str]:
    own = [cell for cell in cells if cell.settings["head"] == head and _mixtures(cell) == mixtures]
    if not own:
        return ["", "", ""]
    best, trained = [], []
    for cell in own:
        curve = cell.found["by_epoch"]
        place = curve.index(min(curve))
        best.append(f"{1 + place} of {len(curve)}")
        if training := cell.found.get("training_by_epoch"):
            trained.append(f"{training[place]:.2f}")
    return [", ".join(best), ", ".join(trained), f"{mean(cell.seconds for cell in own) / 60:.0f}"]


def _linear(found: Sequence[Kind]) -> Kind | None:
    return next((kind for kind in found if kind.head == "linear"), None)


def _perplexities(found: Sequence[Kind], *, has_papers: bool) -> str:
    """Beside the papers' own, if the sizes are those that they are shown with."""
    papers = (PENN_TREEBANK, WIKITEXT_2, CONTROLLED) if has_papers else ()
    is_uneven = len({len(kind.found) for kind in found}) > 1
    columns = ["head", *(["seeds"] if is_uneven else []), "parameters", "validation", "test", "test − linear"]
    columns += ["PTB¹", "WikiText-2¹", "PTB²"][: len(papers)]
    rows, linear = [], _linear(found)
    for kind in found:
        gap = "" if linear is None or kind is linear else _signed(kind.all("test"), linear.all("test"))
        rows.append(
            [
                kind.name, *([len(kind.found)] if is_uneven else []), f"{kind.found[0]['parameters']:,}",
                _spread(kind.all("validation")), _spread(kind.all("test")), gap,
                *(paper.get(kind.head, "") for paper in papers),
            ]
        )  # fmt: skip
    return f"{markdown_table(columns, rows)}\n\n{_seeds(found)}" + (
        " ¹ Test perplexity (and time of an epoch) in "
        "Table 1 of Ganea et al. ² Test perplexity (and rank of log P, of 10,000) of Parthiban et al. ³ As "
        "published by Yang et al. 2018, not run again."
        if papers
        else ""
    )


def _seeds(found: Sequence[Kind]) -> str:
    counts = {len(kind.found) for kind in found}
    if counts == {1}:
        return "Perplexities of one seed."
    seeds = f"of {counts.pop()} seeds" if len(counts) == 1 else "over the seeds"
    return (
        f"Perplexities: means {seeds} ± half the width of the 95 % confidence interval; differences are "
        "paired by seed."
    )


def _costs(found: Sequence[Kind], *, is_long: bool) -> str:
    """The cells of long runs are measured with different versions, on different days and machines: their
    times and memory are compared apart, in page/costs.py."""
    costs = [] if is_long else ["seconds per epoch", "against linear", "the paper's", "MB in a step"]
    columns = ["head", *costs, "rank of log P", "never argmax", "never, within ±1"]
    rows, linear = [], _linear(found)
    for kind in found:
        own = [] if is_long else _cost(kind, linear)
        never = (_unargmaxable(kind.found, domain) for domain in ("everywhere", "reachable"))
        rows.append([kind.name, *own, _ranks(kind.found), *never])
    most = found[0].found[0]["rank"]["most"]
    return f"{markdown_table(columns, rows)}\n\n" + (
        f"Rank: of at most {most:,}, in single precision, then in double where that differs. Never argmax: "
        "proven unargmaxable words of each seed, for any input, and for inputs between −1 and 1, which is "
        "all an LSTM puts out; all other words are proven argmaxable. For MoS the counts are about "
        "the components: a word that none of them can predict, the mixture can't predict either. Nothing is "
        "known about the other words."
    )


def _cost(kind: Kind, linear: Kind | None) -> list[str]:
    seconds = mean(kind.all("seconds_per_epoch"))
    against = f"{seconds / mean(linear.all('seconds_per_epoch')):.2f} ×" if linear else ""
    megabytes = max(kind.all("step_megabytes"))
    return [f"{seconds:.1f}", against, PAPER_COST.get(kind.head, ""), f"{megabytes:.1f}"]


def _slopes(found: Sequence[Kind]) -> str:
    rows = [["Ganea et al., Table 2 (WikiText-2)", *(f"{value:.2f}" for value in SLOPES.values())]]
    for kind in _with_plif(found):
        statistics = [each["slopes"] for each in kind.all("plif")]
        rows.append([kind.name, *(f"{mean(each[name] for each in statistics):.2f}" for name in SLOPES)])
    return markdown_table(["slopes of the bins that logits fall in", *SLOPES], rows) if len(rows) > 1 else ""


def _with_plif(found: Sequence[Kind]) -> list[Kind]:
    return [kind for kind in found if kind.found[0]["plif"] is not None]


def _spread(values: Sequence[float]) -> str:
    return f"{mean(values):.2f} ± {half_interval(values):.2f}" if len(values) > 1 else f"{values[0]:.2f}"


def _signed(values: Sequence[float], linear: Sequence[float]) -> str:
    # Of an unfinished run the seeds that both heads have.
    count = min(len(values), len(linear))
    gaps = differences(values[:count], linear[:count])
    gap = f"{mean(gaps):+.2f}".replace("-", "−")
    return f"{gap} ± {half_interval(gaps):.2f}" if len(gaps) > 1 else gap


def differences(values: Sequence[float], others: Sequence[float]) -> list[float]:
    """Of two heads' values, seed by seed."""
    return [value - other for value, other in zip(values, others, strict=True)]


def _ranks(found: Sequence[Mapping[str, Any]]) -> str:
    single, double = ([each["rank"][name] for each in found] for name in ("single", "double"))
    return _range(single) if single == double else f"{_range(single)} / {_range(double)}"


def _range(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def _unargmaxable(found: Sequence[Mapping[str, Any]], domain: str) -> str:
    if found[0]["unargmaxable"] is None:
        return "–"
    counts = ", ".join(str(len(each["unargmaxable"][domain]["words"])) for each in found)
    undecided = sum(each["unargmaxable"][domain]["undecided"] for each in found)
    return f"{counts} ({undecided} undecided)" if undecided else counts


def figures(cells: Sequence[Cell]) -> dict[str, Figure]:
    drawn = {}
    for part, some in parts(cells).items():
        name, found = "_".join(filter(None, ("language_models", part))), kinds(some)
        if len(found) == 1:
            continue  # of an unfinished run: there is nothing to compare yet
        drawn[name] = _comparison(found)
        if plifs := _with_plif(found):
            drawn[f"{name}_plif"] = _functions(plifs)
    return drawn


def _comparison(found: Sequence[Kind]) -> Figure:
    """Each head's test perplexity against the linear one's, and validation on the way."""
    with drawing(PAGE, 2.6) as figure:
        left, right = figure.subplots(1, 2, width_ratios=(3, 2))
        _draw_gaps(left, found)
        for kind in found:
            curve = _mean_curve(kind.all("by_epoch"))
            right.plot(range(1, len(curve) + 1), curve, color=kind.colour, label=kind.name)
        right.set(xlabel="epoch", ylabel="validation perplexity")
        right.xaxis.get_major_locator().set_params(integer=True)
        right.legend()
    return figure


def _mean_curve(curves: Sequence[Sequence[float]]) -> list[float]:
    """As far as the longest goes: one that ended early keeps its best."""
    longest = max(map(len, curves))
    padded = [[*curve, *[min(curve)] * (longest - len(curve))] for curve in curves]
    return [mean(column) for column in zip(*padded, strict=True)]


def _draw_gaps(axes: Axes, found: Sequence[Kind]) -> None:
    linear = _linear(found)
    others = [kind for kind in found if linear is not None and kind is not linear]
    axes.axvline(0, color=FAINT, linewidth=0.8)
    for row, kind in enumerate(others):
        count = min(len(kind.found), len(linear.found)) if linear else 0
        gaps = differences(kind.all("test")[:count], linear.all("test")[:count]) if linear else []
        if len(gaps) > 1:
            axes.errorbar(
                mean(gaps), row, xerr=half_interval(gaps), color=kind.colour, capsize=2.5, marker="|"
            )
        axes.scatter(gaps, [row] * len(gaps), s=12, color=kind.colour, linewidths=0, zorder=3)
    axes.set_yticks(range(len(others)), labels=[kind.name for kind in others])
    axes.set(
        xlabel="test perplexity − that of the linear head, same seed", ylim=(max(len(others), 1) - 0.5, -0.5)
    )


def _functions(plifs: Sequence[Kind]) -> Figure:
    """Figure 4: the functions as learned, without the straight line they started from, one for each seed."""
    with drawing(PAGE, 2.4) as figure:
        panels = figure.subplots(1, len(plifs), sharey=True, squeeze=False)[0]
        for axes, kind in zip(panels, plifs, strict=True):
            for found in kind.all("plif"):
                z, values = (np.array(found[name]) for name in ("z", "values"))
                axes.plot(z, values - z, color=kind.colour, linewidth=0.9)
            axes.axhline(0, color=INK, linewidth=0.4)
            axes.set(xlabel="logit z", title=kind.name)
        figure.axes[0].set_ylabel("f(z) − z")
    return figure
