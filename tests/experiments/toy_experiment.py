"""An experiment for the harness's tests: it squares numbers, notes what it was asked and fails if told to."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from argmaxable.core.errors import LoadError
from experiments.harness.cells import Cell, Experiment, Scale, Settings
from experiments.harness.command import main

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def cells(scale: Scale) -> list[Settings]:
    return [{"number": number} for number in ((1, 2) if scale is Scale.SMOKE else (3, 1, 2))]


def measure(settings: Settings, text: Path | None) -> Mapping[str, Any]:
    """The square. TOY_FAILS names a number that fails, TOY_REFUSES one without a file, TOY_HANGS one that
    never ends, TOY_ERRS an error to be added, relative to the square, and TOY_NOTES a file that lists what
    was measured."""
    number = settings["number"]
    if os.environ.get("TOY_HANGS") == str(number):
        print(os.getpid(), flush=True)
        Event().wait()
    if os.environ.get("TOY_FAILS") == str(number):
        raise ArithmeticError(f"can't square {number}")
    if os.environ.get("TOY_REFUSES") == str(number):
        raise LoadError(f"no file {number}.")
    with Path(os.environ["TOY_NOTES"]).open("a") as notes:
        notes.write(f"{number} {os.environ['OMP_NUM_THREADS']} {text}\n")
    error = os.environ.get("TOY_ERRS")
    return {"square": number**2 * (1 + float(error)) if error else number**2}


def table(measured: Sequence[Cell]) -> str:
    lines = [f"| {cell.settings['number']} | {cell.found['square']} |" for cell in measured]
    return "\n".join(["| number | square |", "|--:|--:|", *lines])


def figures(measured: Sequence[Cell]) -> dict[str, Figure]:
    from argmaxable.report.figures.style import COLUMN, drawing

    with drawing(COLUMN, 1.0) as figure:
        figure.subplots().plot([cell.found["square"] for cell in measured])
    return {"toy_squares": figure}


EXPERIMENT = Experiment(
    name="toy",
    source="Euclid, Elements",
    expected="squares.",
    cells=cells,
    measure=measure,
    table=table,
    figures=figures,
    weight=lambda settings: float(settings["number"]),
)

if __name__ == "__main__":
    main(EXPERIMENT, __doc__)
