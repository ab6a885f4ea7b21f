"""Points at which few classes are not below a chosen one: descent on a smoothed count, for many classes at
once.

The count Σ_i [s_i(x) ≥ s_c(x)] becomes Σ_i σ((s_i − s_c)/τ), with τ falling from half the typical gap to a
fiftieth. Two products a step for a whole batch. Nothing here is trusted: whoever uses a point counts again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from argmaxable.compute.rows import row_slices

if TYPE_CHECKING:
    from argmaxable.compute.coordinates import Coordinates
    from argmaxable.core.arrays import Ids

Batch = NDArray[np.float32]

# Tuned on ppocrv4: twice the steps find ranks about 2 % better.
_STEPS = 150
# τ in units of the mean gap, at the first and the last step.
_FIRST, _LAST = 0.5, 0.02
# Length of the first step, as a share of the point's own.
_STRIDE = 0.1
# Scores held at a time: a handful of arrays of 16 MB.
_BLOCK_SCORES = 1 << 22


def points_with_few_above(coordinates: Coordinates, classes: Ids) -> NDArray[np.float64]:
    """For each class a point z of the domain (n × features), the best of the descent from its own
    direction; over a hull, the corner at which fewest are above."""
    if coordinates.corners is not None:
        return coordinates.corner_points(_best_corners(coordinates, classes))
    found = np.zeros((len(classes), coordinates.domain.point_size(coordinates.head.features)))
    if not coordinates.size:
        return coordinates.to_point(np.zeros((len(classes), 0)))
    size = max(1, _BLOCK_SCORES // coordinates.head.classes)
    for first in range(0, len(classes), size):
        some = slice(first, first + size)
        with np.errstate(all="ignore"):
            found[some] = coordinates.to_point(_descend(coordinates, classes[some]).astype(np.float64))
    return found


def _best_corners(coordinates: Coordinates, classes: Ids) -> Ids:
    assert coordinates.corners is not None
    corners = coordinates.corners.astype(np.float32)
    best, fewest = np.zeros(len(classes), np.intp), np.full(len(classes), coordinates.head.classes)
    for number in range(len(corners)):
        scores = np.sort(scores_of_all(coordinates, corners[number : number + 1])[0])
        own = _scores_of(coordinates, classes, corners[number])
        above = len(scores) - np.searchsorted(scores, own)
        better = above < fewest
        best[better], fewest[better] = number, above[better]
    return best


def _scores_of(coordinates: Coordinates, classes: Ids, corner: Batch) -> Batch:
    return np.asarray(coordinates.rows32[classes] @ corner + coordinates.biases32[classes])


def _descend(coordinates: Coordinates, classes: Ids) -> Batch:
    index = np.arange(len(classes))
    own = coordinates.rows32[classes]
    x = _inside(coordinates, (own / np.maximum(_length(own), np.float32(1e-30))).astype(np.float32))
    best, fewest = x.copy(), np.full(len(classes), coordinates.head.classes)
    for step in range(_STEPS + 1):
        share = step / _STEPS
        gaps = scores_of_all(coordinates, x)
        gaps -= gaps[index, classes][:, None]
        above = (gaps >= 0).sum(axis=1) - 1
        better = above < fewest
        best[better], fewest[better] = x[better], above[better]
        smoothing = np.abs(gaps).mean(axis=1, keepdims=True) * np.float32(_FIRST * (_LAST / _FIRST) ** share)
        slope = _slope(gaps, smoothing)
        slope[index, classes] = 0
        gradient = -slope.sum(axis=1, keepdims=True) * own
        for block in row_slices(coordinates.rows32):
            gradient += slope[:, block] @ coordinates.rows32[block]
        stride = _STRIDE * (1 - share) * _length(x) / np.maximum(_length(gradient), np.float32(1e-30))
        x = _inside(coordinates, x - stride.astype(np.float32) * gradient)
    return best


def scores_of_all(coordinates: Coordinates, x: Batch) -> Batch:
    """The score of every class (n × classes) at points in coordinates; without a bias in a cone."""
    scores = np.empty((len(x), coordinates.head.classes), np.float32)
    for block in row_slices(coordinates.rows32):
        scores[:, block] = x @ coordinates.rows32[block].T
    return scores if coordinates.is_cone else scores + coordinates.biases32


def _slope(gaps: Batch, smoothing: Batch) -> Batch:
    """The derivative of σ(gap / smoothing), up to a factor for each row."""
    half = np.exp(-np.abs(gaps) / np.maximum(smoothing, np.float32(1e-30)))
    return np.asarray(half / (1 + half) ** 2)


def _length(vectors: Batch) -> Batch:
    return np.asarray(np.sqrt((vectors * vectors).sum(axis=1, keepdims=True)))


def _inside(coordinates: Coordinates, x: Batch) -> Batch:
    if coordinates.radius is None:
        return np.clip(x, coordinates.lo, coordinates.hi).astype(np.float32)
    return x * np.minimum(1, coordinates.radius / np.maximum(_length(x), 1e-30)).astype(np.float32)
