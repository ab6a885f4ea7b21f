"""Values of docs/results.md: what its sections on random heads, prevention and approximate search say."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from experiments import (
    approximate_search,
    random_heads,
)
from experiments.harness.cells import Cell
from experiments.heads.gaussian import expected_unargmaxable
from prose.numbers import Claims
from prose.sources import cells, found, mean, quoted, setting, significant, span

GRIVAS = "Grivas, Bogoychev & Lopez 2022"

# ---------------------------------------------------------------------- random heads

_CLASSES = 10_000


def _counts(distribution: str, features: int) -> list[int]:
    return found("random_heads", "unargmaxable", distribution=distribution, features=features)


def _steps(distribution: str, features: int) -> float:
    return mean("random_heads", "mean_steps_found", distribution=distribution, features=features)


def _first_without_any(distribution: str) -> int:
    """The least number of features from which on no head loses a class."""
    affected = [features for features in random_heads.FEATURES if any(_counts(distribution, features))]
    return next(features for features in random_heads.FEATURES if features > max(affected))


def _most_steps(distribution: str) -> int:
    return max(random_heads.FEATURES, key=lambda features: _steps(distribution, features))


def _expected(features: int) -> float:
    return expected_unargmaxable(_CLASSES, features, has_bias=True)


def _largest_deviation(up_to: int) -> float:
    """Of normal heads from what is expected, in percent."""
    return max(
        100 * abs(count / _expected(f) - 1)
        for f in random_heads.FEATURES
        if f <= up_to
        for count in _counts("normal", f)
    )


def random_heads_made() -> list[float]:
    (classes,) = {cell.settings["classes"] for cell in cells("random_heads")}
    several = min(f for f in random_heads.FEATURES if len(_counts("uniform", f)) > 1)
    return [classes, random_heads.PAPER_SEED, several, random_heads.PATIENCE]


def random_heads_uniform() -> list[float]:
    none = _first_without_any("uniform")
    return [
        *_counts("uniform", 2), 2, *span(_counts("uniform", 20)), 20, max(_counts("uniform", none)), none,
        _steps("uniform", 2), _steps("uniform", 6), _most_steps("uniform"), _steps("uniform", 50),
    ]  # fmt: skip


def random_heads_normal() -> list[float]:
    none, most = _first_without_any("normal"), _most_steps("normal")
    return [
        *_counts("normal", 2), max(_counts("normal", none)), none, _steps("normal", 2),
        _steps("normal", most), most, _steps("normal", 50),
    ]  # fmt: skip


def random_heads_agree() -> list[float]:
    most, one_each = (
        _most_steps("uniform"),
        max(f for f in random_heads.FEATURES if len(_counts("normal", f)) == 1),
    )
    return [
        _first_without_any("uniform"), most, _steps("uniform", most), most, _steps("uniform", 15), 15,
        next(f for f in random_heads.FEATURES if _steps("uniform", f) < 0.1),
        significant(_largest_deviation(one_each), 2), one_each,
        fmean(_counts("normal", 20)), _expected(20), 20,
    ]  # fmt: skip


def random_heads_sharper() -> list[float]:
    return [_expected(30), _CLASSES, 30, _expected(40), 40, 30]


def random_heads_differ() -> list[float]:
    most, few = _most_steps("normal"), {"distribution": "uniform", "features": 2}
    (unargmaxable,), (missed,) = (found("random_heads", key, **few) for key in ("unargmaxable", "not_found"))
    return [
        _steps("normal", 2), 2, _steps("normal", most), most, _most_steps("uniform"),
        *(_steps("uniform", features) for features in (2, 4, 6)), _CLASSES - unargmaxable - missed,
        max(found("random_heads", "not_found")), random_heads.PATIENCE,
    ]  # fmt: skip


# ---------------------------------------------------------------------- prevention


def _heads(prevention: str, features: int, stored: str) -> list[int]:
    (counts,) = found("prevention", "unargmaxable", prevention=prevention, features=features, stored=stored)
    return list(counts)


_PLAIN, _BIASED, _EQUAL, _VORONOI = "none, no bias", "none, random bias", "equal norms", "bias −‖w‖²/2"


def _affected(prevention: str, stored: str) -> int:
    return sum(count > 0 for count in _heads(prevention, 2, stored))


def prevention_figure() -> list[float]:
    drawn = [*_heads(_PLAIN, 10, "float32"), *_heads(_BIASED, 10, "float32")]
    return [10, *span(drawn), setting("prevention", "classes"), 2]


def prevention_agrees() -> list[float]:
    plain, biased = _heads(_PLAIN, 10, "float32"), _heads(_BIASED, 10, "float32")
    prevented = [
        cell.found["unargmaxable"]
        for cell in cells("prevention", features=10)
        if len(cell.found["unargmaxable"]) > 15
    ]
    (heads,) = {len(each) for each in prevented}
    assert not any(map(any, prevented))
    assert all((*plain, *biased))
    return [
        setting("prevention", "classes"), 10, heads, len(plain) + len(biased), len(plain), *span(plain),
        len(biased), *span(biased), heads, 100 * (1 - 0.05 ** (1 / heads)),
    ]  # fmt: skip


def prevention_says() -> list[float]:
    equal = {stored: _heads(_EQUAL, 2, stored) for stored in ("float32", "float16")}
    assert not any(_heads(_VORONOI, 2, "float32"))
    assert max(_heads(_VORONOI, 2, "float16")) == 2
    assert not any(_heads(_EQUAL, 2, "float64"))
    assert not any(_heads(_EQUAL, 10, "float16"))
    return [
        2, setting("prevention", "classes"), _affected(_EQUAL, "float32"), len(equal["float32"]),
        _affected(_EQUAL, "float16"), _affected(_VORONOI, "float16"), len(_heads(_VORONOI, 2, "float16")), 10,
    ]  # fmt: skip


# ---------------------------------------------------------------------- approximate search


def _groups() -> dict[str, list[Cell]]:
    groups: dict[str, list[Cell]] = {}
    for cell in cells("approximate_search"):
        groups.setdefault(f"{cell.settings['head']} {cell.found['features']}", []).append(cell)
    return groups


def _reflection(some: Sequence[Cell], patience: int) -> float:
    missed = approximate_search.missed_by_reflection(some, patience)
    return 100 * approximate_search.precision(some, missed)


def _descent(some: Sequence[Cell], temperature: float) -> float:
    missed = approximate_search.missed_by_descent(some, temperature)
    return 100 * approximate_search.precision(some, missed)


def _own(some: Sequence[Cell]) -> float:
    missed = sum(cell.found["missed by own direction"] for cell in some)
    return 100 * approximate_search.precision(some, missed)


def _weights(some: Sequence[Cell], temperature: float) -> float:
    return 100 * approximate_search.recall_of_weights(some, temperature)


def _sample() -> int:
    return min(cell.settings["descents"] for cell in cells("approximate_search"))


def search_made() -> list[float]:
    return [_sample(), approximate_search.EVERY_CLASS_FROM]


def search_figure() -> list[float]:
    every = [[cell] for cell in cells("approximate_search")]
    first, last = ([_reflection(one, patience) for one in every] for patience in (0, random_heads.PATIENCE))
    assert sum(value > 95 for value in last) == len(every) - 1
    return [
        *span(first), 95, *span([_own(one) for one in every]), *span([_descent(one, 1.0) for one in every]),
        *span([_descent(one, 0.1) for one in every]),
    ]  # fmt: skip


def search_agrees() -> list[float]:
    groups, patience = _groups(), random_heads.PATIENCE
    single = {
        cell.found["unargmaxable"]: _reflection([cell], patience) for cell in cells("approximate_search")
    }
    fewest = min(single)
    (first_ten,) = [some for name, some in groups.items() if name.startswith(approximate_search.FIRST_TEN)]
    assert (
        approximate_search.missed_by_reflection(
            [c for c in cells("approximate_search") if c.found["unargmaxable"] == fewest], patience
        )
        == 1
    )
    return [
        100, patience, *span([_reflection(some, patience) for some in groups.values()]), min(single.values()),
        fewest, first_ten[0].found["features"], *quoted(100, 68, source=f"{GRIVAS}, section 2.2"), 100,
        _reflection(first_ten, 100), 100,
    ]  # fmt: skip


def search_differs() -> list[float]:
    groups, patience = _groups(), random_heads.PATIENCE
    random = {features: groups[f"random {features}"] for features in (5, 10, 15)}
    biased = [some for name, some in groups.items() if not name.startswith(approximate_search.FIRST_TEN)]
    (real,) = [some for name, some in groups.items() if name.startswith("ppocrv4")]
    return [
        10, _reflection(random[15], 10), 15, _reflection(real, 10), patience, 5, _descent(random[5], 0.1),
        _reflection(random[5], patience), 15, 10, _descent(random[10], 0.1),
        _reflection(random[10], patience),
        *span([_weights(some, 0.1) for some in biased]), *span([_weights(some, 1.0) for some in biased]), 0,
    ]  # fmt: skip


RANDOM_HEADS: Claims = {
    "random-heads": random_heads_made,
    "random-heads-uniform": random_heads_uniform,
    "random-heads-normal": random_heads_normal,
    "random-heads-agree": random_heads_agree,
    "random-heads-sharper": random_heads_sharper,
    "random-heads-differ": random_heads_differ,
    "prevention-figure": prevention_figure,
    "prevention-agrees": prevention_agrees,
    "prevention-says": prevention_says,
    "search": search_made,
    "search-figure": search_figure,
    "search-agrees": search_agrees,
    "search-differs": search_differs,
}
