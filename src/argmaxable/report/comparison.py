"""Two runs side by side: which classes changed their verdict, and whose margin moved.

Before and after fine-tuning or quantisation, or one model over two domains. Classes are matched by
label where both runs have labels, since a class's number may mean another token in the other model.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest

from argmaxable.core.verdict import OwnDirection, Status, Verdict

# Read anew on every call, in the order of classes.
Verdicts = Callable[[], Iterator[Verdict]]


class Matching(StrEnum):
    """What makes a class of one run a class of the other."""

    LABEL = "label"
    CLASS = "class number"


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """The verdicts on one class in both runs."""

    before: Verdict
    after: Verdict

    @property
    def has_changed(self) -> bool:
        return self.before.status is not self.after.status

    @property
    def certain_shift(self) -> float:
        """By how much the margin moved at least: the distance of the bounds on it, 0 if they overlap."""
        if self.after.lower > self.before.upper:
            return self.after.lower - self.before.upper
        return self.after.upper - self.before.lower if self.after.upper < self.before.lower else 0.0

    @property
    def own_shift(self) -> float:
        """By how much the class's lead at its own direction moved; 0 where that is not the witness.

        Other witnesses are the first that a search came across: their leads can't be compared.
        """
        before, after = self.before.witness, self.after.witness
        if not (isinstance(before, OwnDirection) and isinstance(after, OwnDirection)):
            return 0.0
        return self.after.lower - self.before.lower if before.exponent == after.exponent else 0.0


@dataclass(frozen=True, eq=False)
class Comparison:
    """What became of the classes. `ambiguous` counts those of either run whose label stands for more
    than one class, and not for as many in both; they are compared with nothing. `added` are the
    unargmaxable classes of the second run that were compared with nothing. `moved` are the classes
    whose margin moved most for certain, `shifted` those whose lead at their own direction did.
    """

    matching: Matching
    matched: int
    only_before: int
    only_after: int
    ambiguous: int
    counts: dict[tuple[Status, Status], int]
    changed: tuple[Pair, ...]
    added: tuple[Verdict, ...]
    moved: tuple[Pair, ...]
    shifted: tuple[Pair, ...]

    @property
    def newly_unargmaxable(self) -> tuple[Verdict, ...]:
        """The unargmaxable classes of the second run of which the first did not prove it, in class order."""
        changed = [pair.after for pair in self.changed if pair.after.status is Status.UNARGMAXABLE]
        return tuple(sorted([*changed, *self.added], key=lambda verdict: verdict.class_id))

    @property
    def recovered(self) -> tuple[Verdict, ...]:
        """The argmaxable classes of the second run that the first proved unargmaxable."""
        kind = (Status.UNARGMAXABLE, Status.ARGMAXABLE)
        return tuple(pair.after for pair in self.changed if (pair.before.status, pair.after.status) == kind)

    @property
    def opposites(self) -> tuple[Pair, ...]:
        """Classes decided one way in one run and the other way in the other."""
        return tuple(
            pair for pair in self.changed if Status.UNDECIDED not in (pair.before.status, pair.after.status)
        )


def compare(before: Verdicts, after: Verdicts, *, most_moved: int = 10) -> Comparison:
    """Compare two runs; of the classes whose margin moved, keep the `most_moved`.

    Holds few verdicts at a time, unless labels have to be looked up because the runs number them
    differently.
    """
    tally = _Tally(most_moved)
    has_labels = [False, False]
    is_same = True
    for left, right in _by_class(before(), after()):
        tally.add(left, right)
        has_labels[0] |= left is not None and left.label != str(left.class_id)
        has_labels[1] |= right is not None and right.label != str(right.class_id)
        is_same &= left is not None and right is not None and left.label == right.label
    if not all(has_labels):
        return tally.comparison(Matching.CLASS)
    if not is_same:
        tally = _by_label(before, after, most_moved)
    return tally.comparison(Matching.LABEL)


def _by_class(
    before: Iterator[Verdict], after: Iterator[Verdict]
) -> Iterator[tuple[Verdict | None, Verdict | None]]:
    """Verdicts of equal class number together, those of one run alone with None."""
    left, right = next(before, None), next(after, None)
    while left is not None or right is not None:
        if right is None or (left is not None and left.class_id < right.class_id):
            yield left, None
            left = next(before, None)
        elif left is None or right.class_id < left.class_id:
            yield None, right
            right = next(after, None)
        else:
            yield left, right
            left, right = next(before, None), next(after, None)


def _by_label(before: Verdicts, after: Verdicts, most_moved: int) -> _Tally:
    """Several classes of one label are matched in their order, if both runs have as many of them."""
    tally = _Tally(most_moved)
    known: defaultdict[str, list[Verdict]] = defaultdict(list)
    for verdict in before():
        known[verdict.label].append(verdict)
    found: defaultdict[str, list[Verdict]] = defaultdict(list)
    for verdict in after():
        found[verdict.label].append(verdict)
    for label in known | found:
        left, right = known.get(label, []), found.get(label, [])
        if left and right and len(left) != len(right):
            tally.add_ambiguous(left, right)
            continue
        for one, other in zip_longest(left, right):
            tally.add(one, other)
    return tally


class _Largest:
    """The pairs with the largest of some shift, whatever its sign."""

    def __init__(self, most: int) -> None:
        self._most = most
        # The class breaks ties, since pairs have no order.
        self._heap: list[tuple[float, int, Pair]] = []

    def add(self, shift: float, pair: Pair) -> None:
        if shift and math.isfinite(shift):
            heapq.heappush(self._heap, (abs(shift), -pair.before.class_id, pair))
            if len(self._heap) > self._most:
                heapq.heappop(self._heap)

    def pairs(self) -> tuple[Pair, ...]:
        return tuple(pair for _, _, pair in sorted(self._heap, reverse=True))


class _Tally:
    """A comparison as it grows."""

    def __init__(self, most_moved: int) -> None:
        self.only_before = self.only_after = self.ambiguous = 0
        self.counts: Counter[tuple[Status, Status]] = Counter()
        self.changed: list[Pair] = []
        self.added: list[Verdict] = []
        self.moved, self.shifted = _Largest(most_moved), _Largest(most_moved)

    def add(self, before: Verdict | None, after: Verdict | None) -> None:
        if before is None or after is None:
            self.only_before += after is None
            self.only_after += before is None
            self._add_unmatched(after)
            return
        pair = Pair(before, after)
        self.counts[before.status, after.status] += 1
        if pair.has_changed:
            self.changed.append(pair)
        self.moved.add(pair.certain_shift, pair)
        self.shifted.add(pair.own_shift, pair)

    def add_ambiguous(self, before: list[Verdict], after: list[Verdict]) -> None:
        self.ambiguous += len(before) + len(after)
        for verdict in after:
            self._add_unmatched(verdict)

    def _add_unmatched(self, after: Verdict | None) -> None:
        if after is not None and after.status is Status.UNARGMAXABLE:
            self.added.append(after)

    def comparison(self, matching: Matching) -> Comparison:
        return Comparison(
            matching=matching,
            matched=self.counts.total(),
            only_before=self.only_before,
            only_after=self.only_after,
            ambiguous=self.ambiguous,
            counts=dict(self.counts),
            changed=tuple(sorted(self.changed, key=lambda pair: pair.before.class_id)),
            added=tuple(self.added),
            moved=self.moved.pairs(),
            shifted=self.shifted.pairs(),
        )
