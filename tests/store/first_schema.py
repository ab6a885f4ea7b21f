"""The tables of version 1 as argmaxable 0.1.0 made them: frozen, for tests of old databases."""

from __future__ import annotations

from sqlalchemy import Connection

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

_TABLES = (
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


def make_first_tables(connection: Connection) -> None:
    """Make the tables in an empty database."""
    connection.exec_driver_sql("CREATE TABLE argmaxable_schema (version INTEGER NOT NULL PRIMARY KEY)")
    connection.exec_driver_sql("INSERT INTO argmaxable_schema VALUES (1)")
    for statement in _TABLES:
        connection.exec_driver_sql(statement.format(**_WORDS[connection.dialect.name]))
