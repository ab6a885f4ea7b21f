"""argmaxable serve, as a process."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import numpy as np
import pytest
from keeping import CORNERS, LABELS, keep, lossy
from running import Command, is_one_clear_line
from serving import Served, serving

from argmaxable.store import open_store


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that knows the weights, for tests that leave it running."""
    folder = tmp_path_factory.mktemp("site")
    keep(folder / "runs.db", lossy())
    np.savez(folder / "lossy.npz", weight=CORNERS, bias=np.zeros(6), labels=np.array(LABELS))
    with serving(folder / "runs.db", "--model", folder / "lossy.npz") as served:
        yield served


def test_it_prints_its_address_serves_and_ends_with_ctrl_c_though_a_browser_stays_connected(
    database: Path,
) -> None:
    keep(database, lossy())
    with serving(database) as served:
        address = urlsplit(served.address)
        connection = http.client.HTTPConnection(str(address.hostname), address.port)
        connection.request("GET", "/runs/1")
        page = connection.getresponse().read().decode()
        assert "3 of 6 classes can never be predicted for features within ±100." in page
        assert served.stop() == (0, "")
        connection.close()


def test_it_listens_on_this_machine_alone(site: Served) -> None:
    port = urlsplit(site.address).port
    listening = [
        line.split()[1].split(":")
        for table in ("/proc/net/tcp", "/proc/net/tcp6")
        for line in Path(table).read_text().splitlines()[1:]
        if line.split()[3] == "0A"  # listening
    ]
    assert [address for address, number in listening if int(number, 16) == port] == ["0100007F"]


def test_a_foreign_host_is_refused(site: Served) -> None:
    address = urlsplit(site.address)
    connection = http.client.HTTPConnection(str(address.hostname), address.port)
    connection.request("GET", "/", headers={"Host": "rebound.example"})
    answer = connection.getresponse()
    assert answer.status == 400
    assert b"lossy" not in answer.read()
    connection.close()


def test_a_model_adds_the_nearest_classes(site: Served) -> None:
    with urlopen(f"{site.address}/runs/1/classes/1") as answer:
        assert "cosine" in answer.read().decode()


def test_a_port_in_use_is_one_clear_line(command: Command, database: Path) -> None:
    keep(database, lossy())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = command("serve", "--db", database, "--port", str(taken.getsockname()[1]))
    assert ran.code == 2
    assert is_one_clear_line(ran)
    assert "is in use" in ran.err


@pytest.mark.parametrize("port", ["-1", "65536"])
def test_a_port_that_is_none_is_one_clear_line(command: Command, database: Path, port: str) -> None:
    keep(database, lossy())
    ran = command("serve", "--db", database, "--port", port)
    assert ran.code == 2
    assert is_one_clear_line(ran)
    assert "from 1 to 65535" in ran.err


def test_a_missing_database_is_one_clear_line(command: Command, tmp_path: Path) -> None:
    ran = command("serve", "--db", tmp_path / "none.db")
    assert ran.code == 2
    assert is_one_clear_line(ran)
    assert "there is no database" in ran.err
    assert list(tmp_path.iterdir()) == []


def test_a_missing_package_is_named_with_its_extra(database: Path) -> None:
    open_store(str(database)).close()
    program = (
        "import sys; sys.modules['uvicorn'] = None; sys.argv = ['argmaxable', 'serve']\n"
        "from argmaxable.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=os.environ.copy()
    )
    assert done.returncode == 2
    assert done.stderr == (
        "argmaxable: serving needs starlette and uvicorn: pip install 'argmaxable[serve]'.\n"
    )
