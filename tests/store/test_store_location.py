"""Where a store may be: paths and URLs, and what is said about those that are none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from running import Command, is_one_clear_line
from stored_runs import CENTRE, plan

import argmaxable as am
from argmaxable.store import open_store
from argmaxable.store.location import FileLocation, ServerLocation, find_location

SECRET = "hunter2"


def test_the_default_is_a_file_in_the_users_data_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with open_store(None) as store:
        assert Path(store.where) == tmp_path / "data" / "argmaxable" / "runs.db"
    assert (tmp_path / "data" / "argmaxable" / "runs.db").is_file()


def test_folders_on_the_way_are_made(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "a" / "b" / "runs.db")) as store:
        assert store.runs() == []


def test_a_path_may_start_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with open_store("~/runs.db"):
        assert (tmp_path / "runs.db").is_file()


@pytest.mark.parametrize(
    "name", ["a b.db", "what?.db", "100%41.db", "#1.db", ":memory:", "file:x.db", "é漢.db"]
)
def test_a_file_may_have_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    with open_store(name) as store, store.begin(plan(), centre=CENTRE):
        assert (tmp_path / name).is_file()
    with open_store(name) as store:
        assert len(store.runs()) == 1


def test_a_store_stays_where_it_is_when_the_process_goes_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with open_store("runs.db") as store:
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        with store.begin(plan(), centre=CENTRE):
            pass
        assert len(store.runs()) == 1
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_sqlite_url_names_a_file(tmp_path: Path) -> None:
    assert find_location(f"sqlite:///{tmp_path}/runs.db") == FileLocation(tmp_path / "runs.db")


@pytest.mark.parametrize(
    ("url", "name"),
    [
        (f"postgresql://me:{SECRET}@db.example/runs", "postgresql://me@db.example/runs"),
        (f"postgres://me:{SECRET}@db.example:5433/runs", "postgresql://me@db.example:5433/runs"),
        (f"postgresql+psycopg://me:{SECRET}@db.example/runs", "postgresql://me@db.example/runs"),
        (
            f"postgresql://me@db.example/runs?password={SECRET}&sslmode=require",
            "postgresql://me@db.example/runs",
        ),
        ("postgresql:///runs?host=/var/run/postgresql", "postgresql:///runs"),
    ],
)
def test_a_postgresql_url_is_spoken_of_without_password_and_parameters(url: str, name: str) -> None:
    place = find_location(url)
    assert isinstance(place, ServerLocation)
    assert place.name == name
    assert SECRET not in repr(place)
    assert place.secrets == ([SECRET] if SECRET in url else [])


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("", "not the name of a database"),
        ("  ", "not the name of a database"),
        ("a\0b", "not the name of a database"),
        ("://", "can't be read"),
        (f"postgresql:/me:{SECRET}@db/runs", "can't be read"),
        (f"postgresql+psycopg:me:{SECRET}@db/runs", "can't be read"),
        ("postgresql://me:hunter2@db:port/runs", "can't be read"),
        (f"mysql://me:{SECRET}@db/runs", "kind 'mysql'"),
        (f"postgresql+psycopg2://me:{SECRET}@db/runs", "kind 'postgresql+psycopg2'"),
        ("sqlite://", "names no file"),
        ("sqlite:///:memory:", "names no file"),
        ("sqlite:///runs.db?mode=ro", "has parameters"),
        (f"postgresql://me:{SECRET}@{SECRET}@db/runs", "more than one @"),
        (f"postgresql://me:{SECRET}@x/{SECRET}@db/runs", "more than one @"),
    ],
)
def test_what_is_no_place_is_an_error_without_the_password(where: str, said: str) -> None:
    with pytest.raises(am.StoreError) as error:
        open_store(where)
    assert said in str(error.value)
    assert SECRET not in str(error.value)


def test_without_psycopg_a_server_is_an_error_that_names_the_extra() -> None:
    program = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from argmaxable.store import open_store\n"
        f"open_store('postgresql://me:{SECRET}@127.0.0.1/runs')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'argmaxable[postgres]'" in done.stderr.splitlines()[-1]
    assert SECRET not in done.stderr


def test_importing_the_store_does_not_load_a_database_library() -> None:
    program = "import sys, argmaxable.store; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ
    )
    assert not set(done.stdout.split()) & {"sqlalchemy", "sqlite3", "psycopg", "filelock", "platformdirs"}


def test_the_package_exports_what_it_says() -> None:
    for name in am.store.__all__:
        assert getattr(am.store, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'Shop'"):
        am.store.Shop  # noqa: B018


@pytest.mark.parametrize(
    ("conninfo", "url"),
    [
        ("host=db.example dbname=runs", "postgresql://USER:PASSWORD@db.example/runs."),
        (
            f"host=db.example port=5433 user=ann password={SECRET} dbname=runs",
            "postgresql://ann:PASSWORD@db.example:5433/runs.",
        ),
        (f" user = 'ann' password = '{SECRET} x' host = h", "postgresql://ann:PASSWORD@h/DATABASE."),
        # With a stray word nobody knows what belongs to the password.
        (f"password=a {SECRET} host=h", "postgresql://USER:PASSWORD@HOST/DATABASE."),
        (f"dbname=runs port={SECRET}", "postgresql://USER:PASSWORD@HOST/DATABASE."),
        ("service=mine", "postgresql://USER:PASSWORD@HOST/DATABASE."),
    ],
)
def test_a_list_of_parameters_is_refused_with_the_url_to_write(conninfo: str, url: str) -> None:
    with pytest.raises(am.StoreError) as error:
        find_location(conninfo)
    assert str(error.value).endswith(f"Write {url}")
    assert SECRET not in str(error.value)


@pytest.mark.parametrize(
    "where", [f"ann:{SECRET}@db.example/runs", f"ann:{SECRET}@db.example", f"postgresql//ann:{SECRET}@h/d"]
)
def test_credentials_without_a_scheme_are_no_file_and_are_not_shown(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (["runs"], ["store", "check"], ["show", "1"]):
        ran = command(*words, "--db", where)
        assert ran.code == 2
        assert is_one_clear_line(ran)
        assert SECRET not in ran.err
    assert list(tmp_path.iterdir()) == []


def test_a_file_with_an_equals_sign_or_an_at_is_a_file(tmp_path: Path) -> None:
    for name in ("a=b.db", "me@home.db", "C:runs.db"):
        assert isinstance(find_location(name), FileLocation)
        assert isinstance(find_location(str(tmp_path / name)), FileLocation)
    assert isinstance(find_location("./host=x"), FileLocation)
