"""Values of docs/results.md: what its sections on label sets and on recommenders say."""

from __future__ import annotations

from statistics import median
from typing import Any

from experiments import recommenders
from prose.numbers import Claims
from prose.sources import cells, found, quoted, setting, span

# ---------------------------------------------------------------------- label sets

_PROMISED = {"layer": "DFT", "active": 5}
_FIXED = 2 * _PROMISED["active"] + 1  # features that carry the promise


def _one(key: str, **settings: Any) -> Any:
    (value,) = found("label_sets", key, **settings)
    return value


def label_sets_made() -> list[float]:
    return [
        setting("label_sets", "examples"), 1, setting("label_sets", "largest"),
        setting("label_sets", "labels"),
    ]  # fmt: skip


def label_sets_show() -> list[float]:
    narrow, wide = sorted({cell.settings["features"] for cell in cells("label_sets", layer="linear")})
    assert _one("infeasible", layer="linear", features=wide) == 1
    assert not any(found("label_sets", "undecided", layer="linear"))
    assert not any(found("label_sets", "infeasible", layer="DFT"))
    assert _one("undecided", **_PROMISED, features=narrow) == 2
    assert _one("undecided", **_PROMISED, features=wide) == 0
    assert set(found("label_sets", "proven_active", layer="DFT")) == {1}
    linear, learned = (
        [_one("f1", **layer, features=features) for features in (narrow, wide)]
        for layer in ({"layer": "linear"}, _PROMISED)
    )
    return [
        narrow, _one("infeasible", layer="linear", features=narrow),
        setting("label_sets", "asked", layer="linear"), wide, _FIXED, _PROMISED["active"],
        wide, setting("label_sets", "asked", **_PROMISED), narrow,
        narrow - _FIXED, linear[0], learned[0], wide - _FIXED, learned[1], linear[1], wide,
        _one("f1", active=12), setting("label_sets", "labels"),
    ]  # fmt: skip


# ---------------------------------------------------------------------- recommenders

_ALL, _MIXTURES, _ONE_USER, _SETS = "all vectors", "mixtures of users", "one user", "sets"
_FACTORS = (8, 32, 128)


def _never(part: str, features: int) -> list[int]:
    """Items that are never first, with ALS and with BPR."""
    return found("recommenders", "never_first", part=part, features=features)


def _feasible(size: int, features: int) -> list[int]:
    return [counts[0] for counts in found("recommenders", f"sets_{size}", part=_SETS, features=features)]


def recommenders_made() -> list[float]:
    (items,) = set(found("recommenders", "items", part=_ALL))
    return [
        *quoted(100_004, source="dslabs::movielens"), items, 10, recommenders.EDITS, 0, 1,
        setting("recommenders", "users", part=_ONE_USER),
    ]  # fmt: skip


def recommenders_figure() -> list[float]:
    few, _, many = _FACTORS
    asked = setting("recommenders", "asked", part=_SETS)
    assert max(_feasible(2, few)) < 0.05 * asked
    assert all(set(_feasible(size, many)) == {asked} for size in recommenders.SIZES)
    return [few, many, max(recommenders.SIZES)]


def recommenders_show() -> list[float]:
    few, some, many = _FACTORS
    (items,) = set(found("recommenders", "items", part=_ALL))
    assert max(_never(_ALL, some)) <= 1
    assert _feasible(10, some) == [0, 0]
    assert not any(places[1] for places in found("recommenders", "places", part=_ALL))
    asked = setting("recommenders", "asked", part=_SETS)
    assert all(set(_feasible(size, many)) == {asked} for size in recommenders.SIZES)
    return [
        few, *_never(_ALL, few), items, asked, *_feasible(2, few), some, 10, recommenders.PLACES, many,
        recommenders.PLACES,
    ]  # fmt: skip


def recommenders_reach() -> list[float]:
    few, some, many = _FACTORS
    (items,) = set(found("recommenders", "items", part=_ALL))
    first = [median(each) for each in found("recommenders", "reached", part=_ONE_USER)]
    among = [median(places[0] for places in each) for each in found("recommenders", "places", part=_ONE_USER)]
    als, bpr = _never(_MIXTURES, many)
    mixed = found("recommenders", "places", part=_MIXTURES)
    assert als == 1
    for part in (_ALL, _MIXTURES, _ONE_USER):
        assert not any(found("recommenders", "undecided", part=part))
    return [
        *_never(_MIXTURES, few), few, many, _never(_MIXTURES, some)[1], some, bpr, items, many,
        recommenders.EDITS, *span(first), *span(among), recommenders.PLACES,
        setting("recommenders", "users", part=_ONE_USER),
        *span(found("recommenders", "reached_by_any", part=_ONE_USER)), recommenders.PLACES,
        max(never for _, never, _ in mixed), max(open_ for *_, open_ in mixed),
    ]  # fmt: skip


ITEMS_AND_SETS: Claims = {
    "label-sets": label_sets_made,
    "label-sets-show": label_sets_show,
    "recommenders": recommenders_made,
    "recommenders-figure": recommenders_figure,
    "recommenders-show": recommenders_show,
    "recommenders-reach": recommenders_reach,
}
