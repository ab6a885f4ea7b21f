"""Fixtures that tests in several folders share."""

from __future__ import annotations

import gc
import itertools
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import one_thread  # noqa: F401  # before NumPy and PyTorch
import pytest
from hypothesis import HealthCheck, settings
from loopback_hub import Hub, served_hub
from postgres_server import Server, running_server
from running import Command, Ran, without_progress

from argmaxable.cli import main
from argmaxable.store import open_store

_NUMBERS = itertools.count()

# No test depends on how fast the machine is, or on what else it does.
settings.register_profile(
    "anywhere",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("anywhere")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is collected lives until the end: looking for garbage among it costs a sixth of the time, and
    later a part of every search for garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.fixture(autouse=True)
def database(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where this test's runs are kept: never where the user's are."""
    path = tmp_path_factory.getbasetemp() / f"runs-{next(_NUMBERS)}.db"
    monkeypatch.setenv("ARGMAXABLE_DB", str(path))
    return path


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run the program in this process, as the shell would."""

    def run(*arguments: str | Path) -> Ran:
        monkeypatch.setattr(sys, "argv", ["argmaxable", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_:
            main()
        captured = capsys.readouterr()
        return Ran(int(exit_.value.code or 0), captured.out, without_progress(captured.err))

    return run


@pytest.fixture(scope="module")
def served() -> Iterator[Hub]:
    """A hub for the tests of one file; its thread should not live while others start processes."""
    with served_hub() as hub:
        yield hub


@pytest.fixture
def hub(served: Hub) -> Hub:
    served.files.clear()
    served.tokens.clear()
    return served


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """One PostgreSQL for all tests of this process that ask for it."""
    with running_server() as server:
        yield server


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with nothing in it, to be copied."""
    path = tmp_path_factory.mktemp("store") / "runs.db"
    open_store(str(path)).close()
    return path


@pytest.fixture(scope="session")
def empty_schema(postgres: Server) -> str:
    """A store with nothing in it, for one test after the other."""
    place = postgres.new_place()
    open_store(place).close()
    return place


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store without runs: a file and a database in turn. Its tables are there, for making them takes
    longer than most tests."""
    if request.param == "sqlite":
        return str(shutil.copy(request.getfixturevalue("empty_file"), tmp_path / "runs.db"))
    schema: str = request.getfixturevalue("empty_schema")
    server: Server = request.getfixturevalue("postgres")
    server.emptied(schema)
    return schema


@pytest.fixture(params=["sqlite", "postgresql"])
def new_place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store can be opened that nobody has opened before: a file and a database in turn."""
    if request.param == "sqlite":
        return str(tmp_path / "runs.db")
    server: Server = request.getfixturevalue("postgres")
    return server.new_place()
