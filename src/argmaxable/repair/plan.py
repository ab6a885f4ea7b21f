"""repair_head(head, domain): a head in which the chosen classes win by a margin, and no other class is lost.

Biases alone where they can do it, moved rows where they can't. What is planned in floats is rounded to the
head's own dtypes first; then the rounded head is verified like any other: a repair is no promise but a fact.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.check import Checker
from argmaxable.domain import Domain
from argmaxable.errors import InputError
from argmaxable.head import Head
from argmaxable.repair.bound import changed_classes, logit_movement
from argmaxable.repair.margin import MarginSolver
from argmaxable.repair.raises import Raises, Wanted, least_raises
from argmaxable.repair.rows import Steps, crowded_rows, grown_row, stepped_rows, steps_for, ways_out
from argmaxable.result import Result
from argmaxable.verdict import Status
from argmaxable.verify import verify

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Ids = NDArray[np.intp]
Say = Callable[[str], None]

# A logit of 1000 is off by up to 1e-4 when it is computed in float32: a class that wins by ten times that
# wins in single precision too, and 0.001 changes no probability by more than a thousandth of itself.
DEFAULT_MARGIN = 1e-3
DEFAULT_SECONDS = 600.0
# Room for the rounding of our own sums, in units of the margin.
_ROOM = 1e-6
# Raises are mostly below so many margins; where one is not, the room for rounding it is found again.
_USUAL_RAISE = 100.0
# Where rows have to move and a first step does not do, these times as far.
_STRIDES = (1.0, 4.0, 16.0)
# Passes over rows that grow: each may cover a neighbour, which then grows too.
_MOST_PASSES = 30
_GENEROUS = 2.0
_SHOWN = 8


@dataclass(frozen=True, eq=False, kw_only=True)
class Repair:
    """A repaired head, verified, and how far it is from the one before.

    `largest` is the largest |Δb| as written. A constant added to all biases changes nothing; up to one,
    `reached` is the largest |Δb| that this repair needs and `least` the least that any needs which keeps the
    repaired head's rows, proven (both None for a head without bias). `movement` bounds how far any logit
    moves over the domain.
    """

    before: Head
    after: Head
    domain: Domain
    margin: float
    chosen: Ids
    moved: Ids
    largest: float
    reached: float | None
    least: float | None
    row_change: float
    movement: float
    margins: Vector
    points: Matrix
    result: Result
    gained: Ids
    seconds: float

    @property
    def changed(self) -> Ids:
        """The classes whose row or bias is another."""
        return changed_classes(self.before, self.after)


@dataclass(frozen=True, eq=False)
class _Task:
    """What is to be done to which head."""

    head: Head
    domain: Domain
    margin: float
    chosen: Ids
    kept: Ids
    kept_lower: Vector
    kept_points: Matrix  # points z of the domain
    deadline: float
    say: Say

    @property
    def seconds_left(self) -> float:
        return self.deadline - time.perf_counter()


@dataclass(frozen=True, eq=False)
class _Draft:
    """A head that should do, points z at which the chosen classes should win, and bounds on the raises."""

    head: Head
    points: Matrix
    reached: float | None = None
    least: float | None = None


def repair_head(
    head: Head,
    domain: Domain,
    *,
    only: Iterable[int] | None = None,
    margin: float = DEFAULT_MARGIN,
    bias_only: bool = False,
    even: bool = False,
    seconds: float = DEFAULT_SECONDS,
    workers: int | None = None,
    say: Say = lambda text: None,
) -> Repair:
    """Make the chosen classes (default: all that are unargmaxable) argmaxable by the margin.

    Every class that is argmaxable stays so, with at least half of the margin it has or of the one asked for.
    Biases are raised, none lowered, unless `even` moves all of them so that the largest |Δb| is as small as
    it can be. Rows move only where biases can't do it, and never with `bias_only`. Raises InputError when
    there is nothing to repair, a chosen class is argmaxable already, or no repair was found.
    """
    started = time.perf_counter()
    if not (np.isfinite(margin) and margin > 0):
        raise InputError(f"the margin must be a number above 0, found {margin}.")
    if bias_only and head.bias is None:
        raise InputError(
            "the head has no bias, so bias alone can't repair it. Leave out --bias-only: rows are moved then."
        )
    say("verifying the head as it is")
    before = verify(head, domain, workers=workers)
    task = _task(head, domain, before, only, margin, started + seconds, say)
    draft = _by_rows(task) if head.bias is None else _by_bias(task, bias_only=bias_only, even=even)
    say("verifying the repaired head")
    margins = _proven_margins(task, draft)
    after = verify(draft.head, domain, workers=workers)
    _require_kept(task, after)
    was_lost = np.array([verdict.class_id for verdict in before.unargmaxable], np.intp)
    found = np.array([verdict.class_id for verdict in after.argmaxable], np.intp)
    rows = draft.head.rows(slice(None)) - head.rows(slice(None))
    lengths = np.sqrt((rows * rows).sum(axis=1))
    usual = np.sqrt(((head.rows(slice(None)) - Checker(head, domain).centre) ** 2).sum(axis=1))
    return Repair(
        before=head, after=draft.head, domain=domain, margin=margin, chosen=task.chosen,
        moved=np.flatnonzero(lengths), largest=float(np.abs(draft.head.biases() - head.biases()).max()),
        reached=draft.reached, least=draft.least,
        row_change=float(lengths.max() / max(float(np.median(usual)), np.finfo(float).tiny)),
        movement=logit_movement(head, draft.head, domain), margins=margins, points=draft.points, result=after,
        gained=np.setdiff1d(np.intersect1d(was_lost, found), task.chosen),
        seconds=time.perf_counter() - started,
    )  # fmt: skip


def _task(
    head: Head,
    domain: Domain,
    before: Result,
    only: Iterable[int] | None,
    margin: float,
    deadline: float,
    say: Say,
) -> _Task:
    argmaxable = {verdict.class_id: verdict for verdict in before.argmaxable}
    lost = [verdict.class_id for verdict in before.unargmaxable]
    chosen = sorted(set(lost if only is None else only))
    if not chosen:
        undecided = f" ({len(before.undecided)} are undecided)" if before.undecided else ""
        raise InputError(f"no class is unargmaxable over {domain}{undecided}: there is nothing to repair.")
    stray = [class_id for class_id in chosen if not 0 <= class_id < head.classes]
    if stray:
        raise InputError(f"class {stray[0]} does not exist: the head has classes 0 to {head.classes - 1}.")
    already = [class_id for class_id in chosen if class_id in argmaxable]
    if already:
        verdict = argmaxable[already[0]]
        raise InputError(
            f"class {already[0]} ({verdict.label!r}) is argmaxable already, by a margin of at least "
            f"{verdict.lower:.3g}{f', and so are {len(already) - 1} more' if len(already) > 1 else ''}. "
            "Leave out classes that need no repair."
        )
    kept = [verdict for verdict in before.argmaxable if verdict.witness is not None]
    checker = Checker(head, domain, centre=before.centre)
    points = np.empty((len(kept), head.features))
    for place, verdict in enumerate(kept):
        assert verdict.witness is not None
        points[place] = checker.point(verdict.class_id, verdict.witness)
    return _Task(
        head, domain, margin, np.array(chosen, np.intp),
        np.array([verdict.class_id for verdict in kept], np.intp),
        np.array([verdict.lower for verdict in kept]), points, deadline, say,
    )  # fmt: skip


# ---------------------------------------------------------------------- heads with a bias


def _by_bias(task: _Task, *, bias_only: bool, even: bool) -> _Draft:
    head = task.head
    steps = _steps(task)
    found: Raises | None = None
    for stride in (0.0,) if bias_only else _STRIDES:
        distance = stride * steps.length
        near_to = crowded_rows(head, task.chosen, task.kept, distance) if distance else {}
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
    task: _Task, moved: Head, solver: MarginSolver, *, even: bool
) -> tuple[Raises, _Draft | None]:
    """The least raises and the head that has them; rounding to the bias's dtype may cost each class a unit in
    the last place of the largest bias, so that much more is asked for."""
    assert moved.bias is not None
    size = float(np.abs(moved.biases()).max())
    unit = _unit(moved.bias.dtype, size + _USUAL_RAISE * task.margin)
    while True:
        found = _raises(task, solver, unit)
        if found.upper is None:
            return found, None
        needed = _unit(moved.bias.dtype, size + float(found.upper.max()) / solver.chart.scale)
        if needed <= unit:
            return found, _raised(moved, solver, found, len(task.chosen), even=even)
        unit = needed


def _steps(task: _Task) -> Steps:
    chart = MarginSolver(Checker(task.head, task.domain)).chart
    return steps_for(task.head, task.domain, task.chosen, task.margin, chart.kept)


def _raises(task: _Task, solver: MarginSolver, unit: float) -> Raises:
    scale = solver.chart.scale
    middle = solver.space()[1]
    targets = np.full(len(task.chosen), task.margin * (1 + _ROOM) + unit) * scale
    wanted = Wanted(task.chosen, targets, np.tile(middle, (len(task.chosen), 1)))
    kept = Wanted(task.kept, _kept_targets(task, unit) * scale, solver.from_domain(task.kept_points))

    def progress(lower: float, upper: float) -> None:
        bound = f"at most {upper / scale:.6g}" if np.isfinite(upper) else "not found yet"
        task.say(f"largest raise: at least {lower / scale:.6g}, {bound}")

    limit = 2 * solver.farthest_gap() + float(targets.max())
    return least_raises(solver, wanted, kept, limit=limit, seconds=task.seconds_left, progress=progress)


def _kept_targets(task: _Task, unit: float) -> Vector:
    """Half of the margin a class has, or of the one asked for, and room for rounding if it has that."""
    half = np.minimum(task.kept_lower, task.margin) / 2
    return np.minimum(half + unit, task.kept_lower)


def _raised(moved: Head, solver: MarginSolver, found: Raises, chosen: int, *, even: bool) -> _Draft:
    assert found.upper is not None
    assert moved.bias is not None
    raises = np.zeros(moved.classes)
    raises[found.ids] = found.upper / solver.chart.scale
    reached, least = (float(each.max()) / solver.chart.scale / 2 for each in (found.upper, found.lower))
    exact = moved.biases() + (raises - reached if even else raises)
    rounded = exact.astype(moved.bias.dtype)
    if not even:  # up, so that none loses by it: the untouched ones are exact
        up = rounded.astype(np.float64) < exact
        rounded[up] = np.nextafter(rounded[up], np.full(int(up.sum()), np.inf, moved.bias.dtype))
    head = Head(moved.weight, rounded, moved.labels, name=moved.name)
    return _Draft(head, solver.to_domain(found.points[:chosen]), reached, least)


def _no_raise(task: _Task, found: Raises, bias_only: bool) -> str:
    asked = f"no bias gives these {len(task.chosen)} classes a margin of {task.margin:g} over {task.domain}"
    if found.is_hopeless:
        pair = crowded_rows(task.head, task.chosen, task.kept, _steps(task).length)
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


# ---------------------------------------------------------------------- heads without a bias


def _by_rows(task: _Task) -> _Draft:
    """Rows grow one after the other until all have their margins; whoever is covered by it grows too."""
    head, steps = task.head, _steps(task)
    near_to = crowded_rows(head, task.chosen, task.kept, steps.length)
    targets = dict.fromkeys(task.chosen.tolist(), task.margin * (1 + _ROOM))
    kept_targets = dict(zip(task.kept.tolist(), _kept_targets(task, 0.0).tolist(), strict=True))
    solver = MarginSolver(Checker(head, task.domain))
    points = dict(zip(task.kept.tolist(), solver.from_domain(task.kept_points), strict=True))
    weight = np.array(head.weight)
    # Each class keeps its direction; the order of the chosen gives equal rows different ones.
    ways = ways_out(head, np.concatenate([task.chosen, task.kept]), near_to, steps)
    todo = task.chosen
    for number in range(_MOST_PASSES):
        task.say(f"pass {number + 1}: {len(todo)} rows to grow")
        for class_id in todo.tolist():
            target = targets.setdefault(class_id, kept_targets.get(class_id, 0.0)) * solver.chart.scale
            # Neighbours that take from each other's margins again and again would never end: more than asked.
            aim = target if number == 0 else _GENEROUS * target
            grown = grown_row(solver, class_id, aim, weight[class_id], ways[class_id])
            if grown is None:
                raise InputError(
                    f"class {class_id} ({head.label(class_id)!r}) gets no margin of {targets[class_id]:g} "
                    f"over {task.domain} however far its row is moved. Ask for a smaller --margin."
                )
            weight[class_id], points[class_id] = grown
        todo = _without_margin(solver, points, kept_targets | targets)
        if not len(todo):
            after = Head(weight, None, head.labels, name=head.name)
            return _Draft(after, solver.to_domain(np.array([points[each] for each in task.chosen.tolist()])))
        if task.seconds_left <= 0:
            break
    raise InputError(
        f"after {number + 1} passes {len(todo)} classes still take each other's place. Ask for a smaller "
        "--margin, or repair fewer classes."
    )


def _without_margin(solver: MarginSolver, points: dict[int, Vector], targets: dict[int, float]) -> Ids:
    """The classes that win by less than their target, at their points or any other."""
    ids = np.array(sorted(points), np.intp)
    wanted = np.array([targets[class_id] for class_id in ids.tolist()]) * solver.chart.scale
    still = np.zeros(solver.classes)
    left = []
    for first in range(0, len(ids), 1024):
        some = ids[first : first + 1024]
        scores = solver.scores(np.array([points[class_id] for class_id in some.tolist()]))
        own = np.arange(len(some)), some
        mine = scores[own].copy()
        scores[own] = -np.inf
        behind = mine - scores.max(axis=1) < wanted[first : first + 1024]
        for class_id, target in zip(some[behind].tolist(), wanted[first : first + 1024][behind], strict=True):
            found = solver.solve(class_id, still, target=float(target), tolerance=float(target) / 8)
            points[class_id] = found.x
            if found.lower < target:
                left.append(class_id)
    return np.array(left, np.intp)


# ---------------------------------------------------------------------- after


def _proven_margins(task: _Task, draft: _Draft) -> Vector:
    """The chosen classes' gaps at their points in the repaired head, proven; all at least the margin."""
    claims = np.full(len(task.chosen), task.margin)
    gaps = Checker(draft.head, task.domain).gaps(task.chosen, draft.points, claims=claims)
    short = np.flatnonzero(gaps.lower < task.margin)
    if len(short):
        raise InputError(
            f"after rounding to {draft.head.weight.dtype} class {task.chosen[short[0]]} wins by "
            f"{gaps.lower[short[0]]:.3g} instead of {task.margin:g} ({len(short)} classes fall short). Ask "
            "for a larger --margin, which rounding leaves alone, or repair the model in a wider dtype."
        )
    return gaps.lower


def _require_kept(task: _Task, after: Result) -> None:
    promised = np.union1d(task.chosen, task.kept)
    lost = [
        verdict.class_id
        for verdict in after.verdicts
        if verdict.status is not Status.ARGMAXABLE and verdict.class_id in set(promised.tolist())
    ]
    if lost:
        shown = ", ".join(map(str, lost[:_SHOWN]))
        raise InputError(
            f"the repair found would leave {len(lost)} classes without proof that they can win ({shown}), so "
            "it was not taken. Ask for a smaller --margin."
        )
