"""Examples: what fits together, choosing and joining; and rates with their bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import argmaxable as am
from argmaxable.core.examples import joined

GOOD: dict[str, Any] = {
    "features": np.arange(12, dtype=np.float32).reshape(6, 2),
    "ends": np.array([0, 2, 3, 6]),
    "sources": ("one", "two", "one"),
    "labels": ("a", "b"),
    "spans": np.array([[0, 1], [4, 6]]),
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": np.zeros(6, np.float32)}, "1 dimensions"),
        ({"ends": np.array([0, 6])}, "3 inputs need 4 ends"),
        ({"ends": np.array([0, 3, 2, 6])}, "must not decrease"),
        ({"labels": ("a",)}, "1 labels need as many spans"),
        ({"spans": np.array([[0, 0], [4, 6]])}, "at least one row"),
        ({"spans": np.array([[0, 1], [4, 7]])}, "ends at row 7"),
        ({"spans": np.array([[0, 1], [2, 4]])}, "inside one input"),
        ({"features": np.full((6, 2), np.inf, np.float32)}, "NaN or infinite"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(am.InputError, match=message):
        am.Examples(**GOOD | changes)


def test_chosen_inputs_bring_their_rows_and_occurrences() -> None:
    some = am.Examples(**GOOD).from_sources({"one"})
    assert some.features[:, 0].tolist() == [0, 2, 6, 8, 10]
    assert (some.ends.tolist(), some.labels, some.spans.tolist()) == ([0, 2, 5], ("a", "b"), [[0, 1], [3, 5]])
    assert am.Examples(**GOOD).from_sources({"two"}).labels == ()


def test_parts_that_are_joined_again_are_the_whole() -> None:
    whole = am.Examples(**GOOD)
    first = np.array([True, True, False])
    again = joined(whole.only(first), whole.only(~first))
    assert np.array_equal(again.features, whole.features)
    assert (again.ends.tolist(), again.spans.tolist()) == (whole.ends.tolist(), whole.spans.tolist())
    assert repr(again) == "Examples(3 inputs, 6 rows × 2, 2 occurrences of 2 labels)"


def test_inputs_holding_a_label_are_found() -> None:
    assert am.Examples(**GOOD).holding({"b"}).tolist() == [False, False, True]


def test_the_bound_is_that_of_clopper_and_pearson() -> None:
    assert am.Rate(0, 100).bound == pytest.approx(1 - 0.05 ** (1 / 100))  # none of n: 1 - 0.05^(1/n)
    assert am.Rate(2, 4200).bound == pytest.approx(
        0.00149823, rel=1e-5
    )  # scipy.stats.beta.ppf(0.95, 3, 4198)
    assert am.Rate(5, 5).bound == am.Rate(0, 0).bound == 1.0
