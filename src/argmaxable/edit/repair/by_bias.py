"""Repairs of heads with a bias: the least raises, once rows that are too near each other have moved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from argmaxable.check.checker import Checker
from argmaxable.core.errors import InputError
from argmaxable.core.head import Head
from argmaxable.edit.repair.alike import Group
from argmaxable.edit.repair.evidence import Wanted
from argmaxable.edit.repair.margin import Estimate, MarginQuestion, MarginSolver, answering
from argmaxable.edit.repair.raises import Ending, Raises, least_raises
from argmaxable.edit.repair.rows import Steps, crowded_rows, stepped_rows
from argmaxable.edit.repair.task import ROOM, Draft, RepairTask
from argmaxable.run.engines.engine import Job
from argmaxable.run.engines.pool import Pool

if TYPE_CHECKING:
    from argmaxable.core.arrays import Ids, Vector

Estimators: TypeAlias = "Pool[tuple[MarginQuestion, Ids, Vector], Estimate]"

# Most raises are below this many margins. For a larger one, the room for rounding is computed again.
_USUAL_RAISE = 100.0
# The room for rounding is multiplied by the first number while it stays below the second share of the margin.
_GENEROUS, _LITTLE = 8.0, 0.01
# Classes times squared features from which other processes are worth their start.
_WORTH_PROCESSES = 100_000
# If a first step of the rows is not enough, they move these times as far.
_STRIDES = (1.0, 4.0, 16.0)


def by_bias(task: RepairTask, *, bias_only: bool, even: bool) -> Draft:
    head = task.head
    steps = task.steps()
    found: Raises | None = None
    for stride in (0.0,) if bias_only else _STRIDES:
        distance = stride * steps.length
        near_to = crowded_rows(head, task.chosen, task.standing, distance) if distance else {}
        moved = _with_rows(head, stepped_rows(head, near_to, Steps(steps.features, steps.signs, distance)))
        solver = MarginSolver(Checker(moved, task.domain))
        solver.score += task.blockers
        with _pool(task, solver) as pool:
            found, draft = _raise_biases(task, moved, solver, pool, alike=_groups(near_to), even=even)
        if draft is not None:
            return draft
        if found.ending is Ending.TIME:
            break
    assert found is not None
    raise InputError(_no_raise(task, found, bias_only))


def _groups(near_to: dict[int, int]) -> list[Group]:
    members: dict[int, list[int]] = {}
    for class_id, near in near_to.items():
        members.setdefault(near, []).append(class_id)
    return [Group(near, np.array(group, np.intp)) for near, group in members.items()]


def _pool(task: RepairTask, solver: MarginSolver) -> Estimators:
    """Processes that solve classes of this head; none where there are so few that one has done it sooner."""
    checker = solver.checker
    job = Job(
        head=Head(checker.head.weight, checker.head.bias), domain=task.domain, centre=checker.centre,
        ignored=np.empty(0, np.intp), tied=frozenset(), score=np.empty(0), seed=0, memory=None,
    )  # fmt: skip
    is_worth_it = len(task.chosen) * solver.coordinates.size**2 > _WORTH_PROCESSES
    return Pool(task.workers - 1 if is_worth_it else 0, job, f"{answering.__module__}:answering", None)


def _raise_biases(
    task: RepairTask,
    moved: Head,
    solver: MarginSolver,
    pool: Estimators,
    *,
    alike: list[Group],
    even: bool,
) -> tuple[Raises, Draft | None]:
    """The least raises and the head that has them; rounding to the bias's dtype may cost each class a unit in
    the last place of the largest bias, so that much more is asked for."""
    assert moved.bias is not None
    size = float(np.abs(moved.biases()).max())
    unit = _unit(moved.bias.dtype, size + _USUAL_RAISE * task.margin)
    if _GENEROUS * unit < _LITTLE * task.margin:  # nobody will notice, and no second search is needed
        unit *= _GENEROUS
    while True:
        found = _raises(task, solver, pool, unit, alike)
        if found.upper is None:
            return found, None
        needed = _unit(moved.bias.dtype, size + float(found.upper.max()))
        if needed <= unit:
            return found, _raised(moved, solver, found, len(task.chosen), even=even)
        unit = needed


def _raises(
    task: RepairTask, solver: MarginSolver, pool: Estimators, unit: float, alike: list[Group]
) -> Raises:
    scale = solver.coordinates.scale
    middle = solver.middle
    targets = np.full(len(task.chosen), task.margin * (1 + ROOM) + unit) * scale
    wanted = Wanted(task.chosen, targets, np.tile(middle, (len(task.chosen), 1)))
    standing = Wanted(
        task.standing, task.standing_targets(unit) * scale, solver.from_domain(task.standing_points)
    )

    def answers(questions: list[MarginQuestion], ids: Ids, raises: Vector) -> Iterator[tuple[int, Estimate]]:
        spread = np.zeros(solver.classes)
        spread[ids] = raises
        items = [(question, ids, raises) for question in questions]
        return pool.answers(items, lambda item: solver.estimate(item[0], spread))

    limit = 2 * solver.farthest_gap() + float(targets.max())
    extra = float(targets.max()) - task.margin * scale  # asked for because of rounding alone
    found = least_raises(
        solver, wanted, standing, limit=limit, deadline=task.deadline, extra=extra, alike=alike,
        answers=answers, progress=task.progress,
    )  # fmt: skip
    upper = None if found.upper is None else found.upper / scale
    return replace(found, lower=found.lower / scale, upper=upper)


def _raised(moved: Head, solver: MarginSolver, found: Raises, chosen: int, *, even: bool) -> Draft:
    assert found.upper is not None
    assert moved.bias is not None
    raises = np.zeros(moved.classes)
    raises[found.ids] = found.upper
    reached, least = (float(each.max()) / 2 for each in (found.upper, found.lower))
    exact = moved.biases() + (raises - reached if even else raises)
    rounded = exact.astype(moved.bias.dtype)
    if not even:  # up, so that none loses by it: the untouched ones are exact
        up = rounded.astype(np.float64) < exact
        rounded[up] = np.nextafter(rounded[up], np.full(int(up.sum()), np.inf, moved.bias.dtype))
    head = Head(moved.weight, rounded, moved.labels, name=moved.name)
    return Draft(head, solver.to_domain(found.points[:chosen]), reached, least)


def _no_raise(task: RepairTask, found: Raises, bias_only: bool) -> str:
    means = "no bias gives" if bias_only else "neither biases nor small steps of rows give"
    asked = f"{means} these {len(task.chosen)} classes a margin of {task.margin:g} over {task.domain}"
    count, needed = len(task.chosen), float(found.lower.max())
    if found.ending is Ending.TIME:
        return (
            f"the time limit passed before a repair of these {count} classes was found; there may be one. "
            f"In round {found.rounds} {found.unmet} classes lacked the margin of {task.margin:g}; a raise of "
            f"at least {needed:.3g} is needed. Pass a larger --time-limit, or repair fewer classes."
        )
    if found.ending is Ending.ROUNDS:
        return (
            f"no repair of these {count} classes was found in {found.rounds} rounds, and it is not known "
            f"that there is none. A raise of at least {needed:.3g} is needed. Ask for another --margin, or "
            "repair fewer classes."
        )
    pair = crowded_rows(task.head, task.chosen, task.standing, task.steps().length)
    why = ""
    if pair:
        class_id, near = next(iter(pair.items()))
        why = f": class {class_id}, for one, has (nearly) the same weights as class {near}"
    advice = "Leave out --bias-only" if bias_only else "Ask for a smaller --margin"
    return f"{asked} without taking another class's{why}. {advice}."


def _with_rows(head: Head, rows: dict[int, NDArray[Any]]) -> Head:
    if not rows:
        return head
    weight = np.array(head.weight)
    for class_id, row in rows.items():
        weight[class_id] = row
    return Head(weight, head.bias, head.labels, name=head.name)


def _unit(dtype: np.dtype[Any], size: float) -> float:
    """The distance from a number of that size to the next of the dtype."""
    return float(np.spacing(np.asarray(size, dtype)))
