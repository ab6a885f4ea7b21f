"""The classes whose weights are nearest to those of one class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from argmaxable.core.head import Head

# Rows turned into float64 at a time.
_BLOCK = 4096


@dataclass(frozen=True)
class Neighbour:
    """A class and how far its weight vector is: Euclidean distance, and cosine (NaN of a row of zeros)."""

    class_id: int
    distance: float
    cosine: float


def nearest(head: Head, class_id: int, most: int) -> list[Neighbour]:
    """The nearest other classes, nearest first."""
    own = head.rows(np.array([class_id]))[0]
    distances, cosines = np.empty(head.classes), np.empty(head.classes)
    with np.errstate(all="ignore"):
        for first in range(0, head.classes, _BLOCK):
            block = slice(first, first + _BLOCK)
            rows = head.rows(block)
            distances[block] = np.linalg.norm(rows - own, axis=1)
            cosines[block] = rows @ own / (np.linalg.norm(rows, axis=1) * np.linalg.norm(own))
    distances[class_id] = np.inf
    order = np.argsort(distances, kind="stable")[: min(most, head.classes - 1)]
    return [Neighbour(int(k), float(distances[k]), float(cosines[k])) for k in order]
