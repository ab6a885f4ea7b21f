"""Pairs that look alike to the model: teaching one of them would take from the other.

There are no pictures here, only features. A target resembles a label if its examples are nearly always read
as that label, and if a row that has not seen some places of the label takes them. Both are measured on the
training examples; the places are left out of the fit by halves, so that none is judged by a row that was told
about it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from argmaxable.core.arrays import Ids, Mask
from argmaxable.core.head import Head
from argmaxable.edit.teach.fit import Fitter, RowFit
from argmaxable.edit.teach.lesson import Lesson, spans_by_label

# "Nearly always": at least nine examples in ten.
_NEARLY_ALWAYS = 0.9
# A label that loses one place in twenty to the target pays too much for it.
_TOO_MANY = 0.05


@dataclass(frozen=True)
class LookAlike:
    """A target whose examples are read as another label (`read_as` of `examples`), and how many of that
    label's own places a row of the target takes (`taken` of `places`)."""

    label: str
    other: str
    examples: int
    read_as: int
    places: int
    taken: int


def look_alikes(fitter: Fitter, head: Head, *, seed: int) -> dict[int, LookAlike]:
    """The targets of the lesson, by place, that look like another label of the head."""
    lesson = fitter.lesson
    rivals = {place: rival for place in range(len(lesson.targets)) if (rival := _rival(lesson, place))}
    own = {place: _own_places(lesson, head, place, rival[0]) for place, rival in rivals.items()}
    suspects = [place for place in rivals if len(own[place])]
    rng = np.random.default_rng(seed)
    halves = {place: rng.random(len(own[place])) < 0.5 for place in suspects}
    taken = dict.fromkeys(suspects, 0)
    for is_first in (True, False):
        unseen = {place: own[place][halves[place] == is_first] for place in suspects}
        fits = fitter.fit(suspects, spared=unseen, phase="compare look-alikes") if suspects else {}
        for place in suspects:
            taken[place] += int(_wins(lesson, fits[place], unseen[place]).sum())
    return {
        place: LookAlike(
            lesson.targets[place].label, head.label(rivals[place][0]), len(lesson.positives[place]),
            rivals[place][1], len(own[place]), taken[place],
        )
        for place in suspects
        if taken[place] >= max(2, _TOO_MANY * len(own[place]))
    }  # fmt: skip


def _rival(lesson: Lesson, place: int) -> tuple[int, int] | None:
    """The class that nearly all examples of a target are read as, and how many are."""
    positives = lesson.positives[place]
    ((rival, count),) = Counter(lesson.rest.speaker[positives].tolist()).most_common(1)
    return (rival, count) if count >= _NEARLY_ALWAYS * len(positives) else None


def _own_places(lesson: Lesson, head: Head, place: int, rival: int) -> Ids:
    """The rows that read as the rival outside of the target's examples, labelled as the rival or not at
    all."""
    reads = lesson.rest.winner == rival
    reads[lesson.spared[place]] = False
    for label, spans in spans_by_label(lesson.examples).items():
        if label != head.label(rival):
            for start, end in spans:
                reads[start:end] = False
    return np.flatnonzero(reads)


def _wins(lesson: Lesson, fit: RowFit, rows: Ids) -> Mask:
    features = lesson.examples.features[rows].astype(np.float64)
    scores = features @ fit.vector[:-1] + fit.vector[-1] if lesson.has_bias else features @ fit.vector
    return np.asarray(scores > lesson.rest.top[rows])
