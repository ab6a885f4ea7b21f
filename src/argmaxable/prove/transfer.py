"""Transfer: a proof is a convex combination (Σλ_i w_i, Σλ_i b_i), and whatever it dominates is
unargmaxable too. On one real head a single proof settles more than half of the unargmaxable classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from argmaxable.check.checker import Checker
    from argmaxable.compute.coordinates import Coordinates
    from argmaxable.core.arrays import Ids
    from argmaxable.core.verdict import Certificate


def transfer(
    coordinates: Coordinates, checker: Checker, certificate: Certificate, open_ids: Ids
) -> tuple[Ids, NDArray[np.float64]]:
    """The open classes that the certificate proves unargmaxable as well, with checked bounds.

    Only literal weights transfer: a basis certificate speaks about one class exactly.
    """
    if certificate.basis or coordinates.is_cone or not len(open_ids):
        return np.empty(0, np.intp), np.empty(0)
    weights = certificate.weights / certificate.weights.sum()
    with np.errstate(over="ignore", invalid="ignore"):
        near = open_ids[_rough_bounds(coordinates, certificate.classes, weights, open_ids) < 0]
    if not len(near):
        return near, np.empty(0)
    uppers = checker.bounds(near, certificate)
    return near[uppers <= 0], uppers[uppers <= 0]


def _rough_bounds(
    coordinates: Coordinates, rows: Ids, weights: NDArray[np.float64], open_ids: Ids
) -> NDArray[np.float64]:
    """Float32 estimates of each class's dual bound under the weights."""
    mixture = weights.astype(np.float32) @ coordinates.rows32[rows]
    direction = coordinates.rows32[open_ids] - mixture
    offset = coordinates.biases[open_ids] - float(weights @ coordinates.biases[rows])
    if coordinates.corners is not None:
        return np.asarray((direction @ coordinates.corners.astype(np.float32).T).max(axis=1) + offset)
    if coordinates.radius is not None:
        return np.asarray(coordinates.radius * np.sqrt((direction * direction).sum(axis=1)) + offset)
    lo, hi = coordinates.lo.astype(np.float32), coordinates.hi.astype(np.float32)
    return np.asarray(np.maximum(lo * direction, hi * direction).sum(axis=1) + offset)
