"""What classes need at points of their own, against those that are raised and those that are not."""

from __future__ import annotations

import numpy as np
import pytest

import argmaxable as am
from argmaxable.check.checker import Checker
from argmaxable.edit.repair.margin import MarginSolver
from argmaxable.edit.repair.needs import Needs, needs_at

IDS = np.array([2, 5, 7, 11])
TARGETS = np.array([0.1, 0.2, 0.1, 0.3])


@pytest.fixture
def solver() -> MarginSolver:
    generator = np.random.default_rng(5)
    head = am.Head(generator.standard_normal((20, 4)), generator.standard_normal(20))
    return MarginSolver(Checker(head, am.Box(-1.0, 1.0)))


def test_each_class_has_exactly_its_target_with_the_raise_that_it_needs(solver: MarginSolver) -> None:
    points = np.random.default_rng(6).uniform(-1, 1, (4, solver.coordinates.size))
    raises = np.array([0.5, 0.0, 1.5, 3.0])
    needed = needs_at(solver, IDS, TARGETS, points).beside(raises)
    assert (needed > 0).sum() >= 3
    for place in np.flatnonzero(needed > 0):
        spread = np.zeros(solver.classes)
        spread[IDS] = raises
        spread[IDS[place]] = needed[place]
        scores = solver.scores(points[place][None])[0] + spread
        assert scores[IDS[place]] - np.delete(scores, IDS[place]).max() == pytest.approx(TARGETS[place])


def test_some_places_need_what_they_need_among_all(solver: MarginSolver) -> None:
    points = np.random.default_rng(7).uniform(-1, 1, (4, solver.coordinates.size))
    whole = needs_at(solver, IDS, TARGETS, points)
    part = needs_at(solver, IDS, TARGETS, points, np.array([1, 3]))
    np.testing.assert_allclose(part.alone, whole.alone[[1, 3]])
    np.testing.assert_allclose(part.among, whole.among[[1, 3]])


def test_leaders_need_the_most_that_any_of_their_followers_asks_for() -> None:
    generator = np.random.default_rng(8)
    among, more = generator.standard_normal((2, 5)), np.array([0.0, 0.0, 0.3, -0.2, 0.1])
    leaders = np.array([0, 1, 1, 0, 1])
    led = Needs(np.zeros(2), among).of_leaders(leaders, more).among
    assert led[0, 1] == max(among[0, place] + more[place] for place in (1, 2, 4))
    assert led[1, 0] == max(among[1, place] + more[place] for place in (0, 3))
    assert np.isneginf(np.diag(led)).all()
