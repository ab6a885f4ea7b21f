"""All rankings of a small head, each with its witness; and all beginnings of rankings (top k).

Depth first, with two ways to prune. A proof that some pairs can't all hold settles every other ranking that
implies them. And classes are inserted one at a time into a ranking of those before: its region is convex, so
the places of a new class are neighbours, and the search stops at the first on either side that is proven
impossible. For a generic head everywhere the count is that of regions.py (Cover 1967; Good & Tideman 1977).
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from argmaxable.check.orders import proven_gap
from argmaxable.core.errors import InputError
from argmaxable.core.feasibility import Feasibility
from argmaxable.core.orders import Order, chain, top
from argmaxable.questions.ranking.rankings import EVERYWHERE, is_feasible
from argmaxable.theory.mirrors import Mirrors
from argmaxable.theory.regions import count_regions

if TYPE_CHECKING:
    from argmaxable.core.arrays import Vector
    from argmaxable.core.domain import Domain
    from argmaxable.core.head import Head

Ranking = tuple[int, ...]

# Rankings at most, unless the caller asks for more: a million solves take about an hour.
_MOST = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """A feasible ranking, the highest class first, and the point z of the domain that ranks so: each class
    beats the next by `margin` or more."""

    classes: Ranking
    point: Vector
    margin: float


@dataclass(frozen=True, eq=False)
class Rankings:
    """The feasible rankings of a head over a domain, or the feasible first k classes, in lexicographic order.

    `undecided` lists orders for which neither a point nor a proof was found: rankings that agree with one
    of them may be missing.
    """

    head: Head
    domain: Domain
    found: tuple[Ranked, ...]
    undecided: tuple[Ranking, ...]

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Ranked]:
        return iter(self.found)

    @property
    def winners(self) -> tuple[int, ...]:
        """The classes that come first in a ranking: the argmaxable ones, if nothing is undecided and no two
        classes tie on the whole domain (then no ranking of all classes is strict)."""
        return tuple(sorted({ranked.classes[0] for ranked in self.found}))


def enumerate_rankings(head: Head, domain: Domain = EVERYWHERE, *, most: int = _MOST) -> Rankings:
    """Every ranking of all classes that some point of the domain realises strictly.

    Raises InputError when there may be more than `most`, or the domain does not fit the head.
    """
    _require_few(head, head.classes, most)
    search = _Search(head, domain, chain, absent=-1)
    return search.run(search.insertions, head.classes)


def feasible_top_k(head: Head, k: int, domain: Domain = EVERYWHERE, *, most: int = _MOST) -> Rankings:
    """Every c1 > c2 > … > ck > rest that some point of the domain realises strictly.

    Raises InputError when k is no number of classes, there may be more than `most`, or the domain does not
    fit the head.
    """
    if not 1 <= k <= head.classes:
        raise InputError(f"k must be between 1 and the number of classes, {head.classes}, found {k}.")
    _require_few(head, k, most)

    def order_of(classes: Ranking) -> Order:
        return top(classes, of=head.classes) if classes else Order([])

    search = _Search(head, domain, order_of, absent=math.inf)
    return search.run(search.continuations, k)


def _require_few(head: Head, k: int, most: int) -> None:
    """Raise InputError when both the arrangements of k classes and the regions of a head exceed `most`."""
    classes = head.classes
    arrangements = itertools.accumulate(range(classes, classes - k, -1), operator.mul)
    # The count for one feature comes first: it is cheap, and for a large head too large already.
    dims = (1, max(1, min(head.features, classes - 1)))
    if any(count > most for count in arrangements) and any(
        count_regions(classes, d, bias=True).total > most for d in dims
    ):
        raise InputError(
            f"a head with {classes:,} classes × {head.features:,} features may have more than {most:,} "
            "rankings. Pass a larger `most`, or fewer classes."
        )


@dataclass(eq=False)
class _Search:
    """The tree of partial rankings, what was found in it, and the proofs that prune it."""

    head: Head
    domain: Domain
    order_of: Callable[[Ranking], Order]
    absent: float  # where a class that a partial ranking does not name stands: nowhere (−1) or last
    mirrors: Mirrors = field(init=False)
    conflicts: list[list[list[int]]] = field(default_factory=list)
    undecided: list[Ranking] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.domain.require_features(self.head.features)
        self.mirrors = Mirrors(self.head, self.domain)

    def run(self, children: Callable[[Ranked], Iterator[Ranked]], size: int) -> Rankings:
        """All descendants of the empty ranking that have so many classes."""
        root = self.settle(())
        found, stack = [], [root] if root is not None else []
        while stack:
            ranked = stack.pop()
            if len(ranked.classes) == size:
                found.append(ranked)
            else:
                stack.extend(children(ranked))
        found.sort(key=lambda ranked: ranked.classes)
        return Rankings(self.head, self.domain, tuple(found), tuple(sorted(self.undecided)))

    def insertions(self, parent: Ranked) -> Iterator[Ranked]:
        """The rankings of one class more that agree with the parent."""
        number = len(parent.classes)
        scores = self.mirrors.scores(parent.point)
        home = int((scores[list(parent.classes)] > scores[number]).sum())
        child = self.inherit(_with(parent, number, home), parent.point)
        if child is None:  # a tie at the parent's point: nothing is known about any place
            walks, stops = [range(number + 1)], False
        else:
            yield child
            walks, stops = [range(home - 1, -1, -1), range(home + 1, number + 1)], True
        for walk in walks:
            start = parent.point
            for at in walk:
                classes = _with(parent, number, at)
                child = self.settle(classes, start)
                if child is not None:
                    yield child
                    start = child.point
                elif stops and classes not in self.undecided:
                    break

    def continuations(self, parent: Ranked) -> Iterator[Ranked]:
        """The beginnings with one class more."""
        for number in set(range(self.head.classes)).difference(parent.classes):
            child = self.settle((*parent.classes, number), parent.point)
            if child is not None:
                yield child

    def inherit(self, classes: Ranking, point: Vector) -> Ranked | None:
        """The ranking with this point, if that ranks so."""
        margin = proven_gap(self.head, self.domain, self.order_of(classes), point)
        return Ranked(classes, point, margin) if margin > 0 else None

    def settle(self, classes: Ranking, start: Vector | None = None) -> Ranked | None:
        """The ranking with a point, looked for near `start` first; None when it is infeasible, or undecided
        and noted as such."""
        if self._is_in_conflict(classes):
            return None
        if start is not None:
            nearby = self.mirrors.reflect(start, self.order_of(classes))
            child = None if nearby is None else self.inherit(classes, nearby)
            if child is not None:
                return child
        verdict = is_feasible(self.head, self.order_of(classes), self.domain)
        if verdict.certificate is not None:
            self.conflicts.append(verdict.certificate.pairs.tolist())
        elif verdict.point is not None:
            return Ranked(classes, verdict.point, verdict.margin)
        if verdict.status is Feasibility.UNDECIDED:
            self.undecided.append(classes)
        return None

    def _is_in_conflict(self, classes: Ranking) -> bool:
        """Whether the ranking implies all pairs of a certificate: the same weights prove it infeasible."""
        above, below = [math.inf] * self.head.classes, [self.absent] * self.head.classes
        for at, number in enumerate(classes):
            above[number] = below[number] = at
        for pairs in self.conflicts:
            for first, second in pairs:  # a plain loop: this is tried far more often than anything else
                if not above[first] < below[second]:
                    break
            else:
                return True
        return False


def _with(parent: Ranked, number: int, at: int) -> Ranking:
    """The parent's ranking with a class put in."""
    return (*parent.classes[:at], number, *parent.classes[at:])
