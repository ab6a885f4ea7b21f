"""The least raises against one large linear programme over all inputs and biases at once."""

from __future__ import annotations

import numpy as np
import pytest
from damaged import random_damaged
from scipy.optimize import linprog

import argmaxable as am
from argmaxable.core.progress import Deadline
from argmaxable.edit.repair.evidence import Wanted
from argmaxable.edit.repair.margin import MarginSolver
from argmaxable.edit.repair.raises import ACCURACY, Ending, least_raises

BOX = am.Box(-10.0, 10.0)
MARGIN = 0.05
LIMIT = 1e4


def least_change_by_linprog(head: am.Head, targets: dict[int, float]) -> float:
    """The least largest |Δb|: an input for each class and all changes are variables of one programme."""
    rows, biases = head.rows(slice(None)), head.biases()
    count, size = rows.shape
    width = 1 + count + size * len(targets)
    matrix, limits = [], []
    for number, (class_id, target) in enumerate(targets.items()):
        for rival in range(count):
            if rival != class_id:
                line = np.zeros(width)
                line[1 + rival], line[1 + class_id] = 1, -1
                start = 1 + count + size * number
                line[start : start + size] = rows[rival] - rows[class_id]
                matrix.append(line)
                limits.append(biases[class_id] - biases[rival] - target)
    for class_id in range(count):
        for sign in (1, -1):
            line = np.zeros(width)
            line[0], line[1 + class_id] = -1, sign
            matrix.append(line)
            limits.append(0.0)
    cost = np.zeros(width)
    cost[0] = 1
    ranges = [(0, None), *[(None, None)] * count, *[(-10, 10)] * (width - 1 - count)]
    solution = linprog(cost, A_ub=np.array(matrix), b_ub=limits, bounds=ranges, method="highs")
    assert solution.status == 0
    return float(solution.fun)


def wishes(solver: MarginSolver, result: am.Result) -> tuple[Wanted, Wanted]:
    """The unargmaxable classes by the margin, the others by half of what they have."""
    middle = solver.middle
    unargmaxable = np.array([verdict.class_id for verdict in result.unargmaxable])
    standing = [verdict for verdict in result.argmaxable]
    points = [solver.checker.point(v.class_id, v.witness) for v in standing if v.witness is not None]
    lower = np.array([verdict.lower for verdict in standing])
    return (
        Wanted(unargmaxable, np.full(len(unargmaxable), MARGIN), np.tile(middle, (len(unargmaxable), 1))),
        Wanted(
            np.array([verdict.class_id for verdict in standing]),
            np.minimum(lower, MARGIN) / 2,
            solver.from_domain(np.array(points)),
        ),
    )


@pytest.mark.parametrize("seed", range(8))
def test_the_least_raise_is_that_of_one_large_programme(seed: int) -> None:
    head = random_damaged(seed, classes=14, features=2)
    result = am.verify(head, BOX, engine=am.Engine(workers=1))
    solver = MarginSolver(am.Checker(head, BOX, centre=result.centre))
    wanted, standing = wishes(solver, result)
    found = least_raises(solver, wanted, standing, limit=LIMIT, deadline=Deadline(None))
    targets = dict(zip(wanted.ids.tolist(), wanted.targets.tolist(), strict=True))
    targets |= dict(zip(standing.ids.tolist(), standing.targets.tolist(), strict=True))
    truth = least_change_by_linprog(head, targets)
    assert found.upper is not None
    reached, least = found.upper.max() / 2, found.lower.max() / 2
    assert least <= truth * (1 + 1e-7)
    assert truth <= reached * (1 + 1e-7)
    assert reached - least <= ACCURACY * reached


def test_one_class_alone_needs_its_deficit_and_the_margin() -> None:
    head = am.Head([[1.0, 0], [-1, 0], [0, 1], [0, -1], [0, 0]], [0.0, 0, 0, 0, -0.5])
    solver = MarginSolver(am.Checker(head, BOX))
    nobody = Wanted(np.empty(0, np.intp), np.empty(0), np.empty((0, 2)))
    wanted = Wanted(np.array([4]), np.array([MARGIN]), np.zeros((1, 2)))
    found = least_raises(solver, wanted, nobody, limit=LIMIT, deadline=Deadline(None))
    assert found.upper is not None
    assert found.lower[0] == pytest.approx(0.5 + MARGIN, rel=ACCURACY)
    assert found.upper[0] == pytest.approx(0.5 + MARGIN, rel=ACCURACY)


def test_equal_rows_are_hopeless_for_biases() -> None:
    head = am.Head([[1.0, 0], [-1, 0], [0, 1], [0, -1], [0, 0], [0, 0]], np.zeros(6))
    solver = MarginSolver(am.Checker(head, BOX))
    nobody = Wanted(np.empty(0, np.intp), np.empty(0), np.empty((0, 2)))
    wanted = Wanted(np.array([4, 5]), np.full(2, MARGIN), np.zeros((2, 2)))
    found = least_raises(solver, wanted, nobody, limit=LIMIT, deadline=Deadline(None))
    assert found.upper is None
    assert found.ending is Ending.HOPELESS


def test_raises_that_suffice_do_so_at_the_points_given() -> None:
    head = random_damaged(3)
    result = am.verify(head, BOX, engine=am.Engine(workers=1))
    solver = MarginSolver(am.Checker(head, BOX, centre=result.centre))
    wanted, standing = wishes(solver, result)
    found = least_raises(solver, wanted, standing, limit=LIMIT, deadline=Deadline(None))
    assert found.upper is not None
    raises = np.zeros(head.classes)
    raises[found.ids] = found.upper
    scores = solver.scores(found.points) + raises
    own = np.arange(len(found.ids)), found.ids
    mine = scores[own].copy()
    scores[own] = -np.inf
    assert (mine - scores.max(axis=1))[: len(wanted.ids)].min() >= MARGIN - 1e-9


def test_a_deadline_that_has_passed_ends_the_search_inside_the_first_round() -> None:
    head = random_damaged(3)
    result = am.verify(head, BOX, engine=am.Engine(workers=1))
    solver = MarginSolver(am.Checker(head, BOX, centre=result.centre))
    wanted, standing = wishes(solver, result)
    found = least_raises(solver, wanted, standing, limit=LIMIT, deadline=Deadline(0))
    assert found.ending is Ending.TIME
    assert found.rounds == 1


@pytest.mark.parametrize("seed", range(4))
def test_what_a_short_search_has_found_suffices_too(seed: int) -> None:
    """However early the time is over: the raises found, if any, give every class its margin."""
    head = random_damaged(seed)
    result = am.verify(head, BOX, engine=am.Engine(workers=1))
    solver = MarginSolver(am.Checker(head, BOX, centre=result.centre))
    wanted, standing = wishes(solver, result)
    asked = [0]

    class AfterSome(Deadline):
        @property
        def has_passed(self) -> bool:
            asked[0] += 1
            return asked[0] > 60

    found = least_raises(solver, wanted, standing, limit=LIMIT, deadline=AfterSome(None))
    assert found.ending in (Ending.TIME, Ending.CLOSE)
    if found.upper is not None:
        raised = head.biases()
        raised[found.ids] += found.upper
        after = am.verify(am.Head(head.rows(slice(None)), raised), BOX, engine=am.Engine(workers=1))
        assert not after.unargmaxable
