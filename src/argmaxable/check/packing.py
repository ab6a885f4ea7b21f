"""How many classes it takes to meet every one of some sets: lower bounds in whole numbers.

Either by a fractional packing, shares of the sets that add up to at most 1 in every class, or by a search
through all small collections of classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argmaxable.core.arrays import Ids

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
