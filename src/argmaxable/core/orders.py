"""Orders of classes as sets of pairs: full rankings, beginnings of rankings, chains, partial orders.

Each is a list of strict inequalities s_i(x) > s_j(x) between scores, and nothing else is asked of x.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from operator import index

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import InputError

Pairs = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Order:
    """Pairs (n × 2) of class ids: in each row the first scores strictly above the second."""

    pairs: Pairs

    def __init__(self, pairs: Iterable[Iterable[int]]) -> None:
        listed = [_numbers(pair) for pair in pairs]
        odd = next((pair for pair in listed if len(pair) != 2), None)
        if odd is not None:
            raise InputError(f"an order is made of pairs (above, below) of classes, found {odd}.")
        array = np.array(listed, dtype=np.intp).reshape(-1, 2)
        array.flags.writeable = False
        object.__setattr__(self, "pairs", array)

    def require_classes(self, classes: int) -> None:
        """Raise InputError unless every class belongs to a head with so many."""
        _require_classes(self.pairs, classes)

    def cycle(self) -> Pairs | None:
        """Pairs that lead from a class back to itself, so that no point can satisfy them all; or None."""
        above: TopologicalSorter[int] = TopologicalSorter()
        for first, second in self.pairs.tolist():
            if first == second:
                return np.array([[first, first]])
            above.add(second, first)
        try:
            above.prepare()
        except CycleError as error:  # its nodes: each the predecessor of the next, the first one again last
            return np.array(list(pairwise(error.args[1])))
        return None


def chain(classes: Iterable[int]) -> Order:
    """c1 > c2 > … > ck, with all other classes anywhere."""
    return Order(pairwise(classes))


def top(classes: Iterable[int], *, of: int) -> Order:
    """c1 > c2 > … > ck > rest: the beginning of a ranking `of` so many classes.

    Raises InputError when it is empty, or names a class twice or one that does not exist.
    """
    ids = _numbers(classes)
    if not ids:
        raise InputError("the top of a ranking needs at least one class.")
    _require_classes(np.array(ids), of)
    if len(set(ids)) < len(ids):
        twice = next(number for number in ids if ids.count(number) > 1)
        raise InputError(f"class {twice} appears twice in the ranking {' > '.join(map(str, ids))}.")
    rest = np.setdiff1d(np.arange(of), ids)
    return Order(np.vstack([chain(ids).pairs, np.column_stack([np.full(len(rest), ids[-1]), rest])]))


def _numbers(classes: Iterable[int]) -> list[int]:
    try:
        return [index(number) for number in classes]
    except TypeError as error:
        raise InputError(f"classes are given by their numbers: {error}.") from error


def _require_classes(ids: NDArray[np.intp], classes: int) -> None:
    stray = ids[(ids < 0) | (ids >= classes)]
    if len(stray):
        raise InputError(f"class {stray[0]} does not exist: the head has classes 0 to {classes - 1}.")


def as_order(ranking: Order | Iterable[int], classes: int) -> Order:
    """The order itself, or that of a full ranking: all classes of the head, the highest first."""
    if isinstance(ranking, Order):
        ranking.require_classes(classes)
        return ranking
    ids = list(ranking)
    order = top(ids, of=classes)
    if len(ids) != classes:
        raise InputError(
            f"a ranking names all {classes} classes, found {len(ids)}. For its beginning pass "
            "top([…], of=classes), for an order among some classes chain([…])."
        )
    return order
