"""What goes wrong with databases: a clear error without the password, and what was committed stays."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from postgres_server import Server
from sqlalchemy import delete, update
from stored_runs import CENTRE, COST, as_plain, plan, verdicts
from working import started

import argmaxable as am
from argmaxable.core.head import Facts
from argmaxable.report.stored_runs import as_record
from argmaxable.store import State, VerdictQuery, open_store
from argmaxable.store.migrations import newest_version
from argmaxable.store.schema import EVIDENCE, RUNS, VERDICTS


def shown(error: pytest.ExceptionInfo[am.StoreError]) -> str:
    """All that a user could get to see of an error."""
    return "".join(traceback.format_exception(error.value))


# ---------------------------------------------------------------------- files


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database at all, but long enough to be looked at closely\n" * 20)
    before = path.read_bytes()
    with pytest.raises(am.StoreError, match="not a SQLite database: choose another file with --db"):
        open_store(str(path))
    assert path.read_bytes() == before


def test_a_damaged_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    facts = Facts("large", "00" * 32, 5000, 3, False, "float32")
    with open_store(str(path)) as store, store.begin(plan(facts=facts, labels=None), centre=CENTRE) as run:
        run.record(verdicts(5000), COST)
    content = bytearray(path.read_bytes())
    content[8192:] = b"\xa5" * (len(content) - 8192)
    path.write_bytes(content)
    with pytest.raises(am.StoreError, match="damaged"), open_store(str(path)) as store:
        list(store.verdicts(run.run_id))


def test_a_folder_is_no_database(tmp_path: Path) -> None:
    with pytest.raises(am.StoreError, match="can't be opened"):
        open_store(str(tmp_path))


def test_a_path_below_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(am.StoreError, match=r"folder can't be made .*--no-db"):
        open_store(str(tmp_path / "file" / "runs.db"))


def test_a_folder_that_can_not_be_written_to_is_an_error() -> None:
    # Permissions do not bind root, but nobody makes files in /proc.
    with pytest.raises(am.StoreError, match=r"can't be opened or is not writable.*--no-db"):
        open_store("/proc/self/runs.db")


def test_a_file_that_can_not_be_written_to_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with open_store(str(path)) as store:
        with store._database.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA query_only = ON")  # permissions would not bind root
            connection.rollback()
        with pytest.raises(am.StoreError, match=r"is not writable.*--no-db"):
            store.begin(plan(), centre=CENTRE)
    assert list(tmp_path.glob("*.lock")) == []


def test_a_full_disk_is_an_error_and_what_was_committed_stays(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    said = started(str(path), "fill", "600000").communicate("")[0]
    committed, _, message = said.partition(" ")
    assert int(committed) > 5
    assert "disk" in message
    assert "What was committed is safe" in message
    with open_store(str(path)) as store:
        stored = list(store.verdicts(1))
        assert [verdict.class_id for verdict in stored] == list(range(int(committed)))
        assert all(verdict.reason == "x" * 10_000 for verdict in stored)
        assert store.run(1).state is State.INTERRUPTED
        assert store.run(1).counts.undecided == int(committed)


@pytest.mark.parametrize("way", ["deleted", "replaced", "moved"])
def test_a_file_that_vanishes_is_an_error(tmp_path: Path, way: str) -> None:
    path = tmp_path / "runs.db"
    with open_store(str(path)) as store, store.begin(plan(), centre=CENTRE) as run:
        run.record(verdicts()[:10], COST)
        path.rename(tmp_path / "moved.db")
        if way == "replaced":
            path.write_bytes((tmp_path / "moved.db").read_bytes())
        if way != "moved":
            (tmp_path / "moved.db").unlink()
        with pytest.raises(am.StoreError, match="deleted or replaced while it was in use"):
            run.record(verdicts()[10:], COST)


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM argmaxable_schema",
        f"INSERT INTO argmaxable_schema VALUES ({newest_version() + 1})",
        "UPDATE argmaxable_schema SET version = -1",
        "DROP TABLE argmaxable_schema; CREATE TABLE argmaxable_schema (version TEXT)",
        "DROP TABLE argmaxable_schema; CREATE TABLE argmaxable_schema (version); "
        "INSERT INTO argmaxable_schema VALUES ('one')",
        "DROP TABLE argmaxable_schema; CREATE TABLE argmaxable_schema (version); "
        "INSERT INTO argmaxable_schema VALUES (x'00')",
    ],
)
@pytest.mark.parametrize("read_only", [True, False])
def test_a_table_of_versions_that_says_something_else_is_an_error(
    tmp_path: Path, damage: str, read_only: bool
) -> None:
    path = tmp_path / "runs.db"
    open_store(str(path)).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(damage)
    with pytest.raises(am.StoreError, match="should hold one version number"):
        open_store(str(path), read_only=read_only)


def read_everything(path: Path) -> None:
    with open_store(str(path), read_only=True) as store:
        for run in store.runs():
            store.page(run.run_id, VerdictQuery())
            store.entry(run.run_id, 3, most_fellows=3)
            store.read(run.run_id)
            as_record(run)
        store.check()


def test_corrupted_pages_are_our_errors_or_harmless(tmp_path: Path) -> None:
    sound, path = tmp_path / "sound.db", tmp_path / "runs.db"
    with open_store(str(sound)) as store, store.begin(plan(), centre=CENTRE) as run:
        run.record(verdicts(), COST)
        run.finish(COST)
    content, rng = sound.read_bytes(), np.random.default_rng(0)
    refused = 0
    for _ in range(100):
        damaged = np.frombuffer(content, np.uint8).copy()
        start = int(rng.integers(len(content)))
        size = int(rng.choice([1, 8, 100, 4096]))
        damaged[start : start + size] = rng.integers(0, 256, len(damaged[start : start + size]))
        path.unlink(missing_ok=True)  # a file that is overwritten goes to disk at once, which takes long
        path.write_bytes(damaged.tobytes())
        try:
            read_everything(path)
        except am.StoreError:
            refused += 1
    assert refused > 20


# ---------------------------------------------------------------------- rows that nobody wrote


@pytest.mark.parametrize(
    "damage",
    [
        update(VERDICTS).where(VERDICTS.c.class_id == 3).values(status="maybe"),
        update(VERDICTS).where(VERDICTS.c.class_id == 3).values(method="guess"),
        update(EVIDENCE).where(EVIDENCE.c.part == "weights").values(data=b"\0" * 24),
        update(EVIDENCE).where(EVIDENCE.c.part == "weights").values(data=b"\0" * 23),
        update(EVIDENCE).where(EVIDENCE.c.part == "point").values(dtype="|O"),
        delete(EVIDENCE).where(EVIDENCE.c.part == "classes"),
        delete(EVIDENCE),
        update(EVIDENCE).where(EVIDENCE.c.part == "classes").values(part="weights "),
        update(RUNS).values(domain="{"),
        update(RUNS).values(domain='{"kind": "cube"}'),
        update(RUNS).values(settings="{}"),
        update(RUNS).values(cost='{"dollars": 5}'),
        update(RUNS).values(cost='{"seconds": "five"}'),
        update(RUNS).values(cost="[" * 100_000),
        update(RUNS).values(settings='{"patience": "much", "seed": 0}'),
        update(RUNS).values(started="yesterday"),
    ],
    ids=lambda statement: str(statement).replace("\n", " ")[:60],
)
def test_rows_that_nobody_wrote_are_an_error(place: str, damage: object) -> None:
    with open_store(place) as store:
        with store.begin(plan(), centre=CENTRE) as run:
            run.record(verdicts(), COST)
        with store._database.writing() as connection:
            connection.execute(damage)  # type: ignore[call-overload]
        with pytest.raises(am.StoreError, match=r"damaged|missing"):
            store.read(run.run_id)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE verdicts SET lower = 'low' WHERE class_id = 3",
        "UPDATE verdicts SET label = x'ff' WHERE class_id = 3",
        "UPDATE verdicts SET steps = 'many' WHERE class_id = 3",
        "UPDATE evidence SET data = 'text'",
        "UPDATE models SET classes = 'all'",
        "UPDATE models SET name = x'ff00'",
        "UPDATE runs SET wanted = 'all'",
        "UPDATE runs SET argmaxable = 1e99",
    ],
)
def test_values_of_another_type_are_an_error(tmp_path: Path, damage: str) -> None:
    path = str(tmp_path / "runs.db")
    with open_store(path) as store, store.begin(plan(), centre=CENTRE) as run:
        run.record(verdicts(), COST)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(damage)
        connection.commit()
    with open_store(path, read_only=True) as store:
        with pytest.raises(am.StoreError, match="damaged"):
            store.read(run.run_id)
        assert not store.check().is_sound


def test_a_run_that_somebody_deletes_by_hand_takes_nothing_more(place: str) -> None:
    with open_store(place) as store, store.begin(plan(), centre=CENTRE) as run:
        run.record(verdicts()[:5], COST)
        with store._database.writing() as connection:
            connection.execute(delete(RUNS))
        with pytest.raises(am.StoreError, match="was deleted while it was worked on"):
            run.record(verdicts()[5:], COST)
        with pytest.raises(am.StoreError, match="was deleted while it was worked on"):
            run.record([], COST)


# ---------------------------------------------------------------------- servers


@pytest.fixture
def server_place(postgres: Server) -> Iterator[str]:
    return postgres.new_place()


def test_a_server_that_stops_is_an_error_and_what_was_committed_stays(
    postgres: Server, server_place: str
) -> None:
    with open_store(server_place) as store, store.begin(plan(), centre=CENTRE) as run:
        run.record(verdicts()[:10], COST)
        with postgres.stopped(), pytest.raises(am.StoreError) as error:
            run.record(verdicts()[10:], COST)
        assert "What was committed is safe: run the same command again to resume." in str(error.value)
        assert postgres.password not in shown(error)
        # The server is back, but the lock went with the connection: this process must not write any more.
        with pytest.raises(am.StoreError, match="the connection broke"):
            run.record(verdicts()[10:], COST)
    with open_store(server_place) as store, store.begin(plan(), centre=CENTRE) as again:
        assert again.run_id == run.run_id
        assert sorted(again.known) == list(range(10))
        again.record(verdicts(), COST)
        again.finish(COST)
        assert [as_plain(v) for v in store.verdicts(run.run_id)] == [as_plain(v) for v in verdicts()]


def test_a_server_that_is_not_there_is_an_error(postgres: Server, server_place: str) -> None:
    with postgres.stopped(), pytest.raises(am.StoreError) as error:
        open_store(server_place)
    assert "can't be reached" in str(error.value)
    assert "Connection refused" in str(error.value)
    assert postgres.password not in shown(error)


def test_reading_from_a_server_that_stops_is_an_error(postgres: Server, server_place: str) -> None:
    with open_store(server_place) as store:
        with postgres.stopped(), pytest.raises(am.StoreError):
            store.runs()
        assert store.runs() == []


def test_a_wrong_password_is_an_error_that_does_not_show_it(postgres: Server) -> None:
    wrong = "wr:ng/p@ssword %41"
    with pytest.raises(am.StoreError) as error:
        open_store(postgres.url(password=wrong))
    assert "the server refuses this user or password" in str(error.value)
    assert wrong not in shown(error)
    assert quote(wrong, safe="") not in shown(error)


def test_a_password_in_the_parameters_is_not_shown(postgres: Server) -> None:
    secret = "h!dden-w0rd"
    for parameters in (f"password={secret}", f"password={secret}&{secret}=1", f"sslmode={secret}"):
        with pytest.raises(am.StoreError) as error:
            open_store(f"postgresql://tester@127.0.0.1:{postgres.port}/postgres?{parameters}")
        if "password" in parameters:
            assert secret not in shown(error)


def test_a_password_is_not_shown_by_a_program_that_fails(postgres: Server, server_place: str) -> None:
    program = "import os; from argmaxable.store import open_store; open_store(os.environ['PLACE'])"
    with postgres.stopped():
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False,
            env={**os.environ, "PLACE": server_place},
        )  # fmt: skip
    assert "StoreError" in done.stderr
    assert postgres.password not in done.stderr + done.stdout
    assert quote(postgres.password, safe="") not in done.stderr + done.stdout


def test_what_the_driver_logs_is_not_printed_beside_our_message() -> None:
    program = "import logging, argmaxable.store.postgresql; logging.getLogger('psycopg').warning('it broke')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_a_database_that_is_not_there_is_an_error(postgres: Server) -> None:
    with pytest.raises(am.StoreError, match="no database of this name"):
        open_store(postgres.url("nowhere"))


def test_a_wrong_password_for_a_database_that_is_not_there_is_a_wrong_password(postgres: Server) -> None:
    with pytest.raises(am.StoreError, match="refuses this user or password"):
        open_store(postgres.url("nowhere", password="wrong"))


def test_a_missing_password_is_named_as_that(postgres: Server) -> None:
    with pytest.raises(am.StoreError, match="refuses this user or password"):
        open_store(f"postgresql://tester@127.0.0.1:{postgres.port}/postgres")


def test_a_user_who_may_only_read_is_told_so(postgres: Server, server_place: str) -> None:
    with open_store(server_place) as store, store.begin(plan(), centre=CENTRE) as run:
        run.record(verdicts(), COST)
        run.finish(COST)
    schema = server_place.rpartition("%3D")[2]
    with postgres.connected() as connection:
        connection.execute("CREATE ROLE reader LOGIN PASSWORD 'reader'")
        connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO reader")
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO reader")
    place = f"postgresql://reader:reader@127.0.0.1:{postgres.port}/postgres?options=-csearch_path%3D{schema}"
    with open_store(place, read_only=True) as store:
        assert len(list(store.verdicts(1))) == len(verdicts())
    with open_store(place) as store, pytest.raises(am.StoreError, match="this user may not do that"):
        store.begin(plan(seed=1), centre=CENTRE)


def test_a_user_who_may_not_make_tables_is_told_so(postgres: Server, server_place: str) -> None:
    with postgres.connected() as connection:
        connection.execute("CREATE ROLE guest LOGIN PASSWORD 'guest'")
    with pytest.raises(am.StoreError, match="grant CREATE on the schema"):
        open_store(f"postgresql://guest:guest@127.0.0.1:{postgres.port}/postgres")


def test_a_server_that_takes_no_writes_is_an_error(server_place: str) -> None:
    with open_store(server_place):
        pass
    place = f"{server_place}%20-cdefault_transaction_read_only%3Don"
    with open_store(place) as store, pytest.raises(am.StoreError, match="the database is read-only"):
        store.begin(plan(), centre=CENTRE)


def test_a_query_that_is_cancelled_is_an_error(postgres: Server, server_place: str) -> None:
    # Long enough to open the store on a busy machine; only the query that has to wait reaches it.
    place = f"{server_place}%20-cstatement_timeout%3D5000"
    with open_store(place) as store, postgres.connected() as other, other.transaction():
        other.execute(f"LOCK TABLE {server_place.rpartition('%3D')[2]}.models")
        with pytest.raises(am.StoreError, match="cancelled the query"):
            store.begin(plan(), centre=CENTRE)
