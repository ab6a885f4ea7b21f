"""argmaxable figure: the papers' figures, of examples and of one's own models and runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from argmaxable.cli import options
from argmaxable.cli.figure_runs import find_groups
from argmaxable.cli.parameters import Argument, Option
from argmaxable.cli.progress import progress_bar
from argmaxable.core.errors import InputError
from argmaxable.core.labels import visible

if TYPE_CHECKING:
    from argmaxable.core.head import Head
    from argmaxable.report.figures import Effort
    from argmaxable.report.figures.style import Figure

_EPILOG = """\b
Figures and their options (docs/figures.md shows them):
  decision-regions  who wins where: [MODEL] [--bias] [--extent R]
  hull              [MODEL] [--dims 2|3] [--classes N] [--seed N]
  reflections       the way of one class to a point where it wins: [MODEL]
  braid             rankings of 3 and 4 classes: [--bias]
  slices            a head's rankings without and with its bias: [MODEL]
  construction      from weights to rankings: [MODEL]
  counts            unargmaxable classes: [RUN...] [--runs FILE]
  steps             steps over class index: [RUN...] [--runs FILE]
  steps-needed      how many steps classes need: [RUN...] [--runs FILE]
  random-heads      shares: [--classes N] [--dims 2,3,5] [--seeds N]
  plif              a learned function: [--bins N] [--seed N]
  all               the whole set, into a folder: [--runs FILE] [--format svg]

\b
Examples:
  argmaxable figure decision-regions head.npz -o regions.svg
  argmaxable figure steps 3 4 5 --title "Teachers and students" -o steps.pdf
  argmaxable figure all --runs runs.txt --title "My models" -o figures

