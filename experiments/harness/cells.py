"""What an experiment is made of: a claim of a paper, and *cells* (settings that JSON can hold) with a
function that measures one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Settings = Mapping[str, Any]
Measure = Callable[[Settings, Path | None], Mapping[str, Any]]


class Scale(StrEnum):
    """How much of an experiment is run."""

    SMOKE = "smoke"  # seconds: everything runs once, the numbers mean nothing
    COMMITTED = "committed"  # the results in the repository: minutes on two cores
    PAPER = "paper"  # the paper's own sizes, for whoever has the machine
    LONG = "long"  # until training converges, with rates searched first: hours to days on two cores


@dataclass(frozen=True)
class Cell:
    """One measurement: its settings and what it found, with the processor seconds it took, the commit of the
    code that took them, and on how many threads (which the last digits may depend on)."""

    settings: Settings
    found: Mapping[str, Any]
    seconds: float
    commit: str = ""
    threads: int = 1


@dataclass(frozen=True)
class Long:
    """Runs that take hours: cells that search (learning rates, say), and cells that use what these found.
    `count` is how many of the latter there will be. `table` shows the search and what the cells cost, after
    the experiment's own table."""

    search: Callable[[], Sequence[Settings]]
    cells: Callable[[Sequence[Cell]], Sequence[Settings]]
    count: int
    table: Callable[[Sequence[Cell], Sequence[Cell]], str] = lambda search, cells: ""


@dataclass(frozen=True)
class Experiment:
    """A claim of a paper and how it is tried.

    `measure` is a function of a module, so that other processes find it; it gets a cell's settings and the
    directory of text (None unless `needs_text`, and in a smoke run, which makes a text of its own). `weight`
    guesses a cell's cost in any unit: it orders the cells (long ones first) and makes the time left honest.
    """

    name: str
    source: str
    expected: str
    cells: Callable[[Scale], Sequence[Settings]]
    measure: Measure
    table: Callable[[Sequence[Cell]], str]
    figures: Callable[[Sequence[Cell]], Mapping[str, Figure]]
    weight: Callable[[Settings], float] = lambda settings: 1.0
    needs_text: bool = False
    long: Long | None = None
    reporter: str = "The paper reports"
