"""The head without some of its classes: class c is argmaxable there iff some x has no others not below it.

Everything known about verdicts serves again: a witness of the reduced head bounds c's best rank from above,
a certificate is one of the whole head's, with a support that avoids the classes left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from argmaxable.check.checker import Checker, rival_certificate
from argmaxable.compute.blocks import row_blocks
from argmaxable.compute.coordinates import chart_of
from argmaxable.compute.identical_rows import Twins
from argmaxable.core.arrays import Ids, Vector
from argmaxable.core.head import Head
from argmaxable.core.verdict import Certificate
from argmaxable.prove.prover import Prover


@dataclass(frozen=True, eq=False)
class Reduced:
    """A checker for the classes that are left, which are `kept` of the whole head's, in order."""

    checker: Checker
    kept: Ids

    @staticmethod
    def of(whole: Checker, excluded: Ids) -> Reduced:
        """The whole head without the excluded classes."""
        kept = np.delete(np.arange(whole.head.classes), excluded)
        head = Head(whole.head.weight[kept], None if whole.head.bias is None else whole.head.bias[kept])
        return Reduced(Checker(head, whole.domain, centre=whole.centre), kept)

    def number(self, class_id: int) -> int:
        """The number that a class of the whole head has here."""
        return int(np.searchsorted(self.kept, class_id))


@dataclass(frozen=True, eq=False)
class Found:
    """A point at which only excluded classes are not below c, or a certificate without them, or neither."""

    point: Vector | None = None
    certificate: Certificate | None = None
    reason: str = ""


def peers(checker: Checker, twins: Twins, class_id: int) -> Ids:
    """The other classes with the same row and no smaller bias: not below the class at any x."""
    beaten_by = twins.beaten_by
    best = beaten_by[class_id] if beaten_by[class_id] >= 0 else class_id
    group = np.append(np.flatnonzero(beaten_by == best), best)
    biases = checker.head.biases(np.append(group, class_id))
    return np.setdiff1d(group[biases[:-1] >= biases[-1]], [class_id])


def settle_without(whole: Checker, twins: Twins, class_id: int, excluded: Ids, *, seed: int) -> Found:
    """Decide whether the class is argmaxable once the excluded classes are gone, with checked evidence."""
    excluded = np.setdiff1d(excluded, [class_id])
    left = np.setdiff1d(peers(whole, twins, class_id), excluded)
    if len(left):
        return Found(certificate=rival_certificate(int(left[0])))
    reduced = Reduced.of(whole, excluded)
    if len(reduced.kept) == 1:  # every point of the domain will do
        chart = chart_of(reduced.checker.prepared, whole.domain)
        return Found(point=chart.some_point()[0])
    # A twin stands for others only while it is there itself.
    beaten_by = twins.beaten_by[reduced.kept]
    ignored = np.flatnonzero((beaten_by >= 0) & ~np.isin(beaten_by, excluded) & (reduced.kept != class_id))
    prover = Prover(reduced.checker, ignored=ignored, tied=frozenset(), score=None, seed=seed)
    answer = prover.settle(reduced.number(class_id)).answer
    if answer.certificate is None:
        return Found(point=answer.point, reason=answer.reason)
    certificate = replace(answer.certificate, classes=reduced.kept[answer.certificate.classes])
    if whole.bound(class_id, certificate).upper > 0:
        return Found(reason="a certificate that does not check")
    return Found(certificate=certificate)


def not_below(checker: Checker, class_id: int, point: Vector) -> Ids | None:
    """Classes that at the point z are not below the class, most of them surely; all others are, proven.

    Floats propose, and the checker of the head without them decides. None for a point outside the domain.
    """
    scores = scores_at(checker, point)
    proposed = scores >= scores[class_id]
    proposed[class_id] = False
    while True:
        reduced = Reduced.of(checker, np.flatnonzero(proposed))
        gaps = reduced.checker.gaps(np.array([reduced.number(class_id)]), point[None])
        if gaps.lower[0] > 0:
            return np.flatnonzero(proposed)
        if gaps.rival[0] < 0 or gaps.lower[0] == -np.inf:
            return None
        # A rival that floats can't tell from the class: it and all that score no less.
        rival = reduced.kept[gaps.rival[0]]
        proposed |= scores >= scores[rival]
        proposed[rival], proposed[class_id] = True, False


def scores_at(checker: Checker, point: Vector) -> Vector:
    """Scores of all classes at the point z in float64, as good as floats are."""
    head = checker.head
    scores = np.empty(head.classes)
    with np.errstate(over="ignore", invalid="ignore"):
        x = checker.domain.place(point[None])[0][0]
        for block in row_blocks(head.classes, head.features):
            scores[block] = (head.rows(block) - checker.centre) @ x + checker.prepared.biases[block]
    return scores
