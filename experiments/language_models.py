"""Language models with one recurrent network and six heads: does a head of higher rank predict better?

Ganea et al. 2019 put a learned increasing function (PLIF) between the logits and the softmax of AWD-LSTM and
find lower perplexities, at hardly more cost (Table 1); mixtures of softmaxes are better and slower.
Parthiban, Mao & Inkpen 2021 add a control: a random PLIF that never learns does as well. Here all heads have
the same number of parameters, text and epochs, and their words are verified afterwards, as far as that goes
for a mixture.

  python -m experiments.language_models --text data/wikitext-2           as committed: 35 processor minutes
  python -m experiments.language_models --text data/penn-treebank --paper  as published: a GPU and days
  python -m experiments.language_models --smoke

The text is a directory with train.txt, valid.txt and test.txt, or the last two: these are cut into three. The
Parquet files of a dataset on the hub do as well.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from argmaxable import Box, Everywhere, Head, Result, verify
from argmaxable.report.figures.style import FAINT, INK, LINE_COLOURS, PAGE, drawing
from argmaxable.run.plan import ONE_PROCESS
from argmaxable.theory.rank import measure_rank
from argmaxable.theory.spectrum import rows_of
from experiments._experiment import Cell, Experiment, Scale, Settings, main
from experiments._markdown import markdown_table
from experiments._statistics import half_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from torch import Tensor

    from experiments._awd_lstm import AWDLSTM, Shape
    from experiments._corpus import Corpus
    from experiments._training import Schedule

HEADS = {
    "linear": "linear",
    "sigsoftmax": "SigSoftmax",
    "lms-plif": "PLIF",
    "random-plif": "frozen random PLIF",
    "mos": "MoS",
    "mos-plif": "MoS + PLIF",
}
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

# What was cut for two cores: sizes, epochs, and with them dropout and the penalties on activations, which a
# model as small does not need. Averages begin after the fifth epoch for every head, not by the trigger, so
# that all have as many epochs of either kind.
_DROP = {"words": 0.05, "inputs": 0.1, "between": 0.1, "outputs": 0.1, "recurrent": 0.1}
_COMMITTED: dict[str, Any] = {
    "vocabulary": 1_000,
    "contexts": 1_024,
    "shape": {"features": 32, "hidden": 64, "layers": 2, "mixtures": 3, "bins": 500, "drop": _DROP},
    "schedule": {
        "epochs": 8, "batch": 20, "stretch": 35, "rate": 10.0, "slope_rate": 10.0,
        "activation": 0.0, "change": 0.0, "patience": 8, "average_after": 5,
    },
}  # fmt: skip
# Slopes are drawn apart for each bin, so that few wide ones make a rough function and many narrow ones nearly
# a straight line: the control has as many as the published ones. It learns none, so that is no advantage.
_CONTROL_BINS = 100_000
_SMOKE: dict[str, Any] = {
    "vocabulary": 50,
    "contexts": 64,
    "shape": {"features": 4, "hidden": 8, "layers": 2, "mixtures": 2, "bins": 50, "drop": _DROP},
    "schedule": {
        "epochs": 2, "batch": 40, "stretch": 70, "rate": 5.0, "slope_rate": 5.0,
        "activation": 2.0, "change": 1.0, "patience": 1, "average_after": 1,
    },
}  # fmt: skip
# The published sizes, with the rate of Ganea et al. and for slopes that of the follow-up's code; a text with
# so few words is Penn Treebank, otherwise WikiText-2. Parameters are not matched: the paper reports them as
# they come.
_PENN_WORDS = 10_000
_PUBLISHED: dict[str, Any] = {"vocabulary": 1_000_000, "contexts": 12_000}
_PUBLISHED_BINS = {"mos-plif": 1_000_000}
_PUBLISHED_RATES = {"rate": 20.0, "slope_rate": 0.02}
_PENN: dict[str, Any] = {
    "drop": {"inputs": 0.4, "between": 0.25}, "schedule": {"epochs": 500, "batch": 20, **_PUBLISHED_RATES},
}  # fmt: skip
_WIKITEXT: dict[str, Any] = {
    "drop": {"inputs": 0.65, "between": 0.2}, "schedule": {"epochs": 750, "batch": 80, **_PUBLISHED_RATES},
}  # fmt: skip
_SEEDS = 3
# Heads of about as many parameters keep their hidden units, and with them the same start and dropout.
_CLOSE_ENOUGH = 0.01
_POINTS = 161  # of a PLIF, kept to be drawn


def cells(scale: Scale) -> list[Settings]:
    """All heads, with all seeds."""
    sizes = {Scale.SMOKE: _SMOKE, Scale.COMMITTED: _COMMITTED, Scale.PAPER: _PUBLISHED}[scale]
    seeds = range(1 if scale is Scale.SMOKE else _SEEDS)
    found: list[Settings] = [{"head": head, "seed": seed, **sizes} for head in HEADS for seed in seeds]
    if scale is Scale.COMMITTED:
        control = {"shape": {**_COMMITTED["shape"], "bins": _CONTROL_BINS}}
        found = [{**cell, **control} if cell["head"] == "random-plif" else cell for cell in found]
    return found


def measure(settings: Settings, text: Path | None) -> dict[str, Any]:
    """Train one model, then look at its head."""
    from experiments._awd_lstm import parameters
    from experiments._training import contexts, step_bytes, train

    words = _read(text, settings["vocabulary"])
    shape, schedule = recipe(settings, len(words.words))
    trained = train(shape, schedule, words)
    hidden = contexts(trained.model, words.valid, limit=settings["contexts"])
    return {
        "parameters": parameters(shape),
        "hidden": shape.hidden,
        "tokens": len(words.train),
        "validation": trained.validation,
        "test": trained.test,
        "by_epoch": [round(epoch.validation, 3) for epoch in trained.epochs],
        "averaged_epochs": sum(epoch.is_averaged for epoch in trained.epochs),
        "seconds_per_epoch": round(median(epoch.seconds for epoch in trained.epochs), 2),
        "step_megabytes": round(step_bytes(shape, schedule, words) / 1e6, 2),
        "rank": rank_of(trained.model, hidden),
        "plif": plif_of(trained.model, hidden) if shape.has_plif else None,
        "unargmaxable": unargmaxable(trained.model, words.words),
    }


@cache  # a process measures several cells of one text
def _read(text: Path | None, vocabulary: int) -> Corpus:
    from experiments._corpus import corpus

    return corpus(text, vocabulary=vocabulary)


def recipe(settings: Settings, words: int) -> tuple[Shape, Schedule]:
    """The model and its training that a cell asks for, on a text with so many different words."""
    from experiments._awd_lstm import Drop, Shape
    from experiments._training import Schedule

    head, seed = settings["head"], settings["seed"]
    if "shape" in settings:
        sizes = {**settings["shape"], "drop": Drop(**settings["shape"]["drop"])}
        return matched(Shape(head, words, **sizes)), Schedule(seed=seed, **settings["schedule"])
    published = _PENN if words <= _PENN_WORDS else _WIKITEXT
    bins = _PUBLISHED_BINS.get(head, Shape.bins)
    return Shape(head, words, bins=bins, drop=Drop(**published["drop"])), Schedule(
        seed=seed, **published["schedule"]
    )


def matched(shape: Shape) -> Shape:
    """The shape with as many hidden units as bring its parameters to those of a linear head's model."""
    from experiments._awd_lstm import parameters, with_parameters

    wanted = parameters(replace(shape, head="linear"))
    if abs(parameters(shape) - wanted) <= _CLOSE_ENOUGH * wanted:
        return shape
    return with_parameters(shape, wanted)


