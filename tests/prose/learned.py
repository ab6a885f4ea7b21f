"""Values of docs/results.md: what its sections on heads that learn (Ganea et al. 2019) say."""

from __future__ import annotations

import math
from statistics import fmean
from typing import Any

import numpy as np

from experiments import language_models, synthetic_bottleneck
from experiments._awd_lstm import Shape
from experiments._experiment import Scale
from experiments._statistics import half_interval
from experiments._synthetic import Problem
from tests.prose.numbers import Claims
from tests.prose.sources import cells, found, mean, quoted, record, setting, span

GANEA = "Ganea et al. 2019"
PARTHIBAN = "Parthiban, Mao & Inkpen 2021"


# ---------------------------------------------------------------------- synthetic

_USUAL = {"visits": 24}
_PUBLISHED = synthetic_bottleneck.EQUATION_14


def _kl(head: str, **size: Any) -> float:
    return mean("synthetic_bottleneck", "divergence", head=head, **{**_USUAL, **size})


def _modes(head: str, **size: Any) -> float:
    return 100 * mean("synthetic_bottleneck", "matched", head=head, **{**_USUAL, **size})


def _size(alpha: float, classes: int, features: int) -> dict[str, Any]:
    return {"alpha": alpha, "classes": classes, "features": features}


def _problems() -> list[dict[str, Any]]:
    sizes = {
        tuple(cell.settings[name] for name in ("alpha", "classes", "features"))
        for cell in cells("synthetic_bottleneck", **_USUAL)
    }
    return [_size(*size) for size in sorted(sizes)]


def _longer() -> list[dict[str, Any]]:
    sizes = {
        tuple(cell.settings[name] for name in ("alpha", "classes", "features"))
        for cell in cells("synthetic_bottleneck", visits=48)
    }
    return [_size(*size) for size in sorted(sizes)]


def _gain(head: str, size: dict[str, Any]) -> float:
    """Percent that twice as many steps take off the KL, of the seed that had both."""
    before = _kl(head, seed=0, **size)
    return 100 * (1 - _kl(head, seed=0, visits=48, **size) / before)


def _lead(size: dict[str, Any], visits: int) -> float:
    """Percent by which the KL of LMS is below that of MoS."""
    lms, mos = (_kl(head, seed=0, visits=visits, **size) for head in ("lms", "mos"))
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
        _USUAL["visits"], Problem(1.0, 2, 10**6, seed=0).count, 0, (lms - linear - 1) / 3,
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
    from experiments import _synthetic

    few = setting("synthetic_bottleneck", "contexts", classes=10_000)
    return [_synthetic._PROVEN, _synthetic._DECOMPOSED, min(few, _synthetic._DECOMPOSED)]


def synthetic_agrees() -> list[float]:
    problems = _problems()
    assert all(_kl("lms", **size) < _kl("linear", **size) for size in problems)
    middle = [_size(alpha, 1000, 30) for alpha in (0.01, 0.1, 1.0)]
    within = max(_unreached(size) for size in problems if size["classes"] == 1000)
    narrow, wide = _size(0.1, 1000, 10), _size(0.1, 1000, 30)
    errors = [
        mean("synthetic_bottleneck", "log_error", head=head, **_USUAL, **wide) for head in ("lms", "linear")
    ]
    least = fmean(
        each["log_error"] for each in found("synthetic_bottleneck", "proven", head="linear", **_USUAL, **wide)
    )
    plif = max(abs(_kl("lms-plif", **size) / _kl("lms", **size) - 1) for size in problems)
    assert sum(_rank_of("lms-plif", size) > 1 for size in problems) == 1
    return [
        len(problems), *(_kl(head, **size) for size in middle for head in ("lms", "linear")),
        math.ceil(100 * within) / 100, _unreached(_size(0.01, 100, 10)),
        _modes("lms", **narrow), _modes("linear", **narrow), _modes("lms", **wide), _modes("linear", **wide),
        sum(_kl("lms", **size) < _kl("mos", **size) for size in problems), len(problems),
        *errors, least, 100 * plif,
    ]  # fmt: skip


