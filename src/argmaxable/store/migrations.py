"""How the tables came to be: numbered steps, each applied once, all in one transaction.

A step is plain SQL that stays as it was written; what differs between the databases has a name in
braces. The newest tables are described in schema.py, and a test holds both against each other.
"""

from __future__ import annotations

from sqlalchemy import Connection, inspect, select

from argmaxable.core.errors import StoreError
from argmaxable.store.schema import METADATA, VERSIONS

_WORDS = {
    "sqlite": {
        "number": "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT",  # numbers of deleted runs don't come back
        "bytes": "BLOB",
        "clustered": "WITHOUT ROWID",  # one tree, in class order, instead of a table and its index
    },
    "postgresql": {
        "number": "INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "bytes": "BYTEA",
        "clustered": "",
    },
}

_FIRST_TABLES = (
    """
    CREATE TABLE models (
        id {number},
        key {bytes} NOT NULL UNIQUE,
        name TEXT NOT NULL,
        origin TEXT NOT NULL,
        task TEXT NOT NULL,
        family TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        labels_sha256 TEXT NOT NULL,
        classes BIGINT NOT NULL,
        features BIGINT NOT NULL,
        bias BOOLEAN NOT NULL,
        dtype TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE runs (
        id {number},
        model_id INTEGER NOT NULL REFERENCES models (id),
        key {bytes} NOT NULL UNIQUE,
        algorithm TEXT NOT NULL,
        domain TEXT NOT NULL,
        settings TEXT NOT NULL,
        versions TEXT NOT NULL,
        state TEXT NOT NULL,
        started TEXT NOT NULL,
        finished TEXT,
        cost TEXT NOT NULL,
        centre {bytes} NOT NULL,
        chosen {bytes},
        wanted BIGINT NOT NULL,
        argmaxable BIGINT NOT NULL,
        unargmaxable BIGINT NOT NULL,
        tied BIGINT NOT NULL,
        undecided BIGINT NOT NULL,
        solved BIGINT NOT NULL
    )
    """,
    "CREATE INDEX ix_runs_model_id ON runs (model_id)",
    """
    CREATE TABLE verdicts (
        run_id INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        class_id BIGINT NOT NULL,
        label TEXT NOT NULL,
        status TEXT NOT NULL,
        lower DOUBLE PRECISION,
        upper DOUBLE PRECISION,
        method TEXT NOT NULL,
        strength TEXT,
        steps BIGINT NOT NULL,
        rows BIGINT NOT NULL,
        seconds DOUBLE PRECISION,
        radius DOUBLE PRECISION,
        reason TEXT NOT NULL,
        exponent BIGINT,
        point {bytes},
        rival BIGINT,
        certificate {bytes},
        tie_group {bytes},
        PRIMARY KEY (run_id, class_id)
    ) {clustered}
    """,
    """
    CREATE TABLE evidence (
        run_id INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        digest {bytes} NOT NULL,
        part TEXT NOT NULL,
        dtype TEXT NOT NULL,
        shape TEXT NOT NULL,
        data {bytes} NOT NULL,
        PRIMARY KEY (run_id, digest, part)
    )
    """,
)

# Append only: a step that has been released is never changed.
STEPS: tuple[tuple[str, ...], ...] = (_FIRST_TABLES,)


def version_of(connection: Connection, where: str) -> int:
    """How many steps were applied; raises StoreError for a newer database or somebody else's."""
    tables = set(inspect(connection).get_table_names())
    if VERSIONS.name not in tables:
        _require_room(connection, tables, where)
        return 0
    version: int = connection.scalars(select(VERSIONS.c.version)).one()
    if version > len(STEPS):
        raise StoreError(
            f"{where}: written by a newer argmaxable (the tables are version {version}, this one knows "
            f"{len(STEPS)}). Update argmaxable, or choose another database with --db."
        )
    return version


def _require_room(connection: Connection, tables: set[str], where: str) -> None:
    """Our tables must not mix with another program's; a PostgreSQL database may hold others beside."""
    strange = tables if connection.dialect.name == "sqlite" else tables & set(METADATA.tables)
    if strange:
        raise StoreError(
            f"{where}: the database of another program (it has the tables {', '.join(sorted(strange)[:3])}). "
            "Choose another one with --db."
        )


def require_current(version: int, where: str) -> None:
    """Raise StoreError unless all steps were applied: a database that is only read stays as it is."""
    if version == 0:
        raise StoreError(f"{where}: the database is empty. `argmaxable verify MODEL --db …` fills it.")
    if version < len(STEPS):
        raise StoreError(
            f"{where}: written by an older argmaxable (the tables are version {version}, this one has "
            f"{len(STEPS)}). `argmaxable runs --db …` brings it up to date."
        )


def migrate(connection: Connection, where: str) -> None:
    """Apply the steps that are missing; the caller's transaction makes it all or nothing."""
    version = version_of(connection, where)
    if version == 0:
        connection.exec_driver_sql(f"CREATE TABLE {VERSIONS.name} (version INTEGER NOT NULL PRIMARY KEY)")
        connection.execute(VERSIONS.insert().values(version=0))
    words = _WORDS[connection.dialect.name]
    for step in STEPS[version:]:
        for statement in step:
            connection.exec_driver_sql(statement.format(**words))
    connection.execute(VERSIONS.update().values(version=len(STEPS)))
