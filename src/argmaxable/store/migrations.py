"""Older databases brought up to date: numbered steps, each applied once, all in one transaction.

The newest tables are in schema.py; here is only what leads there from the tables of earlier versions.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, inspect, select

from argmaxable.core.errors import StoreError
from argmaxable.store.schema import METADATA, VERSIONS


def _add_ahead(connection: Connection) -> None:
    """How many classes score higher in a class's own direction; not known of older runs."""
    connection.exec_driver_sql("ALTER TABLE verdicts ADD COLUMN ahead BIGINT")


def _add_sets(connection: Connection) -> None:
    """Sets of labels: what was asked, the sets, and their evidence."""
    is_sqlite = connection.dialect.name == "sqlite"
    number = "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT"
    if not is_sqlite:
        number = "INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
    real, binary = ("DOUBLE", "BLOB") if is_sqlite else ("DOUBLE PRECISION", "BYTEA")
    run = "run_id INTEGER NOT NULL REFERENCES set_runs (id) ON DELETE CASCADE"
    connection.exec_driver_sql(
        f"CREATE TABLE set_runs (id {number}, model_id INTEGER NOT NULL REFERENCES models (id), "
        f"key {binary} NOT NULL UNIQUE, question TEXT NOT NULL, domain TEXT NOT NULL, "
        "settings TEXT NOT NULL, versions TEXT NOT NULL, state TEXT NOT NULL, started TEXT NOT NULL, "
        f"finished TEXT, seconds {real} NOT NULL, wanted BIGINT NOT NULL, feasible BIGINT NOT NULL, "
        "infeasible BIGINT NOT NULL, undecided BIGINT NOT NULL)"
    )
    connection.exec_driver_sql("CREATE INDEX ix_set_runs_model_id ON set_runs (model_id)")
    connection.exec_driver_sql(
        f"CREATE TABLE sets ({run}, number BIGINT NOT NULL, members TEXT NOT NULL, labels TEXT NOT NULL, "
        f"examples BIGINT NOT NULL, status TEXT NOT NULL, lower {real}, upper {real}, method TEXT NOT NULL, "
        f"reason TEXT NOT NULL, point {binary}, certificate {binary}, PRIMARY KEY (run_id, number))"
        + (" WITHOUT ROWID" if is_sqlite else "")
    )
    connection.exec_driver_sql(
        f"CREATE TABLE set_evidence ({run}, digest {binary} NOT NULL, part TEXT NOT NULL, "
        f"dtype TEXT NOT NULL, shape TEXT NOT NULL, data {binary} NOT NULL, "
        "PRIMARY KEY (run_id, digest, part))"
    )


# The step at index k brings tables of version k + 1 to version k + 2. Append only: a released step is never
# changed, so it spells out its SQL and uses nothing of schema.py, which describes the newest version.
STEPS: tuple[Callable[[Connection], None], ...] = (_add_ahead, _add_sets)


def newest_version() -> int:
    """The version of the tables in schema.py."""
    return 1 + len(STEPS)


def version_of(connection: Connection, where: str) -> int:
    """The version of the tables, 0 without any; raises StoreError for a newer database or somebody else's."""
    tables = set(inspect(connection).get_table_names())
    if VERSIONS.name not in tables:
        _require_room(connection, tables, where)
        return 0
    version = _stored_version(connection, where)
    if version > newest_version():
        raise StoreError(
            f"{where}: written by a newer argmaxable (the tables are version {version}, this one knows "
            f"{newest_version()}). Update argmaxable, or choose another database with --db."
        )
    return version


def _stored_version(connection: Connection, where: str) -> int:
    found = connection.execute(select(VERSIONS.c.version)).scalars().all()
    # SQLite stores whatever it is given, whatever the column's type says.
    if len(found) != 1 or not isinstance(found[0], int) or found[0] < 1:
        raise StoreError(
            f"{where}: the database is damaged: its table {VERSIONS.name} should hold one version number. "
            "Restore a copy, or choose another database with --db."
        )
    return found[0]


def _require_room(connection: Connection, tables: set[str], where: str) -> None:
    """Our tables must not mix with another program's; a PostgreSQL database may hold others beside."""
    strange = tables if connection.dialect.name == "sqlite" else tables & set(METADATA.tables)
    if strange:
        raise StoreError(
            f"{where}: the database of another program (it has the tables {', '.join(sorted(strange)[:3])}). "
            "Choose another one with --db."
        )


def require_current(version: int, where: str) -> None:
    """Raise StoreError unless the tables are up to date: a database that is only read stays as it is."""
    if version == 0:
        raise StoreError(f"{where}: the database is empty. `argmaxable verify MODEL --db …` fills it.")
    if version < newest_version():
        raise StoreError(
            f"{where}: written by an older argmaxable (the tables are version {version}, this one has "
            f"{newest_version()}). `argmaxable verify MODEL --db …` brings it up to date."
        )


def migrate(connection: Connection, where: str) -> None:
    """Make the newest tables, or bring older ones up to date, all or nothing by the caller's transaction."""
    version = version_of(connection, where)
    if version == 0:
        METADATA.create_all(connection)
        connection.execute(VERSIONS.insert().values(version=newest_version()))
        return
    for step in STEPS[version - 1 :]:
        step(connection)
    connection.execute(VERSIONS.update().values(version=newest_version()))
