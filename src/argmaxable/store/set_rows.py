"""Sets of labels as rows and back, and a question about them as a row."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, Select, select

from argmaxable.core.domain_source import DomainSource
from argmaxable.core.domains import domain_from_record
from argmaxable.core.feasibility import Feasibility
from argmaxable.core.head import Facts
from argmaxable.core.label_sets import Members, SetClaim, SetMethod, SetTest
from argmaxable.store.damaged_rows import damage_reported, kinds_of, require_kinds
from argmaxable.store.evidence import Part, Parts, Shelf, certificate_parts, digest_of, vector_parts
from argmaxable.store.plan import SetPlan, SetRunSummary, State
from argmaxable.store.schema import MODELS, SET_EVIDENCE, SET_RUNS, SETS
from argmaxable.store.texts import from_column, to_column
from argmaxable.store.upsert import insert_into

# Rows in one statement: SQLite before 3.32 takes 999 parameters.
_AT_ONCE = 80
_MODEL_COLUMNS = ("name", "origin", "sha256", "labels_sha256", "classes", "features", "bias", "dtype")
_RUN_COLUMNS = [*SET_RUNS.c, *(MODELS.c[name] for name in _MODEL_COLUMNS)]
_RUN_KINDS = kinds_of(_RUN_COLUMNS)
_SET_KINDS = kinds_of(SETS.c)
_EVIDENCE_KINDS = kinds_of(SET_EVIDENCE.c)


class SetRow(NamedTuple):
    """A row of the table of sets, in the order of its columns."""

    run_id: int
    number: int
    members: str
    labels: str
    examples: int
    status: str
    lower: float | None
    upper: float | None
    method: str
    reason: str
    point: bytes | None
    certificate: bytes | None


# ---------------------------------------------------------------------- what was asked


def set_run_columns(plan: SetPlan) -> dict[str, Any]:
    """What a question about sets says of itself."""
    source = plan.domain_source
    return {
        "question": json.dumps(plan.test.as_record()),
        "domain": json.dumps(plan.domain.as_record()),
        "settings": json.dumps({} if source is None else {"domain_source": source.as_record()}),
        "wanted": len(plan.sets),
    }


def set_runs() -> Select[Any]:
    """Questions with their models."""
    return select(*_RUN_COLUMNS).join(MODELS, SET_RUNS.c.model_id == MODELS.c.id)


def require_sound(row: Row[Any]) -> Row[Any]:
    """The row; raises ValueError unless every value is of its column's type."""
    require_kinds(row, _RUN_KINDS)
    return row


def set_summary_of(row: Any, *, is_alive: bool = True) -> SetRunSummary:
    """The summary of a question; one that is running but not alive was interrupted."""
    state = State(row.state)
    source = json.loads(row.settings).get("domain_source")
    return SetRunSummary(
        run_id=row.id,
        facts=Facts(
            name=from_column(row.name), sha256=row.sha256, classes=row.classes,
            features=row.features, bias=bool(row.bias), dtype=row.dtype, labels_sha256=row.labels_sha256,
        ),
        origin=from_column(row.origin),
        domain=domain_from_record(json.loads(row.domain)),
        test=SetTest.from_record(json.loads(row.question)),
        state=State.INTERRUPTED if state is State.RUNNING and not is_alive else state,
        wanted=row.wanted, feasible=row.feasible, infeasible=row.infeasible, undecided=row.undecided,
        seconds=row.seconds,
        started=datetime.fromisoformat(row.started),
        finished=None if row.finished is None else datetime.fromisoformat(row.finished),
        domain_source=None if source is None else DomainSource.from_record(source),
    )  # fmt: skip


# ---------------------------------------------------------------------- sets


def insert_sets(connection: Connection, run_id: int, numbered: Iterable[tuple[int, SetClaim]]) -> None:
    """Write sets with their evidence; those that are there stay as they are."""
    evidence: dict[bytes, Parts] = {}
    rows = [_row(run_id, number, claim, evidence) for number, claim in numbered]
    parts = [
        (run_id, digest, part.name, part.dtype, part.shape, part.data)
        for digest, piece in evidence.items()
        for part in piece
    ]
    for table, values in ((SET_EVIDENCE, parts), (SETS, rows)):
        names = [column.name for column in table.c]
        for first in range(0, len(values), _AT_ONCE):
            some = [dict(zip(names, each, strict=True)) for each in values[first : first + _AT_ONCE]]
            connection.execute(insert_into(connection, table).values(some).on_conflict_do_nothing())


def _row(run_id: int, number: int, claim: SetClaim, evidence: dict[bytes, Parts]) -> SetRow:
    def digest(parts: Parts) -> bytes:
        name = digest_of(parts)
        evidence[name] = parts
        return name

    return SetRow(
        run_id=run_id, number=number, members=json.dumps(claim.members),
        labels=to_column(json.dumps(claim.labels, ensure_ascii=False)), examples=claim.count,
        status=claim.status.value, lower=_number(claim.lower), upper=_number(claim.upper),
        method=claim.method.value, reason=to_column(claim.reason),
        point=None if claim.point is None else digest(vector_parts("point", claim.point)),
        certificate=None if claim.certificate is None else digest(certificate_parts(claim.certificate)),
    )  # fmt: skip


def read_claims(connection: Connection, run_id: int) -> tuple[SetClaim, ...]:
    """The sets of a question that have an answer, in the order in which they were asked about."""
    with damage_reported(None):
        rows = connection.execute(select(SETS).where(SETS.c.run_id == run_id).order_by(SETS.c.number)).all()
        shelf = Shelf()
        shelf.put(_pieces(connection, run_id))
        return tuple(_claim(row, shelf) for row in rows)


def _pieces(connection: Connection, run_id: int) -> dict[bytes, Parts]:
    pieces: dict[bytes, Parts] = {}
    for row in connection.execute(select(SET_EVIDENCE).where(SET_EVIDENCE.c.run_id == run_id)):
        require_kinds(row, _EVIDENCE_KINDS)
        part = Part(row.part, row.dtype, row.shape, row.data)
        pieces[row.digest] = (*pieces.get(row.digest, ()), part)
    return pieces


def _claim(row: Row[Any], shelf: Shelf) -> SetClaim:
    require_kinds(row, _SET_KINDS)
    members = _members(json.loads(row.members))
    labels = tuple(str(label) for label in json.loads(from_column(row.labels)))
    if len(labels) != len(members):
        raise ValueError("a set has more labels than members, or fewer")
    return SetClaim(
        members=members, labels=labels, status=Feasibility(row.status), lower=_from_number(row.lower),
        upper=_from_number(row.upper), method=SetMethod(row.method),
        point=None if row.point is None else shelf.vector(row.point),
        certificate=None if row.certificate is None else shelf.certificate(row.certificate),
        count=row.examples, reason=from_column(row.reason),
    )  # fmt: skip


def _members(values: Sequence[Any]) -> Members:
    if not all(isinstance(value, int) and value >= 0 for value in values):
        raise ValueError("a set's members are not whole numbers")
    return tuple(values)


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value) + 0.0


def _from_number(value: float | None) -> float:
    return math.nan if value is None else value
