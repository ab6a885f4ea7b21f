"""How far an experiment is: in a terminal a bar for it and one for each cell being measured; in a pipe a line
for each finished cell, and now and then one for those being measured.

A cell is measured in a process of its own, which writes how far it is into a small file (`write`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

_LINES_EVERY = 600.0  # seconds, in a pipe


@dataclass(frozen=True)
class Waiting:
    """A cell to be measured: its name, its share of the work in any unit, and where it says how far it is."""

    name: str
    weight: float
    path: Path


def write(path: Path, done: int, of: int) -> None:
    """What a cell says of itself: so many epochs, say, of at most so many."""
    path.write_text(f"{done} {of}")


class Shown:
    """The progress of some cells on stderr, while this is entered."""

    def __init__(self, experiment: str, cells: Sequence[Waiting], *, total: int, finished: int) -> None:
        self.experiment, self.cells, self.total, self.count = experiment, list(cells), total, finished
        self.console = Console(stderr=True)
        self.bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self.all = self.bars.add_task(experiment, total=total, completed=finished, left="")
        self.rows: dict[Path, TaskID] = {}
        self.whole = sum(cell.weight for cell in cells)
        self.started = self.said = time.monotonic()

    def __enter__(self) -> Shown:
        self.bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bars.stop()

    def finish(self, cell: Waiting) -> None:
        """The cell is measured."""
        self.cells.remove(cell)
        self.count += 1
        left = self._time_left()
        self.bars.update(self.all, advance=1, left=left)
        if cell.path in self.rows:
            self.bars.remove_task(self.rows.pop(cell.path))
        self._say(f"{self.count} of {self.total} cells, {left}: {cell.name} is finished")

    def look(self) -> None:
        """Show how far the cells are that are being measured."""
        is_time = time.monotonic() - self.said >= _LINES_EVERY
        for cell in self.cells:
            if (found := _read(cell.path)) is None:
                continue
            done, of = found
            if cell.path not in self.rows:
                self.rows[cell.path] = self.bars.add_task(f"  {cell.name}", left="")
            self.bars.update(self.rows[cell.path], completed=done, total=of)
            if is_time:
                self._say(f"{cell.name} is at {done} of at most {of}")

    def _say(self, text: str) -> None:
        """Where there are no bars."""
        if not self.console.is_terminal:
            self.console.print(f"{self.experiment}: {text}", soft_wrap=True, highlight=False)
            self.said = time.monotonic()

    def _time_left(self) -> str:
        to_do = sum(cell.weight for cell in self.cells)
        seconds = (time.monotonic() - self.started) * to_do / max(self.whole - to_do, 1e-9)
        return f"{seconds / 60:.0f} min left" if seconds >= 60 else f"{seconds:.0f} s left"


def _read(path: Path) -> tuple[int, int] | None:
    """What the cell wrote last; None before it is measured."""
    try:
        done, of = path.read_text().split()
    except (FileNotFoundError, ValueError):  # not there, or just being written
        return None
    return int(done), int(of)
