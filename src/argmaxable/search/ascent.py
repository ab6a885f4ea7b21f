"""Ascent: moves points that win already to where they win more clearly, for a whole batch of classes.

What is maximised is the worst of many ratios, each quasi-concave, so its superlevel sets are convex and
there are no wrong turns; steps follow a soft minimum and shrink. The best point met is kept, so a
point never gets worse.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.core.arrays import Ids, Matrix, Vector

if TYPE_CHECKING:
    from argmaxable.core.balls import NormSolid

# For some of the points, given by their places in the batch and as they are now: their values, and the
# directions in which these grow for a step of that length (relative to the point's).
Objective = Callable[[Ids, Matrix, float], tuple[Vector, Matrix]]

# First and last step, as a share of the point's length. Longer ones jump out of thin regions.
_STEPS = (0.1, 1e-3)
# A point's radius relative to the domain's: products of floats must not put it outside.
_INSIDE = 1 - 1e-12


def ascend(
    objective: Objective,
    start: Matrix,
    project: Callable[[Matrix], Matrix],
    *,
    steps: int,
    enough: float = math.inf,
) -> tuple[Matrix, Vector]:
    """The best points met (n × features) and their values, after so many steps from `start`.

    A point whose value is above `enough` is left alone.
    """
    best = project(start)
    top = np.full(len(start), -np.inf)
    point, left = best.copy(), np.arange(len(start))
    for length in [*np.geomspace(*_STEPS, steps).tolist(), _STEPS[-1]]:
        value, direction = objective(left, point, length)
        better = value > top[left]
        top[left[better]], best[left[better]] = value[better], point[better]
        still = ~(value > enough)
        left, point, direction = left[still], point[still], direction[still]
        if not len(left):
            break
        point = project(point + _move(point, direction, length))
    return best, top


def _move(point: Matrix, direction: Matrix, length: float) -> Matrix:
    """A step in the direction, its length relative to the point's; none where there is no direction."""
    size = np.sqrt((direction * direction).sum(axis=1, keepdims=True))
    reach = np.sqrt((point * point).sum(axis=1, keepdims=True))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        move = length * reach * direction / size
    return np.where(np.isfinite(move).all(axis=1, keepdims=True), move, 0.0)


def onto_surface(domain: NormSolid) -> Callable[[Matrix], Matrix]:
    """Moves points z along their rays to the surface of the solid; from its centre, any way."""

    def project(z: Matrix) -> Matrix:
        z = z.copy()
        z[~z.any(axis=1), :2] = (1.0, -1.0)[: z.shape[1]]
        if domain.removes_mean:
            z = z - z.mean(axis=1, keepdims=True)
        length = np.sqrt((z * z).sum(axis=1, keepdims=True))
        with np.errstate(divide="ignore"):
            factor = domain.ball_radius(z.shape[1]) * _INSIDE / length
        return z * np.where(np.isfinite(factor), factor, 1.0)

    return project
