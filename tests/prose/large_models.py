"""What the large language models are said to have found in docs/results.md."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from experiments.harness.again import TOLERANCE
from experiments.harness.cells import Cell
from experiments.harness.statistics import half_interval
from experiments.language import plan
from experiments.language.tables import SLOW_PLIF
from prose.numbers import Claims
from prose.sources import cells, record, span

_LONG = "long/language_models"
_PLAN = plan.LONG["large"]
_HEADS = tuple(_PLAN["heads"])
# How many seeds each head has.
_SEEDS = {
    "linear": 3,
    "sigsoftmax": 3,
    "random-plif": 3,
    "mos": 2,
    SLOW_PLIF: 2,
    "lms-plif": 1,
    "mos-plif": 1,
}
_FEW, _PUBLISHED = _PLAN["mixtures"]["mos"]


def _of(head: str) -> list[Cell]:
    """The cells of a head, by seed; of the mixtures the small one."""
    own = [
        cell for cell in cells(_LONG, part="large", head=head) if cell.settings["shape"]["mixtures"] == _FEW
    ]
    found = sorted(own, key=lambda cell: int(cell.settings["seed"]))
    assert [cell.settings["seed"] for cell in found] == [*range(len(found))]
    return found


def _found(head: str) -> Any:
    """What the first seed found."""
    return _of(head)[0].found


def _gaps(head: str) -> list[float]:
    """On the test text, of every seed."""
    return [
        float(cell.found["test"] - linear.found["test"])
        for cell, linear in zip(_of(head), _of("linear"), strict=False)
    ]


def _rate(head: str) -> float:
    (rate,) = {float(cell.settings["schedule"]["rate"]) for cell in _of(head)}
    return rate


def _turn(found: Any) -> int:
    """The best epoch before averaging."""
    curve = found["by_epoch"][: -found["averaged_epochs"]]
    return 1 + int(curve.index(min(curve)))


def _fit(head: str) -> list[float]:
    """Perplexity on the training and on the validation text in the best epoch."""
    found = _found(head)
    best = found["by_epoch"].index(min(found["by_epoch"]))
    return [found["training_by_epoch"][best], found["validation"]]


def _seeds() -> None:
    assert {head: len(_of(head)) for head in _HEADS} == _SEEDS


def long_large_figure() -> list[float]:
    _seeds()
    both = ("sigsoftmax", "random-plif", "mos", SLOW_PLIF)
    assert all(min(gaps) < 0 < max(gaps) for gaps in map(_gaps, both))
    return [*_gaps("lms-plif"), *_gaps("mos-plif"), _turn(_found("lms-plif"))]


def long_large() -> list[float]:
    _seeds()
    assert {head for head in _HEADS if _rate(head) != max(plan.RATES)} == {"mos"}
    undecided = {head: _gaps(head) for head in ("sigsoftmax", "random-plif", "mos", SLOW_PLIF)}
    assert all(abs(fmean(gaps)) < half_interval(gaps) for gaps in undecided.values())
    return [
        _FEW, *(cell.found["test"] for cell in _of("linear")),
        *(abs(gap) for gaps in undecided.values() for gap in gaps),
        *_gaps("lms-plif"), *_gaps("mos-plif"), _rate("mos"), _rate("linear"),
    ]  # fmt: skip


def _searched(head: str, mixtures: int) -> tuple[float, float]:
    """The lowest validation perplexity of a head's search, and its rate."""
    return min(
        (cell["found"]["validation"], cell["settings"]["schedule"]["rate"])
        for cell in record(f"experiments/results/{_LONG}.json")["search"]
        if (cell["settings"]["part"], cell["settings"]["head"]) == ("large", head)
        and cell["settings"]["shape"]["mixtures"] == mixtures
    )


def long_large_published() -> list[float]:
    (many, rate), (few, _), (linear, _) = (
        _searched(head, mixtures) for head, mixtures in (("mos", _PUBLISHED), ("mos", _FEW), ("linear", _FEW))
    )
    assert _PLAN["search"]["epochs"] == 3
    return [_PUBLISHED, rate, many, few, _FEW, linear]


