"""Finished cells on disk, each in a file named after its settings, and the committed records.

A finished cell is stored in .cache/experiments (of each text by itself), so the same command resumes after a
stop. Runs of days are committed cell by cell, and another machine continues from the committed ones.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from experiments.harness import places
from experiments.harness.cells import Cell, Experiment, Scale, Settings
from experiments.harness.corpus import text_files


@contextmanager
def cells_folder(experiment: Experiment, text: Path | None, *, is_trial: bool) -> Iterator[Path]:
    """Where finished cells are kept; a trial keeps none. What one text gave is no result of another."""
    if is_trial:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)
    else:
        folder_here = places.CACHE / experiment.name / (digest_of(text) if text else "")
        folder_here.mkdir(parents=True, exist_ok=True)
        yield folder_here


def digest_of(text: Path) -> str:
    """What a text consists of, whatever its files are called."""
    digest = hashlib.sha256()
    for part, paths in text_files(text).items():
        digest.update(part.encode())
        for path in paths:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def restore(experiment: Experiment, scale: Scale, text: Path | None, folder: Path) -> None:
    """Keep the cells here that a run on another machine has left in results/paper or results/long."""
    path = record_path(experiment, scale)
    if scale is Scale.COMMITTED or not path.exists():
        return
    record = json.loads(path.read_text())
    if record.get("text") != (digest_of(text) if text else None):
        return
    for cell in (*record.get("search", ()), *record["cells"]):
        kept = cell_path(folder, cell["settings"])
        if not kept.exists():
            write_json(kept, cell)


def forget(folder: Path) -> None:
    for pattern in ("*.json", "*.pt", "*.spent", "*.progress"):
        for path in folder.glob(pattern):
            path.unlink()


def cell_path(folder: Path, settings: Settings) -> Path:
    text = json.dumps(dict(settings), sort_keys=True)
    return folder / f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.json"


def progress_path(path: Path) -> Path:
    """Where a cell says how far it is."""
    return path.with_suffix(".progress")


def record_path(experiment: Experiment, scale: Scale = Scale.COMMITTED) -> Path:
    folder = places.RESULTS if scale is Scale.COMMITTED else places.RESULTS / scale.value
    return folder / f"{experiment.name}.json"


def committed(experiment: Experiment) -> Any:
    path = record_path(experiment)
    if not path.exists():
        sys.exit(f"{experiment.name} has no results in {path} yet: run it without --redraw first.")
    return json.loads(path.read_text())


def _read(path: Path) -> Cell:
    return Cell(**json.loads(path.read_text()))


def finished(folder: Path, wanted: Sequence[Settings]) -> list[Cell]:
    """The finished ones among these cells."""
    return [_read(path) for path in (cell_path(folder, settings) for settings in wanted) if path.exists()]


def cells_of(record: Mapping[str, Any]) -> list[Cell]:
    return [Cell(**cell) for cell in record["cells"]]


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.parent.mkdir(exist_ok=True)
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(content, indent=1) + "\n")
    unfinished.rename(path)
