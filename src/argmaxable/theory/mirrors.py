"""Braid reflection for orders: mirror a point in the hyperplane s_i = s_j of the pair that it breaks worst.

Algorithm 2 of Grivas, Bogoychev & Lopez 2022, there for the first place alone. From the witness of a ranking
next to it, a feasible one is found so in 19 of 20 cases. It can only ever answer "feasible".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from argmaxable.core.arrays import Vector
    from argmaxable.core.domain import Domain
    from argmaxable.core.head import Head
    from argmaxable.core.orders import Order

# Beyond so many reflections exact simplex is the cheaper way.
_STEPS = 40
# How far behind a mirror a point lands at least, as a share of its largest distance from any.
_CLEARANCE = 0.01


class Mirrors:
    """The hyperplanes between a head's classes, in coordinates of the domain's z and in floats."""

    def __init__(self, head: Head, domain: Domain) -> None:
        rows = head.rows(slice(None))
        self.bounds = domain.bounds(head.features)
        self.rows = domain.rows_seen(rows)
        self.biases = head.biases() + rows @ domain.shifts(head.features)

    def scores(self, point: Vector) -> Vector:
        """Scores of all classes at a point z."""
        return np.asarray(self.rows @ point + self.biases)

    @np.errstate(all="ignore")
    def reflect(self, point: Vector, order: Order) -> Vector | None:
        """A point near this one that seems to satisfy the order, or None."""
        above, below = order.pairs.T
        normals = self.rows[above] - self.rows[below]
        lengths = np.sqrt((normals * normals).sum(axis=1))
        normals = normals / lengths[:, None]
        offsets = (self.biases[above] - self.biases[below]) / lengths
        z = point
        for _ in range(_STEPS):
            distances = normals @ z + offsets
            worst = distances.argmin()
            if distances[worst] > 0:
                return z
            step = max(-2 * distances[worst], _CLEARANCE * np.abs(distances).max())
            z = np.clip(z + step * normals[worst], *self.bounds)
        return None
