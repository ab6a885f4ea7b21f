"""Lower bounds on a best rank out of certificates: the best packing of their supports, or a search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from argmaxable.check.packing import MOST_NODES, can_be_met
from argmaxable.core.best_rank import RankProof, support_of
from argmaxable.questions.best_rank.hitting import best_shares, smallest_meeting_set

if TYPE_CHECKING:
    from argmaxable.core.verdict import Certificate

# With so many ways to choose, however many of them a search can skip, it would not end.
_HOPELESS = 10 * MOST_NODES


def prove_lower(certificates: Sequence[Certificate]) -> tuple[int, RankProof | None]:
    """The best lower bound that the certificates prove, with the proof; 1 needs none."""
    if not certificates:
        return 1, None
    sets = [support_of(certificate) for certificate in certificates]
    shares = best_shares(sets)
    used = [j for j, share in enumerate(shares.numerators) if share]
    lower = 1 + shares.needed
    proof = RankProof(
        tuple(certificates[j] for j in used), tuple(shares.numerators[j] for j in used), shares.whole
    )
    # Whole classes can be needed where shares of them would do: nine points around a centre need four, in
    # shares three.
    shortest = min(map(len, sets))
    if shortest**shares.needed > _HOPELESS:
        return lower, proof
    for size in range(shares.needed, len(smallest_meeting_set(sets))):
        if can_be_met(sets, size) is not False:
            break
        lower, proof = size + 2, RankProof(tuple(certificates))
    return lower, proof
