"""A run's row and its model's as a summary, and a plan as rows."""

from __future__ import annotations

import dataclasses
import json
import platform
from datetime import UTC, datetime
from typing import Any

import numpy as np

from argmaxable.core.domain_source import DomainSource
from argmaxable.core.domains import domain_from_record
from argmaxable.core.head import Facts
from argmaxable.core.result import Cost
from argmaxable.core.verdict import Algorithm
from argmaxable.core.version import VERSION
from argmaxable.store.damaged_rows import damage_reported
from argmaxable.store.plan import Counts, Plan, RunSummary, State
from argmaxable.store.texts import from_column


def now() -> str:
    """This moment in UTC, in a form that sorts."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def versions() -> str:
    """What a run's arithmetic depends on."""
    return json.dumps({"argmaxable": VERSION, "numpy": np.__version__, "python": platform.python_version()})


def settings_column(plan: Plan) -> str:
    source = plan.domain_source
    said = {} if source is None else {"domain_source": source.as_record()}
    return json.dumps({"patience": plan.patience, "seed": plan.seed} | said)


def cost_column(cost: Cost) -> str:
    return json.dumps(dataclasses.asdict(cost))


def cost_from(column: str) -> Cost:
    """Inverse of `cost_column`; raises ValueError or TypeError for anything else."""
    cost = Cost(**json.loads(column))
    numbers = [cost.seconds, cost.solves, cost.mean_steps, cost.mean_rows, *cost.phases.values()]
    if not all(isinstance(number, int | float) for number in numbers):
        raise ValueError("the cost holds values that are not numbers")
    return cost


def summary_of(row: Any, *, is_alive: bool = True) -> RunSummary:
    """The summary of a run joined with its model; one that is running but not alive was interrupted."""
    with damage_reported(row.id):
        state = State(row.state)
        return _summary(row, State.INTERRUPTED if state is State.RUNNING and not is_alive else state)


def _summary(row: Any, state: State) -> RunSummary:
    settings = json.loads(row.settings)
    if not all(isinstance(settings[name], int) for name in ("patience", "seed")):
        raise ValueError("the settings hold values that are not numbers")
    source = settings.get("domain_source")
    return RunSummary(
        run_id=row.id,
        facts=Facts(
            name=from_column(row.name), sha256=row.sha256, classes=row.classes,
            features=row.features, bias=bool(row.bias), dtype=row.dtype,
            labels_sha256=row.labels_sha256,
        ),
        origin=from_column(row.origin),
        task=from_column(row.task),
        family=from_column(row.family),
        domain=domain_from_record(json.loads(row.domain)),
        algorithm=Algorithm(row.algorithm),
        patience=settings["patience"],
        seed=settings["seed"],
        state=state,
        counts=Counts(
            wanted=row.wanted, argmaxable=row.argmaxable, unargmaxable=row.unargmaxable,
            tied=row.tied, undecided=row.undecided, solved=row.solved,
        ),
        cost=cost_from(row.cost),
        started=datetime.fromisoformat(row.started),
        finished=None if row.finished is None else datetime.fromisoformat(row.finished),
        versions=json.loads(row.versions),
        # Runs of 0.1.0 don't say.
        domain_source=None if source is None else DomainSource.from_record(source),
    )  # fmt: skip