def long_large_again() -> list[float]:
    *same, other = record(f"experiments/results/{_LONG}.json")["again"]
    assert not any(entry["different"] for entry in same)
    assert (other["settings"]["head"], other["settings"]["seed"]) == ("linear", 1)
    assert other["first_commit"] != other["commit"]
    return [other["numbers"], other["different"], other["beyond_tolerance"], 100 * TOLERANCE]


def long_large_short() -> list[float]:
    plif, linear = (_found(head)["by_epoch"] for head in ("lms-plif", "linear"))
    epochs, turn = _PLAN["search"]["epochs"], _turn(_found("lms-plif"))
    assert epochs == 3
    searched = {head: _found(head)["by_epoch"][epochs - 1] for head in _HEADS}
    assert min(searched, key=searched.__getitem__) == "lms-plif"
    assert max(searched, key=searched.__getitem__) == "random-plif"
    assert all(plif[epoch] < linear[epoch] for epoch in range(turn))
    unaveraged = len(plif) - _found("lms-plif")["averaged_epochs"]
    assert all(plif[epoch] > linear[epoch] for epoch in range(turn, unaveraged))
    assert min(plif) > min(linear)
    return [
        searched["linear"] - searched["lms-plif"], searched["random-plif"] - searched["linear"], turn,
    ]  # fmt: skip


def long_large_overfit() -> list[float]:
    (drop,) = {value for head in _HEADS for value in _of(head)[0].settings["shape"]["drop"].values()}
    plif = _found("lms-plif")
    training, turn = plif["training_by_epoch"], _turn(plif)
    assert training == sorted(training, reverse=True)
    # The linear head's first seed did not record it.
    assert min(_HEADS[1:], key=lambda head: _fit(head)[0]) == "mos"
    assert abs(_fit("lms-plif")[0] / _fit("random-plif")[0] - 1) < 0.05
    others = [value for head in ("random-plif", "lms-plif", "mos") for value in _fit(head)]
    return [*_fit("sigsoftmax"), drop, *others, training[turn - 1], turn, training[-1]]


def long_large_slow() -> list[float]:
    slow, usual = (_of(head)[0].settings["schedule"] for head in (SLOW_PLIF, "lms-plif"))
    assert slow["rate"] == usual["rate"] == usual["slope_rate"]
    slopes = _found(SLOW_PLIF)["plif"]["slopes"]
    return [
        usual["slope_rate"], slow["slope_rate"], -_gaps(SLOW_PLIF)[0], *_gaps("lms-plif"),
        slopes["least"], slopes["greatest"],
    ]  # fmt: skip


def expected_seconds(head: str, mixtures: int) -> float:
    """Of an epoch, by a few steps."""
    costs = record("experiments/page/costs.json")["language_models"]
    (seconds,) = (
        each["seconds"]
        for each in costs
        if (each["part"], each["head"], each["mixtures"]) == ("large", head, mixtures)
    )
    return float(seconds)


def long_large_words() -> list[float]:
    plain = [cell for head in _HEADS if not head.startswith("mos") for cell in _of(head)]
    for cell in plain:
        never = cell.found["unargmaxable"].values()
        assert not any(each["words"] or each["undecided"] for each in never)
    epochs = [len(cell.found["by_epoch"]) for head in _HEADS for cell in _of(head)]
    return [plain[0].settings["vocabulary"], -1, 1, *span(epochs), _PLAN["schedule"]["epochs"]]


LARGE_MODELS: Claims = {
    "long-large-figure": long_large_figure,
    "long-large": long_large,
    "long-large-published": long_large_published,
    "long-large-again": long_large_again,
    "long-large-short": long_large_short,
    "long-large-slow": long_large_slow,
    "long-large-overfit": long_large_overfit,
    "long-large-words": long_large_words,
}
