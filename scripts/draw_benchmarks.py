"""Draws docs/benchmarks/*.svg from what the benchmarks measured; `make figures` calls it.

python -m scripts.draw_benchmarks
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scripts.cost_figures import HEADS, measured_heads
from scripts.figure_text import ROOT, result

FOLDER = ROOT / "docs" / "benchmarks"
_OURS, _THEIRS, _NEVER = "#2f6fb5", "#9aa3ad", "#c2410c"


def _bars(axes: Axes, names: list[str], values: list[float], texts: list[str], colour: str) -> None:
    axes.barh(names[::-1], values[::-1], color=colour)
    for place, (value, text) in enumerate(zip(values[::-1], texts[::-1], strict=True)):
        axes.annotate(text, (value, place), xytext=(4, 0), textcoords="offset points", va="center")
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.15)


def _seconds(value: float) -> str:
    return f"{value:.2g} s" if value < 1 else f"{value:.1f} s" if value < 60 else f"{value / 60:.0f} min"


def _heads() -> list[tuple[str, int, int, float]]:
    """Name, classes, unargmaxable classes and seconds of each real head."""
    return [
        (title.removesuffix(", no bias"), row["classes"], row["unargmaxable"], row["seconds"])
        for title, row in measured_heads()
    ]


def real_heads(axes: Axes) -> None:
    names = [f"{name}\n{classes:,} classes" for name, classes, _, _ in _heads()]
    values = [seconds for *_, seconds in _heads()]
    _bars(axes, names, values, [_seconds(value) for value in values], _OURS)
    axes.set_xscale("log")
    axes.set_xlabel("seconds to verify every class, two cores (logarithmic)")


def unargmaxable(axes: Axes) -> None:
    shares = [100 * never / classes for _, classes, never, _ in _heads()]
    texts = [f"{never:,} of {classes:,}" for _, classes, never, _ in _heads()]
    _bars(axes, [name for name, *_ in _heads()], shares, texts, _NEVER)
    axes.set_xlabel("classes that can never be predicted, in %")
    axes.set_xlim(0, max(shares) * 1.3)


def paper(axes: Axes) -> None:
    heads = {key: row for key, row in result("whole_command")["heads"].items() if "paper" in row}
    names, values, colours = [], [], []
    for key, row in heads.items():
        names += [f"{HEADS[key]}:\nthe paper's algorithm", f"{HEADS[key]}:\nargmaxable verify"]
        values += [row["paper"]["seconds"], row["this"]["wall_seconds"]]
        colours += [_THEIRS, _OURS]
    _bars(axes, names, values, [_seconds(value) for value in values], _OURS)
    for bar, colour in zip(axes.patches, colours[::-1], strict=True):
        bar.set_color(colour)
    axes.set_xscale("log")
    axes.set_xlabel("seconds for the whole head (logarithmic); the paper's extrapolated from a sample")


def startup(axes: Axes) -> None:
    seconds = result("startup")["seconds"]["this"]
    names = list(seconds)
    values = [seconds[name] for name in names]
    _bars(axes, names, values, [_seconds(value) for value in values], _OURS)
    axes.set_xlabel("seconds")


DRAWINGS: dict[str, tuple[Callable[[Axes], None], float]] = {
    "real-heads": (real_heads, 4.4),
    "unargmaxable": (unargmaxable, 3.4),
    "paper": (paper, 2.6),
    "startup": (startup, 2.3),
}


def draw(name: str, folder: Path) -> Path:
    """One drawing; the same numbers give the same bytes."""
    function, height = DRAWINGS[name]
    style: Any = {"svg.hashsalt": name, "font.size": 9, "svg.fonttype": "none", "font.family": "sans-serif"}
    with mpl.rc_context(style):
        figure = Figure(figsize=(7.2, height), layout="constrained")
        function(figure.subplots())
        path = folder / f"{name}.svg"
        figure.savefig(path, metadata={"Date": None}, facecolor="white")
    return path


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for one in DRAWINGS:
        print(f"wrote {draw(one, FOLDER).relative_to(ROOT)}")
