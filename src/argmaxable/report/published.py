"""Verdicts that others published, read from CSV: claims without evidence, to set beside ours.

Two forms are known by their headings: ours, which `argmaxable export --format csv` writes too
(docs/runs.md), and the tables that the tool of Grivas et al. 2022 publishes: results.csv, with
models.csv and experiments.csv beside it. Either may be compressed (.gz).
"""

from __future__ import annotations

import csv
import gzip
import math
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count, groupby
from operator import itemgetter
from pathlib import Path

from argmaxable.core.errors import InputError
from argmaxable.core.labels import visible
from argmaxable.core.verdict import Status
from argmaxable.report.csv_table import without_apostrophes
from argmaxable.store import PublishedVerdict

Fields = dict[str, str]

_TRUE, _FALSE = frozenset({"true", "t", "yes", "1"}), frozenset({"false", "f", "no", "0"})
_ORIGINAL = {"index", "token", "is_bounded", "experiment_id"}
# Classes whose number is not published are counted from here, beyond the classes of any head.
UNNUMBERED = 2**62
_MOST_DIGITS = 19


@dataclass(frozen=True)
class PublishedModel:
    """What a table tells about a model: sizes are 0 and `bias` is None where it says nothing.

    `key` tells models of the same name apart, where a table has several runs of one.
    """

    name: str
    key: str = ""
    family: str = ""
    task: str = ""
    classes: int = 0
    features: int = 0
    bias: bool | None = None


Row = tuple[PublishedModel, PublishedVerdict]


def published_models(
    path: Path, *, name: str | None = None
) -> Iterator[tuple[PublishedModel, Iterator[PublishedVerdict]]]:
    """The models of a table one after the other, each with its verdicts, which are read as they are
    taken. `name` stands for the model where the table names none.

    Raises InputError, for whatever is wrong anywhere in the table, before it yields the first model.
    """
    for _ in _checked(path, _rows(path, name)):
        pass
    for model, rows in groupby(_rows(path, name), key=itemgetter(0)):
        yield model, (verdict for _, verdict in rows)


def _checked(path: Path, rows: Iterable[Row]) -> Iterator[Row]:
    """The rows, each model's together and no class twice."""
    done: set[tuple[str, str]] = set()
    current: PublishedModel | None = None
    classes: set[int] = set()
    for model, verdict in rows:
        if model != current:
            identity = (model.name, model.key)
            if identity in done:
                raise InputError(
                    f"{path.name}: rows about {visible(model.name)} are in several places, or "
                    "disagree about it. Sort the table by model, and repeat the same facts in each row."
                )
            done.add(identity)
            current, classes = model, set()
        if verdict.class_id in classes:
            raise InputError(f"{path.name}: {visible(model.name)} has class {verdict.class_id} twice.")
        classes.add(verdict.class_id)
        yield model, verdict
    if current is None:
        raise InputError(f"{path.name} has a heading but no rows.")


def _rows(path: Path, name: str | None) -> Iterator[Row]:
    with _table(path) as (headings, lines):
        if headings >= _ORIGINAL:
            yield from _original_rows(path, lines)
        else:
            yield from _own_rows(path, name, headings, lines)


# ---------------------------------------------------------------------- files


@dataclass(frozen=True)
class Line:
    """A line of a table, by heading; `where` is for messages."""

    where: str
    fields: Fields

    def text(self, heading: str) -> str:
        return self.fields.get(heading, "")

    def number(self, heading: str) -> int | None:
        """A whole number from 0, None where the field is empty."""
        text = self.text(heading).strip()
        if not text:
            return None
        is_number = text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
        if not is_number or int(text) >= UNNUMBERED:
            raise self.error(heading, "a whole number from 0")
        return int(text)

    def seconds(self, heading: str) -> float:
        try:
            value = float(self.text(heading) or 0.0)
        except ValueError:
            value = math.nan
        if not 0 <= value < math.inf:
            raise self.error(heading, "a number of seconds")
        return value

    def truth(self, heading: str) -> bool | None:
        text = self.text(heading).strip().lower()
        if text not in _TRUE | _FALSE | {""}:
            raise self.error(heading, "true or false")
        return None if not text else text in _TRUE

    def error(self, heading: str, wanted: str) -> InputError:
        found = visible(self.text(heading)[:40])
        return InputError(f"{self.where}: {heading} is {found}, expected {wanted}.")


@contextmanager
def _table(path: Path) -> Iterator[tuple[set[str], Iterator[Line]]]:
    """Headings and lines of a CSV file."""
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        # A byte-order mark, which spreadsheets write, is no part of the first heading.
        with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            headings = [heading.strip().lower() for heading in next(reader, [])]
            yield set(headings), _lines(path, headings, reader)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"can't read {path}: {getattr(error, 'strerror', None) or error}.") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path.name} is not CSV in UTF-8: {error}.") from error


