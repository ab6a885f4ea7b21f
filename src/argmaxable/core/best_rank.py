"""The best rank a class can reach over a domain, between proven bounds, and whether it is ever among the
first k.

The rank of class c at x is 1 + the number of other classes *not below* it there, s_i(x) ≥ s_c(x): ties count
against it, as in verdicts, so rank 1 is being the strict argmax. Its best rank is the least over the domain.
With ties counted in its favour the rank is 1 + the number of classes strictly above; a bound on that too says
what a top-k that breaks ties somehow can never return.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.arrays import Ids
from argmaxable.core.verdict import Certificate


class TopK(StrEnum):
    """Whether a class can ever be among the first k."""

    YES = "yes"  # an input is known at which fewer than k classes are not below it
    NO = "no"  # at every input at least k classes are strictly above it
    AT_BEST_TIED = "at best tied"  # at every input k classes are above it or tie with it
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, eq=False)
class RankProof:
    """Certificates whose supports can't all be met by few classes, which at every x the rivals of c do.

    With `shares`, certificate j has share shares[j] / whole, and no class is in supports whose shares add
    up to more than 1: so at least the sum of the shares, rounded up, is needed. Without them a search shows
    it.
    """

    certificates: tuple[Certificate, ...]
    shares: tuple[int, ...] = ()
    whole: int = 1

    def __repr__(self) -> str:
        return f"RankProof({len(self.certificates)} certificates)"


@dataclass(frozen=True, slots=True, eq=False)
class BestRank:
    """`lower` ≤ best rank ≤ `upper`: `proof` for the one, the point z of the domain for the other.

    `lower_with_ties` bounds the rank with ties counted in the class's favour, proven by `proof_with_ties`.
    """

    class_id: int
    lower: int
    upper: int
    lower_with_ties: int
    proof: RankProof | None
    proof_with_ties: RankProof | None
    point: NDArray[np.float64] | None = field(repr=False)
    reason: str = ""

    @property
    def is_exact(self) -> bool:
        return self.lower == self.upper

    def is_among_first(self, k: int) -> TopK:
        """Whether the class can be among the first k at some input."""
        if self.upper <= k:
            return TopK.YES
        if self.lower_with_ties > k:
            return TopK.NO
        return TopK.AT_BEST_TIED if self.lower > k else TopK.UNKNOWN


def support_of(certificate: Certificate) -> Ids:
    """The classes of which at every x one is not below (above, if the bound is below 0) the class proven.

    Weights of a basis are approximations: the exact one may be positive where the stored one is 0.
    """
    counts = certificate.weights > 0
    counts[: certificate.basis] = True
    return np.unique(certificate.classes[counts])
