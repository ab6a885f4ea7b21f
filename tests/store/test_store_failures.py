"""What goes wrong with databases: a clear error without the password, and what was committed stays."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from postgres_server import Server
from sqlalchemy import delete, update
from stored_runs import CENTRE, COST, as_plain, plan, verdicts
from working import started

import argmaxable as am
from argmaxable.core.head import Facts
from argmaxable.store import State, open_store
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
    with pytest.raises(am.StoreError, match=r"can't be opened, or not be written to.*--no-db"):
        open_store("/proc/self/runs.db")


def test_a_file_that_can_not_be_written_to_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with open_store(str(path)) as store:
        with store._database.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA query_only = ON")  # permissions would not bind root
            connection.rollback()
        with pytest.raises(am.StoreError, match=r"can't be written to.*--no-db"):
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
    assert "authentication failed" in str(error.value)
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


def test_a_database_that_is_not_there_is_an_error(postgres: Server) -> None:
    with pytest.raises(am.StoreError, match='database "nowhere" does not exist'):
        open_store(postgres.url("nowhere"))


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
    place = f"{server_place}%20-cstatement_timeout%3D100"
    with open_store(place) as store, postgres.connected() as other, other.transaction():
        other.execute(f"LOCK TABLE {server_place.rpartition('%3D')[2]}.models")
        with pytest.raises(am.StoreError, match="cancelled the query"):
            store.begin(plan(), centre=CENTRE)
