"""The first guess at raises: one level for classes that have all but the same row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import argmaxable as am
from argmaxable.check.checker import Checker
from argmaxable.edit.repair.alike import Group
from argmaxable.edit.repair.level import first_raises
from argmaxable.edit.repair.margin import Estimate, MarginSolver

OUTER, ALIKE, FEATURES = 60, 40, 24
TARGET = 0.001


def solver_of_a_crowd() -> MarginSolver:
    """Rows around the origin, and some near the origin, a small step from it, that are too low to win."""
    generator = np.random.default_rng(1)
    outer = generator.standard_normal((OUTER, FEATURES))
    steps = generator.standard_normal((ALIKE, FEATURES))
    for rows, length in ((outer, 1.0), (steps, 0.01)):
        rows *= length / np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    biases = np.concatenate([generator.uniform(0, 0.1, OUTER), np.full(ALIKE, -0.05)])
    head = am.Head(np.concatenate([outer, steps]), biases)
    return MarginSolver(Checker(head, am.Box(-10.0, 10.0)))


def guessed(
    solver: MarginSolver, members: NDArray[np.intp]
) -> tuple[NDArray[np.float64], list[float]] | None:
    """The raises guessed, and the margins that the members have with them."""
    ids = np.arange(OUTER, OUTER + ALIKE)
    targets = np.full(ALIKE, TARGET * solver.coordinates.scale)

    def margins(some: NDArray[np.intp], raises: NDArray[np.float64]) -> list[Estimate]:
        tolerance = float(targets[0]) / 100
        questions = [solver.question(each, 0.0, tolerance, is_sharp=True) for each in some.tolist()]
        return [solver.estimate(question, raises) for question in questions]

    level = first_raises(solver, ids, targets, Group(0, members), margins)
    if level is None:
        return None
    return level.raises, [found.lower / float(targets[0]) for found in margins(level.sample, level.raises)]


def test_classes_that_are_alike_win_by_their_targets_at_one_level() -> None:
    solver = solver_of_a_crowd()
    found = guessed(solver, np.arange(OUTER, OUTER + ALIKE))
    assert found is not None
    raises, margins = found
    assert min(margins) >= 0.98
    assert not raises[:OUTER].any()
    assert raises[OUTER:].min() > 0


def test_of_few_classes_nothing_is_guessed() -> None:
    assert guessed(solver_of_a_crowd(), np.arange(OUTER, OUTER + 8)) is None
