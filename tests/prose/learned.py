"""Values of docs/results.md: what its sections on heads that learn (Ganea et al. 2019) say."""

from __future__ import annotations

import math
from statistics import fmean
from typing import Any

import numpy as np

from experiments import synthetic_bottleneck
from experiments.harness.cells import Scale
from experiments.harness.statistics import half_interval
from experiments.language import plan
from experiments.language.tables import HEADS
from experiments.models.awd_lstm import Shape
from experiments.synthetic.learning import Problem
from prose.numbers import Claims
from prose.sources import cells, found, mean, quoted, record, setting, span

GANEA = "Ganea et al. 2019"
PARTHIBAN = "Parthiban, Mao & Inkpen 2021"


# ---------------------------------------------------------------------- synthetic

USUAL = {"visits": 24}
PUBLISHED = synthetic_bottleneck.EQUATION_14


def kl_of(head: str, **size: Any) -> float:
    return mean("synthetic_bottleneck", "divergence", head=head, **{**USUAL, **size})


def _modes(head: str, **size: Any) -> float:
    return 100 * mean("synthetic_bottleneck", "matched", head=head, **{**USUAL, **size})


def problem_of(alpha: float, classes: int, features: int) -> dict[str, Any]:
    return {"alpha": alpha, "classes": classes, "features": features}


def _problems() -> list[dict[str, Any]]:
    sizes = {
        tuple(cell.settings[name] for name in ("alpha", "classes", "features"))
        for cell in cells("synthetic_bottleneck", **USUAL)
    }
    return [problem_of(*size) for size in sorted(sizes)]


def _longer() -> list[dict[str, Any]]:
    sizes = {
        tuple(cell.settings[name] for name in ("alpha", "classes", "features"))
        for cell in cells("synthetic_bottleneck", visits=48)
    }
    return [problem_of(*size) for size in sorted(sizes)]


def _gain(head: str, size: dict[str, Any]) -> float:
    """Percent that twice as many steps take off the KL, of the seed that had both."""
    before = kl_of(head, seed=0, **size)
    return 100 * (1 - kl_of(head, seed=0, visits=48, **size) / before)


def _lead(size: dict[str, Any], visits: int) -> float:
    """Percent by which the KL of LMS is below that of MoS."""
    lms, mos = (kl_of(head, seed=0, visits=visits, **size) for head in ("lms", "mos"))
    return 100 * (1 - lms / mos)


def synthetic_made() -> list[float]:
    wide = {"classes": 1000, "features": 100, "alpha": 0.1, "seed": 0}
    mos, linear = (
        found("synthetic_bottleneck", "parameters", head=head, **wide)[0] for head in ("mos", "linear")
    )
    assert mos - linear == 3 * 100 * (100 + 2)
    plif = found("synthetic_bottleneck", "parameters", head="lms-plif", **wide)[0]
    lms = found("synthetic_bottleneck", "parameters", head="lms", **wide)[0]
    return [
        USUAL["visits"], Problem(1.0, 2, 10**6, seed=0).count, 0, (lms - linear - 1) / 3,
        plif - linear, 3, 2, mos, linear,
        setting("synthetic_bottleneck", "contexts", classes=1000),
        setting("synthetic_bottleneck", "contexts", classes=10_000),
    ]  # fmt: skip


def synthetic_dirichlet() -> list[float]:
    """Classes that have 99 % of a context with α = 0.01."""
    counts = []
    for classes in (100, 1000, 10_000):
        (log_p,) = Problem(0.01, classes, contexts=1, seed=0).blocks()
        falling = np.sort(np.exp(log_p[0]))[::-1]
        counts.append(int(np.searchsorted(falling.cumsum(), 0.99)) + 1)
    assert (counts[0], round(counts[1], -1)) == (1, 30)
    return [100, 1000, round(counts[2] / 100), 10_000]


def synthetic_figure() -> list[float]:
    return [len(synthetic_bottleneck.HEADS)]


def synthetic_proven() -> list[float]:
    from experiments.synthetic import learning

    few = setting("synthetic_bottleneck", "contexts", classes=10_000)
    return [learning._PROVEN, learning._DECOMPOSED, min(few, learning._DECOMPOSED)]


