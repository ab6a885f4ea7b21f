"""Benchmark results with what is needed to read them later: commit, machine, versions."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import scipy

RESULTS = Path(__file__).parent / "results"
# What benchmarks and experiments write: a result beside the code does not make it other code.
_WRITTEN = ("benchmarks/results", "experiments/results", "docs/results", "docs/results.md")


def write(name: str, measured: dict[str, Any]) -> None:
    """Print the measurements and keep them in results/NAME.json."""
    record = {"benchmark": name, **circumstances(), **measured}
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(record, indent=2)
    (RESULTS / f"{name}.json").write_text(text + "\n")
    print(text)


def circumstances() -> dict[str, Any]:
    """Date, commit, machine and versions."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit_of(Path(__file__).parent) + ("+changes" if _has_changes() else ""),
        "machine": f"{_processor()}, {len(os.sched_getaffinity(0))} cores",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        **_installed("torch", "implicit"),
    }


def _installed(*packages: str) -> dict[str, str]:
    """Versions of packages, without importing them: PyTorch takes a second."""
    found = {}
    for package in packages:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def commit_of(checkout: Path) -> str:
    """The commit of a source tree."""
    words = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def _has_changes() -> bool:
    written = [f":(top,exclude){path}" for path in _WRITTEN]
    return bool(_git("status", "--porcelain", "--", ":/", *written))


def _git(*words: str) -> str:
    command = ["git", "-C", str(Path(__file__).parent), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()
