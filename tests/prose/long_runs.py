"""What the long runs are said to have found in docs/results.md."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from scipy.stats import t as student

from experiments import language_models, synthetic_bottleneck
from experiments._experiment import Scale
from experiments._language_model_tables import SLOW_PLIF
from experiments._statistics import half_interval
from prose.learned import PUBLISHED, USUAL, kl_of, problem_of, unargmaxable_words
from prose.numbers import Claims
from prose.sources import cells, found, record, setting, span


def long() -> list[float]:
    return [language_models._LONG["small"]["schedule"]["epochs"]]


def long_rules() -> list[float]:
    small, large = (language_models._LONG[part] for part in ("small", "large"))
    rules, shape = large["schedule"], large["shape"]
    assert large["search"]["epochs"] == 3
    text = record("experiments/text.json")
    assert text["text"] == record(f"experiments/results/{_LONG}.json")["text"]
    assert text["least_count"]["10000"] == 2
    assert text["articles"]["valid"] == text["articles"]["test"]
    return [
        small["schedule"]["epochs"], large["sizes"]["vocabulary"], shape["features"], shape["hidden"],
        *large["mixtures"], rules["epochs"], small["schedule"]["patience"], rules["patience"],
        small["schedule"]["average_after"], rules["stop_after"], *language_models._RATES,
        small["search"]["epochs"], large["sizes"]["vocabulary"],
        *(100 * text["unknown"]["10000"][part] for part in ("train", "test")),
        text["articles"]["valid"], len(language_models.HEADS),
    ]  # fmt: skip


_LONG = "long/language_models"
_SEEDS = language_models._SEEDS


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
    # Half of the interval, widened from t's quantile for 5 % to that for 5 % over the number of comparisons.
    wider = float(student.ppf(1 - 0.025 / len(gaps), _SEEDS - 1) / student.ppf(1 - 0.025, _SEEDS - 1))
    assert all(abs(mean) < wider * half for mean, half in gaps.values())
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


_LARGE = tuple(language_models._LONG["large"]["heads"])
_TWICE = ("linear", "sigsoftmax", "random-plif", "mos")  # the heads that have two seeds; the others have one


def _large_cell(head: str, seed: int = 0) -> Any:
    (cell,) = cells(_LONG, part="large", head=head, seed=seed)
    return cell


def _large(head: str, seed: int = 0) -> Any:
    """What a large model found."""
    return _large_cell(head, seed).found


def _large_gaps(head: str) -> list[float]:
    """On the test text, of every seed."""
    return [
        float(_large(head, seed)["test"] - _large("linear", seed)["test"])
        for seed in range(2 if head in _TWICE else 1)
    ]


def _large_rate(head: str) -> float:
    return float(_large_cell(head).settings["schedule"]["rate"])


def _turn(found: Any) -> int:
    """The best epoch before averaging."""
    curve = found["by_epoch"][: -found["averaged_epochs"]]
    return 1 + int(curve.index(min(curve)))


def long_large_figure() -> list[float]:
    done = {(cell.settings["head"], cell.settings["seed"]) for cell in cells(_LONG, part="large")}
    assert done == {(head, seed) for head in _LARGE for seed in range(2 if head in _TWICE else 1)}
    assert max(_large_gaps("random-plif")) < 0
    assert all(first < 0 < second for first, second in map(_large_gaps, ("sigsoftmax", "mos")))
    return [*_large_gaps("lms-plif"), *_large_gaps("mos-plif"), _turn(_large("lms-plif"))]


def long_large() -> list[float]:
    rates = {head: _large_rate(head) for head in _LARGE}
    assert {head for head, rate in rates.items() if rate != max(language_models._RATES)} == {"mos"}
    undecided = {head: _large_gaps(head) for head in _TWICE if head != "linear"}
    assert all(abs(fmean(gaps)) < half_interval(gaps) for gaps in undecided.values())
    return [
        _large_cell("mos").settings["shape"]["mixtures"],
        *(_large("linear", seed)["test"] for seed in (0, 1)),
        *(abs(gap) for head in ("random-plif", "sigsoftmax", "mos") for gap in undecided[head]),
        *_large_gaps("lms-plif"), *_large_gaps("mos-plif"), rates["mos"], max(rates.values()),
    ]  # fmt: skip


def long_large_short() -> list[float]:
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
    return [
        searched["linear"] - searched["lms-plif"], searched["random-plif"] - searched["linear"], turn,
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


def long_large_slow() -> list[float]:
    slow, usual = (_large_cell(head).settings["schedule"] for head in (SLOW_PLIF, "lms-plif"))
    assert slow["rate"] == usual["rate"] == usual["slope_rate"]
    slopes = _large(SLOW_PLIF)["plif"]["slopes"]
    return [
        usual["slope_rate"], slow["slope_rate"], -_large_gaps(SLOW_PLIF)[0], *_large_gaps("lms-plif"),
        slopes["least"], slopes["greatest"],
    ]  # fmt: skip


def _expected_seconds(head: str, mixtures: int) -> float:
    """Of an epoch of a large model, by a few steps."""
    costs = record("experiments/long_costs.json")["language_models"]
    (seconds,) = (
        each["seconds"]
        for each in costs
        if (each["part"], each["head"], each["mixtures"]) == ("large", head, mixtures)
    )
    return float(seconds)


def long_large_words() -> list[float]:
    for head in (head for head in _LARGE if not head.startswith("mos")):
        for seed in range(2 if head in _TWICE else 1):
            never = _large(head, seed)["unargmaxable"].values()
            assert not any(each["words"] or each["undecided"] for each in never)
    linear, mos = (_large_cell(head, 1) for head in ("linear", "mos"))
    most = linear.settings["schedule"]["epochs"]
    epochs = [len(cell.found["by_epoch"]) for cell in cells(_LONG, part="large")]
    many, longest = max(language_models._LONG["large"]["mixtures"]), len(mos.found["by_epoch"])
    return [
        linear.settings["vocabulary"], -1, 1, *span(epochs), most, linear.seconds / 60, mos.seconds / 60,
        many, longest, _expected_seconds("mos", many) * longest / 3600,
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
        often.classes, *often.features, *synthetic_bottleneck._RATES, visits, visits, 100 * until,
        synthetic_bottleneck._MOST_VISITS,
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
        assert max(heads, key=modes.__getitem__) in ("lms", PUBLISHED)
        assert modes["mos"] < modes["lms"]


def long_grid() -> list[float]:
    heads = synthetic_bottleneck.HEADS
    kl, modes = ({head: _grid(head, key) for head in heads} for key in ("divergence", "matched"))
    _least_kl_and_most_modes()
    below = [100 * (1 - kl["mos"][features] / kl["lms"][features]) for features in (10, 30)]
    percent = {head: [100 * share for share in modes[head].values()] for head in heads}
    size = problem_of(setting(_GRID, "alpha"), setting(_GRID, "classes"), 30)
    short = [kl_of(head, **size) for head in ("lms", "mos")]
    falls = {head: kl[head][30] / kl_of(head, **size) for head in heads}
    assert min(falls, key=falls.__getitem__) == "mos"
    assert all(kl[PUBLISHED][at] > kl["mos"][at] for at in _GRID_FEATURES)
    assert all(modes[PUBLISHED][at] > modes["mos"][at] for at in _GRID_FEATURES)
    unreached = {at: each["reached"] - each["least"] for at, each in _grid("linear", "proven").items()}
    assert max(unreached[10], unreached[30]) < 1e-4
    assert unreached[50] < 0.003
    return [
        setting(_GRID, "contexts"), *_GRID_FEATURES[1:], 30, *below,
        100 * (1 - kl["lms"][50] / kl["mos"][50]),
        *percent["mos"], *percent["lms"], *percent["linear"], *kl[PUBLISHED].values(), *kl["mos"].values(),
        setting("synthetic_bottleneck", "contexts", **USUAL, **size), USUAL["visits"], *short,
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
    early = {rounds[head][features][-1][0] for head in ("lms-plif", PUBLISHED) for features in (30, 50)}
    mos = rounds["mos"][50]
    at, least = min(mos, key=lambda each: each[1])
    fewer = [
        gain for (head, features), gain in gains.items() if features != 50 and (head, features) != ("lms", 30)
    ]
    return [
        *stopped, most, gains["lms", 50], gains["linear", 50], 30, gains["lms", 30], max(fewer),
        *early, 50, at, least, *reversed(mos[-1]),
    ]  # fmt: skip


LONG_RUNS: Claims = {
    "long": long,
    "long-rules": long_rules,
    "long-figure": long_figure,
    "long-small": long_small,
    "long-caveats": long_caveats,
    "long-words": long_words,
    "long-large-figure": long_large_figure,
    "long-large": long_large,
    "long-large-short": long_large_short,
    "long-large-slow": long_large_slow,
    "long-large-overfit": long_large_overfit,
    "long-large-words": long_large_words,
    "long-grid-figure": long_grid_figure,
    "long-grid": long_grid,
    "long-grid-end": long_grid_end,
    "long-synthetic": long_synthetic,
}
