"""Examples: features of inputs, and where a label should win."""

from __future__ import annotations

import numpy as np
import pytest

from argmaxable.core.errors import InputError
from argmaxable.core.examples import Examples


def three_inputs() -> Examples:
    return Examples(
        features=np.arange(12, dtype=np.float32).reshape(6, 2),
        ends=np.array([0, 1, 4, 6]),
        sources=("serif", "sans", "serif"),
        labels=("a", "b", "a"),
        spans=np.array([[0, 1], [2, 4], [4, 5]]),
    )


def test_a_source_takes_its_inputs_rows_and_occurrences_with_it() -> None:
    serif = three_inputs().from_sources({"serif"})
    assert serif.features.tolist() == [[0, 1], [8, 9], [10, 11]]
    assert serif.ends.tolist() == [0, 1, 3]
    assert serif.labels == ("a", "a")
    assert serif.spans.tolist() == [[0, 1], [1, 2]]


def test_occurrences_know_their_input() -> None:
    examples = three_inputs()
    assert examples.inputs_of(examples.spans).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ends": np.array([0, 1, 6])}, "3 inputs need 4 ends"),
        ({"ends": np.array([0, 4, 1, 6])}, "must not decrease"),
        ({"spans": np.array([[0, 1]])}, "3 labels need as many spans"),
        ({"spans": np.array([[0, 1], [2, 2], [4, 5]])}, "at least one row"),
        ({"spans": np.array([[0, 1], [2, 4], [4, 9]])}, "there are 6 rows"),
        ({"features": np.zeros(6, np.float32)}, "1 dimensions"),
    ],
)
def test_what_does_not_fit_together_is_refused(change: dict[str, np.ndarray], message: str) -> None:
    good = three_inputs()
    fields = {name: getattr(good, name) for name in ("features", "ends", "sources", "labels", "spans")}
    with pytest.raises(InputError, match=message):
        Examples(**{**fields, **change})
