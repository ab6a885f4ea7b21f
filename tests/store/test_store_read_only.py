"""Reading stored runs without ever writing."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from keeping import LABELS, keep, lossy, plan_of
from running import Command, is_one_clear_line

import argmaxable as am
from argmaxable.compute.prepared import centre_of
from argmaxable.questions.argmax import run_plan
from argmaxable.run.plan import ONE_PROCESS, make_plan
from argmaxable.store import SortKey, State, Store, VerdictQuery, migrations, open_store


def read(place: str) -> Store:
    return open_store(place, read_only=True)


def labels(reader: Store, run: int, **choice: object) -> list[str]:
    return [verdict.label for verdict in reader.page(run, VerdictQuery(**choice)).verdicts]  # type: ignore[arg-type]


def kept_at(place: str) -> int:
    head = lossy()
    with open_store(place) as store, store.begin(plan_of(head), centre=centre_of(head)) as run:
        result = run_plan(make_plan(head, plan_of(head).domain, engine=ONE_PROCESS), journal=run)
        run.finish(result.cost)
        return run.run_id


# ---------------------------------------------------------------------- opening


def test_a_missing_database_is_an_error_and_stays_missing(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "runs.db"
    with pytest.raises(am.StoreError, match="there is no database"):
        read(str(path))
    assert not path.parent.exists()


def test_an_empty_file_is_an_error_and_stays_empty(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    path.touch()
    with pytest.raises(am.StoreError, match="the database is empty"):
        read(str(path))
    assert path.read_bytes() == b""


def test_a_newer_database_is_an_error(database: Path) -> None:
    open_store(str(database)).close()
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE argmaxable_schema SET version = 99")
        connection.commit()
    with pytest.raises(am.StoreError, match="newer argmaxable"):
        read(str(database))


def test_an_older_database_is_an_error_and_is_not_migrated(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_store(str(database)).close()
    monkeypatch.setattr(migrations, "STEPS", (*migrations.STEPS, ()))
    before = database.read_bytes()
    with pytest.raises(am.StoreError, match="older argmaxable"):
        read(str(database))
    assert database.read_bytes() == before


def test_another_programs_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    path.write_bytes(b"not a database at all, but long enough to have a header of its own" * 20)
    with pytest.raises(am.StoreError, match="not a SQLite database"):
        read(str(path))


def test_a_name_with_odd_characters_is_the_file_of_that_name(tmp_path: Path) -> None:
    path = tmp_path / "a b?mode=rwc#%41.db"
    run = keep(path, lossy())
    with read(str(path)) as reader:
        assert reader.run(run).facts.name == "lossy.npz"
    assert [each.name for each in tmp_path.iterdir() if each.suffix == ".db"] == [path.name]


# ---------------------------------------------------------------------- never writing


def test_reading_leaves_the_file_as_it_is(database: Path) -> None:
    run = keep(database, lossy())
    os.utime(database, ns=(1, 1))
    before = hashlib.sha256(database.read_bytes()).hexdigest()
    with read(str(database)) as reader:
        reader.runs()
        reader.page(run, VerdictQuery(search="a"))
        reader.entry(run, 4, most_fellows=3)
    assert hashlib.sha256(database.read_bytes()).hexdigest() == before
    assert database.stat().st_mtime_ns == 1


def test_writing_is_refused_by_the_database_itself(place: str) -> None:
    head = lossy()
    open_store(place).close()
    with read(place) as reader, pytest.raises(am.StoreError):
        reader.begin(plan_of(head), centre=centre_of(head))
    with open_store(place) as store:
        assert store.runs() == []


def test_runs_are_read_while_another_writes(database: Path) -> None:
    run = keep(database, lossy())
    with closing(sqlite3.connect(database, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE runs SET wanted = 7")
        with read(str(database)) as reader:
            assert reader.run(run).counts.wanted == 6
        writer.execute("ROLLBACK")


def test_a_run_that_is_being_worked_on_is_running(place: str) -> None:
    head = lossy()
    with (
        open_store(place) as store,
        store.begin(plan_of(head), centre=centre_of(head)) as run,
        read(place) as reader,
    ):
        assert reader.run(run.run_id).state is State.RUNNING
    with read(place) as reader:
        assert reader.run(run.run_id).state is State.INTERRUPTED


def test_a_run_whose_lock_may_not_be_touched_is_what_its_row_says(database: Path) -> None:
    run = keep(database, lossy())
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE runs SET state = 'running'")
        ((key,),) = connection.execute("SELECT key FROM runs").fetchall()
        connection.commit()
    database.with_name(f"{database.name}.{key.hex()[:16]}.lock").mkdir()
    with read(str(database)) as reader:
        assert reader.run(run).state is State.RUNNING
    with open_store(str(database)) as store, pytest.raises(am.StoreError, match="no file can be locked"):
        store.run(run)


def test_a_file_put_in_the_place_of_another_is_read(database: Path, tmp_path: Path) -> None:
    keep(database, lossy(name="first"))
    keep(tmp_path / "other.db", lossy(name="second"))
    with read(str(database)) as reader:
        assert [run.facts.name for run in reader.runs()] == ["first"]
        os.replace(tmp_path / "other.db", database)
        assert [run.facts.name for run in reader.runs()] == ["second"]


@contextmanager
def as_a_stranger(folder: Path) -> Iterator[None]:
    """As long as this lasts, nothing in the folder can be written: as on a read-only medium."""
    before = os.geteuid()
    for path in (folder, *folder.iterdir()):
        path.chmod(0o555 if path.is_dir() else 0o444)
    if before == 0:  # whom permissions do not bind
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)
        folder.chmod(0o755)


@pytest.fixture
def medium() -> Iterator[Path]:
    """A folder that every user can get to."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def test_a_database_on_a_medium_that_can_not_be_written_to_is_read(medium: Path) -> None:
    run = keep(medium / "runs.db", lossy())
    with as_a_stranger(medium), read(str(medium / "runs.db")) as reader:
        assert [each.run_id for each in reader.runs()] == [run]
        assert reader.check().is_sound
    assert [path.name for path in medium.iterdir()] == ["runs.db"]


