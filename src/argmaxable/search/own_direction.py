"""Own direction: a class is tried at x = w_c − mean, scaled into the domain. One product settles
60 % of a hard head and nearly all of a language model; losers tell which rows block others.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.compute.blocks import row_blocks
from argmaxable.compute.coordinates import power_below

if TYPE_CHECKING:
    from argmaxable.check.checker import Checker
    from argmaxable.compute.coordinates import Coordinates
    from argmaxable.core.arrays import Ids, Matrix

# Largest coordinate aimed at in a box: features of real networks are of order one, and a bias has
# its say there. On ppocrv5 (18385 × 120) 3 settles 63 %, 10 settles 55 %, 1 settles 58 %.
USUAL_FEATURE = 3.0


def own_exponents(checker: Checker, classes: Ids) -> Ids:
    """For each class the power of two that scales its direction well into the domain."""
    exponents = np.empty(len(classes), np.intp)
    for block in row_blocks(len(classes), checker.head.features):
        exponents[block] = _exponents(checker, classes[block])
    return exponents


def _exponents(checker: Checker, classes: Ids) -> Ids:
    domain, features = checker.domain, checker.head.features
    radius = domain.ball_radius(features)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        if math.isfinite(radius):
            directions = checker.rebuild(classes, np.zeros(len(classes), np.intp))
            return power_below(radius / np.sqrt((directions * directions).sum(axis=1)))
        limit = min(USUAL_FEATURE, float(np.abs(np.concatenate(domain.bounds(features))).max()))
        rows = checker.head.rows(classes) - checker.centre
        return power_below(limit / np.abs(rows).max(axis=1))


def ahead_in_own_direction(checker: Checker, classes: Ids) -> Ids:
    """For each class, how many others score higher at the point at which its own direction is tried: few
    where a class nearly wins, thousands where it is deep inside the hull.

    Over the box ±100 it ranks the 202 unargmaxable classes of PP-OCRv4 nearly as their margins (six decimals)
    do (Spearman 0.99; 150 of PP-OCRv3 0.97), by one product instead of a solve each. The gap at that point
    does not (0.51 and 0.08).
    """
    points = checker.rebuild(classes, own_exponents(checker, classes))
    return checker.scores.ahead(classes, points)


def far_points(coordinates: Coordinates, classes: Ids) -> Matrix:
    """For each class the coordinates at which its own row scores most: a corner of a box, the rim of a
    ball."""
    rows = coordinates.rows(classes)
    if coordinates.radius is None:
        return np.where(rows > 0, coordinates.hi, coordinates.lo)
    length = np.maximum(np.sqrt((rows * rows).sum(axis=1, keepdims=True)), 1e-300)
    return np.asarray(rows * (coordinates.radius / length))
