"""What teaching does to inputs that the fit never saw: counted, with a bound, not proven.

Only taught rows differ, so a reading can change only to a taught class (or from one, where it won before).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from argmaxable.compute.readings import require_width, spelled, standings
from argmaxable.core.arrays import Ids, Mask
from argmaxable.core.examples import Examples
from argmaxable.core.head import Head
from argmaxable.core.rate import Rate
from argmaxable.edit.teach.lesson import Target, untaught


@dataclass(frozen=True)
class LabelReading:
    """How many occurrences of a taught label are read, among the held-out inputs of one source."""

    label: str
    source: str
    occurrences: int
    before: int
    after: int


@dataclass(frozen=True)
class Substituted:
    """A label in whose place a taught one is read now, and how often."""

    label: str
    taught: str
    count: int


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What inputs that the fit never saw tell about the taught rows.

    `readings` are the taught labels' own occurrences. `changed` counts ordinary inputs whose reading is
    another: those without any occurrence, or where there are none, those without a taught label. `taken`
    counts occurrences of other labels that were read before and are not any more. `substituted` names which
    label gives way to which taught one in ordinary inputs, `taken_by` the same for the occurrences.
    `texts_before` and `texts_after` are what every held-out input reads as.
    """

    readings: tuple[LabelReading, ...]
    changed: Rate
    taken: Rate
    substituted: tuple[Substituted, ...]
    taken_by: tuple[Substituted, ...]
    texts_before: tuple[str, ...]
    texts_after: tuple[str, ...]

    @property
    def read_before(self) -> Rate:
        return Rate(sum(each.before for each in self.readings), self._occurrences)

    @property
    def read_after(self) -> Rate:
        return Rate(sum(each.after for each in self.readings), self._occurrences)

    @property
    def _occurrences(self) -> int:
        return sum(each.occurrences for each in self.readings)


@dataclass(frozen=True, eq=False)
class NewRows:
    """Taught classes, and a head of their new rows alone, in the same order."""

    targets: tuple[Target, ...]
    head: Head


@dataclass(frozen=True, eq=False)
class _Winners:
    """Who wins at each row before and after; classes that the head never had are numbered after its own."""

    names: tuple[str, ...]
    taught: Ids
    before: Ids
    after: Ids


def measure(head: Head, rows: NewRows, examples: Examples, *, blank: int | None) -> HeldOut:
    """Count readings of held-out examples with the head's own rows and with the new ones."""
    require_width(examples.features, head)
    winners = _winners(head, rows, examples, blank)
    labels = {target.label for target in rows.targets}
    ordinary = _ordinary(examples, labels)
    before, after = (spelled(each, examples.ends, blank) for each in (winners.before, winners.after))
    changed = np.array([one != other for one, other in zip(before, after, strict=True)], bool)
    is_right = _right(examples, winners.before, winners.names), _right(examples, winners.after, winners.names)
    is_other = np.array([label not in labels for label in examples.labels], bool)
    was_right = is_other & is_right[0]
    taken = was_right & ~is_right[1]
    return HeldOut(
        readings=tuple(_readings(examples, ~is_other, *is_right)),
        changed=Rate(int((changed & ordinary).sum()), int(ordinary.sum())),
        taken=Rate(int(taken.sum()), int(was_right.sum())),
        substituted=_substituted(winners, np.repeat(ordinary, np.diff(examples.ends))),
        taken_by=_taken_by(examples, np.flatnonzero(taken), winners),
        texts_before=_texts(before, winners.names, blank),
        texts_after=_texts(after, winners.names, blank),
    )


def _winners(head: Head, rows: NewRows, examples: Examples, blank: int | None) -> _Winners:
    features = examples.features
    rest = standings(head, features, untaught(head, rows.targets), blank=blank)
    added = [target.label for target in rows.targets if target.class_id is None]
    numbers = iter(range(head.classes, head.classes + len(added)))
    taught = np.array(
        [next(numbers) if target.class_id is None else target.class_id for target in rows.targets], np.intp
    )
    known = taught[taught < head.classes]
    before, after = rest.winner, rest.winner
    if len(known):
        old = standings(head, features, known, blank=None)
        before = np.where(old.top > rest.top, old.winner, before)
    new = standings(rows.head, features, np.arange(rows.head.classes), blank=None)
    after = np.where(new.top > rest.top, taught[new.winner], after)
    names = (*(head.label(class_id) for class_id in range(head.classes)), *added)
    return _Winners(names, taught, before, after)


def _ordinary(examples: Examples, labels: set[str]) -> Mask:
    """The inputs without any occurrence, or where there are none, those without a taught label."""
    unlabelled = ~examples.holding(set(examples.labels))
    return unlabelled if unlabelled.any() else ~examples.holding(labels)


def _right(examples: Examples, winners: Ids, names: Sequence[str]) -> Mask:
    """Which occurrences are read somewhere in their spans."""
    return np.array(
        [
            label in {names[winner] for winner in winners[start:end].tolist()}
            for label, (start, end) in zip(examples.labels, examples.spans, strict=True)
        ],
        bool,
    )


def _readings(examples: Examples, is_taught: Mask, before: Mask, after: Mask) -> Iterable[LabelReading]:
    inputs = examples.inputs_of(examples.spans)
    counts: dict[tuple[str, str], list[int]] = {}
    for place in np.flatnonzero(is_taught).tolist():
        tally = counts.setdefault((examples.labels[place], examples.sources[inputs[place]]), [0, 0, 0])
        tally[:] = tally[0] + 1, tally[1] + int(before[place]), tally[2] + int(after[place])
    return (LabelReading(*key, *tally) for key, tally in sorted(counts.items()))


def _substituted(winners: _Winners, rows: Mask) -> tuple[Substituted, ...]:
    moved = rows & (winners.before != winners.after)
    pairs = zip(winners.before[moved].tolist(), winners.after[moved].tolist(), strict=True)
    return _counted((winners.names[old], winners.names[new]) for old, new in pairs)


def _taken_by(examples: Examples, places: Ids, winners: _Winners) -> tuple[Substituted, ...]:
    taught = set(winners.taught.tolist())
    found: list[tuple[str, str]] = []
    for place in places.tolist():
        start, end = examples.spans[place]
        new = sorted(set(winners.after[start:end].tolist()) & taught)
        found += [(examples.labels[place], winners.names[each]) for each in new]
    return _counted(found)


def _counted(pairs: Iterable[tuple[str, str]]) -> tuple[Substituted, ...]:
    ranked = sorted(Counter(pairs).items(), key=lambda item: (-item[1], item[0]))
    return tuple(Substituted(label, taught, count) for (label, taught), count in ranked)


def _texts(readings: Iterable[tuple[int, ...]], names: Sequence[str], blank: int | None) -> tuple[str, ...]:
    between = " " if blank is None else ""
    return tuple(between.join(names[each] for each in reading) for reading in readings)