def _unreached(size: dict[str, Any]) -> float:
    proven = found("synthetic_bottleneck", "proven", head="linear", **_USUAL, **size)
    return fmean(each["reached"] for each in proven) - fmean(each["least"] for each in proven)


def _rank_of(head: str, size: dict[str, Any]) -> int:
    """How many heads have a lower KL, equation 14 aside."""
    own = _kl(head, **size)
    others = [other for other in synthetic_bottleneck.HEADS if other != _PUBLISHED]
    return sum(_kl(other, **size) < own for other in others)


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
    fewer = [size for size in few if _modes(_PUBLISHED, **size) < _modes("linear", **size)]
    assert [size["features"] for size in fewer] == [100]
    assert all(_kl("sigsoftmax", **size) > _kl("linear", **size) for size in _problems())
    return [
        *span(gains["linear"]), *span(gains["lms"]), *span(gains["mos"]),
        *span([_gain("mos", size) for size in up_to_1000]),
        *span([_gain("lms", size) for size in up_to_1000]),
        _lead(middle, 24), _lead(middle, 48), _lead(large, 24), _lead(large, 48),
        _kl("mos", **small), _kl("lms", **small), 10, _modes("lms", **large),
        _modes("lms", **large, visits=48),
        _modes("linear", **large, visits=48), _modes("lms-plif", **large),
        _modes("lms-plif", **large, visits=48),
    ]  # fmt: skip


def synthetic_where() -> list[float]:
    usual = [size for size in _problems() if size["alpha"] == 0.1]
    gains = {
        (size["classes"], size["features"]): 100 * (1 - _kl("lms", **size) / _kl("linear", **size))
        for size in usual
    }
    least, most = min(gains, key=gains.__getitem__), max(gains, key=gains.__getitem__)
    assert (least, most) == ((10_000, 10), (100, 30))
    middle = [_size(0.1, 1000, features) for features in (10, 30, 100)]
    points = [_modes("lms", **size) - _modes("linear", **size) for size in middle]
    return [gains[least], gains[most], *points[:2], 30, points[2]]