def rank_of(model: AWDLSTM, hidden: Tensor) -> dict[str, int]:
    """The rank of log P over some contexts, in single precision as the model computes, and in double."""
    import torch

    double = copy.deepcopy(model.head).double()
    with torch.no_grad():
        single_rows = rows_of(model.head.log_prob(hidden).cpu().numpy())
        double_rows = rows_of(double.log_prob(hidden.double()).cpu().numpy())
    return {
        "single": measure_rank(single_rows).plain.rank,
        "double": measure_rank(double_rows).plain.rank,
        "most": min(hidden.shape[0], model.shape.vocabulary),
    }


def plif_of(model: AWDLSTM, hidden: Tensor) -> dict[str, Any]:
    """The slopes of the bins that some logit falls in, and the function there, 0 at 0."""
    import torch

    from argmaxable.layers import PLIF

    plif = model.head.transform
    if not isinstance(plif, PLIF):
        raise TypeError(f"{type(plif).__name__} is no PLIF and has no slopes of bins.")
    with torch.no_grad():
        logits = model.head.component_logits(hidden)
        low, high = float(logits.min()), float(logits.max())
        z = torch.linspace(low, high, _POINTS, device=logits.device)
        values = plif(z) - plif(torch.zeros_like(z[:1]))
        slopes = plif.bin_slopes()[_reached(plif.knots(), low, high)]
    return {
        "slopes": _statistics(slopes.cpu().numpy()),
        "logits": [low, high],
        "z": np.round(z.tolist(), 4).tolist(),
        "values": np.round(values.tolist(), 4).tolist(),
    }


def _reached(knots: Tensor, low: float, high: float) -> Tensor:
    """Which bins lie between two logits; the end bins go on beyond the knots."""
    import torch

    inner = knots[1:-1].contiguous()
    first, last = (int(torch.searchsorted(inner, end)) for end in (low, high))
    return torch.arange(first, last + 1, device=knots.device)


