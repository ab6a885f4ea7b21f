"""The words of a report besides its answer: what classes are called, what verdicts and methods mean."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from argmaxable.core.select import is_special
from argmaxable.core.verdict import Method, Status, Strength

# Of the labels: a recogniser's alphabet has a <blank> and perhaps a ligature among its characters.
_MOSTLY = 0.95
# A vocabulary of word pieces marks where words begin or go on; no list of names does so this often.
_MARKED = 0.01


@dataclass(frozen=True)
class Noun:
    """What the classes are called."""

    one: str
    many: str

    def count(self, number: int) -> str:
        return f"{number:,} {self.one if number == 1 else self.many}"


CLASSES = Noun("class", "classes")
CHARACTERS = Noun("character", "characters")
TOKENS = Noun("token", "tokens")


def is_character(label: str) -> bool:
    """Whether the label is one character, with its accents and variation selectors."""
    return bool(label) and all(unicodedata.category(char)[0] == "M" for char in label[1:])


def noun_for(labels: Sequence[str]) -> Noun:
    """Characters, tokens or just classes, by what the labels look like."""
    if not labels:
        return CLASSES
    if sum(map(is_character, labels)) >= _MOSTLY * len(labels) and not all(map(str.isdecimal, labels)):
        return CHARACTERS
    marked = sum(label.startswith((" ", "▁", "##")) or is_special(label) for label in labels)
    return TOKENS if marked >= _MARKED * len(labels) else CLASSES


# What a verdict says and what it does not, whatever the domain.
CLAIM = (
    "“Never” is meant literally: no such vector gives the {one} a higher score than all other "
    "classes, whatever the "
    "rest of the model does and whatever it is shown. “Can be predicted” means that some such vector is "
    "known; whether a real input reaches it is a separate question."
)

STATUSES = {
    Status.UNARGMAXABLE: "never predicted",
    Status.UNDECIDED: "undecided",
    Status.ARGMAXABLE: "can be predicted",
}

METHODS = {
    Method.ONLY_CLASS: "there is no other class",
    Method.TWIN: "another class has the same weights and at least the same bias",
    Method.OWN_DIRECTION: "the class wins at its own weight vector, seen from the mean",
    Method.REFLECTION: "a few reflections away from the rivals led to a vector where it wins",
    Method.INTERIOR_POINT: "an optimisation for this class found where it wins, or a mixture that beats it",
    Method.TRANSFER: "the mixture that beats another class beats this one too",
    Method.SHARED_ROWS: "rows that serve many classes, weighted for this one, mix to it exactly",
    Method.CORNER: "the class wins at one of the given inputs",
    Method.ONE_RIVAL: "a single other class is never below it",
    Method.SIMPLEX: "the linear programme was solved in exact fractions",
    Method.CHEBYSHEV: "the linear programme of the largest ball in the class's region",
    Method.NONE: "published or open: nothing was proven here",
}

STRENGTHS = {
    Strength.FLOAT32: "32-bit floats with a proven bound on their rounding",
    Strength.FLOAT64: "64-bit floats with a proven bound on their rounding",
    Strength.INTERVAL: "exact weights proven to exist by a verified inverse",
    Strength.EXACT: "exact integers and fractions",
}
