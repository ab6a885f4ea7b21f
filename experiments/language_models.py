"""Language models with one recurrent network and six heads: does a head of higher rank predict better?

Ganea et al. 2019 put a learned increasing function (PLIF) between the logits and the softmax of AWD-LSTM and
find lower perplexities, at hardly more cost (Table 1); mixtures of softmaxes are better and slower.
Parthiban, Mao & Inkpen 2021 add a control: a random PLIF that never learns does as well. Here all heads have
the same number of parameters, text and epochs, and their words are verified afterwards, as far as that goes
for a mixture.

  python -m experiments.language_models --text data/wikitext-2           as committed: 35 processor minutes
  python -m experiments.language_models --text data/penn-treebank --paper  as published: a GPU and days
  python -m experiments.language_models --text data/wikitext-2 --long    until they converge: days
  python -m experiments.language_models --smoke

The text is a directory with train.txt, valid.txt and test.txt, or the last two: these are cut into three. The
Parquet files of a dataset on the hub do as well.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from argmaxable import Box, Everywhere, Head, Result, verify
from argmaxable.run.plan import ONE_PROCESS
from argmaxable.theory.rank import measure_rank
from argmaxable.theory.spectrum import rows_of
from experiments._cells import Cell, Experiment, Long, Scale, Settings
from experiments._experiment import main
from experiments._language_model_tables import HEADS, SLOW_PLIF, figures, search_table, table

if TYPE_CHECKING:
    from torch import Tensor

    from experiments._awd_lstm import AWDLSTM, Shape
    from experiments._corpus import Corpus
    from experiments._training import Schedule

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
# The long runs. First the present models for 60 epochs, then larger ones until validation stops improving.
# Averages begin by AWD-LSTM's trigger (no better than the best of more than `patience` epochs ago), in the
# small ones after the 45th epoch at the latest. Training of the large ones ends when five epochs of averages
# brought nothing better. Before either, every head tries the same rates on the same seed, for as many epochs;
# the lowest validation perplexity chooses. A PLIF's slopes have the rate of the weights, so that all heads
# search one number. In large models, a PLIF whose slopes have the follow-up's rate is tried as well.
_RATES = (5.0, 10.0, 20.0)
_SMALL = "small"
_LARGE = "large"
_LARGE_BF16 = "large-bf16"
_LARGE_SHAPE = {"features": 128, "hidden": 256, "layers": 2, "bins": 1_000, "drop": {**_DROP, "words": 0.1}}
_LONG: dict[str, dict[str, Any]] = {
    _SMALL: {
        "sizes": {"vocabulary": 1_000, "contexts": 1_024}, "shape": _COMMITTED["shape"], "mixtures": (3,),
        "heads": tuple(HEADS),
        "search": _COMMITTED["schedule"],
        "schedule": {**_COMMITTED["schedule"], "epochs": 60, "average_after": 45},
    },
    _LARGE: {
        "sizes": {"vocabulary": 10_000, "contexts": 2_048}, "shape": _LARGE_SHAPE, "mixtures": (3,),
        "heads": (*HEADS, SLOW_PLIF),
        "search": {**_COMMITTED["schedule"], "epochs": 3, "average_after": None},
        "schedule": {
            **_COMMITTED["schedule"], "epochs": 100, "average_after": None, "patience": 5, "stop_after": 5,
        },
    },
}  # fmt: skip
# The published number of components, and a linear head to compare with. In float32 a run of the mixture would
# take one core three hours, so the products of both have factors rounded to bfloat16 in training.
_LONG[_LARGE_BF16] = {
    **_LONG[_LARGE], "mixtures": (15,), "heads": ("linear", "mos"),
    **{name: {**_LONG[_LARGE][name], "products": "bf16"} for name in ("search", "schedule")},
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


def search() -> list[Settings]:
    """Every head with every rate, at both sizes of the long runs."""
    return [
        _long_cell(part, head, mixtures, 0, rate, "search")
        for part, head, mixtures in _long_heads()
        for rate in _RATES
    ]


def long_cells(found: Sequence[Cell]) -> list[Settings]:
    """Every head whose rates were all tried, with the best of them and all seeds."""
    tried = Counter(_long_head(cell.settings) for cell in found)
    return [
        _long_cell(part, head, mixtures, seed, best_rate(found, part, head, mixtures), "schedule")
        for part, head, mixtures in _long_heads()
        if tried[part, head, mixtures] == len(_RATES)
        for seed in range(_SEEDS)
    ]


def best_rate(found: Sequence[Cell], part: str, head: str, mixtures: int) -> float:
    """The rate of the lowest validation perplexity; one that made the loss infinite or NaN has none."""
    own = [
        cell
        for cell in found
        if _long_head(cell.settings) == (part, head, mixtures) and cell.found["validation"] is not None
    ]
    best = min(own, key=lambda cell: float(cell.found["validation"]))
    return float(best.settings["schedule"]["rate"])


def _long_heads() -> list[tuple[str, str, int]]:
    return [
        (part, head, mixtures)
        for part, sizes in _LONG.items()
        for head in sizes["heads"]
        for mixtures in (sizes["mixtures"] if head.startswith("mos") else sizes["mixtures"][:1])
    ]


def _long_head(settings: Settings) -> tuple[str, str, int]:
    return settings["part"], settings["head"], settings["shape"]["mixtures"]


def _long_cell(part: str, head: str, mixtures: int, seed: int, rate: float, schedule: str) -> Settings:
    sizes = _LONG[part]
    shape = {**sizes["shape"], "mixtures": mixtures}
    if head == "random-plif":
        shape["bins"] = _CONTROL_BINS
    slope_rate = _PUBLISHED_RATES["slope_rate"] if head == SLOW_PLIF else rate
    return {
        "part": part, "head": head, "seed": seed, **sizes["sizes"], "shape": shape,
        "is_search": schedule == "search",
        "schedule": {**sizes[schedule], "rate": rate, "slope_rate": slope_rate},
    }  # fmt: skip


def measure(settings: Settings, text: Path | None) -> dict[str, Any]:
    """Train one model, then look at its head; of a search only its validation."""
    if settings.get("is_search"):
        return _searched(settings, text)
    return _measured(settings, text)


def _searched(settings: Settings, text: Path | None) -> dict[str, Any]:
    from experiments._training import train

    words = _read(text, settings["vocabulary"])
    try:
        trained = train(*recipe(settings, len(words.words)), words)
    except FloatingPointError:
        return {"validation": None}
    seconds = round(median(epoch.seconds for epoch in trained.epochs), 2)
    by_epoch = [round(epoch.validation, 3) for epoch in trained.epochs]
    return {"validation": trained.validation, "by_epoch": by_epoch, "seconds_per_epoch": seconds}


def _measured(settings: Settings, text: Path | None) -> dict[str, Any]:
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
        # Whether a validation that gets worse is overfitting.
        "training_by_epoch": [round(epoch.training, 3) for epoch in trained.epochs],
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

    seed = settings["seed"]
    head = "lms-plif" if settings["head"] == SLOW_PLIF else settings["head"]
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


def weight(settings: Settings) -> float:
    """Of a cell's cost: a mixture computes its logits several times, and a PLIF about doubles their cost."""
    head, shape = settings["head"], settings.get("shape", {})
    components = float(shape.get("mixtures", 3)) if head.startswith("mos") else 1.0
    size = shape.get("features", 32) * settings["vocabulary"] * settings.get("schedule", {}).get("epochs", 8)
    return float(size * (1.0 + components * (2.0 if head.endswith("plif") else 1.0)))


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
    long=Long(search, long_cells, len(_long_heads()) * _SEEDS, search_table),
)

if __name__ == "__main__":
    main(EXPERIMENT, __doc__)
