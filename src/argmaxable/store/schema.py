"""The newest tables: an empty database gets them in one step, and queries are built from them.

A change here needs a step in migrations.py that makes the same change to older databases; a test holds both
against each other.

A NULL bound or duration stands for NaN, which SQLite can't hold. Moments are ISO 8601 in UTC, numbers
that Python alone reads are JSON, text is escaped by texts.py, evidence is named by its digest.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Identity,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
)

METADATA = MetaData()

VERSIONS = Table(
    "argmaxable_schema", METADATA, Column("version", Integer, primary_key=True, autoincrement=False)
)

MODELS = Table(
    "models",
    METADATA,
    Column("id", Integer, Identity(always=True), primary_key=True),
    Column("key", LargeBinary, nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("task", Text, nullable=False),
    Column("family", Text, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("labels_sha256", Text, nullable=False),
    Column("classes", BigInteger, nullable=False),
    Column("features", BigInteger, nullable=False),
    Column("bias", Boolean, nullable=False),
    Column("dtype", Text, nullable=False),
    sqlite_autoincrement=True,  # numbers of deleted rows are not used again
)

RUNS = Table(
    "runs",
    METADATA,
    Column("id", Integer, Identity(always=True), primary_key=True),
    Column("model_id", ForeignKey("models.id"), nullable=False, index=True),
    Column("key", LargeBinary, nullable=False, unique=True),
    Column("algorithm", Text, nullable=False),
    Column("domain", Text, nullable=False),
    Column("settings", Text, nullable=False),
    Column("versions", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("started", Text, nullable=False),
    Column("finished", Text),
    Column("cost", Text, nullable=False),
    Column("centre", LargeBinary, nullable=False),
    Column("chosen", LargeBinary),
    # Updated with every batch, so that a summary need not count a million verdicts.
    Column("wanted", BigInteger, nullable=False),
    Column("argmaxable", BigInteger, nullable=False),
    Column("unargmaxable", BigInteger, nullable=False),
    Column("tied", BigInteger, nullable=False),
    Column("undecided", BigInteger, nullable=False),
    Column("solved", BigInteger, nullable=False),
    sqlite_autoincrement=True,  # numbers of deleted rows are not used again
)

VERDICTS = Table(
    "verdicts",
    METADATA,
    Column("run_id", ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("class_id", BigInteger, primary_key=True),
    Column("label", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("lower", Double),
    Column("upper", Double),
    Column("method", Text, nullable=False),
    Column("strength", Text),
    Column("steps", BigInteger, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("seconds", Double),
    Column("radius", Double),
    Column("reason", Text, nullable=False),
    # The witness: an own direction by its exponent, or a point. The certificate: a single rival, or more.
    Column("exponent", BigInteger),
    Column("point", LargeBinary),
    Column("rival", BigInteger),
    Column("certificate", LargeBinary),
    Column("tie_group", LargeBinary),
    Column("ahead", BigInteger),
    sqlite_with_rowid=False,  # one tree, in class order, instead of a table and its index
)


def _evidence(name: str, runs: str) -> Table:
    """Arrays of one kind of runs."""
    return Table(
        name,
        METADATA,
        Column("run_id", ForeignKey(f"{runs}.id", ondelete="CASCADE"), primary_key=True),
        Column("digest", LargeBinary, primary_key=True),
        Column("part", Text, primary_key=True),
        Column("dtype", Text, nullable=False),
        Column("shape", Text, nullable=False),
        Column("data", LargeBinary, nullable=False),
    )


EVIDENCE = _evidence("evidence", "runs")

SET_RUNS = Table(
    "set_runs",
    METADATA,
    Column("id", Integer, Identity(always=True), primary_key=True),
    Column("model_id", ForeignKey("models.id"), nullable=False, index=True),
    Column("key", LargeBinary, nullable=False, unique=True),
    Column("question", Text, nullable=False),
    Column("domain", Text, nullable=False),
    Column("settings", Text, nullable=False),
    Column("versions", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("started", Text, nullable=False),
    Column("finished", Text),
    Column("seconds", Double, nullable=False),
    Column("wanted", BigInteger, nullable=False),
    Column("feasible", BigInteger, nullable=False),
    Column("infeasible", BigInteger, nullable=False),
    Column("undecided", BigInteger, nullable=False),
    sqlite_autoincrement=True,  # numbers of deleted rows are not used again
)

SETS = Table(
    "sets",
    METADATA,
    Column("run_id", ForeignKey("set_runs.id", ondelete="CASCADE"), primary_key=True),
    Column("number", BigInteger, primary_key=True),
    Column("members", Text, nullable=False),
    Column("labels", Text, nullable=False),
    Column("examples", BigInteger, nullable=False),
    Column("status", Text, nullable=False),
    Column("lower", Double),
    Column("upper", Double),
    Column("method", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("point", LargeBinary),
    Column("certificate", LargeBinary),
    sqlite_with_rowid=False,
)

SET_EVIDENCE = _evidence("set_evidence", "set_runs")
