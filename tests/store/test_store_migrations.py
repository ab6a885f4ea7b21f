"""The tables: made once, in one go, and never mixed with another program's; on both databases."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from kept_runs import CENTRE, CLASSES, COST, plan, verdicts
from postgres_server import Server
from sqlalchemy import inspect, select, update

import argmaxable as am
from argmaxable.store import migrations, open_store
from argmaxable.store.migrations import _WORDS, STEPS
from argmaxable.store.schema import METADATA, VERSIONS


def test_the_steps_make_the_tables_that_queries_are_built_from(place: str) -> None:
    with open_store(place) as store, store._database.reading() as connection:
        found = inspect(connection)
        assert set(found.get_table_names()) == set(METADATA.tables)
        for name, table in METADATA.tables.items():
            columns = {column["name"]: column for column in found.get_columns(name)}
            assert list(columns) == [column.name for column in table.columns]
            for column in table.columns:
                made = columns[column.name]["type"]
                assert made.python_type is column.type.python_type, f"{name}.{column.name}"
                assert columns[column.name]["nullable"] == column.nullable, f"{name}.{column.name}"
            assert set(found.get_pk_constraint(name)["constrained_columns"]) == {
                column.name for column in table.primary_key
            }
            keys = [
                (key["constrained_columns"], key["referred_table"]) for key in found.get_foreign_keys(name)
            ]
            assert keys == [([key.parent.name], key.column.table.name) for key in table.foreign_keys]


def test_opening_again_changes_nothing(place: str) -> None:
    with open_store(place) as store, store.begin(plan(), centre=CENTRE) as run:
        run.record(verdicts(), COST)
    with open_store(place) as store:
        assert len(list(store.verdicts(run.run_id))) == CLASSES
        with store._database.reading() as connection:
            assert connection.scalars(select(VERSIONS.c.version)).all() == [len(STEPS)]


def test_a_newer_database_is_refused(place: str) -> None:
    with open_store(place) as store, store._database.writing() as connection:
        connection.execute(update(VERSIONS).values(version=len(STEPS) + 1))
    with pytest.raises(am.StoreError) as error:
        open_store(place)
    assert "written by a newer argmaxable" in str(error.value)
    assert "Update argmaxable" in str(error.value)


def test_a_later_step_is_applied_to_an_earlier_database(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store(place) as store, store.begin(plan(), centre=CENTRE) as run:
        run.record(verdicts(), COST)
    later = (*STEPS, ("ALTER TABLE runs ADD COLUMN note TEXT", "CREATE TABLE notes (text {bytes})"))
    monkeypatch.setattr(migrations, "STEPS", later)
    for module in ("sqlite", "postgresql"):
        monkeypatch.setattr(f"argmaxable.store.{module}.STEPS", later)
    with open_store(place) as store, store._database.reading() as connection:
        assert "note" in {column["name"] for column in inspect(connection).get_columns("runs")}
        assert connection.scalars(select(VERSIONS.c.version)).all() == [len(later)]
        assert len(list(store.verdicts(run.run_id))) == CLASSES


def test_a_step_that_fails_half_way_leaves_the_database_as_it_was(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(place) as store, store.begin(plan(), centre=CENTRE) as run:
        run.record(verdicts(), COST)
    broken = (*STEPS, ("CREATE TABLE notes (text {bytes})", "CREATE TABLE runs (id INTEGER)"))
    with monkeypatch.context() as patched:
        patched.setattr(migrations, "STEPS", broken)
        for module in ("sqlite", "postgresql"):
            patched.setattr(f"argmaxable.store.{module}.STEPS", broken)
        with pytest.raises(am.StoreError, match="already exists"):
            open_store(place)
    with open_store(place) as store, store._database.reading() as connection:
        assert "notes" not in inspect(connection).get_table_names()
        assert len(list(store.verdicts(run.run_id))) == CLASSES


def test_a_step_says_the_same_to_both_databases() -> None:
    assert {frozenset(words) for words in _WORDS.values()} == {frozenset({"number", "bytes", "clustered"})}


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
    facts = am.result.Facts("large", "00" * 32, 20_000, 3, False, "float32")
    its = plan(facts=facts, labels=None)
    with open_store(str(path)) as store, store.begin(its, centre=CENTRE) as run:
        run.record(verdicts(20_000), COST)
    full = path.stat().st_size
    with open_store(str(path)) as store:
        store.delete([run.run_id])
    assert path.stat().st_size < full / 10
