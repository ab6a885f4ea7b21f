"""The head without some of its classes: class c is argmaxable there iff some x has no others not below it.

Everything known about verdicts serves again: a witness of the reduced head bounds c's best rank from above,
a certificate is one of the whole head's, with a support that avoids the classes left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.check.checker import Checker, rival_certificate
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
    # A twin stands for others only while it is there itself.
    beaten_by = twins.beaten_by
    covered = (beaten_by >= 0) & ~np.isin(beaten_by, excluded)
    covered[excluded] = True
    covered[class_id] = False
    checker = Checker(whole.prepared, whole.domain, without=excluded)
    prover = Prover(checker, ignored=np.flatnonzero(covered), tied=frozenset(), score=None, seed=seed)
    answer = prover.settle(class_id).answer
    if answer.certificate is None:
        return Found(point=answer.point, reason=answer.reason)
    if np.isin(answer.certificate.classes, excluded).any():
        return Found(reason="a certificate on classes that were left out")
    if whole.bound(class_id, answer.certificate).upper > 0:
        return Found(reason="a certificate that does not check")
    return Found(certificate=answer.certificate)
