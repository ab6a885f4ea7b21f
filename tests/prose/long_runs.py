"""What the long runs are said to have found in docs/results.md."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from scipy.stats import t as student

from experiments import synthetic_bottleneck
from experiments.harness.cells import Scale
from experiments.harness.statistics import half_interval
from experiments.language import plan
from experiments.language.tables import HEADS
from experiments.models.awd_lstm import Shape
from experiments.synthetic import rounds
from prose.large_models import expected_seconds
from prose.learned import PUBLISHED, USUAL, kl_of, problem_of, unargmaxable_words
from prose.numbers import Claims
from prose.sources import found, mean, record, setting, span


def long() -> list[float]:
    return [plan.LONG["small"]["schedule"]["epochs"]]


def long_rules() -> list[float]:
    small, large = plan.LONG.values()
    rules, shape = large["schedule"], large["shape"]
    few, published = large["mixtures"]["mos"]
    assert published == Shape.mixtures
    assert large["search"]["epochs"] == 3
    text = record("experiments/page/text.json")
    assert text["text"] == record(f"experiments/results/{_LONG}.json")["text"]
    assert text["least_count"]["10000"] == 2
    assert text["articles"]["valid"] == text["articles"]["test"]
    return [
        small["schedule"]["epochs"], large["sizes"]["vocabulary"], shape["features"], shape["hidden"],
        few, rules["epochs"], small["schedule"]["patience"], rules["patience"],
        small["schedule"]["average_after"], rules["stop_after"], *plan.RATES,
        small["search"]["epochs"], large["sizes"]["vocabulary"],
        *(100 * text["unknown"]["10000"][part] for part in ("train", "test")),
        text["articles"]["valid"], len(HEADS), published,
        expected_seconds("mos", published) / 60,
    ]  # fmt: skip


_LONG = "long/language_models"
_SEEDS = plan.SEEDS


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
    short, epochs = (plan.LONG["small"][name]["epochs"] for name in ("search", "schedule"))
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
    gaps = {head: _long_gap(head) for head in HEADS if head != "linear"}
    assert [head for head, (mean, half) in gaps.items() if abs(mean) > half] == ["mos", "mos-plif"]
    # Half of the interval, widened from t's quantile for 5 % to that for 5 % over the number of comparisons.
    wider = float(student.ppf(1 - 0.025 / len(gaps), _SEEDS - 1) / student.ppf(1 - 0.025, _SEEDS - 1))
    assert all(abs(mean) < wider * half for mean, half in gaps.values())
    chosen = {head: setting(_LONG, "schedule", part="small", head=head)["rate"] for head in HEADS}
    others = {rate for head, rate in chosen.items() if head != "lms-plif"}
    curves = [curve for head in HEADS for curve in _long(head, "by_epoch")]
    falls = [curve[-6] - curve[-1] for curve in curves]
    assert min(falls) > 0
    assert max(falls) < 0.05
    averaged = [count for head in HEADS for count in _long(head, "averaged_epochs")]
    short, epochs = _long_epochs()
    return [
        len(gaps), 5, short, chosen["lms-plif"], len(chosen) - 1, *others, *others, epochs, *span(averaged),
        0.05, 5,
    ]  # fmt: skip


def long_words() -> list[float]:
    short, epochs = _long_epochs()
    linear, plif = (
        [each["reachable"] for each in _long(head, "unargmaxable")] for head in ("linear", "lms-plif")
    )
    assert not any(each["words"] for each in linear)
    assert not any(each["undecided"] for each in (*linear, *plif))
    before = span([len(words) for words in unargmaxable_words("linear", "reachable")])
    slopes, ends = (
        fmean(each["slopes"]["mean"] for each in found(name, "plif", head="lms-plif", **part))
        for name, part in (("language_models", {}), (_LONG, {"part": "small"}))
    )
    return [
        epochs, -1, 1, *before, setting(_LONG, "vocabulary", part="small"), short,
        *{len(each["words"]) for each in plif}, short, epochs, 1, ends, short, slopes,
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
    assert rounds.IN_A_ROW == 2
    return [
        contexts, few[0].classes, *sizes, *alphas, wide.classes, *wide.features,
        often.classes, *often.features, *rounds.RATES, visits, visits, 100 * until,
        rounds.MOST_VISITS,
    ]  # fmt: skip


_GRID = "long/synthetic_bottleneck"
_GRID_FEATURES = (10, 30, 50)  # of the problems that all heads have


def _grid(head: str, key: str) -> dict[int, Any]:
    """What a head's first seed found in the finished problems, by features."""
    values = {
        features: found(_GRID, key, head=head, features=features, seed=0) for features in _GRID_FEATURES
    }
    return {features: value for features, (value,) in values.items()}


def _grid_mean(head: str, key: str) -> dict[int, float]:
    """The same on average over the seeds that there are."""
    return {features: mean(_GRID, key, head=head, features=features) for features in _GRID_FEATURES}


def _rates_tried() -> dict[tuple[str, int], dict[float, float]]:
    """The KL after the search's visits by multiple of the rates, of each head by features."""
    tried: dict[tuple[str, int], dict[float, float]] = {}
    for cell in record(f"experiments/results/{_GRID}.json")["search"]:
        settings = cell["settings"]
        place = tried.setdefault((settings["head"], settings["features"]), {})
        place[settings["rate"]] = cell["found"]["divergence"]
    return tried