def synthetic_published() -> list[float]:
    problems = _problems()
    ratios = [_kl(_PUBLISHED, **size) / _kl("lms", **size) - 1 for size in problems]
    large, flat = _size(0.1, 10_000, 30), _size(1.0, 1000, 30)
    pairs = [(_modes(_PUBLISHED, **size), _modes("lms", **size)) for size in (large, flat)]
    more = [_modes(_PUBLISHED, **size) > _modes("lms", **size) for size in problems]
    return [
        100 * max(map(abs, ratios)), sum(ratio < 0 for ratio in ratios), len(problems), sum(more),
        *pairs[0], *pairs[1], _ahead_in_modes(_PUBLISHED), _ahead_in_modes("lms"),
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


def _lost(head: str, domain: str) -> list[list[str]]:
    return [each[domain]["words"] for each in found("language_models", "unargmaxable", head=head)]


def language_made() -> list[float]:
    text = record("experiments/text.json")
    assert text["text"] == record("experiments/results/language_models.json")["text"]
    shape, schedule = (setting("language_models", key, head="linear") for key in ("shape", "schedule"))
    parameters = {
        head: found("language_models", "parameters", head=head)[0] for head in language_models.HEADS
    }
    apart = max(abs(count / parameters["linear"] - 1) for count in parameters.values())
    assert apart < language_models._CLOSE_ENOUGH
    published = Shape("linear", 10_000)
    control = setting("language_models", "shape", head="random-plif")["bins"]
    (inner,) = {value for name, value in shape["drop"].items() if name != "words"}
    return [
        len(language_models.HEADS), 100 * language_models._CLOSE_ENOUGH,
        *(found("language_models", "hidden", head=head)[0] for head in ("mos", "mos-plif")), shape["hidden"],
        parameters["lms-plif"] - parameters["linear"],
        *(text["tokens"][part] for part in ("train", "valid", "test")),
        setting("language_models", "vocabulary"),
        *(100 * text["unknown"][part] for part in ("train", "test")),
        shape["features"], shape["hidden"], published.features, published.hidden, schedule["epochs"],
        shape["mixtures"], published.mixtures, shape["bins"], published.bins,
        language_models._PUBLISHED_BINS["mos-plif"], control, schedule["rate"], inner, shape["drop"]["words"],
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
        for head in language_models.HEADS
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
    ]  # fmt: skip


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
    linear, plif, mos = (_lost(head, "reachable") for head in ("linear", "lms-plif", "mos"))
    assert all("six" in words for words in linear)
    assert all(any(word in words for words in linear) for word in ("home", "within"))
    return [
        len(plain), setting("language_models", "vocabulary"), shape["features"], -1, 1,
        *span([*map(len, linear)]),
        6, *span([*map(len, plif)]), *_rarer_of_ten([*linear, *plif]), *span([*map(len, mos)]), len(plain),
    ]  # fmt: skip


def _rarer_of_ten(lost: list[list[str]]) -> tuple[float, float]:
    """How many of ten such words are of the rarer half of the vocabulary."""
    rank = {word: place for place, word in enumerate(record("experiments/text.json")["words"])}
    shares = [sum(rank[word] >= len(rank) / 2 for word in words) / len(words) for words in lost]
    return round(10 * fmean(shares)), 10


def long() -> list[float]:
    return [language_models._LONG["small"]["schedule"]["epochs"]]


def long_rules() -> list[float]:
    small, large = (language_models._LONG[part] for part in ("small", "large"))
    rules, shape = large["schedule"], large["shape"]
    assert large["search"]["epochs"] == 3
    return [
        small["schedule"]["epochs"], large["sizes"]["vocabulary"], shape["features"], shape["hidden"],
        *large["mixtures"], rules["epochs"], small["schedule"]["patience"], rules["patience"],
        small["schedule"]["average_after"], rules["stop_after"], *language_models._RATES,
        small["search"]["epochs"], len(language_models.HEADS),
    ]  # fmt: skip


_LONG = "long/language_models"


def _long(head: str, key: str) -> list[Any]:
    """What the seeds of a small model found."""
    return found(_LONG, key, part="small", head=head)


def _long_gaps(head: str, key: str = "test") -> list[float]:
    """Beside the linear head, for each seed."""
    return [first - second for first, second in zip(_long(head, key), _long("linear", key), strict=True)]


def _long_gap(head: str, key: str = "test") -> tuple[float, float]:
    """The mean difference, paired by seed, and half of its interval."""
    gaps = _long_gaps(head, key)
    return fmean(gaps), half_interval(gaps)


def _searched(head: str) -> float:
    """Validation perplexity after the search's epochs, averaged weights, at the rate that was chosen."""
    tried = [
        cell["found"]["validation"]
        for cell in record(f"experiments/results/{_LONG}.json")["search"]
        if (cell["settings"]["part"], cell["settings"]["head"]) == ("small", head)
    ]
    return float(min(tried))


def _searched_gap(head: str) -> float:
    return _searched(head) - _searched("linear")


def _long_epochs() -> tuple[int, int]:
    short, epochs = (language_models._LONG["small"][name]["epochs"] for name in ("search", "schedule"))
    return short, epochs


def long_figure() -> list[float]:
    mixtures = {round(-_long_gap(head)[0], 1) for head in ("mos", "mos-plif")}
    assert len(mixtures) == 1
    return [*mixtures, _long_gap("random-plif")[0]]


def long_small() -> list[float]:
    short, epochs = _long_epochs()
    assert all(each["double"] == each["most"] for each in _long("random-plif", "rank"))
    kept = -_long_gap("mos", "validation")[0]
    assert kept < -_searched_gap("mos") / 2
    plif, mixture, both = (_long_gap(head) for head in ("lms-plif", "mos", "mos-plif"))
    return [
        epochs, -_searched_gap("lms-plif"), short, _long_gap("lms-plif", "validation")[0], epochs,
        *plif, -_searched_gap("mos"), short, kept, epochs, -mixture[0], mixture[1], -both[0], both[1],
        short, *_long_gap("random-plif"), -_long_gap("sigsoftmax")[0], _long_gap("sigsoftmax")[1],
        round(-mixture[0], 1), short,
    ]  # fmt: skip


def long_caveats() -> list[float]:
    gaps = {head: _long_gap(head) for head in language_models.HEADS if head != "linear"}
    assert [head for head, (mean, half) in gaps.items() if abs(mean) > half] == ["mos", "mos-plif"]
    chosen = {
        head: setting(_LONG, "schedule", part="small", head=head)["rate"] for head in language_models.HEADS
    }
    others = {rate for head, rate in chosen.items() if head != "lms-plif"}
    curves = [curve for head in language_models.HEADS for curve in _long(head, "by_epoch")]
    falls = [curve[-6] - curve[-1] for curve in curves]
    assert min(falls) > 0
    assert max(falls) < 0.05
    averaged = [count for head in language_models.HEADS for count in _long(head, "averaged_epochs")]
    short, epochs = _long_epochs()
    return [
        short, chosen["lms-plif"], len(chosen) - 1, *others, *others, epochs, *span(averaged), 0.05, 5,
    ]  # fmt: skip


def long_words() -> list[float]:
    short, epochs = _long_epochs()
    linear, plif = (
        [each["reachable"] for each in _long(head, "unargmaxable")] for head in ("linear", "lms-plif")
    )
    assert not any(each["words"] for each in linear)
    assert not any(each["undecided"] for each in (*linear, *plif))
    before = span([len(words) for words in _lost("linear", "reachable")])
    slopes, ends = (
        fmean(each["slopes"]["mean"] for each in found(name, "plif", head="lms-plif", **part))
        for name, part in (("language_models", {}), (_LONG, {"part": "small"}))
    )
    return [
        epochs, -1, 1, *before, setting(_LONG, "vocabulary", part="small"), short,
        *{len(each["words"]) for each in plif}, 1, ends, short, slopes,
    ]  # fmt: skip


_LARGE = (
    "linear",
    "sigsoftmax",
    "lms-plif",
    "random-plif",
    "mos",
)  # the heads that are finished, with one seed


def _large_cell(head: str) -> Any:
    (cell,) = cells(_LONG, part="large", head=head)
    return cell


def _large(head: str) -> Any:
    """What a large model found."""
    return _large_cell(head).found


def _large_gap(head: str) -> float:
    return float(_large(head)["test"] - _large("linear")["test"])


def _large_rate(head: str) -> float:
    return float(_large_cell(head).settings["schedule"]["rate"])


def _turn(found: Any) -> int:
    """The best epoch before averaging."""
    curve = found["by_epoch"][: -found["averaged_epochs"]]
    return 1 + int(curve.index(min(curve)))


def long_large_figure() -> list[float]:
    assert {cell.settings["head"] for cell in cells(_LONG, part="large")} == set(_LARGE)
    assert abs(_large_gap("mos")) < 0.5
    below = [-_large_gap(head) for head in ("random-plif", "sigsoftmax")]
    return [*below, _large_gap("lms-plif"), _turn(_large("lms-plif"))]


def long_large() -> list[float]:
    plif, linear = (_large(head)["by_epoch"] for head in ("lms-plif", "linear"))
    epochs, turn = language_models._LONG["large"]["search"]["epochs"], _turn(_large("lms-plif"))
    assert epochs == 3
    searched = {head: _large(head)["by_epoch"][epochs - 1] for head in _LARGE}
    assert min(searched, key=searched.__getitem__) == "lms-plif"
    assert max(searched, key=searched.__getitem__) == "random-plif"
    assert all(plif[epoch] < linear[epoch] for epoch in range(turn))
    unaveraged = len(plif) - _large("lms-plif")["averaged_epochs"]
    assert all(plif[epoch] > linear[epoch] for epoch in range(turn, unaveraged))
    assert min(plif) > min(linear)
    (rate,) = {_large_rate(head) for head in _LARGE if head != "mos"}
    assert rate == max(language_models._RATES)
    return [
        len(_LARGE), _large("linear")["test"], -_large_gap("random-plif"), -_large_gap("sigsoftmax"),
        _large_cell("mos").settings["shape"]["mixtures"], -_large_gap("mos"), _large_gap("lms-plif"),
        searched["linear"] - searched["lms-plif"], searched["random-plif"] - searched["linear"], turn,
        _large_rate("mos"), rate,
    ]  # fmt: skip


def _fit(head: str) -> list[float]:
    """Perplexity on the training and on the validation text in the best epoch."""
    found = _large(head)
    best = found["by_epoch"].index(min(found["by_epoch"]))
    return [found["training_by_epoch"][best], found["validation"]]


def long_large_overfit() -> list[float]:
    (drop,) = {value for head in _LARGE for value in _large_cell(head).settings["shape"]["drop"].values()}
    plif = _large("lms-plif")
    training, turn = plif["training_by_epoch"], _turn(plif)
    assert training == sorted(training, reverse=True)
    assert min(_LARGE[1:], key=lambda head: _fit(head)[0]) == "mos"
    assert abs(_fit("lms-plif")[0] / _fit("random-plif")[0] - 1) < 0.05
    others = [value for head in ("random-plif", "lms-plif", "mos") for value in _fit(head)]
    return [*_fit("sigsoftmax"), drop, *others, training[turn - 1], turn, training[-1]]


def _expected_seconds(head: str, mixtures: int) -> float:
    """Of an epoch of a large model, before any was trained."""
    costs = record("experiments/long_costs.json")["language_models"]
    (seconds,) = (
        each["seconds"]
        for each in costs
        if (each["part"], each["head"], each["mixtures"]) == ("large", head, mixtures)
    )
    return float(seconds)


def long_large_words() -> list[float]:
    for head in ("linear", "sigsoftmax", "lms-plif", "random-plif"):
        assert not any(each["words"] or each["undecided"] for each in _large(head)["unargmaxable"].values())
    linear, mos = (_large_cell(head) for head in ("linear", "mos"))
    most, few = linear.settings["schedule"]["epochs"], mos.settings["shape"]["mixtures"]
    many = max(language_models._LONG["large"]["mixtures"])
    epochs = len(mos.found["by_epoch"])
    return [
        linear.settings["vocabulary"], -1, 1, len(linear.found["by_epoch"]), most, linear.seconds / 60,
        _expected_seconds("linear", few) * most / 3600, epochs, mos.seconds / 3600,
        _expected_seconds("mos", few) * most / 3600, many, epochs,
        _expected_seconds("mos", many) * epochs / 3600,
    ]  # fmt: skip


def long_synthetic() -> list[float]:
    columns = synthetic_bottleneck.SIZES[Scale.LONG]
    few, many = ([column for column in columns if column.classes == classes] for classes in (100, 1000))
    (contexts,) = {column.contexts for column in columns}
    (until,) = {column.until for column in columns}
    (visits,) = {column.visits for column in columns}
    assert len(few) + len(many) == len(columns)
    problems = {(alpha, size) for column in few for alpha in column.alphas for size in column.features}
    alphas, sizes = (sorted(set(each)) for each in zip(*problems, strict=True))
    assert len(problems) == len(alphas) * len(sizes)
    (wide,) = many
    (often,) = (column for column in columns if column.seeds > 1)
    assert {column.seeds for column in columns} == {1, often.seeds}
    assert (wide.alphas, often.alphas, often.seeds) == ((0.1,), (0.1,), 3)
    assert until is not None
    assert synthetic_bottleneck._IN_A_ROW == 2
    return [
        contexts, few[0].classes, *sizes, *alphas, wide.classes, *wide.features,
        often.classes, *often.features, visits, 100 * until, synthetic_bottleneck._MOST_VISITS,
    ]  # fmt: skip


_GRID = "long/synthetic_bottleneck"
_GRID_FEATURES = (10, 30, 50)  # of the problems that all heads have


def _grid(head: str, key: str) -> dict[int, Any]:
    """What a head found in the finished problems, at the paper's number of contexts, by features."""
    values = {features: found(_GRID, key, head=head, features=features) for features in _GRID_FEATURES}
    return {features: value for features, (value,) in values.items()}  # there is one seed


def long_grid_figure() -> list[float]:
    _least_kl_and_most_modes()
    return [len(synthetic_bottleneck.HEADS)]


def _least_kl_and_most_modes() -> None:
    heads = synthetic_bottleneck.HEADS
    for features, best in zip(_GRID_FEATURES, ("mos", "mos", "lms"), strict=True):
        assert min(heads, key=lambda head, at=features: _grid(head, "divergence")[at]) == best
        modes = {head: _grid(head, "matched")[features] for head in heads}
        assert max(heads, key=modes.__getitem__) in ("lms", _PUBLISHED)
        assert modes["mos"] < modes["lms"]


def long_grid() -> list[float]:
    heads = synthetic_bottleneck.HEADS
    kl, modes = ({head: _grid(head, key) for head in heads} for key in ("divergence", "matched"))
    _least_kl_and_most_modes()
    below = [100 * (1 - kl["mos"][features] / kl["lms"][features]) for features in (10, 30)]
    percent = {head: [100 * share for share in modes[head].values()] for head in heads}
    size = _size(setting(_GRID, "alpha"), setting(_GRID, "classes"), 30)
    short = [_kl(head, **size) for head in ("lms", "mos")]
    falls = {head: kl[head][30] / _kl(head, **size) for head in heads}
    assert min(falls, key=falls.__getitem__) == "mos"
    unreached = {at: each["reached"] - each["least"] for at, each in _grid("linear", "proven").items()}
    assert max(unreached[10], unreached[30]) < 1e-4
    assert unreached[50] < 0.003
    return [
        setting(_GRID, "contexts"), *_GRID_FEATURES[1:], 30, *below,
        100 * (1 - kl["lms"][50] / kl["mos"][50]),
        *percent["mos"], *percent["lms"], *percent["linear"],
        setting("synthetic_bottleneck", "contexts", **_USUAL, **size), _USUAL["visits"], *short,
        kl["lms"][30], kl["mos"][30], kl["lms-plif"][50], kl["linear"][50], 1e-4, 30, 0.003,
    ]  # fmt: skip


def long_grid_end() -> list[float]:
    rounds = {head: _grid(head, "by_visits") for head in synthetic_bottleneck.HEADS}
    most = synthetic_bottleneck._MOST_VISITS
    *stopped, three = (
        sum(each[features][-1][0] == most for each in rounds.values()) for features in _GRID_FEATURES
    )
    assert three == 3
    gains = {
        (head, features): 100 * (1 - end[1] / before[1])
        for head, each in rounds.items()
        for features, (*_, before, end) in each.items()
    }
    early = {rounds[head][features][-1][0] for head in ("lms-plif", _PUBLISHED) for features in (30, 50)}
    mos = rounds["mos"][50]
    at, least = min(mos, key=lambda each: each[1])
    fewer = [
        gain for (head, features), gain in gains.items() if features != 50 and (head, features) != ("lms", 30)
    ]
    return [
        *stopped, most, gains["lms", 50], gains["linear", 50], 30, gains["lms", 30], max(fewer),
        *early, 50, at, least, *reversed(mos[-1]),
    ]  # fmt: skip


LEARNED: Claims = {
    "long": long,
    "long-rules": long_rules,
    "long-figure": long_figure,
    "long-small": long_small,
    "long-caveats": long_caveats,
    "long-words": long_words,
    "long-large-figure": long_large_figure,
    "long-large": long_large,
    "long-large-overfit": long_large_overfit,
    "long-large-words": long_large_words,
    "long-grid-figure": long_grid_figure,
    "long-grid": long_grid,
    "long-grid-end": long_grid_end,
    "long-synthetic": long_synthetic,
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
