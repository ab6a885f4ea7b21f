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
from collections.abc import Sequence
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
from experiments.harness.cells import Experiment, Long, Settings
from experiments.harness.command import main
from experiments.language.plan import SEEDS, cells, long_cells, long_heads, recipe, search, weight
from experiments.language.tables import figures, search_table, table

if TYPE_CHECKING:
    from torch import Tensor

    from experiments.harness.corpus import Corpus
    from experiments.models.awd_lstm import AWDLSTM

_POINTS = 161  # of a PLIF, kept to be drawn


def measure(settings: Settings, text: Path | None) -> dict[str, Any]:
    """Train one model, then look at its head; of a search only its validation."""
    if settings.get("is_search"):
        return _searched(settings, text)
    return _measured(settings, text)


def _searched(settings: Settings, text: Path | None) -> dict[str, Any]:
    from experiments.models.training import train

    words = _read(text, settings["vocabulary"])
    try:
        trained = train(*recipe(settings, len(words.words)), words)
    except FloatingPointError:
        return {"validation": None}
    seconds = round(median(epoch.seconds for epoch in trained.epochs), 2)
    by_epoch = [round(epoch.validation, 3) for epoch in trained.epochs]
    return {"validation": trained.validation, "by_epoch": by_epoch, "seconds_per_epoch": seconds}


def _measured(settings: Settings, text: Path | None) -> dict[str, Any]:
    from experiments.models.awd_lstm import parameters
    from experiments.models.training import contexts, step_bytes, train

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
    from experiments.harness.corpus import corpus

    return corpus(text, vocabulary=vocabulary)


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
    long=Long(search, long_cells, len(long_heads()) * SEEDS, search_table),
)

if __name__ == "__main__":
    main(EXPERIMENT, __doc__)
