"""Tables and figures of the synthetic bottleneck: KL and modes beside the paper's claim, what is proven,
rates and visits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from argmaxable.report.figures.style import FAINT, INK, LINE_COLOURS, PAGE, drawing
from experiments.harness.cells import Cell
from experiments.harness.markdown import markdown_table
from experiments.harness.statistics import half_interval
from experiments.synthetic.rounds import MOST_VISITS, RATES, UNTIL, gains_end

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EQUATION_14 = "lms-14"  # as in learning.py, whose import takes seconds
HEADS = {
    "linear": "linear",
    "sigsoftmax": "SigSoftmax",
    "lms": "LMS",
    "lms-plif": "LMS-PLIF",
    "mos": "MoS",
    EQUATION_14: "LMS, equation 14",
}
ALPHAS = (0.01, 0.1, 1.0)


@dataclass(frozen=True)
class Group:
    """The cells of one problem (all seeds) by head."""

    alpha: float
    classes: int
    contexts: int
    features: int
    visits: int
    by_head: Mapping[str, Sequence[Cell]]

    @property
    def heads(self) -> list[str]:
        return [head for head in HEADS if head in self.by_head]

    @property
    def is_whole(self) -> bool:
        """Whether it can be compared: of a run that is not finished, heads may be missing."""
        return set(HEADS) <= self.by_head.keys()

    @property
    def name(self) -> str:
        return f"α = {self.alpha:g}, M = {self.classes:,}, D = {self.features}"


SIZE = ("alpha", "classes", "contexts", "features", "visits")


def groups(found: Sequence[Cell]) -> list[Group]:
    """Cells with the same sizes together, in the order of the grid."""
    together: dict[tuple[Any, ...], dict[str, list[Cell]]] = {}
    for cell in found:
        size = tuple(cell.settings[name] for name in SIZE)
        together.setdefault(size, {}).setdefault(cell.settings["head"], []).append(cell)
    return [
        Group(**dict(zip(SIZE, size, strict=True)), by_head=by_head)
        for size, by_head in sorted(together.items(), key=_place)
    ]


def _place(item: tuple[tuple[Any, ...], Any]) -> tuple[Any, ...]:
    alpha, classes, contexts, features, visits = item[0]
    return visits, classes, features, alpha, contexts


def rounds(found: Sequence[Group]) -> tuple[list[Group], list[Group]]:
    """The problems as compared, and those whose contexts were visited more often, to see what that gains."""
    usual = min(group.visits for group in found)
    return [each for each in found if each.visits == usual], [each for each in found if each.visits > usual]


def interval(cells_: Sequence[Cell], name: str) -> tuple[float, float]:
    """Mean and half the width of its 95 % interval: over seeds, with one seed over contexts."""
    values = [cell.found[name] for cell in cells_]
    count = len(values)
    if count > 1:
        return fmean(values), half_interval(values)
    return values[0], 1.96 * _spread(cells_[0], name) / math.sqrt(cells_[0].settings["contexts"])


def _spread(cell: Cell, name: str) -> float:
    if name == "divergence":
        return float(cell.found["deviation"])
    share = cell.found["matched"]
    return math.sqrt(share * (1 - share))


def table(found: Sequence[Cell]) -> str:
    """KL and mode matching of all heads, what is proven, and what more steps gain."""
    comparable = _comparable(groups(found))
    if not comparable:
        return "No problem has all heads yet."
    compared, longer = rounds(comparable)
    return "\n\n".join(
        [
            _table("Mean KL(P\\* ‖ Q) in nats (lower is better)", compared, "divergence", 1.0, 3),
            _table("Contexts whose mode is matched, % (higher is better)", compared, "matched", 100.0, 1),
            "\\* The interval is over the contexts of the only seed. It does not show how much seeds differ.",
            _proofs(compared),
            *(
                [_convergence(title, compared, longer, name, show) for title, name, show in _GAINS]
                if longer
                else []
            ),
        ]
    )


def _comparable(found: Sequence[Group]) -> list[Group]:
    """Whole problems, and those that were only visited more often to see what that gains."""
    whole = [group for group in found if group.is_whole]
    keys = {_key(group) for group in whole}
    return [group for group in found if group.is_whole or _key(group) in keys]


def _rows(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return f"**{title}**\n\n{markdown_table(columns, rows, text_columns=0)}"


def _sizes(group: Group) -> list[str]:
    seeds = len(group.by_head["linear"])
    return [
        f"{group.alpha:g}", f"{group.classes:,}", str(group.features), f"{group.contexts:,}",
        str(seeds) if seeds > 1 else "1*",
    ]  # fmt: skip


_SIZE_COLUMNS = ["α", "M", "D", "N", "seeds"]


def _table(title: str, compared: Sequence[Group], name: str, unit: float, digits: int) -> str:
    rows = []
    for group in compared:
        means = {head: interval(group.by_head[head], name) for head in group.heads}
        best = (max if name == "matched" else min)(means, key=lambda head: means[head][0])
        shown = (
            _number(*means[head], unit, digits, is_best=head == best) if head in means else ""
            for head in _present(compared)
        )
        rows.append([*_sizes(group), *shown, _ordering(means, name)])
    heads = [HEADS[head] for head in _present(compared)]
    return _rows(title, [*_SIZE_COLUMNS, *heads, "equation 14 ahead of both (paper: mostly)"], rows)


def _present(compared: Sequence[Group]) -> list[str]:
    """The heads that some problem has."""
    return [head for head in HEADS if any(head in group.by_head for group in compared)]


def _number(mean: float, half: float, unit: float, digits: int, *, is_best: bool) -> str:
    value = f"{unit * mean:.{digits}f}"
    return f"{f'**{value}**' if is_best else value} ± {unit * half:.{digits}f}"


def _ordering(means: Mapping[str, tuple[float, float]], name: str) -> str:
    """Whether the paper's claim holds here: its LMS before the linear head and before MoS."""
    sign = 1 if name == "matched" else -1
    lms, linear, mos = (sign * means[head][0] for head in (EQUATION_14, "linear", "mos"))
    beaten = [word for word, other in (("linear", linear), ("MoS", mos)) if lms > other]
    return "yes" if len(beaten) == 2 else f"only of {beaten[0]}" if beaten else "no"


