"""Searches for how many classes it takes to meet every one of some sets: shares that pack, and classes that
meet all, both by HiGHS. check/packing.py proves the lower bounds; nothing here is trusted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.check.packing import Shares, are_packed
from argmaxable.prove.highs import SolverStatus, SparseRows, maximise

if TYPE_CHECKING:
    from argmaxable.core.arrays import Ids

# Denominators tried in turn: packings of few sets have simple shares, and the last serves the others; there
# shares are shrunk first by more than HiGHS's tolerance, which costs nothing unless their sum is whole.
_WHOLES = (
    (1, 1.0),
    (2, 1.0),
    (3, 1.0),
    (4, 1.0),
    (5, 1.0),
    (6, 1.0),
    (12, 1.0),
    (60, 1.0),
    (1 << 20, 1 - 1e-5),
)
# Float shares that miss a whole number of parts by less than this are meant to be it.
_ROUNDING = 1e-6
# Seconds HiGHS may look for a smallest meeting set; what it has by then meets all sets, if not with the
# fewest.
_SECONDS = 2.0


def best_shares(sets: Sequence[Ids]) -> Shares:
    """Shares with the largest sum that could be found, checked."""
    nothing = Shares((0,) * len(sets), 1)
    if not sets:
        return nothing
    members, numbers, places = _incidence(sets)
    ones = np.ones(len(sets))
    packed = SparseRows.of_entries(places, numbers, 1.0)
    solution = maximise(ones, packed, np.ones(len(members)), 0 * ones, ones)
    if solution.status is not SolverStatus.OPTIMAL:
        return nothing
    goal = math.ceil(float(solution.x.sum()) - _ROUNDING)
    found = nothing
    for whole, shrink in _WHOLES:
        # Rounded down, shares stay packed; their sum, rounded up, is seldom less for it.
        numerators = np.floor(np.clip(solution.x, 0, 1) * whole * shrink + _ROUNDING)
        shares = Shares(tuple(int(share) for share in numerators), whole)
        if are_packed(sets, shares) and shares.needed > found.needed:
            found = shares
        if found.needed >= goal:
            break
    return found


def few_that_meet(sets: Sequence[Ids]) -> Ids:
    """Classes that meet every set: again and again the one in most of the sets left."""
    left, chosen = list(sets), []
    while left:
        members, counts = np.unique(np.concatenate(left), return_counts=True)
        chosen.append(members[counts.argmax()])
        left = [some for some in left if chosen[-1] not in some]
    return np.array(sorted(chosen), np.intp)


def smallest_meeting_set(sets: Sequence[Ids]) -> Ids:
    """Classes that meet every set, as few as HiGHS finds in time."""
    if not sets:
        return np.empty(0, np.intp)
    members, numbers, places = _incidence(sets)
    ones = np.ones(len(members))
    met = SparseRows.of_entries(numbers, places, -1.0)  # −Σ y ≤ −1: at least one of every set
    solution = maximise(-ones, met, -np.ones(len(sets)), 0 * ones, ones, whole=True, seconds=_SECONDS)
    chosen = members[solution.x > 0.5] if len(solution.x) == len(members) else members[:0]
    if all(np.isin(some, chosen).any() for some in sets):
        return chosen
    return members  # no answer of HiGHS's own: all of them surely do


def _incidence(sets: Sequence[Ids]) -> tuple[Ids, Ids, Ids]:
    """The members of all sets; then for each member of each set the number of the set and its place among
    the members."""
    members, places = np.unique(np.concatenate(list(sets)), return_inverse=True)
    return members, np.repeat(np.arange(len(sets)), [len(some) for some in sets]), places
