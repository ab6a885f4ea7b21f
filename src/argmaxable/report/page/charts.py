"""Charts as data: axes, bars and marks in pixels, for a template to draw as SVG.

Our own few lines instead of a plotting library: a page's colours follow its light or dark theme, and
thousands of marks are one path of 8 bytes each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from argmaxable.core.arrays import Vector

# Room for the axes around the plot, in pixels.
LEFT, RIGHT, TOP, BOTTOM = 70, 18, 12, 52
_MOST_TICKS = 6
_BARS = 30


@dataclass(frozen=True)
class Scale:
    """From values to pixels, linear or by their logarithm; `mirrored` for the sizes of negative numbers."""

    lo: float
    hi: float
    start: float
    end: float
    is_log: bool = False
    mirrored: bool = False

    def __call__(self, values: ArrayLike) -> Vector:
        lo, hi, inner = self.lo, self.hi, np.asarray(values, dtype=np.float64)
        if self.is_log:
            lo, hi, inner = math.log10(lo), math.log10(hi), np.log10(inner)
        share = (inner - lo) / (hi - lo)
        return self.start + (1 - share if self.mirrored else share) * (self.end - self.start)

    def ticks(self) -> tuple[Tick, ...]:
        values = _decades(self.lo, self.hi) if self.is_log else _rounds(self.lo, self.hi)
        sign = "−" if self.mirrored else ""
        return tuple(Tick(round(float(self(value)), 1), f"{sign}{_tick_text(value)}") for value in values)


@dataclass(frozen=True)
class Tick:
    """A mark on an axis."""

    at: float
    text: str


@dataclass(frozen=True)
class Bar:
    """A bar of a histogram and what it says when pointed at."""

    x: float
    y: float
    width: float
    height: float
    title: str


@dataclass(frozen=True)
class Layer:
    """Marks of one kind: `role` is its colour's name in the style sheet, `form` dots, line or rug."""

    role: str
    form: str
    path: str
    name: str = ""


@dataclass(frozen=True)
class Chart:
    """A chart ready to be drawn; `summary` is for those who can't see it."""

    title: str
    summary: str
    width: int
    height: int
    x_title: str
    y_title: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    role: str = ""
    bars: tuple[Bar, ...] = ()
    layers: tuple[Layer, ...] = ()

    left, right, top, bottom = LEFT, RIGHT, TOP, BOTTOM


def histogram(
    sizes: Vector, *, title: str, x_title: str, noun: str, role: str, mirrored: bool = False, width: int = 520
) -> Chart:
    """Positive numbers in bars of equal width on a logarithmic axis."""
    height = 260
    lo, hi = _log_range(sizes)
    x = Scale(lo, hi, LEFT, width - RIGHT, is_log=True, mirrored=mirrored)
    edges = np.geomspace(lo, hi, _BARS + 1)
    edges[0], edges[-1] = lo, hi
    counts = np.histogram(sizes, edges)[0]
    y = Scale(0, max(int(counts.max()), 1) * 1.05, height - BOTTOM, TOP)
    sign = "−" if mirrored else ""
    bars = tuple(
        Bar(
            x=round(min(left, right) + 0.5, 1),
            y=round(float(y(count)), 1),
            width=round(abs(right - left) - 1, 1),
            height=round(float(y(0) - y(count)), 1),
            title=f"{count:,} {noun} from {sign}{low:.3g} to {sign}{high:.3g}",
        )
        for count, (low, high), (left, right) in zip(counts, pairwise(edges), pairwise(x(edges)), strict=True)
        if count
    )
    lowest, median, highest = (f"{sign}{value:.3g}" for value in np.quantile(sizes, [0, 0.5, 1]))
    summary = f"{len(sizes):,} {noun} from {lowest} to {highest}, median {median}."
    return Chart(
        title, summary, width, height, x_title, noun, x.ticks(), _whole(y.ticks()), role=role, bars=bars
    )


@dataclass(frozen=True)
class Captions:
    """What is written around a plot."""

    title: str
    summary: str
    x: str
    y: str


