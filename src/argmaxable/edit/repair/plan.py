"""repair(head, domain): a head in which the chosen classes win by a margin, and none becomes unargmaxable.

Biases alone where they can do it, moved rows where they can't. What is planned in floats is rounded to the
head's own dtypes first; then the rounded head is verified like any other: a repair is no promise but a fact.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from argmaxable.check.checker import Checker
from argmaxable.core.arrays import Ids, Matrix, Vector
from argmaxable.core.domain import Domain
from argmaxable.core.errors import InputError
from argmaxable.core.head import Head
from argmaxable.core.progress import Deadline, ProgressCallback, ignore_progress
from argmaxable.core.result import Result
from argmaxable.core.verdict import Status
from argmaxable.edit.repair.bound import changed_classes, logit_movement
from argmaxable.edit.repair.by_bias import by_bias
from argmaxable.edit.repair.by_rows import by_rows
from argmaxable.edit.repair.confirm import verify_with_points
from argmaxable.edit.repair.task import Draft, RepairTask
from argmaxable.questions.argmax import run_plan
from argmaxable.run.plan import DEFAULT_ENGINE, Engine, RunPlan, make_plan

# A logit of 1000 is off by up to about 1e-4 when it is computed in float32: a class that wins by ten times
# that wins in single precision too. More would cost larger changes.
DEFAULT_MARGIN = 1e-3
DEFAULT_SECONDS = 600.0
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

    def __repr__(self) -> str:
        return f"Repair({len(self.chosen):,} classes, margin {self.margin:g}, {self.result})"

    @property
    def changed(self) -> Ids:
        """The classes whose row or bias is another."""
        return changed_classes(self.before, self.after)


def repair(
    head: Head,
    domain: Domain,
    *,
    only: Iterable[int] | None = None,
    margin: float = DEFAULT_MARGIN,
    bias_only: bool = False,
    even: bool = False,
    seconds: float = DEFAULT_SECONDS,
    engine: Engine = DEFAULT_ENGINE,
    progress: ProgressCallback = ignore_progress,
) -> Repair:
    """Make the chosen classes (default: all that are unargmaxable) argmaxable by the margin.

    Every class that is argmaxable stays so, with at least half of the margin it has or of the one asked for.
    Biases are raised, none lowered, unless `even` moves all of them so that the largest |Δb| is as small as
    it can be. Rows move only where biases can't do it, and never with `bias_only`. Raises InputError when
    there is nothing to repair, a chosen class is argmaxable already, or no repair was found.
    """
    domain.require_directions("repair")
    started = time.perf_counter()
    if not (np.isfinite(margin) and margin > 0):
        raise InputError(f"the margin must be a number above 0, found {margin}.")
    if bias_only and head.bias is None:
        raise InputError(
            "the head has no bias, so bias alone can't repair it. Leave out --bias-only: rows are moved then."
        )
    plan = make_plan(head, domain, engine=engine, time_limit=seconds)
    before = _verified(plan, seconds, progress)
    chosen = _chosen(before, only)
    # Whatever is found has to be verified again.
    deadline = Deadline(seconds - 2 * before.cost.seconds)
    task = _task(before, chosen, margin, deadline, plan.settings.workers or 1, progress)
    draft = by_rows(task) if head.bias is None else by_bias(task, bias_only=bias_only, even=even)
    margins = _proven_margins(task, draft)
    after = verify_with_points(
        draft.head, domain, np.concatenate([task.chosen, task.standing]),
        np.concatenate([draft.points, task.standing_points]), engine=engine, progress=progress,
    )  # fmt: skip
    _require_kept(task, after)
    was_unargmaxable = np.array([verdict.class_id for verdict in before.unargmaxable], np.intp)
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
        gained=np.setdiff1d(np.intersect1d(was_unargmaxable, found), task.chosen),
        seconds=time.perf_counter() - started,
    )  # fmt: skip


def _verified(plan: RunPlan, seconds: float, progress: ProgressCallback) -> Result:
    """A verdict for every class; raises InputError when there was no time for that."""
    before = run_plan(plan, progress=progress)
    if before.is_complete:
        return before
    if before.cost.seconds < seconds:  # the verification has caught Ctrl-C, for what was proven by then
        raise KeyboardInterrupt
    raise InputError(
        f"the time limit of {seconds:g} s passed while the head was being verified "
        f"({len(before.undecided):,} classes to go). Pass a larger --time-limit."
    )


def _chosen(before: Result, only: Iterable[int] | None) -> list[int]:
    """The classes to repair; raises InputError where one does not exist or needs none."""
    head = before.head
    argmaxable = {verdict.class_id: verdict for verdict in before.argmaxable}
    unargmaxable = [verdict.class_id for verdict in before.unargmaxable]
    chosen = sorted(set(unargmaxable if only is None else only))
    if not chosen:
        undecided = f" ({len(before.undecided)} are undecided)" if before.undecided else ""
        raise InputError(
            f"no class is unargmaxable over {before.domain}{undecided}: there is nothing to repair."
        )
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
    return chosen


def _task(
    before: Result,
    chosen: list[int],
    margin: float,
    deadline: Deadline,
    workers: int,
    progress: ProgressCallback,
) -> RepairTask:
    head = before.head
    standing = [verdict for verdict in before.argmaxable if verdict.witness is not None]
    checker = Checker(head, before.domain, centre=before.centre)
    points = np.empty((len(standing), head.features))
    for place, verdict in enumerate(standing):
        assert verdict.witness is not None
        points[place] = checker.point(verdict.class_id, verdict.witness)
    blockers = np.zeros(head.classes)
    for verdict in before.unargmaxable:
        if verdict.certificate is not None:
            weights = verdict.certificate.weights
            blockers[verdict.certificate.classes] += np.minimum(weights / weights.sum() * len(weights), 3)
    return RepairTask(
        head, before.domain, margin, np.array(chosen, np.intp),
        np.array([verdict.class_id for verdict in standing], np.intp),
        np.array([verdict.lower for verdict in standing]), points, blockers, deadline, workers, progress,
    )  # fmt: skip


def _proven_margins(task: RepairTask, draft: Draft) -> Vector:
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


def _require_kept(task: RepairTask, after: Result) -> None:
    promised = np.union1d(task.chosen, task.standing)
    unproven = [
        verdict.class_id
        for verdict in after.verdicts
        if verdict.status is not Status.ARGMAXABLE and verdict.class_id in set(promised.tolist())
    ]
    if unproven:
        shown = ", ".join(map(str, unproven[:_SHOWN]))
        raise InputError(
            f"the repair found leaves {len(unproven)} classes without proof that they can win ({shown}), so "
            "it was not taken. Ask for a smaller --margin."
        )
