"""Writes tiny wheels, also such as nobody should make, and lets pip find them in a folder: no network."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

SQUARE = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1], [0, 0]])


def npz(weight: np.ndarray = SQUARE, **arrays: np.ndarray) -> bytes:
    """An .npz with a head: by default four corners and their centre, which is unargmaxable."""
    content = io.BytesIO()
    np.savez(content, W=weight, **arrays)
    return content.getvalue()


@dataclass(frozen=True)
class Index:
    """A folder that pip takes wheels from, and nothing else."""

    folder: Path

    def add(
        self, name: str, files: Mapping[str, bytes], *, version: str = "1.0", tags: str = "py3-none-any"
    ) -> Path:
        """A wheel with these files."""
        path = self.folder / f"{name}-{version}-{tags}.whl"
        with zipfile.ZipFile(path, "w") as wheel:
            for place, content in files.items():
                wheel.writestr(place, content)
            write_metadata(wheel, name, version, tags)
        return path

    def clear(self) -> None:
        for path in self.folder.iterdir():
            path.unlink()


def write_metadata(wheel: zipfile.ZipFile, name: str, version: str, tags: str) -> None:
    folder = f"{name}-{version}.dist-info"
    wheel.writestr(f"{folder}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    wheel.writestr(f"{folder}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tags}\n")
    wheel.writestr(f"{folder}/RECORD", "")


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def folder_for_pip(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    """Make pip look into this folder only, whatever it is configured for."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    folder.mkdir()
    return Index(folder)
