"""Repairs of heads with a bias: the least raises, once rows that are too near each other have moved."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.check.checker import Checker
from argmaxable.core.errors import InputError
from argmaxable.core.head import Head
from argmaxable.edit.repair.margin import MarginSolver
from argmaxable.edit.repair.raises import Raises, Wanted, least_raises
from argmaxable.edit.repair.rows import Steps, crowded_rows, stepped_rows
from argmaxable.edit.repair.task import ROOM, Draft, RepairTask

# Raises are mostly below so many margins; where one is not, the room for rounding it is found again.
_USUAL_RAISE = 100.0
# Where rows have to move and a first step does not do, these times as far.
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
        task.say(f"raising biases of {len(task.chosen)} classes, {len(near_to)} rows moved by {distance:.3g}")
        found, draft = _raise_biases(task, moved, solver, even=even)
        if draft is not None:
            return draft
        if task.seconds_left <= 0:
            break
    assert found is not None
    raise InputError(_no_raise(task, found, bias_only))


def _raise_biases(
    task: RepairTask, moved: Head, solver: MarginSolver, *, even: bool
) -> tuple[Raises, Draft | None]:
    """The least raises and the head that has them; rounding to the bias's dtype may cost each class a unit in
    the last place of the largest bias, so that much more is asked for."""
    assert moved.bias is not None
    size = float(np.abs(moved.biases()).max())
    unit = _unit(moved.bias.dtype, size + _USUAL_RAISE * task.margin)
    while True:
        found = _raises(task, solver, unit)
        if found.upper is None:
            return found, None
        needed = _unit(moved.bias.dtype, size + float(found.upper.max()))
        if needed <= unit:
            return found, _raised(moved, solver, found, len(task.chosen), even=even)
        unit = needed


def _raises(task: RepairTask, solver: MarginSolver, unit: float) -> Raises:
    scale = solver.coordinates.scale
    middle = solver.middle
    targets = np.full(len(task.chosen), task.margin * (1 + ROOM) + unit) * scale
    wanted = Wanted(task.chosen, targets, np.tile(middle, (len(task.chosen), 1)))
    standing = Wanted(
        task.standing, task.standing_targets(unit) * scale, solver.from_domain(task.standing_points)
    )

    def progress(lower: float, upper: float) -> None:
        bound = f"at most {upper / scale:.6g}" if np.isfinite(upper) else "not found yet"
        task.say(f"largest raise: at least {lower / scale:.6g}, {bound}")

    limit = 2 * solver.farthest_gap() + float(targets.max())
    extra = float(targets.max()) - task.margin * scale  # asked for because of rounding alone
    found = least_raises(
        solver, wanted, standing, limit=limit, seconds=task.seconds_left, extra=extra, progress=progress
    )
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
    if found.is_hopeless:
        pair = crowded_rows(task.head, task.chosen, task.standing, task.steps().length)
        why = ""
        if pair:
            class_id, near = next(iter(pair.items()))
            why = f": class {class_id}, for one, has (nearly) the same weights as class {near}"
        advice = "Leave out --bias-only" if bias_only else "Ask for a smaller --margin"
        return f"{asked} without taking another class's{why}. {advice}."
    known = f"a raise of at least {float(found.lower.max()):.3g} is needed"
    return f"{asked} as far as was found in {found.rounds} rounds; {known}. Pass more --time-limit."


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
