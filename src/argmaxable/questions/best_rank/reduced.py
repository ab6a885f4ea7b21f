"""The head without some of its classes: class c is argmaxable there iff some x has no others not below it.

Everything known about verdicts serves again: a witness of the reduced head bounds c's best rank from above,
a certificate is one of the whole head's, with a support that avoids the classes left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.check.checker import Checker, rival_certificate
from argmaxable.check.ranks import Reduced
from argmaxable.compute.coordinates import coordinates_of
from argmaxable.prove.prover import Prover

if TYPE_CHECKING:
    from argmaxable.compute.identical_rows import IdenticalRows
    from argmaxable.core.arrays import Ids, Vector
    from argmaxable.core.verdict import Certificate


@dataclass(frozen=True, eq=False)
class Found:
    """A point at which only excluded classes are not below c, or a certificate without them, or neither."""

    point: Vector | None = None
    certificate: Certificate | None = None
    reason: str = ""


def peers(checker: Checker, twins: IdenticalRows, class_id: int) -> Ids:
    """The other classes with the same row and no smaller bias: not below the class at any x."""
    beaten_by = twins.beaten_by
    best = beaten_by[class_id] if beaten_by[class_id] >= 0 else class_id
    group = np.append(np.flatnonzero(beaten_by == best), best)
    biases = checker.head.biases(np.append(group, class_id))
    return np.setdiff1d(group[biases[:-1] >= biases[-1]], [class_id])


def settle_without(whole: Checker, twins: IdenticalRows, class_id: int, excluded: Ids, *, seed: int) -> Found:
    """Decide whether the class is argmaxable once the excluded classes are gone, with checked evidence."""
    excluded = np.setdiff1d(excluded, [class_id])
    left = np.setdiff1d(peers(whole, twins, class_id), excluded)
    if len(left):
        return Found(certificate=rival_certificate(int(left[0])))
    reduced = Reduced.of(whole, excluded)
    if len(reduced.classes) == 1:  # every point of the domain will do
        coordinates = coordinates_of(reduced.checker.prepared, whole.domain)
        return Found(point=coordinates.some_point()[0])
    # A twin stands for others only while it is there itself.
    beaten_by = twins.beaten_by[reduced.classes]
    ignored = np.flatnonzero((beaten_by >= 0) & ~np.isin(beaten_by, excluded) & (reduced.classes != class_id))
    prover = Prover(reduced.checker, ignored=ignored, tied=frozenset(), score=None, seed=seed)
    answer = prover.settle(reduced.number(class_id)).answer
    if answer.certificate is None:
        return Found(point=answer.point, reason=answer.reason)
    certificate = replace(answer.certificate, classes=reduced.classes[answer.certificate.classes])
    if whole.bound(class_id, certificate).upper > 0:
        return Found(reason="a certificate that does not check")
    return Found(certificate=certificate)
