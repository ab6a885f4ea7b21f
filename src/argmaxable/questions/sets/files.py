"""Files of label sets: JSON Lines, CSV, or a sparse matrix of examples and labels as SciPy saves it.

The form is told by the end of the file's name. Untrusted input: nothing in it is executed.
"""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from argmaxable.core.errors import InputError
from argmaxable.core.head import Head
from argmaxable.core.label_sets import Members, as_members
from argmaxable.core.labels import visible
from argmaxable.core.select import classes_by_name

# What a line of CSV separates its labels by, where they all stand in one column.
_SEPARATORS = ("|", ";")
_COUNT = "count"


@dataclass(frozen=True)
class SetFile:
    """Different sets of labels in the order in which they first occur, and how often each does."""

    sets: tuple[Members, ...]
    counts: tuple[int, ...]

    @staticmethod
    def of(found: Iterator[tuple[Members, int]]) -> SetFile:
        counted: dict[Members, int] = {}
        for members, count in found:
            counted[members] = counted.get(members, 0) + count
        return SetFile(tuple(counted), tuple(counted.values()))


def read_sets(path: Path, head: Head) -> SetFile:
    """The sets of a file; raises InputError, also for labels that the head does not have."""
    readers = {".jsonl": _from_json_lines, ".json": _from_json_lines, ".csv": _from_csv, ".npz": _from_matrix}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputError(
            f"{path}: a file of label sets ends in .jsonl (a list of labels per line), .csv (a set "
            "per line) or "
            ".npz (a sparse matrix, examples × labels, as scipy.sparse.save_npz writes it)."
        )
    try:
        found = SetFile.of(reader(path, head))
    except OSError as error:
        raise InputError(f"{path} can't be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {error}.") from error
    if not found.sets:
        raise InputError(f"{path} has no sets.")
    return found


class _Names:
    """Labels by their names; by their numbers as JSON writes numbers, or where the model has no names.

    Numbers in a text are not taken for labels beside names: they may be an identifier of the example.
    """

    def __init__(self, head: Head) -> None:
        self.head = head
        self.known = {} if head.labels is None else classes_by_name(head.labels)

    def members(self, labels: list[Any]) -> Members:
        """Raises InputError."""
        return as_members((self._number(label) for label in labels), self.head.classes)

    def _number(self, label: Any) -> int:
        if isinstance(label, int) and not isinstance(label, bool):
            return label
        found = self.known.get(str(label), [])
        if len(found) == 1:
            return found[0]
        if len(found) > 1:
            raise InputError(f"{len(found)} labels are called {visible(str(label))}. Name it by its number.")
        if not self.known and str(label).isdecimal() and len(str(label)) < 10:
            return int(label)
        hint = "" if self.known else " The model has no labels: pass --labels FILE, or numbers."
        raise InputError(f"the model has no label {visible(str(label))}.{hint}")


def _from_json_lines(path: Path, head: Head) -> Iterator[tuple[Members, int]]:
    """A line is a list of labels, or an object with `labels` and perhaps `count`."""
    names = _Names(head)
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                with _at(path, number):
                    yield _json_set(line, names)


def _json_set(line: str, names: _Names) -> tuple[Members, int]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}") from error
    labels, count = (value.get("labels"), value.get(_COUNT, 1)) if isinstance(value, dict) else (value, 1)
    if not isinstance(labels, list):
        raise InputError('expected a list of labels, or {"labels": [...], "count": 3}.')
    return names.members(labels), _count(count)


def _from_csv(path: Path, head: Head) -> Iterator[tuple[Members, int]]:
    """A line is a set: its labels in cells of their own, or in one cell separated by | or ;. A first line
    that names a column `count` is not a set: that column counts."""
    names, place = _Names(head), None
    with path.open(encoding="utf-8-sig", newline="") as file:
        for number, cells in enumerate(_csv_lines(path, file), 1):
            if not cells:  # a blank line; an empty set is written as ""
                continue
            lowered = [cell.strip().lower() for cell in cells]
            if number == 1 and (_COUNT in lowered or lowered == ["labels"]):
                place = lowered.index(_COUNT) if _COUNT in lowered else None
                continue
            with _at(path, number):
                yield _csv_set(cells, place, names)


def _csv_lines(path: Path, file: TextIO) -> Iterator[list[str]]:
    try:
        yield from csv.reader(file)
    except csv.Error as error:
        raise InputError(f"{path} is not CSV: {error}. A quotation mark may not be closed.") from error


def _csv_set(cells: list[str], place: int | None, names: _Names) -> tuple[Members, int]:
    count = 1
    if place is not None:
        if place >= len(cells):
            raise InputError("the line has no count.")
        count = _count(cells[place])
        cells = [*cells[:place], *cells[place + 1 :]]
    labels = [cell for cell in cells if cell.strip()]
    separator = next((each for each in _SEPARATORS if len(labels) == 1 and each in labels[0]), None)
    if separator is not None and labels[0] not in names.known:
        labels = [part for part in labels[0].split(separator) if part.strip()]
    return names.members([label if label in names.known else label.strip() for label in labels]), count


def _count(value: Any) -> int:
    text = str(value).strip()
    if isinstance(value, bool) or not text.isdecimal() or len(text) > 15:
        raise InputError(f"a count is a whole number of 0 or more, found {visible(text)}.")
    return int(text)


@contextmanager
def _at(path: Path, number: int) -> Iterator[None]:
    """Errors say in which line or row they were found."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}, line {number}: {error}") from error


def _from_matrix(path: Path, head: Head) -> Iterator[tuple[Members, int]]:
    """The rows of a matrix in compressed sparse row format; an entry that is not 0 is a label of the set."""
    arrays = _csr_arrays(path)
    rows, columns = (int(side) for side in arrays["shape"])
    indices, starts, data = arrays["indices"], arrays["indptr"], arrays["data"]
    if np.isnan(data).any():
        raise InputError(f"{path} holds NaN: whether such a label is on can't be told.")
    if columns != head.classes:
        raise InputError(f"{path} has {columns:,} columns, but the model has {head.classes:,} labels.")
    is_sound = (
        len(starts) == rows + 1 > 0
        and len(indices) == len(data) == starts[-1]
        and starts[0] == 0
        and (np.diff(starts) >= 0).all()
    )
    if not is_sound:
        raise InputError(f"{path} is damaged: its rows do not fit its entries.")
    for row in range(rows):
        part = slice(int(starts[row]), int(starts[row + 1]))
        with _at(path, row + 1):
            yield as_members(indices[part][data[part] != 0].tolist(), head.classes), 1


def _csr_arrays(path: Path) -> dict[str, Any]:
    names = ("format", "shape", "indices", "indptr", "data")
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in names}
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(
            f"{path} is not a sparse matrix as scipy.sparse.save_npz writes it: {error}"
        ) from error
    if arrays["format"].size != 1 or arrays["shape"].shape != (2,):
        raise InputError(f"{path} is damaged: it has no single format, or no shape of two numbers.")
    form = arrays["format"].item()
    form = form.decode("ascii", "replace") if isinstance(form, bytes) else str(form)
    numbers = all(arrays[name].dtype.kind in "iu" for name in ("indices", "indptr", "shape"))
    if form != "csr" or not numbers or arrays["data"].dtype.kind not in "biuf":
        raise InputError(
            f"{path} is a matrix in the format {visible(form)}, expected csr. Save matrix.tocsr()."
        )
    return arrays
