"""Writing what is not a verdict: models and runs, found again or made, and removed."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Row, delete, insert, select, update

from argmaxable.errors import StoreError
from argmaxable.result import Cost
from argmaxable.store.database import Database
from argmaxable.store.evidence import id_parts, vector_parts
from argmaxable.store.identity import labels_sha256
from argmaxable.store.plan import Plan, State
from argmaxable.store.rows import Batch, count
from argmaxable.store.schema import MODELS, RUNS
from argmaxable.store.summaries import cost_column, now, versions
from argmaxable.store.texts import to_column


def find_run(connection: Connection, key: bytes) -> Row[Any] | None:
    return connection.execute(select(RUNS).where(RUNS.c.key == key)).one_or_none()


def put_model(connection: Connection, plan: Plan, key: bytes) -> int:
    """The number of the model with this key; it is called what it was called last."""
    said = {
        name: to_column(text)
        for name, text in (
            *(("name", plan.facts.name), ("origin", plan.origin)),
            *(("task", plan.task), ("family", plan.family)),
        )
    }
    facts = plan.facts
    model_id = connection.scalar(select(MODELS.c.id).where(MODELS.c.key == key))
    if model_id is None:
        return _inserted(
            connection, MODELS, key=key, **said, sha256=facts.sha256, classes=facts.classes,
            labels_sha256=labels_sha256(plan.labels), features=facts.features, bias=facts.bias,
            dtype=facts.dtype,
        )  # fmt: skip
    news = {name: text for name, text in said.items() if text}
    if news:
        connection.execute(update(MODELS).where(MODELS.c.id == model_id).values(**news))
    return int(model_id)


def put_run(
    connection: Connection,
    database: Database,
    plan: Plan,
    *,
    model_id: int,
    key: bytes,
    centre: NDArray[np.float64],
    state: State,
) -> int:
    """A new run of the plan, with its centre and its list of classes as evidence."""
    batch = Batch(0)
    run_id = _inserted(
        connection, RUNS, model_id=model_id, key=key,
        algorithm=plan.algorithm.value, domain=json.dumps(plan.domain.as_record()),
        settings=json.dumps({"patience": plan.patience, "seed": plan.seed}), versions=versions(),
        state=state.value, started=now(), finished=None, cost=cost_column(Cost()),
        centre=batch.keep(vector_parts("centre", centre)),
        only=None if plan.only is None else batch.keep(id_parts("only", plan.only)),
        wanted=plan.facts.classes if plan.only is None else len(plan.only),
        argmaxable=0, unargmaxable=0, tied=0, undecided=0, solved=0,
    )  # fmt: skip
    batch.run_id = run_id
    database.insert(connection, batch)
    return run_id


def set_run(connection: Connection, run_id: int, **values: Any) -> None:
    """Change columns of a run; raises StoreError when it is no longer there."""
    done = connection.execute(update(RUNS).where(RUNS.c.id == run_id).values(**values))
    if not done.rowcount:
        raise StoreError(f"run {run_id} has been deleted. Run the same command to begin anew.")


def add_verdicts(connection: Connection, database: Database, batch: Batch, **values: Any) -> None:
    """Write a batch, bring the run's counts up to date, and change other columns with them."""
    added = count(database.insert(connection, batch))
    counts = {name: RUNS.c[name] + number for name, number in added.items() if number}
    set_run(connection, batch.run_id, **counts, **values)


def remove_run(connection: Connection, run_id: int) -> None:
    """Delete a run with its verdicts and evidence, and its model when no run is left of it."""
    connection.execute(delete(RUNS).where(RUNS.c.id == run_id))
    connection.execute(delete(MODELS).where(MODELS.c.id.not_in(select(RUNS.c.model_id))))


def _inserted(connection: Connection, table: Any, **values: Any) -> int:
    return int(connection.execute(insert(table).values(**values)).inserted_primary_key[0])
