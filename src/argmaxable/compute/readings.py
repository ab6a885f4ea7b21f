"""What a head reads in examples: the winner of each row, and the text that a line's winners spell.

Scores are float32, as most runtimes compute them: readings are measured, not proven.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from argmaxable.compute.blocks import blocks
from argmaxable.core.arrays import Ids, Matrix32, Vector32
from argmaxable.core.errors import InputError
from argmaxable.core.head import Head
from argmaxable.core.labels import visible

_SHOWN = 8


@dataclass(frozen=True, eq=False)
class Standings:
    """How some of a head's classes stand at rows of features (one entry for each row).

    `winner` has the score `top`; `total` is the logsumexp of all scores; `speaker` is the best class other
    than the blank, which it leads by `lead` (the winner and infinity where no class is the blank).
    """

    winner: Ids
    top: Vector32
    total: Vector32
    speaker: Ids
    lead: Vector32


def standings(head: Head, features: Matrix32, classes: Ids, *, blank: int | None) -> Standings:
    """How the given classes stand at the rows of features (n × d)."""
    weight, bias = head.rows(classes).astype(np.float32), head.biases(classes).astype(np.float32)
    silent = np.flatnonzero(classes == blank)
    count = len(features)
    found = Standings(
        np.empty(count, np.intp), np.empty(count, np.float32), np.empty(count, np.float32),
        np.empty(count, np.intp), np.full(count, np.inf, np.float32),
    )  # fmt: skip
    for some in blocks(count, len(classes)):
        scores = features[some] @ weight.T
        scores += bias
        winner = scores.argmax(axis=1)
        top = scores[np.arange(len(scores)), winner]
        found.winner[some], found.top[some] = classes[winner], top
        if len(silent):
            quiet = scores[:, silent[0]].copy()
            scores[:, silent[0]] = -np.inf
            speaker = scores.argmax(axis=1)
            found.speaker[some] = classes[speaker]
            found.lead[some] = scores[np.arange(len(scores)), speaker] - quiet
            scores[:, silent[0]] = quiet
        else:
            found.speaker[some] = classes[winner]
        scores -= top[:, None]
        found.total[some] = top + np.log(np.exp(scores, out=scores).sum(axis=1))
    return found


def spelled(winners: Ids, ends: Ids, blank: int | None) -> list[tuple[int, ...]]:
    """What each input reads as: its winners, and with a blank as CTC decodes them greedily (repeats count
    once, blanks not at all)."""
    if blank is None:
        return [tuple(winners[a:z].tolist()) for a, z in pairwise(ends)]
    is_read = winners != blank
    is_read[1:] &= winners[1:] != winners[:-1]
    starts = ends[:-1][ends[:-1] < len(winners)]
    is_read[starts] = winners[starts] != blank  # a line does not go on in the next
    return [tuple(winners[a:z][is_read[a:z]].tolist()) for a, z in pairwise(ends)]


def require_labels(labels: Iterable[str], head: Head, added: Collection[str] = ()) -> None:
    """Raise InputError for labels of examples that are neither the head's nor among those to be added."""
    known = {head.label(class_id) for class_id in range(head.classes)}
    strange = sorted(set(labels) - known - set(added))
    if strange:
        more = f" and {len(strange) - _SHOWN:,} more" if len(strange) > _SHOWN else ""
        raise InputError(
            f"the examples name {', '.join(map(visible, strange[:_SHOWN]))}{more}, which the head has no "
            f"class for ({head.classes:,} classes). Check the spelling, append the class with teach --add, "
            "or leave those labels out."
        )


def require_width(features: Matrix32, head: Head) -> None:
    """Raise InputError unless the features are as wide as the head."""
    if features.shape[1] != head.features:
        raise InputError(
            f"the examples have {features.shape[1]:,} features a row; the head has {head.features:,}. Are "
            "they the inputs of this model's output layer?"
        )
