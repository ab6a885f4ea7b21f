"""Where a store is: a file's path or a database URL, and how to speak of it without its password."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import platformdirs
from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from argmaxable.core.errors import StoreError

_EXAMPLES = "Write a path, sqlite:///PATH or postgresql://USER:PASSWORD@HOST/DATABASE."
_POSTGRESQL = ("postgresql", "postgres", "postgresql+psycopg")
# What libpq also takes as a parameter of the URL query.
_SECRET_PARAMETERS = ("password", "sslpassword")
# The other way in which libpq takes an address: host=… dbname=…, values perhaps in quotes.
_CONNINFO = re.compile(r"\s*(host|hostaddr|port|dbname|user|password|passfile|service|ssl\w*|options)\s*=")
_CONNINFO_PAIR = re.compile(r"\s*(\w+)\s*=\s*('(?:[^'\\]|\\.)*'|(?:[^\s'\\]|\\.)+)(?:\s+|$)")
# USER:PASSWORD@HOST/…, with the scheme forgotten: as a file's name it would be shown in every message.
_CREDENTIALS = re.compile(r"[^/\\:@]+:[^@]*@")


@dataclass(frozen=True)
class FileLocation:
    """A SQLite file."""

    path: Path

    @property
    def name(self) -> str:
        return str(self.path)


@dataclass(frozen=True, repr=False)
class ServerLocation:
    """A PostgreSQL database."""

    url: URL

    @property
    def name(self) -> str:
        """The URL without its password and parameters."""
        url = self.url
        return URL.create(
            "postgresql", username=url.username, host=url.host, port=url.port, database=url.database
        ).render_as_string()

    def __repr__(self) -> str:
        return f"ServerLocation({self.name})"

    @property
    def secrets(self) -> list[str]:
        """What must not be shown, longest first."""
        given = [self.url.password, *(self.url.query.get(name) for name in _SECRET_PARAMETERS)]
        return sorted({str(secret) for secret in given if secret}, key=len, reverse=True)


def find_location(where: str | None) -> FileLocation | ServerLocation:
    """What the user wrote after --db, None for the default file. Raises StoreError."""
    if where is None:
        return FileLocation(platformdirs.user_data_path("argmaxable", appauthor=False) / "runs.db")
    if "://" in where or (where.startswith(("postgres", "sqlite")) and ":" in where):
        return _from_url(where)
    if not where.strip() or "\0" in where:
        raise StoreError(f"this is not the name of a database. {_EXAMPLES}")
    if _CONNINFO.match(where):
        raise StoreError(f"--db takes a URL, not a list of parameters. Write {_as_url(where)}")
    if _CREDENTIALS.match(where):
        raise StoreError(
            f"this looks like a database URL without its scheme. {_EXAMPLES} For a file write ./NAME."
        )
    return FileLocation(Path(where).expanduser())


def _as_url(conninfo: str) -> str:
    """The URL that says the same, but for the password; only its form where the text can't be read."""
    given: dict[str, str] = {}
    place = 0
    while (found := _CONNINFO_PAIR.match(conninfo, place)) is not None:
        given[found[1]] = re.sub(r"\\(.)", r"\1", found[2].removeprefix("'").removesuffix("'"))
        place = found.end()
    if place < len(conninfo.rstrip()) or not given.get("port", "0").isdecimal():
        given = {}  # who knows what of it is the password
    url = URL.create(
        "postgresql",
        username=given.get("user", "USER"),
        password="PASSWORD",
        host=given.get("host", given.get("hostaddr", "HOST")),
        port=int(given["port"]) if "port" in given else None,
        database=given.get("dbname", "DATABASE"),
    )
    return f"{url.render_as_string(hide_password=False)}."


def _from_url(text: str) -> FileLocation | ServerLocation:
    # Nothing of the text is repeated in the errors: who knows what a mistyped URL has where.
    url = _parsed(text)
    if url is None:
        raise StoreError(f"the database URL can't be read. {_EXAMPLES}")
    if url.drivername in ("sqlite", "sqlite+pysqlite"):
        return _file(url)
    if url.drivername in _POSTGRESQL:
        return _server(url)
    kind = text.partition("://")[0]
    raise StoreError(f"a database of the kind '{kind}' can't hold a store. {_EXAMPLES}")


def _parsed(text: str) -> URL | None:
    try:
        return make_url(text)
    except (ArgumentError, ValueError):
        return None


def _file(url: URL) -> FileLocation:
    if not url.database or url.database == ":memory:" or url.query:
        raise StoreError(
            "the sqlite URL names no file, or has parameters. Write sqlite:///PATH; --no-db stores nothing."
        )
    return FileLocation(Path(url.database))


def _server(url: URL) -> ServerLocation:
    if "@" in f"{url.host}{url.database}":
        # The rest of the password would be taken for a host and shown in every message.
        raise StoreError(
            "the database URL has more than one @: write those of the user name and the password as %40."
        )
    return ServerLocation(url.set(drivername="postgresql+psycopg"))
