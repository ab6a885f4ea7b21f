"""A model from its name to its verdicts: find the head, choose domain and classes, verify, store.

What `argmaxable verify` does to one model and a campaign to many.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from argmaxable.compute.prepared import PreparedHead
from argmaxable.core.domain import Domain
from argmaxable.core.progress import ProgressCallback, ignore_progress
from argmaxable.core.queries import Queries
from argmaxable.core.result import Result
from argmaxable.core.select import Selection
from argmaxable.core.verdict import Algorithm
from argmaxable.models.finding import Finding
from argmaxable.models.model_ref import ModelRef, PathLike
from argmaxable.questions.arithmetic.formats import Rounding
from argmaxable.run.plan import DEFAULT_ENGINE, Engine, make_plan
from argmaxable.workflow.find_model import DEFAULT_DOMAIN_TEXT, find_model
from argmaxable.workflow.stored_run import Origin, run_stored

if TYPE_CHECKING:  # a database library is loaded only for those who store runs
    from argmaxable.store import Store

EVERY_CLASS = Selection()


@dataclass(frozen=True)
class Request:
    """What a user asks about a model. `domain` may be text as on the command line; `task` and `family` are
    stored with the run. With `round_to` the question is about a copy of the head whose weights are rounded to
    that format."""

    ref: ModelRef
    domain: str | Domain | Queries = DEFAULT_DOMAIN_TEXT
    classes: Selection = EVERY_CLASS
    method: Algorithm | str = Algorithm.AUTO
    patience: int | None = None
    seed: int = 0
    round_to: Rounding | None = None
    task: str = ""
    family: str = ""


@dataclass(frozen=True, eq=False)
class ModelVerdicts:
    """The verdicts, what was found in the file, and the run that stores them, if one does.

    `prepared` is the head made ready, for further questions. `was_known` is True when the store had the
    verdicts already and nothing was computed.
    """

    result: Result
    prepared: PreparedHead
    finding: Finding
    run_id: int | None
    was_known: bool


def verify_model(
    model: PathLike | ModelRef,
    domain: str | Domain = DEFAULT_DOMAIN_TEXT,
    *,
    only: Iterable[int] | Selection | None = None,
    method: Algorithm | str = Algorithm.AUTO,
    seed: int = 0,
    store: Store | None = None,
    engine: Engine = DEFAULT_ENGINE,
    time_limit: float | None = None,
    progress: ProgressCallback = ignore_progress,
) -> ModelVerdicts:
    """Verify the output layer of a model: `verify` for the head that `find_head` finds in it.

    `domain` may be text as on the command line: "auto" is the tightest that the file itself proves, else the
    box ±100 as an assumption (`result.domain_source` says which). Raises InputError when the model, the
    domain or the choice of classes is wrong, StoreError when the store can't be used.
    """
    request = Request(
        ref=model if isinstance(model, ModelRef) else ModelRef(model),
        domain=domain,
        classes=only if isinstance(only, Selection) else Selection(None if only is None else tuple(only)),
        method=method,
        seed=seed,
    )
    return answer(request, store=store, engine=engine, time_limit=time_limit, progress=progress)


def answer(
    request: Request,
    *,
    store: Store | None = None,
    overwrite: bool = False,
    engine: Engine = DEFAULT_ENGINE,
    time_limit: float | None = None,
    progress: ProgressCallback = ignore_progress,
) -> ModelVerdicts:
    """Do what the request asks. With `overwrite` a run that the store has is computed again. Raises as
    `verify_model` does."""
    found = find_model(request.ref, request.domain, round_to=request.round_to)
    head = found.head()
    plan = make_plan(
        head, found.domain, only=request.classes.of(head, found.finding.special), method=request.method,
        patience=request.patience, seed=request.seed, engine=engine, time_limit=time_limit,
    )  # fmt: skip
    origin = Origin(found.origin, request.task, request.family, found.domain_source)
    run = run_stored(plan, store, origin=origin, overwrite=overwrite, progress=progress)
    return ModelVerdicts(run.result, run.prepared, found.finding, run.run_id, run.was_known)
