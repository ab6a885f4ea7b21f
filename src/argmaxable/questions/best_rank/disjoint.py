"""Supports that have no class in common: as many classes as there are supports stand above at every x. And
what each class is worth to the next support.

When no certificate is left in the classes that no support uses, some x shows why: all classes that are not
below there are used. Supports have dozens of them each, where one would do. So a support gives some of them
up and is found again without them, and classes that are scarce at such points have a price, which the next
certificates avoid.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from argmaxable.core.arrays import Ids, Vector

# What the support with most of the scarce classes gives up of them, then the one with the next most, and so
# on: (the support's place in that order, the share). With no share, only the prices are new.
_OFFERS = ((0, 0.5), (1, 0.5), (0, 0.125), (0, 0.0))
# Earlier points count less: by then supports were others.
_FADING = 0.9


@dataclass(eq=False)
class DisjointSupports:
    """Which support each class is used by (−1: none), how many there are, and the classes' prices."""

    classes: int
    rng: np.random.Generator
    count: int = 0
    owner: Ids = field(init=False)
    prices: Vector = field(init=False)

    def __post_init__(self) -> None:
        self.owner = np.full(self.classes, -1)
        self.prices = np.zeros(self.classes)

    @property
    def used(self) -> Ids:
        return np.flatnonzero(self.owner >= 0)

    def add(self, support: Ids) -> None:
        """One more support, of classes that none uses."""
        self.owner[support] = self.count
        self.count += 1

    def add_if_disjoint(self, support: Ids) -> None:
        if (self.owner[support] < 0).all():
            self.add(support)

    def replace(self, place: int, support: Ids) -> None:
        """Another support in the place of one, of its classes and of those that none uses."""
        self.owner[self.owner == place] = -1
        self.owner[support] = place

    def note_scarce(self, above: Ids) -> None:
        """Raise the prices of the classes not below at a point: the fewer there are, the more."""
        self.prices *= _FADING
        self.prices[above] += 1 / max(len(above), 1)

    def offers(self, above: Ids) -> Iterator[tuple[int, Ids]]:
        """Supports to find again, and the classes that each has to do without then."""
        owners = self.owner[above]
        order = np.argsort(-np.bincount(owners[owners >= 0], minlength=self.count), kind="stable")
        for rank, share in _OFFERS:
            if rank < len(order):
                place = int(order[rank])
                mine = self.rng.permutation(above[owners == place])
                given = mine[: int(np.ceil(share * len(mine)))]
                yield place, np.union1d(np.flatnonzero((self.owner >= 0) & (self.owner != place)), given)
