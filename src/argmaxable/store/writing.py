"""Writing what is not a verdict: models and runs, found again or made, and removed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Row, bindparam, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from argmaxable.core.errors import StoreError
from argmaxable.core.head import labels_sha256
from argmaxable.core.result import Cost
from argmaxable.store.database import DELETED, Database
from argmaxable.store.evidence import id_parts, vector_parts
from argmaxable.store.plan import Plan, State
from argmaxable.store.rows import Batch, count
from argmaxable.store.schema import MODELS, RUNS, SET_RUNS, VERDICTS
from argmaxable.store.summaries import cost_column, now, settings_column, versions
from argmaxable.store.texts import to_column
from argmaxable.store.upsert import insert_into


def find_run(connection: Connection, key: bytes) -> Row[Any] | None:
    return connection.execute(select(RUNS).where(RUNS.c.key == key)).one_or_none()


def put_model(connection: Connection, plan: Plan, key: bytes) -> int:
    """The number of the model with this key; where it came from is what was said last."""
    facts = plan.facts
    said = {"name": facts.name, "origin": plan.origin, "task": plan.task, "family": plan.family}
    query = insert_into(connection, MODELS).values(
        key=key, **{name: to_column(text) for name, text in said.items()}, sha256=facts.sha256,
        labels_sha256=labels_sha256(plan.labels), classes=facts.classes, features=facts.features,
        bias=facts.bias, dtype=facts.dtype,
    )  # fmt: skip
    news = {name: func.coalesce(func.nullif(query.excluded[name], ""), MODELS.c[name]) for name in said}
    query = query.on_conflict_do_update(index_elements=[MODELS.c.key], set_=news)
    return int(connection.execute(query.returning(MODELS.c.id)).scalar_one())


def fill_in_model(connection: Connection, model_id: int, plan: Plan) -> None:
    """Store what a model is for, unless that is known; its name stays what its runs began with."""
    said = {"origin": plan.origin, "task": plan.task, "family": plan.family}
    news = {
        name: func.coalesce(func.nullif(MODELS.c[name], ""), to_column(text)) for name, text in said.items()
    }
    connection.execute(update(MODELS).where(MODELS.c.id == model_id).values(**news))


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
    query = insert(RUNS).values(
        model_id=model_id, key=key,
        algorithm=plan.algorithm.value, domain=json.dumps(plan.domain.as_record()),
        settings=settings_column(plan), versions=versions(),
        state=state.value, started=now(), finished=None, cost=cost_column(Cost()),
        centre=batch.add_evidence(vector_parts("centre", centre)),
        chosen=None if plan.only is None else batch.add_evidence(id_parts("chosen", plan.only)),
        wanted=plan.facts.classes if plan.only is None else len(plan.only),
        argmaxable=0, unargmaxable=0, tied=0, undecided=0, solved=0,
    )  # fmt: skip
    batch.run_id = int(connection.execute(query.returning(RUNS.c.id)).scalar_one())
    database.insert(connection, batch)
    return batch.run_id


def set_run(connection: Connection, run_id: int, **values: Any) -> None:
    """Change columns of a run; raises StoreError when it is no longer there."""
    done = connection.execute(update(RUNS).where(RUNS.c.id == run_id).values(**values))
    if not done.rowcount:
        raise StoreError(DELETED)


def add_verdicts(connection: Connection, database: Database, batch: Batch, **values: Any) -> None:
    """Write a batch, bring the run's counts up to date, and change other columns with them."""
    added = count(database.insert(connection, batch))
    counts = {name: RUNS.c[name] + number for name, number in added.items()}
    set_run(connection, batch.run_id, **counts, **values)


def set_ahead(connection: Connection, run_id: int, ahead: Mapping[int, int]) -> None:
    """Store how many classes are ahead of these, by class, which is known only when a run ends."""
    where = (VERDICTS.c.run_id == run_id) & (VERDICTS.c.class_id == bindparam("of_class"))
    values = [{"of_class": class_id, "number": number} for class_id, number in ahead.items()]
    if values:
        connection.execute(update(VERDICTS).where(where).values(ahead=bindparam("number")), values)


def remove_run(connection: Connection, run_id: int) -> None:
    """Delete a run with its verdicts and evidence."""
    connection.execute(delete(RUNS).where(RUNS.c.id == run_id))


def remove_unused_model(connection: Connection, model_id: int) -> None:
    """Delete a model when no run is left of it, and no question about sets."""
    runs = select(RUNS.c.id).where(RUNS.c.model_id == model_id).exists()
    sets = select(SET_RUNS.c.id).where(SET_RUNS.c.model_id == model_id).exists()
    # Refused when another process has just begun a run of the model that can't be seen from here yet.
    with suppress(IntegrityError), connection.begin_nested():
        connection.execute(delete(MODELS).where(MODELS.c.id == model_id, ~runs, ~sets))
