"""How far a repair can move any logit, over the whole domain.

With a row moved by v and a bias by Δb, v·x + Δb lies between −h_X(−v) + Δb and h_X(v) + Δb.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from argmaxable.exact.rounding import gamma

if TYPE_CHECKING:
    from argmaxable.core.arrays import Ids
    from argmaxable.core.domain import Domain
    from argmaxable.core.head import Head


def changed_classes(before: Head, after: Head) -> Ids:
    """The classes whose row or bias differs between two heads of the same shape."""
    rows = (before.weight != after.weight).any(axis=1)
    return np.flatnonzero(rows | (before.biases() != after.biases()))


def logit_movement(before: Head, after: Head, domain: Domain) -> float:
    """The most that any logit differs between the heads at any point of the domain (an upper bound)."""
    changed = changed_classes(before, after)
    if not len(changed):
        return 0.0
    moves = after.rows(changed) - before.rows(changed)
    raised = after.biases(changed) - before.biases(changed)
    error = gamma(2) * np.abs(moves)
    highest = domain.support_bound(moves, error) + raised
    lowest = -domain.support_bound(-moves, error) + raised
    return float(np.maximum(np.abs(highest), np.abs(lowest)).max())
