"""Margins in units of rounding error: by how much a class leads in logits that a machine computes.

The machine: weights, bias and the feature vector are rounded to the format, to nearest; products are
summed in float32, in any order, fused or not, rounded or cut off; the bias is added there, or after the
sum was rounded; the logit is rounded to the format. So the computed logit of class i lies within r_i of
t_i, the exact logit of the rounded row at the rounded input, where

    r_i = γ_{d+3} (Σ_j |w_ij x_j| + |b_i|) + u (|w_i·x| + |t_i|)      γ of float32, u of the format

with the term |w_i·x| only where there is a bias, and Σ_j |w_ij x_j| bounded by ‖w_i‖ ‖x‖. A lead t_c − t_i
above r_c + r_i survives whatever the order of summation. The unit is that sum.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.compute.blocks import blocks, row_blocks
from argmaxable.compute.prepared import centre_of
from argmaxable.exact.rounding import UNIT, gamma
from argmaxable.questions.arithmetic.formats import PRECISIONS, Float, Rounding, rounded

if TYPE_CHECKING:
    from argmaxable.core.arrays import Ids, Matrix, Vector
    from argmaxable.core.domain import Domain
    from argmaxable.core.head import Head

_SINGLE = 2.0**-24
# What a term of a float32 sum can lose by underflow.
_FLUSHED = 2.0**-126
# More than norms lose where squares underflow.
_TINY_LENGTH = 2.0**-500
# Roundings of a sum besides those of its terms: the bias, and room for one more.
_EXTRA = 3
# Rivals that a step can bring to the front should have their say before: the soft minimum is as soft as
# the ratios change in this share of a step. Of 150 classes of ppocrv4 in bf16, 0.1 leaves 21 below one unit.
_SOFTNESS = 0.1
# Several matrices of points × classes are held at a time: 16 MB each.
_BLOCK_SCORES = 1 << 22


class Machine:
    """Computes logits of one head, rounded to a float format, at points of a domain."""

    def __init__(self, head: Head, domain: Domain, number: Float | str) -> None:
        self.number = Float(number)
        self.precision = PRECISIONS[self.number]
        self.head, self.domain = rounded(head, Rounding(self.number.value)), domain
        # Our own evaluation: float32 is as good as the machine's sums; for a float32 machine it must be
        # better, or its error would count twice.
        self._wide: type[Any] = np.float64 if self.number is Float.FP32 else np.float32
        self._biases = self.head.biases()
        self._norms = np.empty(head.classes)
        for block in row_blocks(head.classes, head.features):
            squares = np.square(self.head.rows(block)).sum(axis=1)
            self._norms[block] = np.sqrt(squares) * (1 + gamma(head.features + 8)) + _TINY_LENGTH
        self._lost = 2 * self.precision.tiny + 2 * head.features * _FLUSHED
        self._spread = _spread(self.head)
        # How far a sum may be off, for each unit of size: the machine's, and ours.
        self._relative = gamma(head.features + _EXTRA, 2 * _SINGLE)
        self._relative += gamma(head.features + _EXTRA, UNIT if self._wide is np.float64 else _SINGLE)

    def units(self, classes: Ids, points: Matrix) -> Vector:
        """The smallest lead of each class at its point z (n × features), in units of rounding error.

        Above 1 the class is the strict argmax of the computed logits, in any order of summation.
        """
        found = np.empty(len(classes))
        for block in blocks(len(classes), self.head.classes, _BLOCK_SCORES):
            ratios, *_ = self._ratios(classes[block], points[block])
            found[block] = ratios.min(axis=1)
        return found

    def climb(self, classes: Ids, points: Matrix, length: float) -> tuple[Vector, Matrix]:
        """The units at each point, and the direction in z in which they grow: for search/ascent.py.

        `length` is that of the coming step, as a share of the point's.
        """
        units, directions = np.empty(len(classes)), np.empty_like(points)
        for block in blocks(len(classes), self.head.classes, _BLOCK_SCORES):
            units[block], directions[block] = self._climb(classes[block], points[block], length)
        return units, directions

    def _ratios(self, classes: Ids, points: Matrix) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """Leads in units (n × classes, ∞ for the class itself), the units, logits, and inputs."""
        index = np.arange(len(classes))
        with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
            x = self.domain.place(points)[0].astype(self.precision.dtype).astype(self._wide)
            products = self._products(x)
            lengths = np.sqrt(np.einsum("ij,ij->i", x, x, dtype=np.float64)) * (1 + gamma(len(x[0]) + 8))
            logits = products + self._biases if self.head.bias is not None else products
            error = self._relative * (lengths[:, None] * self._norms + np.abs(self._biases))
            size = np.abs(logits) + (np.abs(products) if self.head.bias is not None else 0.0) + error
            error = error + self.precision.unit * (1 + self.precision.unit) * size + self._lost
            error[~(np.abs(logits) + error < self.precision.largest)] = math.inf
            lead = logits[index, classes][:, None] - logits
            unit = error[index, classes][:, None] + error
            ratios = np.where(np.isfinite(unit), lead / unit, -math.inf)
        ratios[index, classes] = math.inf
        return ratios, unit, logits, np.asarray(x, np.float64)

    def _climb(self, classes: Ids, points: Matrix, length: float) -> tuple[Vector, Matrix]:
        """Gradient of a soft minimum of the ratios (t_c − t_i) / (r_c + r_i) by the quotient rule."""
        index = np.arange(len(classes))
        ratios, unit, logits, x = self._ratios(classes, points)
        worst = ratios.min(axis=1)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            spread = _SOFTNESS * length * np.sqrt((x * x).sum(axis=1)) * self._spread / unit.min(axis=1)
            shares = np.exp((worst[:, None] - ratios) / np.maximum(spread, 1e-300)[:, None])
            shares = np.nan_to_num(shares / unit)
            shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
            u = self.precision.unit * (2 if self.head.bias is not None else 1)
            cost = np.where(np.isfinite(ratios), ratios, 0.0) * shares
            total = cost.sum(axis=1)
            own = shares.sum(axis=1) - total * u * np.sign(logits[index, classes])
            others = -shares - cost * u * np.sign(logits)
            others[index, classes] = own
            direction = self._mixtures(others.astype(self._wide))
            weight = self._relative * (total * self._norms[classes] + cost @ self._norms)
            direction -= (weight / np.maximum(np.sqrt((x * x).sum(axis=1)), 1e-300))[:, None] * x
        return worst, self._in_z(np.nan_to_num(direction))

    def _products(self, x: NDArray[Any]) -> Matrix:
        """x·w_i for every class; rows are widened a block at a time, so that large heads fit."""
        products = np.empty((len(x), self.head.classes))
        for block in row_blocks(self.head.classes, self.head.features):
            products[:, block] = x @ self.head.weight[block].astype(self._wide, copy=False).T
        return products

    def _mixtures(self, weights: NDArray[Any]) -> Matrix:
        """Σ_i weights_i w_i for each row of weights."""
        total = np.zeros((len(weights), self.head.features))
        for block in row_blocks(self.head.classes, self.head.features):
            total += weights[:, block] @ self.head.weight[block].astype(self._wide, copy=False)
        return total

    def _in_z(self, direction: Matrix) -> Matrix:
        return self.domain.rows_seen(direction)


def _spread(head: Head) -> float:
    """The usual distance of a row from the mean of all."""
    centre = centre_of(head)
    squares = sum(
        float(np.square(head.rows(block) - centre).sum()) for block in row_blocks(head.classes, head.features)
    )
    return math.sqrt(squares / head.classes)