def synthetic_agrees() -> list[float]:
    problems = _problems()
    assert all(kl_of("lms", **size) < kl_of("linear", **size) for size in problems)
    middle = [problem_of(alpha, 1000, 30) for alpha in (0.01, 0.1, 1.0)]
    within = max(_unreached(size) for size in problems if size["classes"] == 1000)
    narrow, wide = problem_of(0.1, 1000, 10), problem_of(0.1, 1000, 30)
    errors = [
        mean("synthetic_bottleneck", "log_error", head=head, **USUAL, **wide) for head in ("lms", "linear")
    ]
    least = fmean(
        each["log_error"] for each in found("synthetic_bottleneck", "proven", head="linear", **USUAL, **wide)
    )
    plif = max(abs(kl_of("lms-plif", **size) / kl_of("lms", **size) - 1) for size in problems)
    assert sum(_rank_of("lms-plif", size) > 1 for size in problems) == 1
    return [
        len(problems), *(kl_of(head, **size) for size in middle for head in ("lms", "linear")),
        math.ceil(100 * within) / 100, _unreached(problem_of(0.01, 100, 10)),
        _modes("lms", **narrow), _modes("linear", **narrow), _modes("lms", **wide), _modes("linear", **wide),
        sum(kl_of("lms", **size) < kl_of("mos", **size) for size in problems), len(problems),
        *errors, least, 100 * plif,
    ]  # fmt: skip


def _unreached(size: dict[str, Any]) -> float:
    proven = found("synthetic_bottleneck", "proven", head="linear", **USUAL, **size)
    return fmean(each["reached"] for each in proven) - fmean(each["least"] for each in proven)


def _rank_of(head: str, size: dict[str, Any]) -> int:
    """How many heads have a lower KL, equation 14 aside."""
    own = kl_of(head, **size)
    others = [other for other in synthetic_bottleneck.HEADS if other != PUBLISHED]
    return sum(kl_of(other, **size) < own for other in others)


def synthetic_differs() -> list[float]:
    longer = _longer()
    small, middle, large = (
        next(each for each in longer if each["classes"] == n) for n in (100, 1000, 10_000)
    )
    up_to_1000 = [each for each in longer if each["classes"] <= 1000]
    gains = {head: [_gain(head, size) for size in longer] for head in ("linear", "lms", "mos")}
    few = [size for size in _problems() if size["classes"] == 10_000]
    assert all(_modes("lms", **size) < _modes("linear", **size) for size in few)
    moved = [abs(_modes(head, **large, visits=48) - _modes(head, **large)) for head in ("lms", "lms-plif")]
    assert min(moved) > 10
    fewer = [size for size in few if _modes(PUBLISHED, **size) < _modes("linear", **size)]
    assert [size["features"] for size in fewer] == [100]
    assert all(kl_of("sigsoftmax", **size) > kl_of("linear", **size) for size in _problems())
    return [
        *span(gains["linear"]), *span(gains["lms"]), *span(gains["mos"]),
        *span([_gain("mos", size) for size in up_to_1000]),
        *span([_gain("lms", size) for size in up_to_1000]),
        _lead(middle, 24), _lead(middle, 48), _lead(large, 24), _lead(large, 48),
        kl_of("mos", **small), kl_of("lms", **small), 10, _modes("lms", **large),
        _modes("lms", **large, visits=48),
        _modes("linear", **large, visits=48), _modes("lms-plif", **large),
        _modes("lms-plif", **large, visits=48),
    ]  # fmt: skip


def synthetic_where() -> list[float]:
    usual = [size for size in _problems() if size["alpha"] == 0.1]
    gains = {
        (size["classes"], size["features"]): 100 * (1 - kl_of("lms", **size) / kl_of("linear", **size))
        for size in usual
    }
    least, most = min(gains, key=gains.__getitem__), max(gains, key=gains.__getitem__)
    assert (least, most) == ((10_000, 10), (100, 30))
    middle = [problem_of(0.1, 1000, features) for features in (10, 30, 100)]
    points = [_modes("lms", **size) - _modes("linear", **size) for size in middle]
    return [gains[least], gains[most], *points[:2], 30, points[2]]


def synthetic_published() -> list[float]:
    problems = _problems()
    ratios = [kl_of(PUBLISHED, **size) / kl_of("lms", **size) - 1 for size in problems]
    large, flat = problem_of(0.1, 10_000, 30), problem_of(1.0, 1000, 30)
    pairs = [(_modes(PUBLISHED, **size), _modes("lms", **size)) for size in (large, flat)]
    more = [_modes(PUBLISHED, **size) > _modes("lms", **size) for size in problems]
    return [
        100 * max(map(abs, ratios)), sum(ratio < 0 for ratio in ratios), len(problems), sum(more),
        *pairs[0], *pairs[1], _ahead_in_modes(PUBLISHED), _ahead_in_modes("lms"), 50,
    ]  # fmt: skip


