"""Re-checks the best ranks of a proof bundle against its head: points, certificates, and that few classes
can't meet all their supports. No solver, and no trust in whoever wrote them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np

from argmaxable.check.checker import Checker
from argmaxable.core.best_rank import BestRank, RankProof, support_of
from argmaxable.core.head import Head
from argmaxable.core.verdict import Certificate
from argmaxable.proofs.ranks import RankBundle
from argmaxable.proofs.recheck import Failure, Recheck, checker_about
from argmaxable.questions.best_rank.hitting import Shares, are_packed, can_be_met
from argmaxable.questions.best_rank.reduced import not_below


def recheck_ranks(bundle: RankBundle, head: Head) -> Recheck:
    """Check every claim; raises BundleError when the best ranks are about another head.

    `undecided` counts the classes of which nothing but the bounds is claimed, where a k was asked about.
    """
    checker = checker_about(head, bundle.sha256, bundle.domain, "the best ranks are")
    failures = {failure.class_id: failure for failure in _failures(checker, bundle.claims)}
    known = {claim.class_id for claim in bundle.claims}
    return Recheck(
        proven=len(known - failures.keys()), undecided=0, missing=0, failures=tuple(failures.values())
    )


def _failures(checker: Checker, claims: tuple[BestRank, ...]) -> Iterator[Failure]:
    seen: set[int] = set()
    bound = _Bounds(checker, [claim.class_id for claim in claims])
    for claim in claims:
        why = "the class is claimed twice" if claim.class_id in seen else _why_not(bound, claim)
        seen.add(claim.class_id)
        if why:
            yield Failure(claim.class_id, why)


class _Bounds:
    """What certificates prove about classes; each is tried on all classes at once, many share one."""

    def __init__(self, checker: Checker, classes: list[int]) -> None:
        self.checker = checker
        self.classes = np.array([one for one in classes if one < checker.head.classes], np.intp)
        self.of_all = functools.cache(self._of_all)

    def _of_all(self, certificate: Certificate) -> dict[int, float]:
        uppers = self.checker.bounds(self.classes, certificate)
        return dict(zip(self.classes.tolist(), uppers.tolist(), strict=True))

    def upper(self, class_id: int, certificate: Certificate) -> float:
        quick = self.of_all(certificate)[class_id]
        return quick if quick < 0 else self.checker.bound(class_id, certificate).upper


def _why_not(bound: _Bounds, claim: BestRank) -> str:
    """What is wrong with a claim; nothing when it holds."""
    classes = bound.checker.head.classes
    if claim.class_id >= classes:
        return f"the head has no class {claim.class_id}"
    if not claim.lower_with_ties <= claim.lower <= claim.upper <= classes:
        return f"its best rank can't be from {claim.lower} to {claim.upper}"
    if claim.upper < classes and not _has_rank(bound.checker, claim):
        return f"its point does not give it rank {claim.upper}"
    if not _is_proven(bound, claim.class_id, claim.proof, claim.lower, strictly=False):
        return f"its certificates do not prove that it never has a rank better than {claim.lower}"
    if not _is_proven(bound, claim.class_id, claim.proof_with_ties, claim.lower_with_ties, strictly=True):
        return f"its certificates do not prove rank {claim.lower_with_ties} with ties in its favour"
    return ""


def _has_rank(checker: Checker, claim: BestRank) -> bool:
    if claim.point is None or len(claim.point) != checker.head.features or not np.isfinite(claim.point).all():
        return False
    above = not_below(checker, claim.class_id, claim.point)
    return above is not None and len(above) + 1 <= claim.upper


def _is_proven(bound: _Bounds, class_id: int, proof: RankProof | None, lower: int, *, strictly: bool) -> bool:
    if lower == 1:
        return True
    if proof is None:
        return False
    for certificate in proof.certificates:
        upper = bound.upper(class_id, certificate)
        if not (upper < 0 if strictly else upper <= 0):
            return False
    supports = [support_of(certificate) for certificate in proof.certificates]
    if not proof.shares:
        return can_be_met(supports, lower - 2) is False
    shares = Shares(proof.shares, proof.whole)
    return are_packed(supports, shares) and 1 + shares.needed >= lower