def long_grid_figure() -> list[float]:
    _least_kl_and_most_modes()
    return [len(synthetic_bottleneck.HEADS)]


def _least_kl_and_most_modes() -> None:
    heads = synthetic_bottleneck.HEADS
    for features in _GRID_FEATURES:
        assert min(heads, key=lambda head, at=features: _grid_mean(head, "divergence")[at]) == "mos"
        modes = {head: _grid_mean(head, "matched")[features] for head in heads}
        assert max(heads, key=modes.__getitem__) in ("lms", PUBLISHED)
        assert modes["mos"] < modes["lms"]


def long_grid() -> list[float]:
    heads = synthetic_bottleneck.HEADS
    kl, modes = ({head: _grid_mean(head, key) for head in heads} for key in ("divergence", "matched"))
    _least_kl_and_most_modes()
    below = [100 * (1 - kl["mos"][features] / kl["lms"][features]) for features in _GRID_FEATURES]
    percent = {head: [100 * share for share in modes[head].values()] for head in heads}
    size = problem_of(setting(_GRID, "alpha"), setting(_GRID, "classes"), 30)
    short = [kl_of(head, **size) for head in ("lms", "mos")]
    falls = {head: kl[head][30] / kl_of(head, **size) for head in heads}
    assert min(falls, key=falls.__getitem__) == "mos"
    assert all(kl[PUBLISHED][at] > kl["mos"][at] for at in _GRID_FEATURES)
    assert all(modes[PUBLISHED][at] > modes["mos"][at] for at in _GRID_FEATURES)
    spread = {head: _spread(found(_GRID, "divergence", head=head, features=30)) for head in heads}
    others = max(each for head, each in spread.items() if head != "mos")
    unreached = {at: each["reached"] - each["least"] for at, each in _grid("linear", "proven").items()}
    assert max(unreached[10], unreached[30]) < 1e-4
    assert unreached[50] < 0.003
    return [
        setting(_GRID, "contexts"), *_GRID_FEATURES[1:],
        *below, *percent["mos"], *percent["lms"], *percent["linear"], *kl[PUBLISHED].values(),
        *kl["mos"].values(), setting("synthetic_bottleneck", "contexts", **USUAL, **size), USUAL["visits"],
        *short, kl["lms"][30], kl["mos"][30], kl["lms-plif"][50], kl["linear"][50],
        100 * others, 100 * spread["mos"], 1e-4, 30, 0.003,
    ]  # fmt: skip


def _spread(values: Sequence[float]) -> float:
    assert len(values) == 3
    return max(values) / min(values) - 1


def long_grid_rates() -> list[float]:
    tried = _rates_tried()
    chosen = {
        place: min(kl, key=kl.__getitem__) for place, kl in tried.items() if len(kl) == len(rounds.RATES)
    }
    at_ends = [rate for rate in chosen.values() if rate != 1.0]
    mos, plif = (_grid(head, "by_visits")[at] for head, at in (("mos", 50), ("lms-plif", 30)))
    low, usual = tried["mos", 50][0.3], tried["mos", 50][1.0]
    assert chosen["mos", 50] == 0.3
    assert chosen["lms-plif", 30] == max(rounds.RATES)
    return [
        len(at_ends), len(chosen), mos[0][0], usual, low, 0.3, *mos[-1], plif[0][1], plif[0][0],
        plif[-1][1], plif[-1][0], 30,
    ]  # fmt: skip


def long_grid_end() -> list[float]:
    by_visits = {head: _grid(head, "by_visits") for head in synthetic_bottleneck.HEADS}
    most = rounds.MOST_VISITS
    three, *stopped = (
        sum(each[features][-1][0] == most for each in by_visits.values()) for features in _GRID_FEATURES
    )
    assert three == 3
    gains = {
        (head, features): 100 * (1 - end[1] / before[1])
        for head, each in by_visits.items()
        for features, (*_, before, end) in each.items()
        if end[0] == most
    }
    assert gains["mos", 30] < 0
    lms = [gains["lms", features] for features in (30, 50)]
    linear = [gains[head, 50] for head in ("linear", "sigsoftmax")]
    named = {("mos", 50), ("mos", 30), ("lms", 30), ("lms", 50), ("linear", 50), ("sigsoftmax", 50)}
    others = max(gain for place, gain in gains.items() if place not in named)
    early = {by_visits[head][at][-1][0] for head in ("lms-plif", PUBLISHED) for at in (30, 50)}
    return [
        *stopped, most, gains["mos", 50], *lms, 50, *linear, others, *early, 50,
    ]  # fmt: skip


LONG_RUNS: Claims = {
    "long": long,
    "long-rules": long_rules,
    "long-figure": long_figure,
    "long-small": long_small,
    "long-caveats": long_caveats,
    "long-words": long_words,
    "long-grid-figure": long_grid_figure,
    "long-grid": long_grid,
    "long-grid-rates": long_grid_rates,
    "long-grid-end": long_grid_end,
    "long-synthetic": long_synthetic,
}
