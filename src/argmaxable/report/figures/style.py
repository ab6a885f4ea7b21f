"""How all figures look, and how they are written: the one place with fonts, colours and sizes.

Files are the same to the last byte whenever the data are: fixed ids in SVG, no dates, no versions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import InputError
from argmaxable.core.labels import visible
from argmaxable.core.verdict import Status

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Figure  # for others to name the type

RGBA = tuple[float, float, float, float]

# Inches: a column and the text of a two-column paper.
COLUMN, PAGE = 3.3, 6.8
# Told apart by all eyes (Okabe & Ito 2008), those that print well next to each other first.
PALETTE = ("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#0072B2", "#D55E00", "#F0E442", "#999999")
LINE_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#222222", "#999999")
INK, FAINT = "#222222", "#B0B0B0"
STATUS_COLOURS = {
    Status.ARGMAXABLE: "#0072B2",
    Status.UNARGMAXABLE: "#D55E00",
    Status.UNDECIDED: "#888888",
}
STATUS_MARKERS = {Status.ARGMAXABLE: "o", Status.UNARGMAXABLE: "X", Status.UNDECIDED: "s"}
# What a file's suffix asks for, and the entries of its metadata that differ from run to run or from one
# version of matplotlib to the next.
_METADATA: dict[str, tuple[str, ...]] = {
    ".svg": ("Date", "Creator"),
    ".png": ("Software",),
    ".pdf": ("CreationDate", "Creator", "Producer"),
}
FORMATS = tuple(_METADATA)
_DOTS_PER_INCH = 160
_SETTINGS: dict[str, Any] = {
    # The font that comes with matplotlib, so that every machine draws the same.
    "font.family": "DejaVu Sans",
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.labelsize": 8.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 7.0,
    "legend.frameon": False,
    "figure.titlesize": 9.0,
    "figure.dpi": _DOTS_PER_INCH,
    "savefig.dpi": _DOTS_PER_INCH,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.linewidth": 0.6,
    "grid.color": "#D8D8D8",
    "grid.linewidth": 0.4,
    "lines.linewidth": 1.2,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    # A label may hold a dollar sign, which is no formula.
    "text.parse_math": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "argmaxable",
    "pdf.fonttype": 42,
}


def matplotlib() -> Any:
    """The library; raises InputError without it."""
    try:
        import matplotlib
        import matplotlib.style
    except ImportError as error:
        raise InputError("figures need matplotlib: pip install 'argmaxable[plot]'.") from error
    return matplotlib


@contextmanager
def drawing(width: float, height: float, title: str | None = None) -> Iterator[Figure]:
    """A figure of that many inches to draw on, in our style whatever the user's settings are."""
    with matplotlib().style.context(["default", _SETTINGS]):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width, height), layout="constrained")
        if title:
            figure.suptitle(legible(title))
        yield figure


def require_format(path: Path) -> None:
    """Raise InputError unless a figure can be written into a file of that name, before it is drawn."""
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"figures are {', '.join(FORMATS)} files, not '{path.name}'. Choose by the suffix.")
    matplotlib()


def save(figure: Figure, path: Path) -> None:
    """Write the figure as SVG (with text as text), PNG or PDF, as the suffix says; raises InputError."""
    require_format(path)
    suffix = path.suffix.lower()
    metadata = dict.fromkeys(_METADATA[suffix])
    try:
        with matplotlib().style.context(["default", _SETTINGS]):
            figure.savefig(path, format=suffix[1:], metadata=metadata)
    except OSError as error:
        raise InputError(f"can't write {path}: {error.strerror or error}.") from error


def colour_of(number: int) -> str:
    """The colour of a class, model or line; they come again after eight."""
    return PALETTE[number % len(PALETTE)]


def paint(colour: str, *, pale: float = 0.4, light: float = 1.0, alpha: float = 1.0) -> RGBA:
    """A colour mixed with white, then with black, for faces in space."""
    from matplotlib.colors import to_rgb

    red, green, blue = (light * (value * (1 - pale) + pale) for value in to_rgb(colour))
    return red, green, blue, alpha


def draw_faces(
    axes: Any, faces: Sequence[NDArray[np.float64]], colours: list[RGBA], edges: list[RGBA], *, width: float
) -> None:
    """Polygons in space (corners × 3 each), nearer ones over those behind."""
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    most = max(map(len, faces))
    # All with as many corners, the last one repeated: matplotlib pads them with random numbers, which it
    # then takes for coordinates.
    padded = [np.concatenate([face, np.repeat(face[-1:], most - len(face), axis=0)]) for face in faces]
    axes.add_collection3d(Poly3DCollection(padded, facecolors=colours, edgecolors=edges, linewidths=width))


def draw_lines(axes: Any, lines: Sequence[NDArray[np.float64]], *, width: float) -> None:
    """Lines in space (points × 3 each) over everything drawn so far."""
    from mpl_toolkits.mplot3d.art3d import Line3DCollection

    axes.computed_zorder = False
    axes.add_collection3d(Line3DCollection(lines, colors=INK, linewidths=width, zorder=5))


def legible(text: str) -> str:
    r"""The text with what can't be seen, or is missing in the font, written as \u{…}."""
    known = _characters()
    return "".join(char if ord(char) in known else f"\\u{{{ord(char):x}}}" for char in visible(text))


@cache
def _characters() -> frozenset[int]:
    matplotlib()
    from matplotlib.font_manager import FontProperties, findfont
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(findfont(FontProperties(family="DejaVu Sans"))).get_charmap())


def grouped(number: float, _position: float = 0) -> str:
    """A tick's number with thousands set apart; logarithmic axes would write it as a formula."""
    return f"{number:,.0f}" if number >= 1 or number == 0 else f"{number:g}"