def _statistics(slopes: NDArray[np.float64]) -> dict[str, float]:
    return {
        "mean": round(float(slopes.mean()), 4),
        "deviation": round(float(slopes.std()), 4),
        "least": round(float(slopes.min()), 4),
        "greatest": round(float(slopes.max()), 4),
        "count": len(slopes),
    }


def unargmaxable(model: AWDLSTM, words: Sequence[str]) -> dict[str, Any] | None:
    """The words that are never the most probable ones, each proven: whatever the input, and for what an LSTM
    can put out, numbers between −1 and 1. None of a mixture with a PLIF.

    Of a mixture of plain softmaxes only the unargmaxable words are known, not the others. Each component sees
    a tanh, in ±1 too, and a certificate λ says s_c ≤ Σ λ_i s_i there; e^s is convex, so P(c) ≤ Σ λ_i P(i) in
    each component, hence in their mixture: some other word is at least as probable. A PLIF is not convex.
    """
    shape = model.shape
    if shape.is_mixture and shape.has_plif:
        return None
    weight, bias = model.head.weight, model.head.bias
    head = Head(weight.detach().cpu().numpy(), None if bias is None else bias.detach().cpu().numpy(), words)
    return {
        name: _never_best(verify(head, domain, engine=ONE_PROCESS), words)
        for name, domain in (("everywhere", Everywhere()), ("reachable", Box(-1.0, 1.0)))
    }


def _never_best(result: Result, words: Sequence[str]) -> dict[str, Any]:
    return {
        "words": [words[verdict.class_id] for verdict in result.unargmaxable],
        "undecided": len(result.undecided),
    }


# ---------------------------------------------------------------------- showing


def table(cells: Sequence[Cell]) -> str:
    """Perplexities beside the papers', then what each head costs and can say, then the PLIFs' slopes."""
    return "\n\n".join([_perplexities(cells), _costs(cells), _slopes(cells)])


def _perplexities(cells: Sequence[Cell]) -> str:
    columns = ["head", "parameters", "validation", "test", "test − linear", "PTB¹", "WikiText-2¹", "PTB²"]
    rows = []
    for head, name in HEADS.items():
        found = _of(cells, head)
        gap = "" if head == "linear" else _signed([each["test"] for each in found], _of(cells, "linear"))
        rows.append(
            [
                name, f"{found[0]['parameters']:,}", _spread([each["validation"] for each in found]),
                _spread([each["test"] for each in found]), gap,
                *(paper.get(head, "") for paper in (PENN_TREEBANK, WIKITEXT_2, CONTROLLED)),
            ]
        )  # fmt: skip
    return f"{markdown_table(columns, rows)}\n\n" + (
        f"Perplexities: means of {len(_of(cells, 'linear'))} seeds ± half of the 95 % interval; differences "
        "are paired by seed. ¹ Test perplexity (and time of an epoch) in "
        "Table 1 of Ganea et al. ² Test perplexity (and rank of log P, of 10,000) of Parthiban et al. ³ As "
        "published by Yang et al. 2018, not run again."
    )


def _costs(cells: Sequence[Cell]) -> str:
    columns = [
        "head", "s an epoch", "against linear", "the paper's", "MB in a step", "rank of log P",
        "never argmax", "never, within ±1",
    ]  # fmt: skip
    rows = []
    plain = mean(each["seconds_per_epoch"] for each in _of(cells, "linear"))
    for head, name in HEADS.items():
        found = _of(cells, head)
        seconds = mean(each["seconds_per_epoch"] for each in found)
        megabytes = max(each["step_megabytes"] for each in found)
        rows.append(
            [
                name, f"{seconds:.1f}", f"{seconds / plain:.2f} ×", PAPER_COST.get(head, ""),
                f"{megabytes:.1f}", _ranks(found), _lost(found, "everywhere"), _lost(found, "reachable"),
            ]
        )  # fmt: skip
    most = _of(cells, "linear")[0]["rank"]["most"]
    return f"{markdown_table(columns, rows)}\n\n" + (
        f"Rank: of at most {most:,}, in single precision, then in double where that differs. Never argmax: "
        "proven unargmaxable words of each seed, for any input, and for inputs between −1 and 1, which is "
        "all an LSTM puts out; all other words are proven argmaxable. Of MoS the components are meant: what "
        "none of them can say, their mixture can't, but of the other words nothing is known."
    )


def _slopes(cells: Sequence[Cell]) -> str:
    rows = [["Ganea et al., Table 2 (WikiText-2)", *(f"{value:.2f}" for value in SLOPES.values())]]
    for head in ("lms-plif", "random-plif", "mos-plif"):
        statistics = [each["plif"]["slopes"] for each in _of(cells, head)]
        rows.append([HEADS[head], *(f"{mean(each[name] for each in statistics):.2f}" for name in SLOPES)])
    return markdown_table(["slopes of the bins that logits fall in", *SLOPES], rows)


