"""Crowds: many classes that are alike, such as those whose rows were all but equal until each took a step of
its own. What a few of them need tells what to expect of all: where to look first. It proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.edit.repair.cuts import Cut

if TYPE_CHECKING:
    from argmaxable.core.arrays import Ids, Vector

# Members of a crowd that are solved first, if it has more than twice as many.
_SAMPLE = 64
# With more of the rest than this, a raise within the accuracy of what the sample makes expect will do, and a
# point for each of them is enough. For 29 classes of PP-OCRv5 that takes 2.9 s of processor time instead of
# 4.9, and the raise is 7 % larger.
_MOST_SHARP = 1000


@dataclass(frozen=True, eq=False)
class Group:
    """Classes that have moved away from the same one, each by a step of its own."""

    stem: int
    members: Ids


@dataclass(frozen=True, eq=False)
class Crowd:
    """Classes that are alike: those that are solved first, and the rest, each with one of the first as its
    leader, and how much more than that one it may need."""

    sample: Ids
    rest: Ids
    leaders: Ids
    more: Vector

    def at_level(self, scores: Vector) -> Crowd:
        """The same, where all are to have equal scores at a point at which they have these without raises."""
        return replace(self, more=scores[self.leaders] - scores[self.rest])

    def expectations(self, room: float) -> list[Cut]:
        """What each of the rest needs beside its leader, written as cuts that are given some room."""
        each = zip(self.rest.tolist(), self.more.tolist(), self.leaders, strict=True)
        return [Cut(class_id, more - room, np.array([leader]), np.ones(1)) for class_id, more, leader in each]


def crowds_of(groups: Iterable[Ids]) -> list[Crowd]:
    """Those of the groups of classes that are large enough for a sample."""
    found = []
    for group in groups:
        if len(group) > 2 * _SAMPLE:
            places = np.linspace(0, len(group) - 1, _SAMPLE).astype(np.intp)
            rest = np.delete(group, places)
            leaders = np.resize(group[places], len(rest))
            found.append(Crowd(group[places], rest, leaders, np.zeros(len(rest))))
    return found


def rest_of(crowds: Sequence[Crowd]) -> Ids:
    """All classes that are like others which are solved first."""
    return np.concatenate([np.empty(0, np.intp), *(crowd.rest for crowd in crowds)])


def are_large(crowds: Sequence[Crowd]) -> bool:
    """Whether the rest is so large a crowd that a point for each of its classes is enough."""
    return len(rest_of(crowds)) > _MOST_SHARP


@dataclass(frozen=True, eq=False)
class Following:
    """Who of some classes are solved, and whose raise each of them has: that of one of these, by its number
    among them, and some more."""

    places: Ids
    leaders: Ids
    more: Vector

    @staticmethod
    def of(ids: Ids, crowds: Sequence[Crowd]) -> Following:
        leader, more = dict[int, int](), dict[int, float]()
        for crowd in crowds:
            leader.update(zip(crowd.rest.tolist(), crowd.leaders.tolist(), strict=True))
            more.update(zip(crowd.rest.tolist(), crowd.more.tolist(), strict=True))
        places = np.flatnonzero(~np.isin(ids, rest_of(crowds)))
        number = {class_id: place for place, class_id in enumerate(ids[places].tolist())}
        return Following(
            places,
            np.array([number[leader.get(class_id, class_id)] for class_id in ids.tolist()]),
            np.array([more.get(class_id, 0.0) for class_id in ids.tolist()]),
        )

    def spread(self, raises: Vector) -> Vector:
        """Raises of those that are solved as raises of all."""
        return np.asarray(np.maximum(raises[self.leaders] + self.more, 0.0))