_PROVEN = ("reached", "least", "gap", "log_error")


def _proofs(compared: Sequence[Group]) -> str:
    rows = []
    for group in compared:
        linear = group.by_head["linear"]
        proven = {name: fmean(cell.found["proven"][name] for cell in linear) for name in _PROVEN}
        errors = {
            head: fmean(cell.found["log_error"] for cell in group.by_head[head]) for head in ("linear", "lms")
        }
        rows.append(
            [
                *_sizes(group), f"{proven['reached']:.4f}", f"{proven['least']:.4f}", f"{proven['gap']:.0e}",
                f"{proven['log_error']:.2f}", f"{errors['linear']:.2f}", f"{errors['lms']:.2f}",
            ]
        )  # fmt: skip
    columns = [
        "KL of the linear head¹", "least KL with its weights¹", "duality gap",
        "no linear head's error of log P is below²", "linear²", "LMS²",
    ]  # fmt: skip
    title = "What is proven (¹ mean of the first 100 contexts, ² of the first 2,000)"
    return _rows(title, [*_SIZE_COLUMNS, *columns], rows)


def _convergence(
    title: str, compared: Sequence[Group], longer: Sequence[Group], name: str, show: Callable[[float], str]
) -> str:
    usual = {_key(group): group for group in compared}
    rows = []
    for group in longer:
        before = usual[_key(group)]
        gains = {
            head: _gain(before.by_head[head], after, name, show) for head, after in group.by_head.items()
        }
        visits = f"{before.visits} → {group.visits}"
        rows.append([*_sizes(group), visits, *(gains.get(head, "") for head in _present(longer))])
    return _rows(title, [*_SIZE_COLUMNS, "visits", *(HEADS[head] for head in _present(longer))], rows)


def _key(group: Group) -> tuple[float, int, int, int]:
    return group.alpha, group.classes, group.contexts, group.features


def _gain(before: Sequence[Cell], after: Sequence[Cell], name: str, show: Callable[[float], str]) -> str:
    """What the same seeds found before and after."""
    seeds = {cell.settings["seed"] for cell in after}
    first = fmean(cell.found[name] for cell in before if cell.settings["seed"] in seeds)
    last = fmean(cell.found[name] for cell in after)
    return f"{show(first)} → {show(last)}"


_GAINS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("KL with twice as many steps", "divergence", "{:.3f}".format),
    ("Modes matched with twice as many steps, %", "matched", lambda share: f"{100 * share:.1f}"),
)


def search_table(search: Sequence[Cell], found: Sequence[Cell]) -> str:
    """Of a long run: which rates were chosen, and how often each head visited the contexts until more visits
    hardly gained anything."""
    return "\n\n".join(filter(None, [_rates_table(search), _visits_table(found)]))


def _rates_table(search: Sequence[Cell]) -> str:
    """What each head chose in each problem, and how much higher the KL is with the other rates."""
    rows, problems = [], groups(search)
    if not problems:
        return ""
    for group in problems:
        chosen = {head: _chosen_rate(group.by_head[head]) for head in group.heads}
        rows.append([*_sizes(group)[:-1], *(chosen.get(head, "") for head in HEADS)])
    title = (
        "The search: the multiple of the learning rates with the lowest KL after "
        f"{problems[0].visits} visits (first seed), and how much higher the KL is with the others"
    )
    return _rows(title, [*_SIZE_COLUMNS[:-1], *HEADS.values()], rows)


def _chosen_rate(tried: Sequence[Cell]) -> str:
    """Nothing before all were tried."""
    if len(tried) < len(RATES):
        return ""
    kl = {cell.settings["rate"]: cell.found["divergence"] for cell in tried}
    best = best_rate(tried)
    others = (
        f"{rate:g}: " + ("diverged" if kl[rate] is None else f"+{100 * (kl[rate] / kl[best] - 1):.1f} %")
        for rate in RATES
        if rate != best
    )
    return f"**{best:g}** ({', '.join(others)})"