def _lines(path: Path, headings: list[str], reader: Iterator[list[str]]) -> Iterator[Line]:
    for number, fields in enumerate(reader, 2):
        if not fields:  # an empty line
            continue
        where = f"{path.name}, row {number}"
        if len(fields) != len(headings):
            raise InputError(f"{where}: {len(fields)} fields under {len(headings)} headings.")
        yield Line(where, dict(zip(headings, fields, strict=True)))


# ---------------------------------------------------------------------- our form


def _own_rows(path: Path, name: str | None, headings: set[str], lines: Iterator[Line]) -> Iterator[Row]:
    if "status" not in headings or not headings & {"class", "label"}:
        raise InputError(
            f"{path.name}: expected the headings model, class or label, and status (docs/runs.md), found "
            f"{', '.join(visible(heading) for heading in sorted(headings)) or 'none'}."
        )
    if "model" not in headings and name is None:
        raise InputError(f"{path.name} has no column 'model'. Say whose verdicts these are with --name.")
    unnumbered = count(UNNUMBERED)
    for written in lines:
        line = replace(written, fields=without_apostrophes(written.fields))
        number, label = line.number("class"), line.text("label")
        if number is None and not label:
            raise InputError(f"{line.where}: neither a class nor a label.")
        class_id = next(unnumbered) if number is None else number
        yield (
            _own_model(line, name),
            PublishedVerdict(
                class_id=class_id,
                label=label if "label" in headings else str(class_id),
                status=_status(line),
                steps=line.number("steps") or 0,
                seconds=line.seconds("seconds"),
                needed_solve=bool(line.truth("needed_lp") or line.number("rows")),
            ),
        )


def _own_model(line: Line, name: str | None) -> PublishedModel:
    return PublishedModel(
        name=line.text("model") or name or "",
        family=line.text("family"),
        task=line.text("task"),
        classes=line.number("classes") or 0,
        features=line.number("features") or 0,
        bias=line.truth("bias"),
    )


def _status(line: Line) -> Status:
    try:
        return Status(line.text("status").strip().lower())
    except ValueError:
        raise line.error("status", ", ".join(Status)) from None


# ---------------------------------------------------------------------- the original tool's form


@dataclass(frozen=True)
class _Experiment:
    """A run of the original tool. Without an exact algorithm "bounded" only means "not found"."""

    model: PublishedModel
    is_exact: bool
    patience: int


def _original_rows(path: Path, lines: Iterator[Line]) -> Iterator[Row]:
    experiments = _experiments(path)
    for line in lines:
        experiment = experiments.get(line.text("experiment_id"))
        if experiment is None:
            raise line.error("experiment_id", "one that models.csv and experiments.csv have too")
        number, steps, is_bounded = line.number("index"), line.number("iterations"), line.truth("is_bounded")
        if number is None or is_bounded is None:
            raise InputError(f"{line.where}: no index or no is_bounded.")
        gave_up = steps is None or steps >= experiment.patience - 1
        yield (
            experiment.model,
            PublishedVerdict(
                class_id=number,
                label=line.text("token"),
                status=_original_status(is_bounded=is_bounded, is_exact=experiment.is_exact),
                steps=steps or 0,
                seconds=line.seconds("time_taken"),
                needed_solve=experiment.is_exact
                and (is_bounded or gave_up or '"status"' in line.text("misc")),
            ),
        )


def _original_status(*, is_bounded: bool, is_exact: bool) -> Status:
    if not is_bounded:
        return Status.ARGMAXABLE
    return Status.UNARGMAXABLE if is_exact else Status.UNDECIDED


def _experiments(results: Path) -> dict[str, _Experiment]:
    """The experiments by id: models.csv says which model, experiments.csv how."""
    with _table(_beside(results, "experiments.csv")) as (_, lines):
        how = {line.text("id"): (line.text("algorithm"), line.number("patience") or 0) for line in lines}
    experiments = {}
    with _table(_beside(results, "models.csv")) as (_, lines):
        for line in lines:
            key = line.text("experiment_id")
            if key not in how:
                raise line.error("experiment_id", "one that experiments.csv has too")
            algorithm, patience = how[key]
            model = PublishedModel(
                name=line.text("name"),
                key=key,
                task=line.text("task"),
                classes=line.number("vocab_size") or 0,
                features=line.number("embed_dim") or 0,
                bias=line.truth("has_bias"),
            )
            experiments[key] = _Experiment(model, is_exact="lp_" in algorithm, patience=patience)
    return experiments


def _beside(results: Path, name: str) -> Path:
    for path in (results.with_name(name), results.with_name(f"{name}.gz")):
        if path.is_file():
            return path
    raise InputError(
        f"{results.name} is a table of the original tool; it needs {name} in the same folder, which names "
        "the models."
    )
