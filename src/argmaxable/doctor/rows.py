"""Rows of a head that stand out: zero, the same as another, at or near the mean, of outlying norm or bias."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.compute.blocks import row_blocks
from argmaxable.compute.identical_rows import IdenticalRows, find_identical_rows
from argmaxable.questions.arithmetic.formats import PRECISIONS

if TYPE_CHECKING:
    from argmaxable.core.arrays import Ids, Mask, Matrix, Vector
    from argmaxable.core.head import Head

# transformers draws new rows (resize_token_embeddings, mean_resizing) with the mean of the old ones and 1e-9
# of their covariance. A million normal numbers stay within 5 deviations, 1e11 within 7.
_NOISE = 1e-9**0.5
_DEVIATIONS = 7.0
# It sums in float32: what the mean may be off by, relative to the mean of |w|.
_MEAN_ERROR = 1e-6
# Where a few rows are so large, or the mean so far away, that the allowance reaches this share of the usual
# distance between rows, it tells nothing.
_CLOSE = 0.1
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
    twins: IdenticalRows


def odd_rows(head: Head) -> OddRows:
    """Which rows stand out."""
    rows = _measure(head)
    twins = find_identical_rows(head)
    at_mean = _at_mean(head, rows) & ~rows.is_zero
    rest = ~rows.is_zero & ~at_mean
    with np.errstate(divide="ignore"):
        near_mean = _outlying(np.log(rows.away), rest & (rows.away > 0))
        near_mean &= rows.away < np.median(rows.away)
        odd_norm = _outlying(np.log(rows.norms), rest & (rows.norms > 0)) & ~near_mean
    return OddRows(
        zero=np.flatnonzero(rows.is_zero),
        at_mean=np.flatnonzero(at_mean),
        near_mean=np.flatnonzero(near_mean),
        shadowed=np.flatnonzero((twins.beaten_by >= 0) | (twins.tied_to >= 0)),
        norm=np.flatnonzero(odd_norm),
        bias=np.flatnonzero(_odd_bias(head)),
        twins=twins,
    )


@dataclass(frozen=True, eq=False)
class _Measures:
    """Of rows, scaled by 2^−exponent so that squares neither overflow nor vanish: which are zero, norms,
    distances from the mean; the features' mean, standard deviation and mean absolute value; and how far
    apart rows usually are, whatever a few of them do."""

    exponent: int
    is_zero: Mask
    norms: Vector
    away: Vector
    mean: Vector
    deviation: Vector
    size: Vector
    usual: float


def _scaled(head: Head, block: slice, exponent: int) -> Matrix:
    with np.errstate(under="ignore"):
        return np.asarray(np.ldexp(head.rows(block), -exponent))


def _measure(head: Head) -> _Measures:
    blocks = row_blocks(head.classes, head.features)
    exponent = max(math.frexp(float(np.abs(head.rows(block)).max()))[1] for block in blocks)
    is_zero = np.empty(head.classes, bool)
    norms, away, apart = (np.zeros(head.classes) for _ in range(3))
    total, size, squares = (np.zeros(head.features) for _ in range(3))
    for block in blocks:
        is_zero[block] = ~head.rows(block).any(axis=1)
        rows = _scaled(head, block, exponent)
        norms[block] = _lengths(rows)
        apart[block.start : block.stop - 1] = _lengths(np.diff(rows, axis=0))
        total += rows.sum(axis=0)
        size += np.abs(rows).sum(axis=0)
    mean = total / head.classes
    for block in blocks:
        off = _scaled(head, block, exponent) - mean
        away[block] = _lengths(off)
        squares += np.square(off).sum(axis=0)
    deviation, usual = np.sqrt(squares / head.classes), float(np.median(apart)) / math.sqrt(2)
    return _Measures(exponent, is_zero, norms, away, mean, deviation, size / head.classes, usual)


def _lengths(rows: Matrix) -> Vector:
    return np.asarray(np.sqrt(np.square(rows).sum(axis=1)))


def _at_mean(head: Head, of: _Measures) -> Mask:
    """Rows where every feature is at the mean of all rows, or of all rows before: new rows come last, and
    others behind them may be of any kind."""
    unit = next((each.unit for each in PRECISIONS.values() if each.dtype == head.weight.dtype), 0.0)
    allowed = _DEVIATIONS * _NOISE * of.deviation + _MEAN_ERROR * of.size
    near = np.zeros(head.classes, bool)
    before = np.zeros(head.features)
    for block in row_blocks(head.classes, head.features):
        rows = _scaled(head, block, of.exponent)
        sums = before + np.cumsum(rows, axis=0)
        places = np.arange(block.start, block.stop)
        late = places * 2 >= head.classes
        means = (sums - rows)[late] / np.maximum(places[late, None], 1)
        for centre, where in ((of.mean[None], slice(None)), (means, late)):
            off = np.abs(rows[where] - centre)
            is_there = (off <= allowed + unit * np.abs(centre)).all(axis=1)
            near[places[where]] |= is_there & (_lengths(off) < _CLOSE * of.usual)
        before = sums[-1]
    return near


def _odd_bias(head: Head) -> Mask:
    """Biases of trained heads follow the classes' frequencies, with long tails: only what is far beyond the
    tail stands out."""
    biases = head.biases()
    if not head.has_bias:
        return np.zeros(head.classes, bool)
    tail = float(np.quantile(np.abs(biases - np.median(biases)), _TAIL))
    return _outlying(biases, np.ones(head.classes, bool), least=_TIMES * tail)


def _outlying(values: Vector, considered: Mask, least: float = math.log(_TIMES)) -> Mask:
    """Values many robust deviations away from the median of those considered, and by at least that much."""
    if not considered.any():
        return np.zeros(len(values), bool)
    middle = float(np.median(values[considered]))
    distance = np.where(considered, np.abs(values - middle), 0.0)
    spread = _NORMAL * float(np.median(distance[considered]))
    return np.asarray(distance > max(_ROBUST_DEVIATIONS * spread, least))
