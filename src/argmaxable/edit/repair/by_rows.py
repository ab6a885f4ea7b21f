"""Repairs of heads without a bias: rows grow until every class has its margin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from argmaxable.check.checker import Checker
from argmaxable.core.errors import InputError
from argmaxable.core.head import Head
from argmaxable.core.progress import Progress
from argmaxable.edit.repair.margin import MarginSolver
from argmaxable.edit.repair.rows import Ways, crowded_rows, grown_row
from argmaxable.edit.repair.task import ROOM, Draft, RepairTask

if TYPE_CHECKING:
    from argmaxable.core.arrays import Ids, Vector

# Passes over rows that grow: each may cover a neighbour, which then grows too.
_MOST_PASSES = 30
_GENEROUS = 2.0
# Classes whose points are looked at together.
_BLOCK = 1024


def by_rows(task: RepairTask) -> Draft:
    """Rows grow one after the other until all have their margins; whoever is covered by it grows too."""
    head, steps = task.head, task.steps()
    near_to = crowded_rows(head, task.chosen, task.standing, steps.length)
    targets = dict.fromkeys(task.chosen.tolist(), task.margin * (1 + ROOM))
    standing_targets = dict(zip(task.standing.tolist(), task.standing_targets(0.0).tolist(), strict=True))
    solver = MarginSolver(Checker(head, task.domain))
    points = dict(zip(task.standing.tolist(), solver.from_domain(task.standing_points), strict=True))
    weight = np.array(head.weight)
    ways = Ways(head, task.chosen, near_to, steps)
    todo = task.chosen
    for number in range(_MOST_PASSES):
        for done, class_id in enumerate(todo.tolist()):
            task.progress(Progress(f"growing rows, pass {number + 1}", done, len(todo)))
            if task.deadline.has_passed:
                raise InputError(_no_time(task, number, len(todo) - done))
            target = (
                targets.setdefault(class_id, standing_targets.get(class_id, 0.0)) * solver.coordinates.scale
            )
            # Neighbours that take from each other's margins again and again would never end: more than asked.
            aim = target if number == 0 else _GENEROUS * target
            attempts = (grown_row(solver, class_id, aim, weight[class_id], way) for way in ways.of(class_id))
            grown = next((attempt for attempt in attempts if attempt is not None), None)
            if grown is None:
                raise InputError(
                    f"class {class_id} ({head.label(class_id)!r}) gets no margin of {targets[class_id]:g} "
                    f"over {task.domain} however far its row is moved. Ask for a smaller --margin."
                )
            weight[class_id], points[class_id] = grown
        todo = _without_margin(solver, points, standing_targets | targets)
        if not len(todo):
            after = Head(weight, None, head.labels, name=head.name)
            return Draft(after, solver.to_domain(np.array([points[each] for each in task.chosen.tolist()])))
    raise InputError(
        f"after {number + 1} passes {len(todo)} classes still take each other's place. Ask for a smaller "
        "--margin, or repair fewer classes."
    )


def _no_time(task: RepairTask, passes: int, left: int) -> str:
    return (
        f"the time limit passed before a repair of these {len(task.chosen)} classes was found; there may be "
        f"one. {left} rows of pass {passes + 1} were left to grow. Pass a larger --time-limit, or repair "
        "fewer classes."
    )


def _without_margin(solver: MarginSolver, points: dict[int, Vector], targets: dict[int, float]) -> Ids:
    """The classes that win by less than their target, at their points or any other."""
    ids = np.array(sorted(points), np.intp)
    wanted = np.array([targets[class_id] for class_id in ids.tolist()]) * solver.coordinates.scale
    still = np.zeros(solver.classes)
    left = []
    for first in range(0, len(ids), _BLOCK):
        some = ids[first : first + _BLOCK]
        scores = solver.scores(np.array([points[class_id] for class_id in some.tolist()]))
        own = np.arange(len(some)), some
        mine = scores[own].copy()
        scores[own] = -np.inf
        behind = mine - scores.max(axis=1) < wanted[first : first + _BLOCK]
        for class_id, target in zip(
            some[behind].tolist(), wanted[first : first + _BLOCK][behind], strict=True
        ):
            found = solver.solve(class_id, still, target=float(target), tolerance=float(target) / 8)
            points[class_id] = found.x
            if found.lower < target:
                left.append(class_id)
    return np.array(left, np.intp)
