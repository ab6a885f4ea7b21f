"""Where the characters of a known text are in a line."""

from __future__ import annotations

import numpy as np

from argmaxable.examples.alignment import aligned

BLANK = 0


def scores(winners: list[int], classes: int = 5) -> np.ndarray:
    found = np.zeros((len(winners), classes), np.float32)
    found[np.arange(len(winners)), winners] = 5
    return found


def test_each_class_gets_the_steps_around_its_own() -> None:
    steps = aligned(scores([0, 1, 1, 0, 0, 2, 0]), [1, 2], BLANK)
    assert steps is not None
    assert steps.tolist() == [[0, 4], [4, 7]]


def test_a_joker_takes_what_is_read_between_its_neighbours() -> None:
    steps = aligned(scores([1, 0, 4, 0, 3, 0, 2]), [1, None, 2], BLANK)
    assert steps is not None
    start, end = steps[1]
    assert {2, 4} & set(range(start, end))
    assert 0 not in range(start, end)
    assert 6 not in range(start, end)


def test_equal_neighbours_need_a_blank_between_them() -> None:
    steps = aligned(scores([1, 1, 0, 1]), [1, 1], BLANK)
    assert steps is not None
    assert steps.tolist() == [[0, 3], [3, 4]]


def test_a_line_that_is_too_short_has_no_alignment() -> None:
    assert aligned(scores([1, 1]), [1, 1], BLANK) is None
