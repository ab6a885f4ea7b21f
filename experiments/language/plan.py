"""Which language models are trained, and how: sizes, schedules and seeds of every scale, and the long runs
with their search for learning rates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from experiments.harness.cells import Cell, Scale, Settings
from experiments.language.tables import HEADS, SLOW_PLIF

if TYPE_CHECKING:
    from experiments.models.awd_lstm import Shape
    from experiments.models.training import Schedule

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
PUBLISHED_BINS = {"mos-plif": 1_000_000}
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
# search one number. In large models, a PLIF whose slopes have the follow-up's rate is tried as well, and MoS
# with the published number of components too. MoS + PLIF with as many would cost too much (page/costs.py).
RATES = (5.0, 10.0, 20.0)
_ANY = (3,)  # the number of components that heads without any are filed under
_SMALL = "small"
LARGE = "large"
_LARGE_SHAPE = {"features": 128, "hidden": 256, "layers": 2, "bins": 1_000, "drop": {**_DROP, "words": 0.1}}
LONG: dict[str, dict[str, Any]] = {
    _SMALL: {
        "sizes": {"vocabulary": 1_000, "contexts": 1_024}, "shape": _COMMITTED["shape"],
        "heads": tuple(HEADS), "mixtures": {"mos": (3,), "mos-plif": (3,)},
        "search": _COMMITTED["schedule"],
        "schedule": {**_COMMITTED["schedule"], "epochs": 60, "average_after": 45},
    },
    LARGE: {
        "sizes": {"vocabulary": 10_000, "contexts": 2_048}, "shape": _LARGE_SHAPE,
        "heads": (*HEADS, SLOW_PLIF), "mixtures": {"mos": (3, 15), "mos-plif": (3,)},
        "search": {**_COMMITTED["schedule"], "epochs": 3, "average_after": None},
        "schedule": {
            **_COMMITTED["schedule"], "epochs": 100, "average_after": None, "patience": 5, "stop_after": 5,
        },
    },
}  # fmt: skip
SEEDS = 3
# Heads of about as many parameters keep their hidden units, and with them the same start and dropout.
CLOSE_ENOUGH = 0.01


def cells(scale: Scale) -> list[Settings]:
    """All heads, with all seeds."""
    sizes = {Scale.SMOKE: _SMOKE, Scale.COMMITTED: _COMMITTED, Scale.PAPER: _PUBLISHED}[scale]
    seeds = range(1 if scale is Scale.SMOKE else SEEDS)
    found: list[Settings] = [{"head": head, "seed": seed, **sizes} for head in HEADS for seed in seeds]
    if scale is Scale.COMMITTED:
        control = {"shape": {**_COMMITTED["shape"], "bins": _CONTROL_BINS}}
        found = [{**cell, **control} if cell["head"] == "random-plif" else cell for cell in found]
    return found


def search() -> list[Settings]:
    """Every head with every rate, at both sizes of the long runs."""
    return [
        long_cell(part, head, mixtures, 0, rate, "search")
        for part, head, mixtures in long_heads()
        for rate in RATES
    ]


def long_cells(found: Sequence[Cell]) -> list[Settings]:
    """Every head whose rates were all tried, with the best of them and all seeds."""
    tried = Counter(_long_head(cell.settings) for cell in found)
    return [
        long_cell(part, head, mixtures, seed, best_rate(found, part, head, mixtures), "schedule")
        for part, head, mixtures in long_heads()
        if tried[part, head, mixtures] == len(RATES)
        for seed in range(SEEDS)
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


def long_heads() -> list[tuple[str, str, int]]:
    return [
        (part, head, mixtures)
        for part, sizes in LONG.items()
        for head in sizes["heads"]
        for mixtures in sizes["mixtures"].get(head, _ANY)
    ]


def _long_head(settings: Settings) -> tuple[str, str, int]:
    return settings["part"], settings["head"], settings["shape"]["mixtures"]


def long_cell(part: str, head: str, mixtures: int, seed: int, rate: float, schedule: str) -> Settings:
    sizes = LONG[part]
    shape = {**sizes["shape"], "mixtures": mixtures}
    if head == "random-plif":
        shape["bins"] = _CONTROL_BINS
    slope_rate = _PUBLISHED_RATES["slope_rate"] if head == SLOW_PLIF else rate
    return {
        "part": part, "head": head, "seed": seed, **sizes["sizes"], "shape": shape,
        "is_search": schedule == "search",
        "schedule": {**sizes[schedule], "rate": rate, "slope_rate": slope_rate},
    }  # fmt: skip


def recipe(settings: Settings, words: int) -> tuple[Shape, Schedule]:
    """The model and its training that a cell asks for, on a text with so many different words."""
    from experiments.models.awd_lstm import Drop, Shape
    from experiments.models.training import Schedule

    seed = settings["seed"]
    head = "lms-plif" if settings["head"] == SLOW_PLIF else settings["head"]
    if "shape" in settings:
        sizes = {**settings["shape"], "drop": Drop(**settings["shape"]["drop"])}
        return matched(Shape(head, words, **sizes)), Schedule(seed=seed, **settings["schedule"])
    published = _PENN if words <= _PENN_WORDS else _WIKITEXT
    bins = PUBLISHED_BINS.get(head, Shape.bins)
    return Shape(head, words, bins=bins, drop=Drop(**published["drop"])), Schedule(
        seed=seed, **published["schedule"]
    )


def matched(shape: Shape) -> Shape:
    """The shape with as many hidden units as bring its parameters to those of a linear head's model."""
    from experiments.models.awd_lstm import parameters, with_parameters

    wanted = parameters(replace(shape, head="linear"))
    if abs(parameters(shape) - wanted) <= CLOSE_ENOUGH * wanted:
        return shape
    return with_parameters(shape, wanted)


def weight(settings: Settings) -> float:
    """Of a cell's cost: a mixture computes its logits several times, and a PLIF about doubles their cost."""
    head, shape = settings["head"], settings.get("shape", {})
    components = float(shape.get("mixtures", 3)) if head.startswith("mos") else 1.0
    size = shape.get("features", 32) * settings["vocabulary"] * settings.get("schedule", {}).get("epochs", 8)
    return float(size * (1.0 + components * (2.0 if head.endswith("plif") else 1.0)))
