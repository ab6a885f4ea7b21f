"""observe(result, examples): for each class whether it wins on some example, was never seen to win, or is
proven never to.

Only the last is a proof. That a class was never seen to win says something about these examples: how much, is
measured by grading with some of them and looking at the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from argmaxable.compute.readings import require_labels, require_width, standings
from argmaxable.core.arrays import Ids, Mask
from argmaxable.core.examples import Examples
from argmaxable.core.head import Head
from argmaxable.core.rate import Rate
from argmaxable.core.result import Result

_FOLDS = 5


class Grade(StrEnum):
    """What is known of a class: two grades by examples, and one by proof."""

    WINS = "wins on some example"
    NEVER_SEEN = "never seen to win"
    UNARGMAXABLE = "unargmaxable (proven)"


@dataclass(frozen=True)
class Graded:
    """A class, its grade, how many examples have its label and in how many of them it is read."""

    class_id: int
    label: str
    grade: Grade
    examples: int
    read: int


@dataclass(frozen=True, eq=False)
class Observation:
    """The grade of every class, and how well grades foretell.

    `outside` counts rows at which a class wins that can never win over the domain: these are not in it.
    `never_again` and `again` are the precision of the two grades by examples. Classes are graded with some of
    the examples; of those with examples of their own among the rest, the rate counts the ones that do not win
    (or do win) there either.
    """

    classes: tuple[Graded, ...]
    outside: int
    never_again: Rate
    again: Rate
    folds: tuple[str, ...]

    def having(self, grade: Grade) -> tuple[Graded, ...]:
        return tuple(each for each in self.classes if each.grade is grade)


def observe(result: Result, examples: Examples, *, seed: int = 0) -> Observation:
    """Grade the classes of a head with verdicts; raises InputError where the examples don't fit it or
    name labels that it has no class for."""
    head = result.head
    require_width(examples.features, head)
    require_labels(examples.labels, head)
    winners = standings(head, examples.features, np.arange(head.classes), blank=None).winner
    never = {verdict.class_id for verdict in result.unargmaxable}
    counts, read = Counter(examples.labels), _read(head, examples, winners)
    wins = np.bincount(winners, minlength=head.classes)
    names, masks = _folds(examples, seed)
    never_again, again = _precision(head, examples, winners, masks)
    return Observation(
        classes=tuple(
            Graded(
                class_id,
                label := head.label(class_id),
                _grade(class_id, wins, never),
                counts[label],
                read[label],
            )
            for class_id in range(head.classes)
        ),
        outside=int(sum(wins[class_id] for class_id in never)),
        never_again=never_again,
        again=again,
        folds=names,
    )


def _grade(class_id: int, wins: Ids, never: set[int]) -> Grade:
    if class_id in never:
        return Grade.UNARGMAXABLE
    return Grade.WINS if wins[class_id] else Grade.NEVER_SEEN


def _read(head: Head, examples: Examples, winners: Ids) -> Counter[str]:
    """How many occurrences of each label are read somewhere in their spans."""
    names = [head.label(class_id) for class_id in range(head.classes)]
    found: Counter[str] = Counter()
    for label, (start, end) in zip(examples.labels, examples.spans.tolist(), strict=True):
        found[label] += label in {names[winner] for winner in winners[start:end].tolist()}
    return found


def _folds(examples: Examples, seed: int) -> tuple[tuple[str, ...], list[Mask]]:
    """The inputs of each source; where there is but one, fifths drawn at random."""
    sources = sorted(set(examples.sources))
    if len(sources) > 1:
        return tuple(sources), [np.array([each == name for each in examples.sources]) for name in sources]
    parts = np.random.default_rng(seed).integers(_FOLDS, size=len(examples.sources))
    names = tuple(f"fold {number + 1}" for number in range(_FOLDS))
    return names, [parts == number for number in range(_FOLDS)]


def _precision(head: Head, examples: Examples, winners: Ids, masks: Sequence[Mask]) -> tuple[Rate, Rate]:
    never: list[bool] = []
    wins: list[bool] = []
    for seen, wins_there in _judged(head, examples, winners, masks):
        (wins if seen else never).append(wins_there)
    return Rate(len(never) - sum(never), len(never)), Rate(sum(wins), len(wins))


def _judged(
    head: Head, examples: Examples, winners: Ids, masks: Sequence[Mask]
) -> Iterator[tuple[bool, bool]]:
    """For each fold and each class with examples in it and outside of it: does it win outside, and inside?"""
    numbers = {head.label(class_id): class_id for class_id in range(head.classes)}
    inputs = examples.inputs_of(examples.spans)
    for mask in masks:
        rows = np.repeat(mask, np.diff(examples.ends))
        inside = np.bincount(winners[rows], minlength=head.classes) > 0
        outside = np.bincount(winners[~rows], minlength=head.classes) > 0
        is_mine = mask[inputs]
        here = {label for label, mine in zip(examples.labels, is_mine, strict=True) if mine}
        there = {label for label, mine in zip(examples.labels, is_mine, strict=True) if not mine}
        for label in sorted(here & there & numbers.keys()):
            yield bool(outside[numbers[label]]), bool(inside[numbers[label]])
