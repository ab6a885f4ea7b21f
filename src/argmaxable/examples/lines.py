"""Which lines to print: classes among ordinary words, the rest of the dictionary, and ordinary text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from argmaxable.core.arrays import Vector
from argmaxable.core.errors import InputError
from argmaxable.examples.faces import Face, covers
from argmaxable.examples.printing import Finish, PrintedLine

# Of a word, the part that stands in a gap between two classes.
_GAP = 3
_SHORTEST, _LONGEST = 6, 13
# Text without Han has narrower characters.
_NARROW = 3
_FIRST_HAN = "⺀"


@dataclass(frozen=True)
class Words:
    """Words of ordinary text; the chance of the first n words together is `up_to[n - 1]`."""

    words: tuple[str, ...]
    up_to: Vector

    @staticmethod
    def counted(counts: dict[str, float]) -> Words:
        return Words(tuple(counts), np.cumsum(list(counts.values())) / sum(counts.values()))

    def drawn(self, count: int, rng: np.random.Generator) -> list[str]:
        places = np.searchsorted(self.up_to[:-1], rng.random(count), side="right")
        return [self.words[place] for place in places]


def read_words(path: Path, known: frozenset[str]) -> Words:
    """A word list, one `word [count [anything]]` a line, as far as it is made of known characters."""
    counts: dict[str, float] = {}
    for line in _text_of(path).splitlines():
        word, *rest = line.split() or [""]
        count = float(rest[0]) if rest and rest[0].isdecimal() else 1.0
        if word and set(word) <= known and count > 0:
            counts[word] = counts.get(word, 0.0) + count
    if not counts:
        raise InputError(f"{path}: none of its words is made of characters that the model can read.")
    return Words.counted(counts)


def common_words(known: frozenset[str]) -> Words:
    """Where there is no word list: the known characters that are common, as words of one letter."""
    chosen = tuple(sorted(char for char in known if _is_common(char))) or tuple(sorted(known))
    if not chosen:
        raise InputError("the model has no other character to print beside the classes. Pass --words.")
    return Words.counted(dict.fromkeys(chosen, 1.0))


def _is_common(char: str) -> bool:
    """Whether a character is ASCII or among the 3,755 that GB 2312 lists first, by how common they are."""
    if char.isascii():
        return char.isalnum()
    try:
        code = char.encode("gb2312")
    except UnicodeEncodeError:
        return False
    return 0xB0 <= code[0] <= 0xD7


def read_text(path: Path) -> tuple[str, ...]:
    """The lines of a text that have more than a few characters."""
    rows = tuple(row for line in _text_of(path).splitlines() if len(row := line.strip()) > _GAP)
    if not rows:
        raise InputError(f"{path} has no line of more than {_GAP} characters.")
    return rows


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} can't be read as UTF-8 text: {error}") from error


@dataclass(frozen=True)
class Printer:
    """What lines are made with: faces in turn, words for the gaps, and finishes, drawn with equal chances."""

    faces: tuple[Face, ...]
    words: Words
    finishes: tuple[Finish, ...]
    rng: np.random.Generator

    def among_words(
        self, classes: Sequence[str], copies: int, each: int = 4, context: float = 0.7
    ) -> Iterator[PrintedLine]:
        """Lines that hold every class `copies` times, `each` a line; a gap has a word with the chance
        `context`."""
        for number, face in enumerate(self.faces):
            mine = [
                char
                for copy in range(copies)
                for place, char in enumerate(classes)
                if (copy + place) % len(self.faces) == number and covers(face, char)
            ]
            self.rng.shuffle(mine)
            for start in range(0, len(mine), each):
                yield self._mixed(mine[start : start + each], face, context)

    def _mixed(self, classes: list[str], face: Face, context: float) -> PrintedLine:
        words = self.words.drawn(len(classes) + 1, self.rng)
        gaps = [_printable(word[:_GAP], face) if self.rng.random() < context else "" for word in words]
        text = "".join(gap + char for gap, char in zip(gaps, [*classes, ""], strict=True))
        return PrintedLine(text, face, self._finish())

    def of_words(self, count: int) -> Iterator[PrintedLine]:
        """Lines of ordinary words in a row."""
        return self._pieces(count, iter(lambda: "".join(self.words.drawn(8, self.rng)), None))

    def of_text(self, count: int, rows: Sequence[str]) -> Iterator[PrintedLine]:
        """Pieces of a text's lines."""
        return self._pieces(count, iter(lambda: rows[int(self.rng.integers(len(rows)))], None))

    def _pieces(self, count: int, rows: Iterable[str]) -> Iterator[PrintedLine]:
        """The first pieces that the faces, in turn, can print; text that none prints ends in an error."""
        found = 0
        for number, row in enumerate(rows):
            if found == count:
                return
            if number > 100 * (found + 100):
                raise InputError(
                    "the fonts can print almost nothing of the text. Pass fonts for its language."
                )
            face = self.faces[found % len(self.faces)]
            text = _printable(self._piece(row), face).strip()
            if len(text) > _GAP:
                found += 1
                yield PrintedLine(text, face, self._finish(), is_ordinary=True)

    def _piece(self, row: str) -> str:
        size = int(self.rng.integers(_SHORTEST, _LONGEST + 1)) * (1 if max(row) >= _FIRST_HAN else _NARROW)
        start = int(self.rng.integers(max(1, len(row) - size + 1)))
        return row[start : start + size]

    def _finish(self) -> Finish:
        return self.finishes[int(self.rng.integers(len(self.finishes)))]


def _printable(text: str, face: Face) -> str:
    return "".join(filter(face.has, text))