def _of(cells: Sequence[Cell], head: str) -> list[Mapping[str, Any]]:
    """What the cells of a head found, in the order of their seeds."""
    chosen = [cell for cell in cells if cell.settings["head"] == head]
    return [cell.found for cell in sorted(chosen, key=lambda cell: int(cell.settings["seed"]))]


def _spread(values: Sequence[float]) -> str:
    return f"{mean(values):.2f} ± {half_interval(values):.2f}" if len(values) > 1 else f"{values[0]:.2f}"


def _signed(values: Sequence[float], linear: Sequence[Mapping[str, Any]]) -> str:
    gaps = differences(values, [each["test"] for each in linear])
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


def _lost(found: Sequence[Mapping[str, Any]], domain: str) -> str:
    if found[0]["unargmaxable"] is None:
        return "–"
    counts = ", ".join(str(len(each["unargmaxable"][domain]["words"])) for each in found)
    undecided = sum(each["unargmaxable"][domain]["undecided"] for each in found)
    return f"{counts} ({undecided} undecided)" if undecided else counts


def figures(cells: Sequence[Cell]) -> dict[str, Figure]:
    return {"language_models": _comparison(cells), "language_models_plif": _functions(cells)}


def _comparison(cells: Sequence[Cell]) -> Figure:
    """Each head's test perplexity against the linear one's, and validation on the way."""
    with drawing(PAGE, 2.6) as figure:
        left, right = figure.subplots(1, 2, width_ratios=(3, 2))
        _draw_gaps(left, cells)
        for number, (head, name) in enumerate(HEADS.items()):
            curves = np.array([each["by_epoch"] for each in _of(cells, head)])
            right.plot(
                range(1, curves.shape[1] + 1), curves.mean(axis=0), color=LINE_COLOURS[number], label=name
            )
        right.set(xlabel="epoch", ylabel="validation perplexity")
        right.xaxis.get_major_locator().set_params(integer=True)
        right.legend()
    return figure


def _draw_gaps(axes: Axes, cells: Sequence[Cell]) -> None:
    linear = [each["test"] for each in _of(cells, "linear")]
    others = [head for head in HEADS if head != "linear"]
    axes.axvline(0, color=FAINT, linewidth=0.8)
    for row, head in enumerate(others):
        gaps = differences([each["test"] for each in _of(cells, head)], linear)
        colour = LINE_COLOURS[list(HEADS).index(head)]
        if len(gaps) > 1:
            axes.errorbar(mean(gaps), row, xerr=half_interval(gaps), color=colour, capsize=2.5, marker="|")
        axes.scatter(gaps, [row] * len(gaps), s=12, color=colour, linewidths=0, zorder=3)
    axes.set_yticks(range(len(others)), labels=[HEADS[head] for head in others])
    axes.set(xlabel="test perplexity − that of the linear head, same seed", ylim=(len(others) - 0.5, -0.5))


def _functions(cells: Sequence[Cell]) -> Figure:
    """Figure 4: the functions as learned, without the straight line they started from, one for each seed."""
    with drawing(PAGE, 2.4) as figure:
        heads = ("lms-plif", "random-plif", "mos-plif")
        for axes, head in zip(figure.subplots(1, 3, sharey=True), heads, strict=True):
            colour = LINE_COLOURS[list(HEADS).index(head)]
            for found in _of(cells, head):
                z, values = (np.array(found["plif"][name]) for name in ("z", "values"))
                axes.plot(z, values - z, color=colour, linewidth=0.9)
            axes.axhline(0, color=INK, linewidth=0.4)
            axes.set(xlabel="logit z", title=HEADS[head])
        figure.axes[0].set_ylabel("f(z) − z")
    return figure


def weight(settings: Settings) -> float:
    """Of a cell's cost: a mixture computes its logits several times, and a PLIF about doubles their cost."""
    components = 3.0 if settings["head"].startswith("mos") else 1.0
    return 1.0 + components * (2.0 if settings["head"].endswith("plif") else 1.0)


EXPERIMENT = Experiment(
    name="language_models",
    source="Ganea, Gelly, Bécigneul & Severyn 2019, Tables 1 and 2, Figure 4; Parthiban, Mao & Inkpen 2021",
    expected=(
        "learning a PLIF takes 0.4 to 1.1 off the test perplexity of a linear softmax and hardly costs "
        "anything, a mixture takes off 1.9 and costs 2.5 to 4.6 times as much; a frozen random PLIF does as "
        "well as a learned one."
    ),
    cells=cells,
    measure=measure,
    table=table,
    figures=figures,
    weight=weight,
    needs_text=True,
)

if __name__ == "__main__":
    main(EXPERIMENT, __doc__)