def _visits_table(found: Sequence[Cell]) -> str:
    compared = _comparable(groups(found))
    if not compared:
        return ""
    rows = [[*_sizes(group), *(_visits(group.by_head[head]) for head in group.heads)] for group in compared]
    title = (
        f"Visits of each context, doubled until that took less than {100 * UNTIL:g} % off the KL twice in "
        f"a row († stopped at {MOST_VISITS} before that)"
    )
    return _rows(title, [*_SIZE_COLUMNS, *(HEADS[head] for head in _present(compared))], rows)


def _visits(cells_: Sequence[Cell]) -> str:
    """The most visits of any seed."""
    by_visits = max((cell.found["by_visits"] for cell in cells_), key=lambda each: each[-1][0])
    return f"{by_visits[-1][0]}{'' if gains_end(by_visits, UNTIL) else '†'}"


# ---------------------------------------------------------------------- figures


def figures(found: Sequence[Cell]) -> dict[str, Figure]:
    """The heads compared; unless the run is a long one, also what the distributions are like."""
    whole = [group for group in groups(found) if group.is_whole]
    drawn = {"synthetic_bottleneck": _comparison(rounds(whole)[0])} if whole else {}
    is_long = any("until" in cell.settings for cell in found)
    return drawn if is_long else {**drawn, "synthetic_bottleneck_dirichlet": _dirichlet()}


def _comparison(compared: Sequence[Group]) -> Figure:
    """A row for each problem: every head's KL and modes matched, and the least KL proven."""
    places = range(len(compared) - 1, -1, -1)
    with drawing(PAGE, 1.1 + 0.34 * len(compared)) as figure:
        left, right = figure.subplots(1, 2, sharey=True)
        for axes in (left, right):
            axes.hlines(list(places), 0, 1, transform=axes.get_yaxis_transform(), color=FAINT, linewidth=0.4)
        # KL spans a factor of six between problems and a few percent between heads.
        linear = [interval(group.by_head["linear"], "divergence")[0] for group in compared]
        for (head, label), colour, marker in zip(HEADS.items(), LINE_COLOURS, "osD^vx", strict=False):
            look = {"color": colour, "marker": marker}
            _draw_head(left, compared, head, "divergence", [1 / each for each in linear], label=label, **look)
            _draw_head(right, compared, head, "matched", [100.0] * len(compared), **look)
        least = [_least_everywhere(group) / each for group, each in zip(compared, linear, strict=True)]
        name = "linear with the best contexts (proven for 100)"
        left.scatter(least, list(places), marker="|", s=120, color=INK, label=name)
        left.set_yticks(list(places), labels=[group.name for group in compared])
        left.set(xlabel="mean KL(P* ‖ Q), linear head = 1", ylim=(-0.6, len(compared) - 0.4))
        right.set(xlabel="modes matched (%)", xlim=(0, 100))
        figure.legend(loc="outside upper center", ncols=3)
    return figure


def _draw_head(
    axes: Axes, compared: Sequence[Group], head: str, name: str, units: Sequence[float], **look: Any
) -> None:
    there = [
        (len(compared) - 1 - number, unit, *interval(group.by_head[head], name))
        for number, (group, unit) in enumerate(zip(compared, units, strict=True))
        if head in group.by_head
    ]
    if not there:
        return
    axes.errorbar(
        [unit * mean for _, unit, mean, _ in there],
        [place for place, *_ in there],
        xerr=[unit * half for _, unit, _, half in there],
        linestyle="none", markersize=4, elinewidth=0.8, alpha=0.9, **look,
    )  # fmt: skip


def _least_everywhere(group: Group) -> float:
    """The head's mean KL over all contexts, less what better vectors would gain in those that were solved."""
    linear = [cell.found for cell in group.by_head["linear"]]
    gain = fmean(each["proven"]["reached"] - each["proven"]["least"] for each in linear)
    return fmean(each["divergence"] for each in linear) - gain


def _dirichlet() -> Figure:
    """Figure 5: what the distributions are like, a context of each."""
    from experiments.synthetic.learning import Problem

    with drawing(PAGE, 2.0) as figure:
        for axes, classes in zip(figure.subplots(1, 3, sharey=True), (100, 1000, 10_000), strict=True):
            for alpha, colour in zip(ALPHAS, LINE_COLOURS, strict=False):
                (log_p,) = Problem(alpha, classes, contexts=1, seed=0).blocks()
                falling = -np.sort(-np.exp(log_p[0]))
                axes.loglog(range(1, classes + 1), falling, color=colour, label=f"α = {alpha:g}")
            axes.set(xlabel="class, most likely first", title=f"M = {classes:,}", ylim=(1e-6, 1))
            axes.xaxis.set_major_formatter("{x:,g}")
        figure.axes[0].set_ylabel("probability")
        figure.axes[0].yaxis.set_major_formatter("{x:g}")
        figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside right center")
    return figure


def best_rate(tried: Sequence[Cell]) -> float:
    """The multiple of the lowest KL; one with which it was no longer finite has none."""
    finite = [cell for cell in tried if cell.found["divergence"] is not None]
    return float(min(finite, key=lambda cell: float(cell.found["divergence"])).settings["rate"])