def test_runs_and_show_read_such_a_medium_too(medium: Path, command: Command) -> None:
    run = keep(medium / "runs.db", lossy())
    asked = [["runs", "--db", medium / "runs.db"], ["show", str(run), "--db", medium / "runs.db"]]
    before = [command(*words) for words in asked]  # loads what a stranger may not
    with as_a_stranger(medium):
        assert [command(*words) for words in asked] == before
    assert [ran.code for ran in before] == [0, 0]


def test_a_log_that_nobody_can_take_in_is_an_error(medium: Path) -> None:
    path = medium / "runs.db"
    keep(path, lossy())
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("UPDATE runs SET wanted = 7")
        for name in ("runs.db", "runs.db-wal"):
            (medium / f"copy-{name}").write_bytes((medium / name).read_bytes())
    for name in ("runs.db", "runs.db-wal"):
        (medium / f"copy-{name}").rename(medium / f"cut-{name}")
    with as_a_stranger(medium), pytest.raises(am.StoreError, match="Copy both into a writable folder"):
        read(str(medium / "cut-runs.db"))


@pytest.mark.parametrize(
    "words", [["runs"], ["show", "1"], ["export", "1"], ["table"], ["compare", "1", "2"]]
)
def test_commands_that_read_make_no_database(command: Command, tmp_path: Path, words: list[str]) -> None:
    ran = command(*words, "--db", tmp_path / "folder" / "none.db")
    assert ran.code == 2
    assert is_one_clear_line(ran)
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------- asking


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("MID", ["middle"]),
        ("3", ["d"]),
        ("U+00E9", ["é"]),
        ("😀", ["😀"]),
        ("%", []),
        ("_", []),
        (" ", list(LABELS)),
    ],
)
def test_the_search_finds_labels_numbers_and_code_points(place: str, search: str, found: list[str]) -> None:
    run = kept_at(place)
    with read(place) as reader:
        assert labels(reader, run, search=search) == found


def test_statuses_and_methods_filter(place: str) -> None:
    run = kept_at(place)
    with read(place) as reader:
        assert labels(reader, run, status=am.Status.UNARGMAXABLE) == ["a", "middle", "😀"]
        assert labels(reader, run, method=am.Method.TWIN) == ["a", "😀"]


def test_margins_sort_both_ways(place: str) -> None:
    run = kept_at(place)
    with read(place) as reader:
        up = labels(reader, run, order=SortKey.MARGIN)
        down = labels(reader, run, order=SortKey.MARGIN, is_down=True)
    assert set(up[:3]) == {"a", "middle", "😀"} == set(down[3:])


def test_a_page_has_its_part_and_counts_all(place: str) -> None:
    run = kept_at(place)
    with read(place) as reader:
        page = reader.page(run, VerdictQuery(page=1, size=4))
    assert [verdict.label for verdict in page.verdicts] == ["middle", "😀"]
    assert page.total == 6


def test_an_entry_has_the_evidence_that_was_stored(place: str) -> None:
    run = kept_at(place)
    with open_store(place) as store, read(place) as reader:
        for verdict in store.verdicts(run):
            entry = reader.entry(run, verdict.class_id, most_fellows=5)
            assert (entry.verdict.witness is None) == (verdict.witness is None)
            assert (entry.verdict.certificate is None) == (verdict.certificate is None)
            if verdict.certificate is not None and entry.verdict.certificate is not None:
                assert (entry.verdict.certificate.weights == verdict.certificate.weights).all()
            assert entry.before == (verdict.class_id - 1 if verdict.class_id else None)
            assert entry.after == (verdict.class_id + 1 if verdict.class_id < 5 else None)


def test_what_is_not_there_is_said_to_be_so(place: str) -> None:
    run = kept_at(place)
    with read(place) as reader:
        for missing in (6, 2**70):
            with pytest.raises(am.NotFoundError, match=f"class {missing}"):
                reader.entry(run, missing, most_fellows=1)
        for missing in (run + 1, 2**70):
            with pytest.raises(am.NotFoundError, match=f"run {missing} does not exist"):
                reader.run(missing)