def _ahead_in_modes(head: str) -> int:
    """Problems in which a head matches more modes than the linear one and than MoS."""
    return sum(
        all(_modes(head, **size) > _modes(other, **size) for other in ("linear", "mos"))
        for size in _problems()
    )


def synthetic_cut() -> list[float]:
    missing = {
        features for column in synthetic_bottleneck.SIZES[Scale.PAPER] for features in column.features
    } - {size["features"] for size in _problems()}
    assert min(missing) == 50
    return [max(size["alpha"] for size in _problems()), max(missing)]


# ---------------------------------------------------------------------- language models

_SHAPE = {"head": "linear", "seed": 0}


def _gap(head: str, other: str = "linear", key: str = "test") -> tuple[float, float]:
    """The mean difference of two heads, paired by seed, and half of its interval."""
    pairs = zip(
        found("language_models", key, head=head), found("language_models", key, head=other), strict=True
    )
    gaps = [first - second for first, second in pairs]
    return fmean(gaps), half_interval(gaps)


def _at_epoch(head: str, epoch: int) -> float:
    curves, linear = (found("language_models", "by_epoch", head=each) for each in (head, "linear"))
    return fmean(a[epoch - 1] - b[epoch - 1] for a, b in zip(curves, linear, strict=True))


def unargmaxable_words(head: str, domain: str) -> list[list[str]]:
    return [each[domain]["words"] for each in found("language_models", "unargmaxable", head=head)]


def language_made() -> list[float]:
    text = record("experiments/page/text.json")
    assert text["text"] == record("experiments/results/language_models.json")["text"]
    shape, schedule = (setting("language_models", key, head="linear") for key in ("shape", "schedule"))
    parameters = {head: found("language_models", "parameters", head=head)[0] for head in HEADS}
    apart = max(abs(count / parameters["linear"] - 1) for count in parameters.values())
    assert apart < plan.CLOSE_ENOUGH
    published = Shape("linear", 10_000)
    control = setting("language_models", "shape", head="random-plif")["bins"]
    (inner,) = {value for name, value in shape["drop"].items() if name != "words"}
    return [
        len(HEADS), 100 * plan.CLOSE_ENOUGH,
        *(found("language_models", "hidden", head=head)[0] for head in ("mos", "mos-plif")), shape["hidden"],
        parameters["lms-plif"] - parameters["linear"],
        *(text["tokens"][part] for part in ("train", "valid", "test")),
        setting("language_models", "vocabulary"),
        *(100 * text["unknown"]["1000"][part] for part in ("train", "test")),
        shape["features"], shape["hidden"], published.features, published.hidden, schedule["epochs"],
        shape["mixtures"], published.mixtures, shape["bins"], published.bins,
        plan.PUBLISHED_BINS["mos-plif"], control, shape["bins"], schedule["rate"], inner,
        shape["drop"]["words"],
    ]  # fmt: skip


def language_knots() -> list[float]:
    millions = quoted(24.4 - 24.2, 28.6 - 26.6, source=f"{GANEA}, Table 1")
    knots = quoted(100_000, 1_000_000, source=f"{GANEA}, Table 1")
    assert all(round(1e6 * more / each, 6) == 2 for more, each in zip(millions, knots, strict=True))
    return [value for pair in zip(millions, knots, strict=True) for value in pair]


def language_figure() -> list[float]:
    better = [-_gap(head)[0] for head in ("lms-plif", "mos", "mos-plif")]
    assert 0.3 < -_gap("sigsoftmax")[0] < 0.4
    return [*span(better), _gap("random-plif")[0]]


def language_plif() -> list[float]:
    """Where the functions begin to rise (slope 1.2 and more), and where they are highest above the line."""
    starts, tops = [], []
    for head in ("lms-plif", "mos-plif"):
        for plif in found("language_models", "plif", head=head):
            z = np.array(plif["z"])
            above = np.array(plif["values"]) - z
            steep = np.diff(above) / np.diff(z) > 0.2
            starts.append(z[:-1][steep][0])
            tops.append(z[above.argmax()])
    start = round(fmean(starts))
    return [start, *(round(each) for each in span(tops)), start]


