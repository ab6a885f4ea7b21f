"""The lines that classes are taught with, judged by and observed on: which texts, in which faces, how
many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from argmaxable.core.errors import InputError
from argmaxable.examples.faces import Face, require_covered
from argmaxable.examples.lines import Printer, Words, common_words, read_text, read_words
from argmaxable.examples.printing import Finish, PrintedLine
from argmaxable.examples.recognised import PrintedLines

# Images of a class to fit its row to. With 9, PP-OCRv4 read 588 of 594 images of unseen fonts, with 30 it
# read 592.
COPIES = 30
# Of each class to judge its row by, in each face.
_JUDGED = 6
ORDINARY_LINES = 1500
# Every other character of the dictionary, so that look-alikes are among the lines that must stay as they are.
_DICTIONARY_COPIES = 3
_DICTIONARY = 8, 0.1  # characters a line, chance of a word between two
_TRAINING, _JUDGING = (Finish.PLAIN, Finish.SCANNED), (Finish.PLAIN, Finish.PHOTOGRAPHED)


@dataclass(frozen=True)
class Material:
    """What lines are printed from: faces to learn from, faces to be judged by, a word list and ordinary text.

    `ordinary` lines of words are learned from, `text_lines` of the text (or of words) judged by.
    """

    faces: tuple[Face, ...]
    held_out: tuple[Face, ...] = ()
    words: Path | None = None
    text: Path | None = None
    ordinary: int = ORDINARY_LINES
    text_lines: int = ORDINARY_LINES
    copies: int = COPIES
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.faces:
            raise InputError("no font to print with. Pass --font FILE.")
        shared = [face.name for face in self.held_out if face in self.faces]
        if shared:
            raise InputError(
                f"{', '.join(shared)} can't be learned from and held out. Choose different fonts."
            )


@dataclass(frozen=True)
class PrintedLesson:
    """Lines to fit rows to, lines to judge them by, and the classes that no face can print."""

    training: PrintedLines
    judging: PrintedLines
    omitted: tuple[str, ...]


def lesson(material: Material, classes: Sequence[str], dictionary: Iterable[str]) -> PrintedLesson:
    """Lines for classes to be taught to a recogniser that has this dictionary; raises InputError."""
    omitted = (*(label for label in classes if not _is_character(label)),)
    omitted += require_covered([label for label in classes if _is_character(label)], material.faces)
    taught = [label for label in classes if label not in omitted]
    if not taught:
        raise InputError(
            f"{' '.join(omitted)}: a font prints characters, and these labels are not single ones."
        )
    known = frozenset(filter(_is_character, dictionary)) - set(classes)
    words = read_words(material.words, known) if material.words else common_words(known)
    return PrintedLesson(
        _printed(_training(material, taught, known, words), material.seed),
        _printed(_judging(material, taught, known, words), material.seed + 1),
        omitted,
    )


def observed_lines(material: Material, dictionary: Iterable[str]) -> PrintedLines:
    """Lines with every character of a dictionary, `copies` times in all."""
    known = frozenset(filter(_is_character, dictionary))
    words = read_words(material.words, known) if material.words else common_words(known)
    printer = Printer(material.faces, words, _JUDGING, np.random.default_rng(material.seed))
    return _printed(printer.among_words(sorted(known), material.copies, *_DICTIONARY), material.seed)


def _training(
    material: Material, taught: list[str], known: frozenset[str], words: Words
) -> Iterable[PrintedLine]:
    printer = Printer(material.faces, words, _TRAINING, np.random.default_rng(material.seed))
    yield from printer.among_words(taught, material.copies)
    yield from printer.of_words(material.ordinary)
    yield from printer.among_words(sorted(known), _DICTIONARY_COPIES, *_DICTIONARY)


def _judging(
    material: Material, taught: list[str], known: frozenset[str], words: Words
) -> Iterable[PrintedLine]:
    faces = material.held_out or material.faces
    rng = np.random.default_rng(material.seed + 1)
    for face in faces:
        printer = Printer((face,), words, _JUDGING, rng)
        yield from printer.among_words(taught, _JUDGED)
        yield from printer.among_words(sorted(known), 1, *_DICTIONARY)
    printer = Printer(faces, words, _JUDGING, rng)
    if material.text is None:
        yield from printer.of_words(material.text_lines)
    else:
        for line in printer.of_text(material.text_lines, read_text(material.text)):
            yield replace(line, is_ordinary=not set(line.text) & set(taught))


def _printed(lines: Iterable[PrintedLine], seed: int) -> PrintedLines:
    return PrintedLines(tuple(lines), seed)


def _is_character(label: str) -> bool:
    return len(label) == 1 and label.isprintable() and not label.isspace()
