"""The tables: made or migrated in one transaction, never mixed with another program's; both databases."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from first_schema import make_first_tables
from postgres_server import Server
from sqlalchemy import Connection, Inspector, inspect, select, update
from stored_runs import CENTRE, CLASSES, COST, as_plain, plan, verdicts

import argmaxable as am
from argmaxable.core.head import Facts
from argmaxable.store import migrations, open_store
from argmaxable.store.migrations import STEPS, newest_version
from argmaxable.store.schema import METADATA, VERSIONS

Made = dict[str, object]


def tables(connection: Connection) -> Made:
    """What the database says about its tables, in words that both ways of making them share."""
    found = inspect(connection)
    made: Made = {name: described(found, name) for name in found.get_table_names()}
    # What the inspector does not tell: how rows are numbered and laid out.
    if connection.dialect.name == "sqlite":
        query = "SELECT name, sql LIKE '%AUTOINCREMENT%', sql LIKE '%WITHOUT ROWID%' FROM sqlite_master"
        made["laid out"] = sorted(map(tuple, connection.exec_driver_sql(query + " WHERE type = 'table'")))
        # Of a REFERENCES beside its column, the inspector overlooks what happens on deletion.
        for name in found.get_table_names():
            keys = connection.exec_driver_sql(f"PRAGMA foreign_key_list({name})")
            made[f"keys of {name}"] = [tuple(key) for key in keys]
    return made


def described(found: Inspector, table: str) -> Made:
    columns = [
        (each["name"], each["type"].python_type, each["nullable"], each["default"], each.get("identity"))
        for each in found.get_columns(table)
    ]
    is_told = found.dialect.name != "sqlite"
    keys = [
        (each["constrained_columns"], each["referred_table"], each["options"] if is_told else None)
        for each in found.get_foreign_keys(table)
    ]
    unique = sorted(each["column_names"] for each in found.get_unique_constraints(table))
    indexes = sorted((str(each["name"]), each["column_names"]) for each in found.get_indexes(table))
    primary = found.get_pk_constraint(table)["constrained_columns"]
    return {"columns": columns, "keys": keys, "unique": unique, "indexes": indexes, "primary": primary}


def make_old_database(place: str) -> None:
    """An empty database of version 1, where a new one has just been made and taken down again."""
    with open_store(place) as store, store._database.writing() as connection:
        METADATA.drop_all(connection)
        make_first_tables(connection)


def test_an_old_database_gets_the_tables_that_a_new_one_has(new_place: str) -> None:
    with open_store(new_place) as store, store._database.reading() as connection:
        new = tables(connection)
    make_old_database(new_place)
    with open_store(new_place) as store, store._database.reading() as connection:
        assert tables(connection) == new
        assert connection.scalars(select(VERSIONS.c.version)).all() == [newest_version()]


def test_an_old_database_takes_a_run(new_place: str) -> None:
    make_old_database(new_place)
    with open_store(new_place) as store, store.begin(plan(), centre=CENTRE) as run:
        run.record(verdicts(), COST)
        assert [as_plain(each) for each in store.verdicts(run.run_id)] == [
            as_plain(each) for each in verdicts()
        ]


def test_opening_again_changes_nothing(new_place: str) -> None:
    with open_store(new_place) as store, store.begin(plan(), centre=CENTRE) as run:
        run.record(verdicts(), COST)
    with open_store(new_place) as store:
        assert len(list(store.verdicts(run.run_id))) == CLASSES
        with store._database.reading() as connection:
            assert connection.scalars(select(VERSIONS.c.version)).all() == [newest_version()]


def test_a_newer_database_is_refused(new_place: str) -> None:
    with open_store(new_place) as store, store._database.writing() as connection:
        connection.execute(update(VERSIONS).values(version=newest_version() + 1))
    with pytest.raises(am.StoreError) as error:
        open_store(new_place)
    assert "written by a newer argmaxable" in str(error.value)
    assert "Update argmaxable" in str(error.value)


def add_notes(connection: Connection) -> None:
    connection.exec_driver_sql("ALTER TABLE runs ADD COLUMN note TEXT")


def test_a_later_step_is_applied_to_an_earlier_database(
    new_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(new_place) as store, store.begin(plan(), centre=CENTRE) as run:
        run.record(verdicts(), COST)
    monkeypatch.setattr(migrations, "STEPS", (*STEPS, add_notes))
    with open_store(new_place) as store, store._database.reading() as connection:
        assert "note" in {column["name"] for column in inspect(connection).get_columns("runs")}
        assert connection.scalars(select(VERSIONS.c.version)).all() == [len(STEPS) + 2]
        assert len(list(store.verdicts(run.run_id))) == CLASSES


def test_a_step_that_fails_half_way_leaves_the_database_as_it_was(
    new_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(new_place) as store, store.begin(plan(), centre=CENTRE) as run:
        run.record(verdicts(), COST)
    with monkeypatch.context() as patched:
        patched.setattr(migrations, "STEPS", (*STEPS, add_notes, add_notes))
        with pytest.raises(am.StoreError, match=r"already exists|duplicate column"):
            open_store(new_place)
    with open_store(new_place) as store, store._database.reading() as connection:
        assert "note" not in {column["name"] for column in inspect(connection).get_columns("runs")}
        assert len(list(store.verdicts(run.run_id))) == CLASSES


def test_the_file_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "places.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(am.StoreError, match=r"another program \(it has the tables bookmarks\)"):
        open_store(str(path))
    assert path.read_bytes() == before


def test_tables_of_another_program_with_our_names_are_left_alone(postgres: Server) -> None:
    place = postgres.new_place()
    schema = place.rpartition("%3D")[2]
    with postgres.connected() as connection:
        connection.execute(f"CREATE TABLE {schema}.runs (speed float)")
    with pytest.raises(am.StoreError, match=r"another program \(it has the tables runs\)"):
        open_store(place)


def test_a_server_may_have_other_tables_beside_ours(postgres: Server) -> None:
    place = postgres.new_place()
    schema = place.rpartition("%3D")[2]
    with postgres.connected() as connection:
        connection.execute(f"CREATE TABLE {schema}.bookmarks (url text)")
    with open_store(place) as store:
        assert store.runs() == []


def test_a_deleted_run_gives_its_space_back(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    facts = Facts("large", "00" * 32, 6000, 3, False, "float32")
    its = plan(facts=facts, labels=None)
    with open_store(str(path)) as store, store.begin(its, centre=CENTRE) as run:
        run.record(verdicts(6000), COST)
    full = path.stat().st_size
    with open_store(str(path)) as store:
        store.delete([run.run_id])
    assert path.stat().st_size < full / 10
