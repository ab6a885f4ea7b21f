"""Sparse label sets: which sets of its training data a multi-label head can never put out, with a plain
layer and with the DFT layer.

A small encoder reads noisy sums of label vectors into d features; a layer turns them into a logit for each
label. Label sets have a few labels each, frequent ones more often. After training a sample of the training
sets is asked about, one by one, over all of feature space: is there any x that switches on exactly this
set? Of a DFT layer's features 2k + 1 are fixed and carry the promise; the rest are learned as usual.

    python -m experiments.label_sets --smoke
    python -m experiments.label_sets
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

import argmaxable as am
from argmaxable.layers import DFTLinear
from experiments.harness.cells import Cell, Experiment, Scale, Settings
from experiments.harness.command import main
from experiments.harness.markdown import markdown_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINEAR, DFT = "linear", "DFT"
# The largest sets that a DFT layer promises; with 12, 25 features leave none to be learned.
_PROMISED, _ALL_FIXED = 5, 12
_INPUTS, _HIDDEN = 200, 256
_BATCH = 100
# A label's share falls with the root of its rank: every label occurs, frequent ones some ten times as often.
_FLATNESS = 0.5
Members = tuple[int, ...]


def cells(scale: Scale) -> list[Settings]:
    if scale is Scale.SMOKE:
        sizes = {"labels": 60, "largest": 2, "examples": 300, "epochs": 3, "asked": 20, "seed": 0}
        return [_settings(LINEAR, 7, sizes), _settings(DFT, 7, sizes, active=2)]
    sizes = {"labels": 9000, "largest": 5, "examples": 8000, "epochs": 40, "asked": 3000, "seed": 0}
    wide = 25 + 2 * _PROMISED + 1
    return [
        _settings(LINEAR, 25, sizes),
        _settings(DFT, 25, sizes, active=_PROMISED),
        _settings(LINEAR, wide, sizes),
        _settings(DFT, wide, sizes, active=_PROMISED),
        # A set takes long where nothing but the circle tells labels apart: neighbours are all but equal.
        _settings(DFT, 25, sizes | {"asked": 300}, active=_ALL_FIXED),
    ]


def _settings(layer: str, features: int, sizes: Settings, **more: int) -> Settings:
    return {"layer": layer, "features": features, **sizes, **more}


def measure(settings: Settings, text: Path | None) -> Mapping[str, Any]:
    torch.manual_seed(settings["seed"])
    sets = draw_sets(settings)
    inputs = _inputs(sets, settings)
    layer = _layer(settings)
    model = nn.Sequential(
        nn.Linear(_INPUTS, _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, settings["features"]), layer
    )
    _train(model, inputs, sets, settings)
    asked = list(dict.fromkeys(sets))[: settings["asked"]]
    found: dict[str, Any] = {"f1": _f1(model, inputs, sets)}
    found |= _feasible(am.Head.from_module(layer), asked)
    if isinstance(layer, DFTLinear):
        found["proven_active"] = layer.proven_active
    return found


def draw_sets(settings: Settings) -> list[Members]:
    """A set of labels for each example."""
    generator = np.random.default_rng(settings["seed"])
    share = (1.0 + np.arange(settings["labels"])) ** -_FLATNESS
    generator.shuffle(share)  # neighbours on the circle need not be alike
    sizes = generator.integers(1, settings["largest"] + 1, settings["examples"])
    draws = (generator.choice(len(share), size, replace=False, p=share / share.sum()) for size in sizes)
    return [tuple(sorted(draw.tolist())) for draw in draws]


def _inputs(sets: Sequence[Members], settings: Settings) -> Tensor:
    vectors = torch.randn(settings["labels"], _INPUTS)
    sums = torch.stack([vectors[list(members)].sum(dim=0) for members in sets])
    return sums + 0.1 * torch.randn_like(sums)


def _layer(settings: Settings) -> nn.Linear:
    features, labels = settings["features"], settings["labels"]
    if settings["layer"] == LINEAR:
        return nn.Linear(features, labels)
    return DFTLinear(features, labels, active=settings["active"])


def _train(model: nn.Sequential, inputs: Tensor, sets: Sequence[Members], settings: Settings) -> None:
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(settings["epochs"]):
        for some in torch.randperm(len(sets)).split(_BATCH):
            targets = _targets([sets[k] for k in some.tolist()], settings["labels"])
            logits = model(inputs[some])
            loss = nn.functional.binary_cross_entropy_with_logits(logits, targets, reduction="sum") / len(
                some
            )
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()


def _targets(sets: Sequence[Members], labels: int) -> Tensor:
    targets = torch.zeros(len(sets), labels)
    for row, members in enumerate(sets):
        targets[row, list(members)] = 1.0
    return targets


@torch.no_grad()
def _f1(model: nn.Sequential, inputs: Tensor, sets: Sequence[Members]) -> float:
    """Over all labels of all training examples together, a label being on where its logit is positive."""
    hits = told = meant = 0
    for some in torch.arange(len(sets)).split(_BATCH):
        on = model(inputs[some]) > 0
        right = _targets([sets[k] for k in some.tolist()], on.shape[1]).bool()
        hits, told, meant = hits + int((on & right).sum()), told + int(on.sum()), meant + int(right.sum())
    return 2 * hits / max(1, told + meant)


def _feasible(head: am.Head, asked: Sequence[Members]) -> dict[str, int]:
    found = am.sets(head, am.Everywhere(), asked, engine=am.Engine(workers=1))
    counts = {status: len(found.having(status)) for status in am.Feasibility}
    return {"asked": len(found.claims), **{str(status): count for status, count in counts.items()}}


# ---------------------------------------------------------------------- showing


def table(measured: Sequence[Cell]) -> str:
    """A row for each layer."""
    columns = [
        *("layer", "features", "of them learned", "promised by theory", "F1"),
        *("training sets asked", "infeasible", "undecided", "every set proven up to"),
    ]
    return markdown_table(columns, [_row(cell.settings, cell.found) for cell in measured])


def _row(settings: Settings, found: Mapping[str, Any]) -> list[object]:
    active = settings.get("active")
    features = settings["features"]
    return [
        settings["layer"],
        features,
        features if active is None else features - 2 * active - 1,
        "" if active is None else f"every set of {active}",
        f"{found['f1']:.3f}",
        *(f"{found[name]:,}" for name in ("asked", "infeasible", "undecided")),
        found.get("proven_active", ""),
    ]


def figures(measured: Sequence[Cell]) -> dict[str, Figure]:
    """The table says it all."""
    return {}


EXPERIMENT = Experiment(
    name="label_sets",
    source="Grivas, Vergari & Lopez 2024",
    expected="sigmoid layers with few features can't put out some label sets of their own data; "
    "with the DFT layer, "
    "which guarantees every set of at most k labels with 2k + 1 features, none is "
    "infeasible, at about the same F1.",
    cells=cells,
    measure=measure,
    table=table,
    figures=figures,
)

if __name__ == "__main__":
    main(EXPERIMENT, __doc__)
