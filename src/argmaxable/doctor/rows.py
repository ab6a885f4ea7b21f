"""Rows of a head that stand out: zero, the same as another, at or near the mean, of outlying norm or bias."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from argmaxable.arithmetic.formats import PRECISIONS
from argmaxable.head import Head
from argmaxable.prove.twins import Twins, find_twins
from argmaxable.scores import row_blocks

Ids = NDArray[np.intp]
Vector = NDArray[np.float64]

# transformers draws new rows (resize_token_embeddings, mean_resizing) with the mean of the old ones and 1e-9
# of their covariance. A million normal numbers stay within 5 deviations, 1e11 within 7.
_NOISE = 1e-9**0.5
_DEVIATIONS = 7.0
# It sums in float32: what the mean may be off by, relative to the mean of |w|.
_MEAN_ERROR = 1e-6
# A row that many robust deviations away stands out, if it is also so many times larger or smaller than
# the median: tight distributions are no reason for alarm. Trained heads have tails of 6 to 8 deviations.
_ROBUST_DEVIATIONS = 10.0
_TIMES = 4.0
_TAIL = 0.95
# Turns a median absolute deviation into the standard deviation of a normal distribution.
_NORMAL = 1.4826


@dataclass(frozen=True, eq=False)
class OddRows:
    """Classes by what is odd about their rows, each list in order. `shadowed` have the row of another class
    with at least their bias; `twins` tells which. A class is in one of the lists zero, at_mean, near_mean and
    norm at most."""

    zero: Ids
    at_mean: Ids
    near_mean: Ids
    shadowed: Ids
    norm: Ids
    bias: Ids
    twins: Twins


def odd_rows(head: Head) -> OddRows:
    """Which rows stand out."""
    norms, mean, spread, size = _moments(head)
    zero = norms == 0
    twins = find_twins(head)
    at_mean = _at_mean(head, mean, spread, size) & ~zero
    rest = ~zero & ~at_mean
    away = _distances(head, mean)
    with np.errstate(divide="ignore"):
        near_mean = _outlying(np.log(away), rest & (away > 0)) & (away < np.median(away))
        odd_norm = _outlying(np.log(norms), rest) & ~near_mean
    return OddRows(
        zero=np.flatnonzero(zero),
        at_mean=np.flatnonzero(at_mean),
        shadowed=np.flatnonzero((twins.beaten_by >= 0) | (twins.tied_to >= 0)),
        near_mean=np.flatnonzero(near_mean),
        norm=np.flatnonzero(odd_norm),
        bias=np.flatnonzero(_odd_bias(head)),
        twins=twins,
    )


def _moments(head: Head) -> tuple[Vector, Vector, Vector, Vector]:
    """Norms of rows; mean, standard deviation and mean absolute value of each feature."""
    norms = np.empty(head.classes)
    total, size, squares = (np.zeros(head.features) for _ in range(3))
    blocks = row_blocks(head.classes, head.features)
    for block in blocks:
        rows = head.rows(block)
        norms[block] = np.sqrt((rows * rows).sum(axis=1))
        total += rows.sum(axis=0)
        size += np.abs(rows).sum(axis=0)
    mean = total / head.classes
    for block in blocks:
        squares += np.square(head.rows(block) - mean).sum(axis=0)
    return norms, mean, np.sqrt(squares / head.classes), size / head.classes


def _distances(head: Head, mean: Vector) -> Vector:
    away = np.empty(head.classes)
    for block in row_blocks(head.classes, head.features):
        away[block] = np.sqrt(np.square(head.rows(block) - mean).sum(axis=1))
    return away


def _at_mean(head: Head, mean: Vector, spread: Vector, size: Vector) -> NDArray[np.bool_]:
    """Rows where every feature is at the mean of all rows, or of all rows before: new rows come last, and
    others behind them may be of any kind."""
    unit = next((each.unit for each in PRECISIONS.values() if each.dtype == head.weight.dtype), 0.0)
    allowed = _DEVIATIONS * _NOISE * spread + _MEAN_ERROR * size
    near = np.zeros(head.classes, bool)
    before = np.zeros(head.features)
    for block in row_blocks(head.classes, head.features):
        rows = head.rows(block)
        sums = before + np.cumsum(rows, axis=0)
        places = np.arange(block.start, block.stop)
        late = places * 2 >= head.classes
        for centre, where in ((mean[None], slice(None)), ((sums - rows)[late] / places[late, None], late)):
            off = np.abs(rows[where] - centre)
            near[places[where]] |= (off <= allowed + unit * np.abs(centre)).all(axis=1)
        before = sums[-1]
    # Where every row is there, the allowance tells nothing.
    return near if near.sum() * 2 < head.classes else np.zeros(head.classes, bool)


def _odd_bias(head: Head) -> NDArray[np.bool_]:
    """Biases of trained heads follow the classes' frequencies, with long tails: only what is far beyond the
    tail stands out."""
    biases = head.biases()
    if not head.has_bias:
        return np.zeros(head.classes, bool)
    tail = float(np.quantile(np.abs(biases - np.median(biases)), _TAIL))
    return _outlying(biases, np.ones(head.classes, bool), least=_TIMES * tail)


def _outlying(
    values: Vector, considered: NDArray[np.bool_], least: float = math.log(_TIMES)
) -> NDArray[np.bool_]:
    """Values many robust deviations away from the median of those considered, and by at least that much."""
    if not considered.any():
        return np.zeros(len(values), bool)
    middle = float(np.median(values[considered]))
    distance = np.where(considered, np.abs(values - middle), 0.0)
    spread = _NORMAL * float(np.median(distance[considered]))
    return np.asarray(distance > max(_ROBUST_DEVIATIONS * spread, least))
