"""`argmaxable store check`: damage is found, and a sound database is called sound."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from postgres_server import Server
from running import Command
from sqlalchemy import delete, insert, update
from stored_runs import CENTRE, CLASSES, COST, plan, verdicts

from argmaxable.store import open_store
from argmaxable.store.schema import EVIDENCE, RUNS, VERDICTS


def stored_at(place: str) -> int:
    with open_store(place) as store, store.begin(plan(), centre=CENTRE) as run:
        run.record(verdicts(), COST)
        run.finish(COST)
        return run.run_id


def changed(place: str, statement: object) -> None:
    with open_store(place) as store, store._database.writing() as connection:
        connection.execute(statement)  # type: ignore[call-overload]


def test_a_sound_database_is_called_sound(place: str) -> None:
    stored_at(place)
    with open_store(place, read_only=True) as store:
        found = store.check()
    assert found.is_sound
    assert (found.runs, found.verdicts) == (1, CLASSES)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (update(RUNS).values(argmaxable=RUNS.c.argmaxable + 1), "classes are argmaxable, and holds"),
        (delete(VERDICTS).where(VERDICTS.c.class_id == 3), "and holds"),
        (
            update(VERDICTS).where(VERDICTS.c.class_id == 3).values(class_id=10**6),
            "that its model does not have",
        ),
        (update(VERDICTS).where(VERDICTS.c.class_id == 3).values(status="maybe"), "can't be read"),
        (update(EVIDENCE).where(EVIDENCE.c.part == "weights").values(data=b"\0" * 24), "damaged"),
        (delete(EVIDENCE).where(EVIDENCE.c.part == "centre"), "missing"),
    ],
    ids=lambda value: str(value).replace("\n", " ")[:50],
)
def test_rows_that_disagree_are_named(place: str, damage: object, said: str) -> None:
    stored_at(place)
    changed(place, damage)
    with open_store(place, read_only=True) as store:
        found = store.check()
    assert not found.is_sound
    assert any(said in problem for problem in found.problems)


def test_sqlite_finds_rows_without_their_run(tmp_path: Path) -> None:
    place = str(tmp_path / "runs.db")
    stored_at(place)
    with open_store(place) as store, store._database.engine.connect() as connection:
        connection.exec_driver_sql("ROLLBACK")
        connection.exec_driver_sql("PRAGMA foreign_keys = OFF")
        connection.exec_driver_sql("BEGIN")
        row = dict(zip(EVIDENCE.c.keys(), (77, b"digest", "part", "<f8", "0", b""), strict=True))
        connection.execute(insert(EVIDENCE).values(**row))
        connection.commit()
    with open_store(place, read_only=True) as store:
        assert store.check().own.problems == ("evidence has a row without its runs",)


def test_of_a_server_only_the_rows_are_checked_and_that_is_said(command: Command, postgres: Server) -> None:
    place = postgres.new_place()
    stored_at(place)
    ran = command("store", "check", "--db", place)
    assert ran.code == 0
    assert "The server's files were not checked" in ran.out
    assert postgres.password not in ran.out


def test_the_command_says_so_and_exits_with_it(command: Command, tmp_path: Path) -> None:
    place = tmp_path / "runs.db"
    stored_at(str(place))
    ran = command("store", "check", "--db", place)
    assert (ran.code, ran.err) == (0, "")
    assert "No damage found." in ran.out
    changed(str(place), delete(VERDICTS).where(VERDICTS.c.class_id == 3))
    ran = command("store", "check", "--db", place)
    assert ran.code == 1
    assert "Damage found:" in ran.out
    record = json.loads(command("store", "check", "--db", place, "--json").out)
    assert (record["sound"], record["runs"], record["verdicts"]) == (False, 1, CLASSES - 1)
    assert record["problems"]


def test_a_missing_database_is_bad_input_and_stays_missing(command: Command, tmp_path: Path) -> None:
    ran = command("store", "check", "--db", tmp_path / "none.db")
    assert ran.code == 2
    assert not (tmp_path / "none.db").exists()
