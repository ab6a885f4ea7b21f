"""What the server does with requests that do not arrive, and with errors of every kind."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from keeping import keep, lossy
from serving import Served, serving
from starlette.testclient import TestClient

from argmaxable.serve.app import make_app
from argmaxable.serve.headers import HEADERS
from argmaxable.serve.views import Site
from argmaxable.store import open_store

LONG = "9" * 4400


def connected(served: Served) -> socket.socket:
    address = urlsplit(served.address)
    return socket.create_connection((str(address.hostname), address.port))


def read_to_the_end(connection: socket.socket) -> bytes:
    """All that the server sends until it closes the connection."""
    return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for all tests of this file."""
    database = tmp_path_factory.mktemp("site") / "runs.db"
    keep(database, lossy())
    with serving(database) as served:
        yield served


HALVES = (
    b"",
    b"GET / HT",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n",
    b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n1234",
    # A whole request first, on a connection that stays open.
    b"GET /playground HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET / HT",
)


def test_half_sent_requests_are_closed_by_the_server(site: Served) -> None:
    with ExitStack() as opened:
        # All at once, so that the server's patience is waited for once.
        connections = [opened.enter_context(connected(site)) for _ in HALVES]
        for connection, half in zip(connections, HALVES, strict=True):
            connection.sendall(half)
        for connection, half in zip(connections, HALVES, strict=True):
            said = read_to_the_end(connection)  # ends only when the server closes
            assert b"500" not in said.partition(b"\r\n")[0], half
    with connected(site) as other:
        other.sendall(b"GET /playground HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        assert read_to_the_end(other).startswith(b"HTTP/1.1 200")


def test_a_half_sent_request_does_not_keep_the_server_from_stopping(database: Path) -> None:
    keep(database, lossy())
    with serving(database) as served, connected(served) as connection:
        connection.sendall(HALVES[1])
        assert served.stop()[0] == 0


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: rebound.example\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n", 405),
        (b"GET /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 404),
        (b"GET /runs/77 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 404),
        (f"GET /runs/{LONG} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode(), 404),
        (f"GET /runs/1/classes/{LONG} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode(), 404),
        (b"GET /runs/\xd9\xa1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 400),
    ],
)
def test_every_error_has_the_same_headers(site: Served, request_: bytes, status: int) -> None:
    with connected(site) as connection:
        connection.sendall(request_)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        assert answer.status == status
        assert {name: answer.getheader(name) for name in HEADERS} == HEADERS


def test_an_error_of_ours_has_them_too(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(database, lossy())

    def fail(*_: object, **__: object) -> str:
        raise ZeroDivisionError

    monkeypatch.setattr("argmaxable.serve.views.playground_page", fail)
    with open_store(str(database), read_only=True) as store:
        client = TestClient(
            make_app(Site(store, {})), base_url="http://127.0.0.1", raise_server_exceptions=False
        )
        answer = client.get("/playground")
    assert answer.status_code == 500
    assert "This is a bug" in answer.text
    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS


@pytest.mark.parametrize("query", [f"page={LONG}", f"limit={LONG}", f"search={LONG}"])
def test_numbers_with_thousands_of_digits_are_nobodys(database: Path, query: str) -> None:
    keep(database, lossy())
    with open_store(str(database), read_only=True) as store:
        client = TestClient(make_app(Site(store, {})), base_url="http://127.0.0.1")
        assert client.get(f"/runs/1?{query}").status_code == 200
        assert client.get(f"/?{query}").status_code == 200
