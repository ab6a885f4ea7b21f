"""How many classes it takes to meet every one of some sets: bounds that a stranger can check.

From below by a fractional packing: shares of the sets that add up to at most 1 in every class (checked in
whole numbers), or by a search through all small collections. From above by a set that meets all (HiGHS, not
trusted).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.core.arrays import Ids

if TYPE_CHECKING:
    from scipy import sparse


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
# Collections looked at before a search gives up: about a second in Python, for whoever checks it as well.
MOST_NODES = 20_000


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares `numerators[j] / whole` of the sets."""

    numerators: tuple[int, ...]
    whole: int

    @property
    def needed(self) -> int:
        """The number of classes that any collection meeting all sets has at least."""
        return -(-sum(self.numerators) // self.whole)


def are_packed(sets: Sequence[Ids], shares: Shares) -> bool:
    """Whether the shares are non-negative and add up to at most 1 in every class; whole numbers only."""
    if len(sets) != len(shares.numerators) or shares.whole < 1 or min(shares.numerators, default=0) < 0:
        return False
    load: dict[int, int] = {}
    for members, share in zip(sets, shares.numerators, strict=True):
        for member in set(members.tolist()):
            load[member] = load.get(member, 0) + share
    return max(load.values(), default=0) <= shares.whole


def best_shares(sets: Sequence[Ids]) -> Shares:
    """Shares with the largest sum that could be found, checked."""
    nothing = Shares((0,) * len(sets), 1)
    if not sets:
        return nothing
    from scipy.optimize import linprog  # a fifth of a second to load

    table = _incidence(sets)
    solution = linprog(-np.ones(len(sets)), A_ub=table.T, b_ub=np.ones(table.shape[1]), method="highs")
    if solution.x is None:
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
    from scipy.optimize import Bounds, LinearConstraint, milp

    table = _incidence(sets)
    members = np.unique(np.concatenate(list(sets)))
    solution = milp(
        np.ones(table.shape[1]),
        constraints=LinearConstraint(table, lb=1),
        integrality=np.ones(table.shape[1]),
        bounds=Bounds(0, 1),
        options={"time_limit": _SECONDS},
    )
    chosen = members[:0] if solution.x is None else members[solution.x > 0.5]
    if all(np.isin(some, chosen).any() for some in sets):
        return chosen
    return members  # no answer of HiGHS's own: all of them surely do


def _incidence(sets: Sequence[Ids]) -> sparse.csr_matrix:
    """Sets × their members, 1 where the member belongs to the set."""
    from scipy import sparse

    _, columns = np.unique(np.concatenate(list(sets)), return_inverse=True)
    rows = np.repeat(np.arange(len(sets)), [len(some) for some in sets])
    return sparse.csr_matrix((np.ones(len(rows)), (rows, columns)))


def can_be_met(sets: Sequence[Ids], size: int, *, most_nodes: int = MOST_NODES) -> bool | None:
    """Whether some `size` classes meet all the sets; None when that would take too long to tell.

    Some class of the smallest set not met yet has to be taken: each is tried in turn, and a branch ends
    when more disjoint sets are left than classes may still be taken.
    """
    distinct = {frozenset(some.tolist()) for some in sets}
    minimal = [some for some in distinct if not any(other < some for other in distinct)]
    nodes = 0

    def meet(left: list[frozenset[int]], room: int) -> bool | None:
        nonlocal nodes
        nodes += 1
        if not left:
            return True
        if _disjoint(left) > room:
            return False
        if nodes > most_nodes:
            return None
        known: bool | None = False
        for member in sorted(left[0]):
            found = meet([some for some in left if member not in some], room - 1)
            if found:
                return True
            known = None if found is None else known
            if nodes > most_nodes:
                return None
        return known

    return meet(sorted(minimal, key=lambda some: (len(some), sorted(some))), size)


def _disjoint(sets: list[frozenset[int]]) -> int:
    """How many sets, taken in order whenever possible, have no class in common."""
    used: set[int] = set()
    count = 0
    for some in sets:
        if used.isdisjoint(some):
            used |= some
            count += 1
    return count
