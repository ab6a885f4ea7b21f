"""Checks best ranks: the point that reaches one, the certificates, and that few classes can't meet all their
supports (check/packing.py). No solver.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.check.checker import Checker
from argmaxable.check.packing import Shares, are_packed, can_be_met
from argmaxable.compute.blocks import row_blocks
from argmaxable.core.best_rank import BestRank, RankProof, support_of
from argmaxable.core.claim import Failure

if TYPE_CHECKING:
    from argmaxable.core.arrays import Ids, Vector
    from argmaxable.core.verdict import Certificate


def failed_ranks(checker: Checker, claims: Sequence[BestRank]) -> Iterator[Failure]:
    """The claims, of classes that the head has, that their evidence does not prove."""
    bounds = _Bounds(checker, [claim.class_id for claim in claims])
    for claim in claims:
        why = _why_not(bounds, claim)
        if why:
            yield Failure(claim.class_id, why)


class _Bounds:
    """What certificates prove about classes; each is tried on all classes at once, many share one."""

    def __init__(self, checker: Checker, classes: list[int]) -> None:
        self.checker = checker
        self.classes = np.array(classes, np.intp)
        self.of_all = functools.cache(self._of_all)

    def _of_all(self, certificate: Certificate) -> dict[int, float]:
        uppers = self.checker.bounds(self.classes, certificate)
        return dict(zip(self.classes.tolist(), uppers.tolist(), strict=True))

    def upper(self, class_id: int, certificate: Certificate) -> float:
        quick = self.of_all(certificate)[class_id]
        return quick if quick < 0 else self.checker.bound(class_id, certificate).upper


def _why_not(bounds: _Bounds, claim: BestRank) -> str:
    """What is wrong with a claim; nothing when it holds."""
    classes = bounds.checker.head.classes
    if not claim.lower_with_ties <= claim.lower <= claim.upper <= classes:
        return f"its best rank can't be from {claim.lower} to {claim.upper}"
    if claim.upper < classes and not _has_rank(bounds.checker, claim):
        return f"its point does not give it rank {claim.upper}"
    if not _is_proven(bounds, claim.class_id, claim.proof, claim.lower, strictly=False):
        return f"its certificates do not prove that it never has a rank better than {claim.lower}"
    if not _is_proven(bounds, claim.class_id, claim.proof_with_ties, claim.lower_with_ties, strictly=True):
        return f"its certificates do not prove rank {claim.lower_with_ties} with ties in its favour"
    return ""


def _has_rank(checker: Checker, claim: BestRank) -> bool:
    if claim.point is None or len(claim.point) != checker.point_size or not np.isfinite(claim.point).all():
        return False
    above = not_below(checker, claim.class_id, claim.point)
    return above is not None and len(above) + 1 <= claim.upper


def _is_proven(
    bounds: _Bounds, class_id: int, proof: RankProof | None, lower: int, *, strictly: bool
) -> bool:
    if lower == 1:
        return True
    if proof is None:
        return False
    for certificate in proof.certificates:
        upper = bounds.upper(class_id, certificate)
        if not (upper < 0 if strictly else upper <= 0):
            return False
    supports = [support_of(certificate) for certificate in proof.certificates]
    if not proof.shares:
        return can_be_met(supports, lower - 2) is False
    shares = Shares(proof.shares, proof.whole)
    return are_packed(supports, shares) and 1 + shares.needed >= lower


# ---------------------------------------------------------------------- the rank at a point


def not_below(checker: Checker, class_id: int, point: Vector) -> Ids | None:
    """Classes that may be not below the class at the point z; all others are below it, proven.

    Floats propose, and a checker that leaves them out decides. None for a point outside the domain.
    """
    scores = scores_at(checker, point)
    proposed = scores >= scores[class_id]
    proposed[class_id] = False
    while True:
        without = np.flatnonzero(proposed)
        gaps = Checker(checker.prepared, checker.domain, without=without).gaps(
            np.array([class_id]), point[None]
        )
        if gaps.lower[0] > 0:
            return without
        rival = gaps.rival[0]
        if rival < 0 or gaps.lower[0] == -np.inf:
            return None
        # A rival that floats can't tell from the class: it and all that score no less.
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
