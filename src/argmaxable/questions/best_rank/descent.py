"""Points at which few classes are not below a chosen one: descent on a smoothed count, for many classes at
once.

The count Σ_i [s_i(x) ≥ s_c(x)] becomes Σ_i σ((s_i − s_c)/τ), with τ falling from half the typical gap to a
fiftieth. Two products a step for a whole batch. Nothing here is trusted: whoever uses a point counts again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from argmaxable.compute.coordinates import Chart
from argmaxable.compute.rows import row_slices
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


def points_with_few_above(chart: Chart, classes: Ids) -> NDArray[np.float64]:
    """For each class a point z of the domain (n × features), the best of the descent from its own
    direction."""
    found = np.zeros((len(classes), chart.head.features))
    if not chart.size:
        return chart.to_point(np.zeros((len(classes), 0)))
    size = max(1, _BLOCK_SCORES // chart.head.classes)
    for first in range(0, len(classes), size):
        some = slice(first, first + size)
        with np.errstate(all="ignore"):
            found[some] = chart.to_point(_descend(chart, classes[some]).astype(np.float64))
    return found


def _descend(chart: Chart, classes: Ids) -> Batch:
    index = np.arange(len(classes))
    own = chart.rows32[classes]
    x = _inside(chart, (own / np.maximum(_length(own), np.float32(1e-30))).astype(np.float32))
    best, fewest = x.copy(), np.full(len(classes), chart.head.classes)
    for step in range(_STEPS + 1):
        share = step / _STEPS
        gaps = _scores(chart, x)
        gaps -= gaps[index, classes][:, None]
        above = (gaps >= 0).sum(axis=1) - 1
        better = above < fewest
        best[better], fewest[better] = x[better], above[better]
        smoothing = np.abs(gaps).mean(axis=1, keepdims=True) * np.float32(_FIRST * (_LAST / _FIRST) ** share)
        slope = _slope(gaps, smoothing)
        slope[index, classes] = 0
        gradient = -slope.sum(axis=1, keepdims=True) * own
        for block in row_slices(chart.rows32):
            gradient += slope[:, block] @ chart.rows32[block]
        stride = _STRIDE * (1 - share) * _length(x) / np.maximum(_length(gradient), np.float32(1e-30))
        x = _inside(chart, x - stride.astype(np.float32) * gradient)
    return best


def _scores(chart: Chart, x: Batch) -> Batch:
    scores = np.empty((len(x), chart.head.classes), np.float32)
    for block in row_slices(chart.rows32):
        scores[:, block] = x @ chart.rows32[block].T
    return scores if chart.is_cone else scores + chart.biases32


def _slope(gaps: Batch, smoothing: Batch) -> Batch:
    """The derivative of σ(gap / smoothing), up to a factor for each row."""
    half = np.exp(-np.abs(gaps) / np.maximum(smoothing, np.float32(1e-30)))
    return np.asarray(half / (1 + half) ** 2)


def _length(vectors: Batch) -> Batch:
    return np.asarray(np.sqrt((vectors * vectors).sum(axis=1, keepdims=True)))


def _inside(chart: Chart, x: Batch) -> Batch:
    if chart.radius is None:
        return np.clip(x, chart.lo, chart.hi).astype(np.float32)
    return x * np.minimum(1, chart.radius / np.maximum(_length(x), 1e-30)).astype(np.float32)