def scatter(
    clouds: Sequence[tuple[str, str, Vector, Vector]],
    captions: Captions,
    *,
    x_range: tuple[float, float],
    y_log: bool,
    rugs: Sequence[tuple[str, str, Vector]] = (),
    size: tuple[int, int] = (520, 320),
    whole_y: bool = False,
) -> Chart:
    """Clouds of (role, name, xs, ys), and beneath the plot for each rug (role, name, xs) a row of ticks."""
    width, height = size
    floor = height - BOTTOM - 14 * len(rugs)
    every = np.concatenate([ys for *_, ys in clouds])
    lo, hi = _log_range(every) if y_log else (0.0, float(every.max()) * 1.05)
    x = Scale(*x_range, LEFT, width - RIGHT)
    y = Scale(lo, hi, floor - 4, TOP, is_log=y_log)
    layers = [Layer(role, "dots", _dots(x(xs), y(ys)), name) for role, name, xs, ys in clouds if len(xs)]
    for row, (role, name, xs) in enumerate(rugs):
        if len(xs):
            layers.append(Layer(role, "rug", _rug(x(xs), floor + 3 + 14 * row, 9), name))
    y_ticks = _whole(y.ticks()) if whole_y else y.ticks()
    return Chart(
        captions.title, captions.summary, width, height, captions.x, captions.y, x.ticks(), y_ticks,
        layers=tuple(layers),
    )  # fmt: skip


def curve(values: Vector, *, title: str, summary: str, x_title: str, y_title: str) -> Chart:
    """Positive values over 1, 2, 3, …, on a logarithmic axis."""
    width, height = 520, 320
    lo, hi = _log_range(values)
    x = Scale(0, max(len(values), 2), LEFT, width - RIGHT)
    y = Scale(lo, hi, height - BOTTOM, TOP, is_log=True)
    points = zip(x(np.arange(1, len(values) + 1)), y(values), strict=True)
    path = "M" + "L".join(f"{across:.1f} {down:.1f}" for across, down in points)
    layers = (Layer("plain", "line", path),)
    return Chart(title, summary, width, height, x_title, y_title, x.ticks(), y.ticks(), layers=layers)


def _dots(across: Vector, down: Vector) -> str:
    """Each place once, on a grid of 1½ pixels: dots with round ends and no length."""
    places = {(round(a / 1.5), round(d / 1.5)) for a, d in zip(across.tolist(), down.tolist(), strict=True)}
    return "".join(f"M{_pixel(1.5 * a)} {_pixel(1.5 * d)}h0" for a, d in sorted(places))


def _rug(across: Vector, top: float, height: float) -> str:
    places = sorted({round(a * 2) / 2 for a in across.tolist()})
    return "".join(f"M{_pixel(a)} {_pixel(top)}v{_pixel(height)}" for a in places)


def _pixel(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _log_range(values: Vector) -> tuple[float, float]:
    """The values' range with some room, never empty."""
    lo, hi = float(values.min()), float(values.max())
    room = max((hi / lo) ** 0.03, 1.1) if lo < hi else 2.0
    return lo / room, hi * room


def _decades(lo: float, hi: float) -> list[float]:
    """Powers of ten in the range; where there is hardly one, 2 and 5 times those as well."""
    first, last = math.floor(math.log10(lo)), math.ceil(math.log10(hi))
    powers = [10.0**power for power in range(first, last + 1) if lo <= 10.0**power <= hi]
    if len(powers) < 2:
        finer = [digit * 10.0**power for power in range(first, last + 1) for digit in (1, 2, 5)]
        return [value for value in finer if lo <= value <= hi] or [lo, hi]
    return powers[:: math.ceil(len(powers) / _MOST_TICKS)]


def _rounds(lo: float, hi: float) -> list[float]:
    """Round numbers in the range: 1, 2 or 5 times a power of ten apart."""
    rough = (hi - lo) / _MOST_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * digit for digit in (1, 2, 5, 10) if power * digit >= rough * 0.999)
    return [step * k for k in range(math.ceil(lo / step), math.floor(hi / step) + 1)]


def _whole(ticks: Iterable[Tick]) -> tuple[Tick, ...]:
    """Without fractions, which counts have none of."""
    return tuple(tick for tick in ticks if "." not in tick.text)


def _tick_text(value: float) -> str:
    if value == 0:
        return "0"
    if 1e-4 < abs(value) < 1e6:
        return f"{value:,.6f}".rstrip("0").rstrip(".")
    return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e")
