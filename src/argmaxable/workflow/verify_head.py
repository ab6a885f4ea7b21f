"""verify(head, domain): every class gets a proven verdict, stored where that is wanted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from argmaxable.core.domain import Domain
from argmaxable.core.head import Head
from argmaxable.core.progress import ProgressCallback, ignore_progress
from argmaxable.core.result import Result
from argmaxable.core.verdict import Algorithm
from argmaxable.questions.argmax import DEFAULT_DOMAIN
from argmaxable.run.plan import DEFAULT_ENGINE, Engine, make_plan
from argmaxable.workflow.stored_run import Origin, run_stored

if TYPE_CHECKING:
    from argmaxable.store import Store


def verify(
    head: Head,
    domain: Domain = DEFAULT_DOMAIN,
    *,
    only: Iterable[int] | None = None,
    method: Algorithm | str = Algorithm.AUTO,
    seed: int = 0,
    store: Store | None = None,
    engine: Engine = DEFAULT_ENGINE,
    time_limit: float | None = None,
    progress: ProgressCallback = ignore_progress,
) -> Result:
    """Decide for every class (or those in `only`) whether some input of the domain makes it the
    strict argmax, with evidence for each answer.

    After `time_limit` seconds or Ctrl-C the result holds what was proven so far, with `is_complete` False.
    With a `store` the same question resumes the run that was interrupted, and a finished run is not computed
    twice. `method` runs one algorithm alone. Raises InputError when the domain does not fit the head or a
    class does not exist, StoreError when the store can't be used.
    """
    plan = make_plan(head, domain, only=only, method=method, seed=seed, engine=engine, time_limit=time_limit)
    return run_stored(plan, store, origin=Origin(head.name), progress=progress).result
