"""Targets in a user's file: a text, a list of labels, a list of texts with counts, or JSON Lines.

Whatever is not a label itself is cut into classes: by a tokenizer, or into characters where the model's
labels are characters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from argmaxable.core.errors import InputError
from argmaxable.core.head import Head
from argmaxable.core.select import classes_by_name, is_padding, is_special

# A text to the numbers of its classes; None stands for a piece that is not a class.
Cutter = Callable[[str], Sequence[int | None]]

# "中国 5000 ns": a text, how often, and perhaps a tag, as dictionaries of word counts have it.
_COUNTED = re.compile(r"(?P<text>.+?)[\t ,;]+(?P<count>[0-9]+(?:\.[0-9]+)?)(?:[\t ,;]+[^\s\d]\S*)?\s*")
_KEYS = ("target", "targets", "class", "classes", "label", "labels", "text")
# Of the labels that are neither special nor padding: enough of one character, and the model reads characters.
_SHARE_OF_CHARACTERS = 0.9


class DataFormat(StrEnum):
    """How a file of data is read."""

    TEXT = "text"
    LABELS = "labels"
    COUNTS = "counts"
    JSONL = "jsonl"


@dataclass(frozen=True, eq=False)
class Targets:
    """How often each class is a target. `missing` are targets that are no class of the model. `order` has the
    class of each target where the file lists them one by one (None for missing ones)."""

    name: str
    form: DataFormat
    counts: dict[int, float]
    missing: dict[str, float]
    order: tuple[int | None, ...] | None = None

    @property
    def absent(self) -> float:
        """How many targets are no class."""
        return sum(self.missing.values())

    @property
    def total(self) -> float:
        return sum(self.counts.values()) + self.absent


@dataclass(eq=False)
class _Tally:
    """Targets as they are read; weights make no order."""

    counts: dict[int, float] = field(default_factory=dict)
    missing: dict[str, float] = field(default_factory=dict)
    order: list[int | None] | None = field(default_factory=list)

    def add(self, class_id: int | None, what: str, count: float = 1) -> None:
        if class_id is None:
            self.missing[what] = self.missing.get(what, 0) + count
        else:
            self.counts[class_id] = self.counts.get(class_id, 0) + count
        if self.order is not None:
            self.order.append(class_id)


def read_targets(
    path: Path, head: Head, *, form: DataFormat | None = None, cutter: Cutter | None = None
) -> Targets:
    """The targets of a file. Without `form` it is guessed: JSON Lines by the suffix; lines that are all
    labels; lines that all end in a count; else a text. Raises InputError."""
    lines = _lines(path)
    reader = _Reader(head, cutter or _by_character(head))
    chosen = form or _guessed(path, lines, reader)
    tally = _Tally()
    if chosen is DataFormat.JSONL:
        reader.add_json(lines, tally, path)
    elif chosen is DataFormat.COUNTS:
        reader.add_counted(lines, tally, path)
    elif chosen is DataFormat.LABELS:
        reader.add_labels(lines, tally)
    else:
        reader.add_text("\n".join(lines), tally)
    order = tuple(tally.order) if tally.order is not None and chosen is not DataFormat.TEXT else None
    targets = Targets(str(path), chosen, tally.counts, tally.missing, order)
    if not targets.total:
        raise InputError(f"--data {path}: there is nothing in it.")
    return targets


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"--data {path}: can't read it ({error.strerror or error}).") from error
    except UnicodeDecodeError as error:
        raise InputError(f"--data {path} is not a text in UTF-8: {error}.") from error
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return [line for line in lines if line]


def _guessed(path: Path, lines: list[str], reader: _Reader) -> DataFormat:
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        return DataFormat.JSONL
    if all(reader.class_of(line) is not None for line in lines):
        return DataFormat.LABELS
    if len(lines) > 1 and all(_COUNTED.fullmatch(line) for line in lines):
        return DataFormat.COUNTS
    return DataFormat.TEXT


def _by_character(head: Head) -> Cutter | None:
    """Cut into characters, if that is what the labels are."""
    words = [label for label in head.labels or () if not is_special(label) and not is_padding(label)]
    single = sum(len(label) == 1 for label in words)
    if not words or single < _SHARE_OF_CHARACTERS * len(words):
        return None
    numbers = {label: number for number, label in reversed(list(enumerate(head.labels or ())))}
    return lambda text: [numbers.get(char) for char in text]


class _Reader:
    """What the pieces of a file mean for one head."""

    def __init__(self, head: Head, cutter: Cutter | None) -> None:
        self._classes, self._cutter = head.classes, cutter
        self._named = classes_by_name(head.labels or ())

    def class_of(self, label: str) -> int | None:
        """The class of a label, the first of several."""
        found = self._named.get(label)
        return found[0] if found else None

    def add_text(self, text: str, tally: _Tally, count: float = 1) -> None:
        """Every piece of the text; line ends are none."""
        if self._cutter is None:
            raise InputError(
                "--data: the model's labels are not characters, so a text has to be cut by its tokenizer. "
                "Pass --tokenizer tokenizer.json, or a .jsonl file of class numbers."
            )
        for line in text.split("\n"):
            pieces = self._cutter(line)
            by_character = len(pieces) == len(line)
            for place, class_id in enumerate(pieces):
                tally.add(class_id, line[place] if by_character else "?", count)

    def add_labels(self, lines: Iterable[str], tally: _Tally) -> None:
        for line in lines:
            tally.add(self.class_of(line), line)

    def add_counted(self, lines: Iterable[str], tally: _Tally, path: Path) -> None:
        tally.order = None
        for number, line in enumerate(lines, 1):
            found = _COUNTED.fullmatch(line)
            if found is None:
                raise InputError(f"--data {path}, line {number}: expected a text and how often it occurs.")
            self._add_word(found["text"], tally, float(found["count"]))

    def _add_word(self, word: str, tally: _Tally, count: float = 1) -> None:
        """A label, or a text to cut."""
        class_id = self.class_of(word)
        if class_id is not None or self._cutter is None:
            tally.add(class_id, word, count)
        else:
            self.add_text(word, tally, count)

    def add_json(self, lines: Iterable[str], tally: _Tally, path: Path) -> None:
        for number, line in enumerate(lines, 1):
            try:
                for target in _targets_in(json.loads(line)):
                    self._add_target(target, tally)
            except (ValueError, TypeError) as error:
                raise InputError(f"--data {path}, line {number}: {error}") from error

    def _add_target(self, target: Any, tally: _Tally) -> None:
        if isinstance(target, bool) or not isinstance(target, int | str):
            raise TypeError(f"expected class numbers and labels, found {str(target)[:40]!r}.")
        if isinstance(target, str):
            self._add_word(target, tally)
        else:
            tally.add(target if 0 <= target < self._classes else None, str(target))


def _targets_in(entry: Any) -> Iterator[Any]:
    """The targets of a line of JSON: a target, a list of them, or an object that has one or the other."""
    if isinstance(entry, dict):
        key = next((key for key in _KEYS if key in entry), None)
        if key is None:
            raise ValueError(
                f"expected one of {', '.join(_KEYS)}; found {', '.join(map(str, entry)) or 'none'}."
            )
        entry = entry[key]
    yield from entry if isinstance(entry, list) else [entry]
