"""The figure of reflections: the way it draws is the paper's."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import argmaxable as am
from argmaxable.report.figures import reflections
from argmaxable.report.figures.examples import HARD_CLASS

WITH_BIAS = am.Head(
    [[0.0, 2.4], [0.2, 0.3], [-1.1, 0.6], [-1.9, 0.6], [-1.6, 0.2]], [-0.3, -0.6, -0.1, -0.2, -0.2]
)


@pytest.mark.parametrize("head", [HARD_CLASS, WITH_BIAS], ids=["no bias", "bias"])
def test_each_arrow_crosses_the_line_of_a_tie_with_the_winner_at_its_tail(head: am.Head) -> None:
    left, _ = reflections(head).axes
    points = np.array(left.collections[-1].get_offsets())
    scores = points @ head.rows(slice(None)).T + head.biases()
    own = int(scores[-1].argmax())
    np.testing.assert_allclose(points[0], head.rows(np.array([own]))[0])
    for here, there in pairwise(scores):
        winner = int(here.argmax())
        assert winner != own
        # A reflection across the tie: as far ahead as it was behind.
        assert there[own] - there[winner] == pytest.approx(here[winner] - here[own])


def test_the_title_names_the_class_and_its_reflections() -> None:
    left, right = reflections(HARD_CLASS).axes
    assert left.get_title() == "c wins after 4 reflections"
    behind = right.lines[0].get_ydata()
    assert len(behind) == 5
    assert behind[-1] == 0


def test_twins_end_their_way() -> None:
    left, _ = reflections(am.Head([[1.0, 0.0], [1.0, 0.0]], labels="ab")).axes
    assert left.get_title() == "a wins after 0 reflections"


def test_more_classes_than_regions_can_be_drawn_of_are_refused() -> None:
    with pytest.raises(am.InputError, match=r"decision regions are drawn of up to 200 classes, not 201\."):
        reflections(am.Head(np.eye(201, 2)))