\b
Exit codes: 0 written, 2 bad input.
"""


class Name(StrEnum):
    """The figures."""

    DECISION_REGIONS = "decision-regions"
    HULL = "hull"
    REFLECTIONS = "reflections"
    BRAID = "braid"
    SLICES = "slices"
    CONSTRUCTION = "construction"
    COUNTS = "counts"
    STEPS = "steps"
    STEPS_NEEDED = "steps-needed"
    RANDOM_HEADS = "random-heads"
    PLIF = "plif"
    ALL = "all"


class Format(StrEnum):
    """Of the files that `all` writes."""

    SVG = "svg"
    PNG = "png"
    PDF = "pdf"


@dataclass(frozen=True)
class _Request:
    """What the user asked for; None where nothing was said."""

    subjects: tuple[str, ...]
    title: str | None
    runs: Path | None
    db: str | None
    bias: bool | None
    extent: float | None
    dims: str | None
    classes: int | None
    seed: int | None
    seeds: int | None
    bins: int | None
    format: Format | None

    def require_only(self, name: Name, taken: Iterable[str]) -> None:
        """Raise InputError for what the figure would not look at."""
        given = {field for field, value in vars(self).items() if value not in (None, ())}
        stray = given - {*taken, "title", "db"}
        if stray:
            first = min(stray)
            what = f"{visible(self.subjects[0])!r}" if first == "subjects" else f"--{first}"
            raise InputError(f"figure {name} does not take {what}: see `argmaxable figure --help`.")


def figure(
    name: Annotated[Name, Argument(metavar="NAME", help="Which figure; all: the whole set.")],
    output: Annotated[
        Path,
        Option("--output", "-o", help="File to write (.svg, .png or .pdf); for all, a folder."),
    ],
    subjects: Annotated[
        list[str] | None,
        Argument(metavar="MODEL|RUN", help="A model file, or stored runs."),
    ] = None,
    title: Annotated[
        str | None, Option(help="Title of the figure; for all, of the figures about runs.")
    ] = None,
    runs: Annotated[
        Path | None, Option(metavar="FILE", help="File that lists runs, or an SQLite database of runs.")
    ] = None,
    bias: Annotated[bool | None, Option("--bias", help="Draw the example that has a bias.")] = None,
    extent: Annotated[float | None, Option(help="Show features from -R to R.", metavar="R")] = None,
    dims: Annotated[str | None, Option(help="Numbers of features, e.g. 2,3,5.")] = None,
    classes: Annotated[int | None, Option(min=1, help="Classes of random heads.")] = None,
    seed: Annotated[int | None, Option(min=0, help="Random seed.")] = None,
    seeds: Annotated[int | None, Option(min=1, help="Random heads for each number of features.")] = None,
    bins: Annotated[int | None, Option(min=1, help="Bins of the PLIF.")] = None,
    form: Annotated[Format | None, Option("--format", help="File format for all (default svg).")] = None,
    db: options.Database = None,
) -> None:
    """Draw the papers' figures from examples, models or runs.

    Writes SVG, PNG or PDF; NAME all draws the whole set.
    """
    request = _Request(
        tuple(subjects or ()), title, runs, db, bias, extent, dims, classes, seed, seeds, bins, form
    )
    if name is Name.ALL:
        request.require_only(name, _TAKEN_BY_ALL)
        with progress_bar("drawing"):
            _write_all(request, output)
        return
    from argmaxable.report.figures.style import require_format, save

    draw, taken = _FIGURES[name]
    request.require_only(name, taken)
    require_format(output)
    with progress_bar("drawing"):
        save(draw(request), output)
    click.echo(f"Figure: {output}")


figure.__doc__ = f"{figure.__doc__}\n\n{_EPILOG}"


# ---------------------------------------------------------------------- of heads


def _decision_regions(request: _Request) -> Figure:
    from argmaxable.report.figures import decision_regions
    from argmaxable.report.figures.examples import ARGMAXABLE_CLASS, UNARGMAXABLE_CLASS

    if request.bias and request.subjects:
        raise InputError("--bias chooses an example. Leave it out when you pass a MODEL.")
    head = _head(request) or (ARGMAXABLE_CLASS if request.bias else UNARGMAXABLE_CLASS)
    return decision_regions(head, extent=request.extent, title=request.title)


def _hull(request: _Request) -> Figure:
    from argmaxable.core.boxes import Everywhere
    from argmaxable.questions.argmax import verify
    from argmaxable.report.figures.gallery import HULL_CLASSES, SEED, random_hull
    from argmaxable.report.figures.hull import hull, require_drawable

    head = _head(request)
    if head is None:
        (features,) = _numbers(request.dims or "3", most=1)
        require_drawable(features)
        classes, seed = request.classes or HULL_CLASSES, SEED if request.seed is None else request.seed
        return random_hull(features, classes=classes, seed=seed, title=request.title)
    if (request.dims, request.classes, request.seed) != (None, None, None):
        raise InputError("--dims, --classes and --seed draw a random head: leave them out for a MODEL.")
    require_drawable(head.features)
    return hull(verify(head, Everywhere()), title=request.title)


def _reflections(request: _Request) -> Figure:
    from argmaxable.report.figures import reflections
    from argmaxable.report.figures.examples import HARD_CLASS

    return reflections(_head(request) or HARD_CLASS, title=request.title)


def _braid(request: _Request) -> Figure:
    from argmaxable.report.figures import braid

    return braid(bias=bool(request.bias), title=request.title)


def _slices(request: _Request) -> Figure:
    from argmaxable.report.figures import slices
    from argmaxable.report.figures.examples import FOUR_IN_PLANE

    return slices(_head(request) or FOUR_IN_PLANE, title=request.title)


def _construction(request: _Request) -> Figure:
    from argmaxable.report.figures import construction
    from argmaxable.report.figures.examples import FOUR_IN_PLANE

    return construction(_head(request) or FOUR_IN_PLANE, title=request.title)


def _head(request: _Request) -> Head | None:
    if not request.subjects:
        return None
    if len(request.subjects) > 1:
        raise InputError(f"this figure takes one MODEL, found {len(request.subjects)}.")
    from argmaxable.models import load_head

    return load_head(request.subjects[0])


def _random_heads(request: _Request) -> Figure:
    from argmaxable.report.figures import measure_random_heads, random_heads
    from argmaxable.report.figures.gallery import RANDOM_CLASSES, RANDOM_DIMS, RANDOM_SEEDS

    dims = RANDOM_DIMS if request.dims is None else _numbers(request.dims)
    classes, seeds = request.classes or RANDOM_CLASSES, request.seeds or RANDOM_SEEDS
    return random_heads(measure_random_heads(classes, dims, seeds=seeds), title=request.title)


def _plif(request: _Request) -> Figure:
    from argmaxable.report.figures.gallery import PLIF_BINS, SEED, random_plif

    seed = SEED if request.seed is None else request.seed
    return random_plif(request.bins or PLIF_BINS, seed=seed, title=request.title)


def _numbers(text: str, most: int | None = None) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and part.isascii() and 0 < len(part) < 7 and int(part) for part in parts):
        raise InputError(f"--dims {text}: expected numbers of features above 0, such as 2,3,5.")
    if most is not None and len(parts) > most:
        raise InputError(f"--dims {text}: this figure takes {most} number.")
    return sorted({int(part) for part in parts})


# ---------------------------------------------------------------------- of runs


def _counts(request: _Request) -> Figure:
    from argmaxable.report.figures import unargmaxable_counts

    groups = find_groups(request.subjects, request.runs, request.db, with_efforts=False)
    runs = [run for group in groups for run in group.runs]
    names = [name for group in groups for name in group.names]
    return unargmaxable_counts(runs, names=names, title=request.title)


def _steps(request: _Request) -> Figure:
    from argmaxable.report.figures import steps_over_classes

    return steps_over_classes(_efforts(request), title=request.title)


def _steps_needed(request: _Request) -> Figure:
    from argmaxable.report.figures import steps_needed

    return steps_needed(_efforts(request), title=request.title)


def _efforts(request: _Request) -> list[Effort]:
    groups = find_groups(request.subjects, request.runs, request.db, with_efforts=True)
    return [effort for group in groups for effort in group.efforts]


def _write_all(request: _Request, folder: Path) -> None:
    from argmaxable.report.figures import all_figures
    from argmaxable.report.figures.style import matplotlib, save

    matplotlib()  # before the work, not after it
    groups = find_groups((), request.runs, request.db, with_efforts=True, is_lenient=True)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"can't make the folder {folder}: {error.strerror or error}.") from error
    for stem, drawn in all_figures(groups, title=request.title):
        path = folder / f"{stem}.{request.format or Format.SVG}"
        save(drawn, path)
        click.echo(f"Figure: {path}")


# How each figure is drawn, and which arguments it looks at.
_FIGURES: dict[Name, tuple[Callable[[_Request], Figure], tuple[str, ...]]] = {
    Name.DECISION_REGIONS: (_decision_regions, ("subjects", "bias", "extent")),
    Name.HULL: (_hull, ("subjects", "dims", "classes", "seed")),
    Name.REFLECTIONS: (_reflections, ("subjects",)),
    Name.BRAID: (_braid, ("bias",)),
    Name.SLICES: (_slices, ("subjects",)),
    Name.CONSTRUCTION: (_construction, ("subjects",)),
    Name.COUNTS: (_counts, ("subjects", "runs")),
    Name.STEPS: (_steps, ("subjects", "runs")),
    Name.STEPS_NEEDED: (_steps_needed, ("subjects", "runs")),
    Name.RANDOM_HEADS: (_random_heads, ("classes", "dims", "seeds")),
    Name.PLIF: (_plif, ("bins", "seed")),
}
_TAKEN_BY_ALL = ("runs", "format")
