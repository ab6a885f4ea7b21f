"""What rows are fitted to: the classes to teach, and the rows of features at which each should win or may.

In a CTC model a character competes with the blank. Of the rows under it, the one at which the blank is
weakest is where it should win; the rows beside it may go either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from argmaxable.compute.readings import Standings, require_labels, require_width, standings
from argmaxable.core.arrays import Ids
from argmaxable.core.errors import InputError
from argmaxable.core.examples import Examples
from argmaxable.core.head import Head
from argmaxable.core.labels import visible

_SHOWN = 8


@dataclass(frozen=True)
class Target:
    """A class to teach; `class_id` is None for one that the head never had."""

    label: str
    class_id: int | None


@dataclass(frozen=True, eq=False)
class Lesson:
    """Examples, how the classes that are not taught stand there, and for each target the rows at which it
    should win (`positives`) and those that are no negatives of it (`spared`)."""

    examples: Examples
    targets: tuple[Target, ...]
    rest: Standings
    positives: tuple[Ids, ...]
    spared: tuple[Ids, ...]
    has_bias: bool


def untaught(head: Head, targets: Sequence[Target]) -> Ids:
    """The classes whose rows stay as they are."""
    return np.setdiff1d(
        np.arange(head.classes), [each.class_id for each in targets if each.class_id is not None]
    )


def prepare(head: Head, examples: Examples, targets: Sequence[Target], *, blank: int | None) -> Lesson:
    """The lesson; raises InputError for a class without examples and examples that don't fit the head."""
    require_width(examples.features, head)
    require_labels(examples.labels, head, {target.label for target in targets})
    spans = spans_by_label(examples)
    without = [target.label for target in targets if target.label not in spans]
    if without:
        known = ", ".join(map(visible, sorted(spans)[:_SHOWN])) or "none"
        raise InputError(
            f"no example of {_listed(without)}: the training examples have {len(spans):,} labels ({known}"
            f"{', …' if len(spans) > _SHOWN else ''}). Add examples, or leave the class out."
        )
    rest = standings(head, examples.features, untaught(head, targets), blank=blank)
    mine = [spans[target.label] for target in targets]
    return Lesson(
        examples, tuple(targets), rest,
        tuple(_positives(each, rest, blank) for each in mine),
        tuple(_spared(examples, each) for each in mine),
        head.bias is not None,
    )  # fmt: skip


def spans_by_label(examples: Examples) -> dict[str, Ids]:
    """The spans (n × 2) of each label."""
    places: dict[str, list[int]] = {}
    for place, label in enumerate(examples.labels):
        places.setdefault(label, []).append(place)
    return {label: examples.spans[mine] for label, mine in places.items()}


def _listed(labels: Sequence[str]) -> str:
    more = f" and {len(labels) - _SHOWN} more" if len(labels) > _SHOWN else ""
    return ", ".join(visible(label) for label in labels[:_SHOWN]) + more


def _positives(spans: Ids, rest: Standings, blank: int | None) -> Ids:
    """The row of each span at which the blank is weakest; without a blank all rows."""
    if blank is None:
        return np.concatenate([np.arange(a, z) for a, z in spans])
    return np.array([a + int(rest.lead[a:z].argmax()) for a, z in spans], np.intp)


def _spared(examples: Examples, spans: Ids) -> Ids:
    """The rows of the spans, and one on either side that belongs to the same input."""
    inputs = examples.inputs_of(spans)
    first = np.maximum(spans[:, 0] - 1, examples.ends[inputs])
    last = np.minimum(spans[:, 1] + 1, examples.ends[inputs + 1])
    return np.unique(np.concatenate([np.arange(a, z) for a, z in zip(first, last, strict=True)]))
