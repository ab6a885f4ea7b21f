"""A second run is compared with the committed numbers."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.harness.again import compare, name_of


def cell(found: Any, **settings: Any) -> dict[str, Any]:
    return {"settings": settings, "found": found, "seconds": 1.0}


def test_numbers_within_a_percent_are_the_same_and_times_do_not_count() -> None:
    before = [cell({"loss": 10.0, "seconds_per_epoch": 3.0, "solves": 7, "deep": [{"gap": 0}]}, seed=0)]
    now = [cell({"loss": 10.09, "seconds_per_epoch": 9.0, "solves": 5, "deep": [{"gap": 0}]}, seed=0)]
    found = compare(before, now)
    assert (found.cells, found.numbers, found.differences) == (1, 2, ())
    assert str(found) == "2 numbers of 1 cells compared with the committed ones, all within 1%."


@pytest.mark.parametrize(
    ("before", "now"),
    [(10.0, 10.2), (0, 1e-9), (["fort"], ["fore"]), (["fort"], []), (None, 1.0), ([1], [1, 2])],
)
def test_what_differs_is_named_with_its_settings(before: Any, now: Any) -> None:
    found = compare([cell({"deep": {"x": before}}, seed=3)], [cell({"deep": {"x": now}}, seed=3)])
    assert len(found.differences) == 1
    assert "1 differ by more than 1%" in str(found)
    assert "deep.x" in str(found)
    assert '"seed": 3' in str(found)


def test_only_the_first_differences_are_shown() -> None:
    found = compare([cell({"x": list(range(1, 20))})], [cell({"x": list(range(2, 21))})])
    assert "19 differ" in str(found)
    assert str(found).endswith("and 14 more")


def test_cells_are_matched_by_their_settings_and_new_ones_left_out() -> None:
    before = [cell({"x": 1}, seed=0, size=2), cell({"x": 2}, seed=1)]
    now = [cell({"x": 2}, seed=1), cell({"x": 7}, seed=2), cell({"x": 1}, size=2, seed=0)]
    found = compare(before, now)
    assert (found.cells, found.numbers, found.differences) == (2, 2, ())


def test_what_only_the_second_run_measures_is_not_compared() -> None:
    found = compare([cell({"x": 1})], [cell({"x": 1, "y": [2, 3]})])
    assert (found.numbers, found.differences) == (1, ())


def test_what_the_second_run_lacks_is_a_difference() -> None:
    found = compare([cell({"x": 1, "y": 2})], [cell({"x": 1})])
    assert [(each.name, each.now) for each in found.differences] == [("y", None)]


def test_a_run_without_committed_cells_claims_nothing() -> None:
    found = compare([cell({"x": 1}, seed=0)], [cell({"x": 1}, seed=1)])
    assert str(found) == "no cell that is committed was measured again."


def test_a_cell_of_a_search_is_named_with_its_rate_and_a_mixture_with_its_size() -> None:
    shape = {"mixtures": 15}
    assert (
        name_of({"part": "large", "head": "mos", "seed": 0, "shape": shape}) == "large, mos, K = 15, seed 0"
    )
    assert name_of({"part": "large", "head": "linear", "seed": 0, "shape": shape}) == "large, linear, seed 0"
    searched = {"part": "M100", "head": "lms", "features": 10, "seed": 0, "rate": 0.3, "is_search": True}
    assert name_of(searched) == "M100, lms, features 10, seed 0, rate 0.3"
    of_a_model = {"part": "small", "head": "linear", "seed": 0, "schedule": {"rate": 5.0}, "is_search": True}
    assert name_of(of_a_model) == "small, linear, seed 0, rate 5"
