"""Braid reflection (Grivas, Bogoychev & Lopez 2022, Algorithm 2): while another class i wins at x,
reflect x across the hyperplane s_c = s_i. Batched: one product moves every open class a step.

It can only ever answer "argmaxable"; a class it does not settle may be either.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from argmaxable.chart import Chart

Ids = NDArray[np.intp]

# Scores held at a time (64 MB), as in the checker.
_BLOCK_SCORES = 1 << 24


@dataclass(frozen=True, eq=False)
class Step:
    """After one step: classes whose point now wins, those points, and who beat the others."""

    classes: Ids
    points: NDArray[np.float32]
    winners: Ids


def reflect(chart: Chart, classes: Ids, start: NDArray[np.float32]) -> Iterator[Step]:
    """Yield the steps of a batched search from `start` (n × kept features) until all have won.

    A class whose point wins leaves the search; whether the point lies in the domain is for the
    caller to check.
    """
    x = start.copy()
    open_ids = classes
    transposed = np.ascontiguousarray(chart.rows32.T)
    while len(open_ids):
        winners = _winners(chart, transposed, x)
        won = winners == open_ids
        yield Step(open_ids[won], x[won], winners[~won])
        open_ids, x, winners = open_ids[~won], x[~won], winners[~won]
        with np.errstate(over="ignore", invalid="ignore"):
            normal = chart.rows32[open_ids] - chart.rows32[winners]
            score = (x * normal).sum(axis=1) + (chart.biases32[open_ids] - chart.biases32[winners])
            length = np.maximum((normal * normal).sum(axis=1), np.float32(1e-30))
            x -= (2 * score / length)[:, None] * normal


def _winners(chart: Chart, transposed: NDArray[np.float32], x: NDArray[np.float32]) -> Ids:
    winners = np.empty(len(x), np.intp)
    step = max(1, _BLOCK_SCORES // len(chart.rows32))
    for first in range(0, len(x), step):
        with np.errstate(over="ignore", invalid="ignore"):
            scores = x[first : first + step] @ transposed
            scores += chart.biases32
        winners[first : first + step] = scores.argmax(axis=1)
    return winners
