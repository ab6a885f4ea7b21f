"""Corners of a hull: one product tells who wins at each of the given vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from argmaxable.compute.blocks import blocks
from argmaxable.compute.rows import row_slices

if TYPE_CHECKING:
    from argmaxable.compute.coordinates import Coordinates
    from argmaxable.core.arrays import Ids


@np.errstate(over="ignore", invalid="ignore")
def corner_winners(coordinates: Coordinates) -> tuple[Ids, Ids]:
    """The classes that seem to win at some corner, in ascending order, and the one where each leads most."""
    assert coordinates.corners is not None
    corners = coordinates.corners.astype(np.float32)
    winners = np.empty(len(corners), np.intp)
    leads = np.empty(len(corners), np.float32)
    for block in blocks(len(corners), coordinates.head.classes):
        scores = np.empty((block.stop - block.start, coordinates.head.classes), np.float32)
        for some in row_slices(coordinates.rows32):
            scores[:, some] = corners[block] @ coordinates.rows32[some].T
        scores += coordinates.biases32
        winners[block] = scores.argmax(axis=1)
        top = (
            np.partition(scores, -2, axis=1)[:, -2:]
            if coordinates.head.classes > 1
            else np.zeros((len(scores), 2))
        )
        leads[block] = top[:, 1] - top[:, 0]
    order = np.lexsort((-leads, winners))
    classes, first = np.unique(winners[order], return_index=True)
    return classes, order[first]
