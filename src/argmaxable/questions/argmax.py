"""verify(head, domain): every class gets a proven verdict.

Cheap searches first (own direction, reflection), then a solve for each class left, whose proofs
are tried on the others. Each answer passes the checker before it counts, so the order of work, the
seed and the number of processes can change the evidence but never a status.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from argmaxable.check.checker import Checker
from argmaxable.core.boxes import Box
from argmaxable.core.progress import Deadline, ProgressCallback, ignore_progress
from argmaxable.core.result import Result
from argmaxable.core.verdict import Algorithm
from argmaxable.prove.prover import Prover
from argmaxable.run.journal import NO_JOURNAL, Journal
from argmaxable.run.phases import early_processes, settle_all
from argmaxable.run.plan import DEFAULT_ENGINE, Engine, RunPlan, make_plan
from argmaxable.run.session import Session
from argmaxable.run.settled_classes import SettledClasses

if TYPE_CHECKING:
    from argmaxable.core.domain import Domain
    from argmaxable.core.head import Head

DEFAULT_DOMAIN = Box(-100.0, 100.0)


def verify(
    head: Head,
    domain: Domain = DEFAULT_DOMAIN,
    *,
    only: Iterable[int] | None = None,
    method: Algorithm | str = Algorithm.AUTO,
    patience: int | None = None,
    seed: int = 0,
    engine: Engine = DEFAULT_ENGINE,
    time_limit: float | None = None,
    progress: ProgressCallback = ignore_progress,
) -> Result:
    """Decide for every class (or those in `only`) whether some input of the domain makes it the
    strict argmax, with evidence for each answer.

    After `time_limit` seconds or Ctrl-C the result holds what was proven so far, with `is_complete` False.
    `method` runs one algorithm alone, `patience` is the number of reflection steps. Raises InputError when
    the domain does not fit the head or a class does not exist.
    """
    plan = make_plan(
        head, domain, only=only, method=method, patience=patience, seed=seed, engine=engine,
        time_limit=time_limit,
    )  # fmt: skip
    return run_plan(plan, progress=progress)


def run_plan(
    plan: RunPlan, *, progress: ProgressCallback = ignore_progress, journal: Journal = NO_JOURNAL
) -> Result:
    """Carry out a plan. The journal stores verdicts as they come in and knows those of an earlier part of
    the run."""
    start = time.perf_counter()
    head, settings = plan.head, plan.settings
    open_classes = len(plan.wanted) - len(journal.known)
    with early_processes(settings, open_classes, head.features) as processes:
        checker = Checker(plan.prepared, plan.domain, centre=journal.centre)
        twins = checker.prepared.twins
        settled_classes = SettledClasses(checker, twins, plan.wanted, journal.known)
        deadline = Deadline(settings.time_limit)
        prover = Prover(
            checker, ignored=twins.ignored, tied=frozenset(twins.ties), score=None, seed=settings.seed,
            deadline=deadline,
        )  # fmt: skip
        session = Session(settled_classes, prover, settings, deadline, progress, journal, processes, start)
        session.phases["set-up"] = time.perf_counter() - start
        is_complete = settle_all(session)
    session.record()
    return Result(
        head=head, facts=plan.prepared.facts, domain=plan.domain, centre=checker.centre,
        verdicts=settled_classes.verdicts(), cost=session.cost(), is_complete=is_complete,
    )  # fmt: skip
