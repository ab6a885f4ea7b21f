"""A run that lasts: resumed or found again in a store, where there is one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from argmaxable.compute.prepared import PreparedHead
from argmaxable.core.progress import ProgressCallback, ignore_progress
from argmaxable.core.result import Result
from argmaxable.questions.argmax import run_plan
from argmaxable.questions.standing import with_standing

if TYPE_CHECKING:  # a database library is loaded only for those who store runs
    from argmaxable.core.domain_source import DomainSource
    from argmaxable.run.plan import RunPlan
    from argmaxable.store import Plan, Store
    from argmaxable.store.run import Run


@dataclass(frozen=True)
class Origin:
    """What is said about a run besides what was asked: where the model and the domain came from, and the
    model's groups."""

    origin: str = ""
    task: str = ""
    family: str = ""
    domain_source: DomainSource | None = None


@dataclass(frozen=True, eq=False)
class StoredRun:
    """A result, its head made ready for further questions, and the run that stores it, if one does;
    `was_known` when nothing had to be computed."""

    result: Result
    prepared: PreparedHead
    run_id: int | None = None
    was_known: bool = False


def run_stored(
    plan: RunPlan,
    store: Store | None,
    *,
    origin: Origin,
    overwrite: bool = False,
    progress: ProgressCallback = ignore_progress,
) -> StoredRun:
    """Carry out the plan. With a store, a run for the same head, domain, classes and settings is found again
    or resumed there, unless `overwrite`. Raises StoreError when the store can't be used.
    """
    if store is None:
        result = with_standing(run_plan(plan, progress=progress), plan.prepared)
        return StoredRun(replace(result, domain_source=origin.domain_source), plan.prepared)
    with store.begin(_identity(plan, origin), centre=plan.prepared.centre, overwrite=overwrite) as run:
        was_known = run.is_finished
        if was_known:
            result = with_standing(_known_result(plan, run), plan.prepared)
        else:
            result = with_standing(run_plan(plan, progress=progress, journal=run), plan.prepared)
            run.place(result.unargmaxable)
            if result.is_complete:
                run.finish(result.cost)
    result = replace(result, domain_source=origin.domain_source)
    return StoredRun(result, plan.prepared, run.run_id, was_known)


def _identity(plan: RunPlan, origin: Origin) -> Plan:
    from argmaxable.store import Plan

    head, settings = plan.head, plan.settings
    return Plan(
        facts=plan.prepared.facts, labels=head.labels, domain=plan.domain, algorithm=settings.algorithm,
        patience=settings.patience, seed=settings.seed, only=plan.only,
        origin=origin.origin, task=origin.task, family=origin.family, domain_source=origin.domain_source,
    )  # fmt: skip


def _known_result(plan: RunPlan, run: Run) -> Result:
    return Result(
        head=plan.head, facts=plan.prepared.facts, domain=plan.domain, centre=run.centre,
        verdicts=tuple(run.known[class_id] for class_id in sorted(run.known)), cost=run.spent,
    )  # fmt: skip