def language_agrees() -> list[float]:
    quotes = {
        "lms-plif": quoted(57.25 - 58.37, 64.86 - 65.22, source=f"{GANEA}, Table 1"),
        "mos": quoted(56.43 - 58.37, 63.33 - 65.22, source=f"{GANEA}, Table 1"),
        "mos-plif": quoted(56.02 - 58.37, source=f"{GANEA}, Table 1"),
    }
    features = setting("language_models", "shape", head="linear")["features"]
    (rank,) = {each["double"] for each in found("language_models", "rank", head="linear")}
    full = {
        each["double"]
        for head in HEADS
        if head != "linear"
        for each in found("language_models", "rank", head=head)
    }
    assert rank == features + 2
    return [
        *(value for head, published in quotes.items() for value in (*_gap(head), *published)),
        *_gap("mos-plif", "lms-plif"), rank, 2, *full,
    ]  # fmt: skip


def language_differs() -> list[float]:
    last = setting("language_models", "schedule", head="linear")["epochs"]
    seconds = {
        head: mean("language_models", "seconds_per_epoch", head=head) for head in ("linear", "lms-plif")
    }
    frozen = _at_epoch("random-plif", 3), _at_epoch("random-plif", last)
    sigsoftmax, half = _gap("sigsoftmax")
    return [
        *_gap("random-plif"), *frozen, last, *quoted(496, 10_000, source=PARTHIBAN), -sigsoftmax, half, last,
        *frozen,
        *(_at_epoch(head, epoch) for head in ("lms-plif", "mos", "sigsoftmax") for epoch in (3, last)),
        seconds["lms-plif"] / seconds["linear"], *quoted(70 / 60, source=f"{GANEA}, Table 1"),
        _plif_cost("small"), 1000, _plif_cost("large"), 10_000,
    ]  # fmt: skip


def _plif_cost(part: str) -> float:
    """Of an epoch with the present code, against the linear head."""
    seconds = {
        each["head"]: each["seconds"]
        for each in record("experiments/page/costs.json")["language_models"]
        if each["part"] == part
    }
    return float(seconds["lms-plif"] / seconds["linear"])


def language_slopes() -> list[float]:
    """What draws of log(1 + e^v) are like, v normal around log(e − 1)."""
    count, generator = 100_000, np.random.default_rng(0)
    draws = np.log1p(np.exp(generator.standard_normal((50, count)) + math.log(math.e - 1)))
    least, greatest = (np.quantile(each, [0.05, 0.95]) for each in (draws.min(1), draws.max(1)))
    return [count, 1, draws.mean(), draws.std(), *least, *greatest, 9, 10, 1]


def language_heads() -> list[float]:
    shape = setting("language_models", "shape", head="linear")
    plain = [cell for cell in cells("language_models") if not cell.settings["head"].startswith("mos")]
    assert not any(cell.found["unargmaxable"]["everywhere"]["words"] for cell in plain)
    assert not any(each["undecided"] for cell in plain for each in cell.found["unargmaxable"].values())
    linear, plif, mos = (unargmaxable_words(head, "reachable") for head in ("linear", "lms-plif", "mos"))
    assert all("six" in words for words in linear)
    assert all(any(word in words for words in linear) for word in ("home", "within"))
    return [
        len(plain), setting("language_models", "vocabulary"), shape["features"], -1, 1,
        *span([*map(len, linear)]),
        6, *span([*map(len, plif)]), *_rarer_of_ten([*linear, *plif]), *span([*map(len, mos)]), len(plain),
    ]  # fmt: skip


def _rarer_of_ten(unargmaxable: list[list[str]]) -> tuple[float, float]:
    """How many of ten such words are of the rarer half of the vocabulary."""
    rank = {word: place for place, word in enumerate(record("experiments/page/text.json")["words"])}
    shares = [sum(rank[word] >= len(rank) / 2 for word in words) / len(words) for words in unargmaxable]
    return round(10 * fmean(shares)), 10


LEARNED: Claims = {
    "synthetic-where": synthetic_where,
    "synthetic": synthetic_made,
    "synthetic-dirichlet": synthetic_dirichlet,
    "synthetic-figure": synthetic_figure,
    "synthetic-proven": synthetic_proven,
    "synthetic-agrees": synthetic_agrees,
    "synthetic-differs": synthetic_differs,
    "synthetic-cut": synthetic_cut,
    "synthetic-published": synthetic_published,
    "language": language_made,
    "language-knots": language_knots,
    "language-figure": language_figure,
    "language-plif": language_plif,
    "language-agrees": language_agrees,
    "language-differs": language_differs,
    "language-slopes": language_slopes,
    "language-heads": language_heads,
}
