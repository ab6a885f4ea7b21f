"""The rank of a model: of log P over contexts and classes, which a linear softmax head can't lift above d
+ 1.

With features H (contexts × d) and weights W, log P = H Wᵀ + 1 bᵀ − log Z 1ᵀ (Yang et al. 2018; Ganea et
al. 2019, section 3): rank at most d + 1, or d + 2 with a bias. A constant added to a row changes no
distribution and the rank by at most one. With each row's mean removed it changes nothing; with the
columns' means removed too, a bias is gone as well, and the rank that is left is that of the features
alone: their number is read off the output.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.core.errors import InputError
from argmaxable.theory.spectrum import Rows, Spectrum, Triangle, sketch_rows, triangle_of, upper_triangle

if TYPE_CHECKING:
    from argmaxable.core.arrays import Matrix, Vector
    from argmaxable.core.head import Head

# A float32 logit is wrong by some units of rounding: a dot product of d terms whose sizes are those of random
# vectors has an error of about √d/4 units of its own size, 16 at d = 4096; softmax adds one or two.
_ROUNDINGS = 16.0
# Up to this many columns a whole factorisation takes seconds; beyond it a sketch does.
_MOST_COLUMNS = 1024
# Mixtures more than the rank that is expected, so that the first singular value of no meaning is seen too.
_OVERSAMPLING = 16
_FIRST_SKETCH = 512


@dataclass(frozen=True, eq=False)
class RankReport:
    """Three spectra of one matrix (contexts × classes) of logits or log-probabilities.

    `plain`: as it is. `shifted`: with the mean of every row removed, so that logits and log-probabilities are
    the same. `centred`: with the mean of every column removed too, so that a bias is gone.
    """

    contexts: int
    classes: int
    plain: Spectrum
    shifted: Spectrum
    centred: Spectrum
    is_sketch: bool

    @property
    def features(self) -> int:
        """How many features the head has, by its output alone: the rank of the centred matrix.

        A LayerNorm in front of the head takes one away, since its outputs lie in a hyperplane; a shift of
        that norm looks like a bias. Features that never vary are not seen.
        """
        return self.centred.rank

    @property
    def has_enough_contexts(self) -> bool:
        """Whether the centred rank is less than the contexts allow: otherwise it only bounds d from below."""
        return self.centred.rank < min(self.contexts, self.classes) - 1

    def exceeds(self, features: int, *, bias: bool) -> bool:
        """Whether the rank is above what a linear softmax head with so many features allows."""
        return self.plain.rank > most_rank(features, bias=bias)


def most_rank(features: int, *, bias: bool) -> int:
    """The largest rank that log P of a linear softmax head can have: d + 1, or d + 2 with a bias."""
    return features + (2 if bias else 1)


def measure_rank(
    rows: Rows, *, threshold: float | None = None, expected: int | None = None, seed: int = 0
) -> RankReport:
    """The rank of a matrix of logits or log-probabilities, read once or, with many classes, a few times.

    `threshold` is relative to the largest singular value; by default singular values count as zero up to
    what rounding alone would make: u (√contexts + √classes) times 16 roundings of an entry of root mean
    square size, and what our own float64 adds. `expected` is the rank that is thought possible: it sets
    the size of a sketch, which is doubled until the rank is below it. Raises InputError for values that
    aren't finite.
    """
    if _fits(rows, expected):
        return _report(triangle_of(rows.blocks()), None, rows, threshold)
    size = _FIRST_SKETCH if expected is None else expected + _OVERSAMPLING
    while True:
        report = _measure_sketched(rows, size, threshold, seed)
        # A sketch of all there is has nothing left to find.
        if report.plain.rank < size or size >= min(rows.columns, report.contexts):
            return report
        size *= 2


def _fits(rows: Rows, expected: int | None) -> bool:
    """Whether to factorise the whole matrix: it is small, and a sketch would not be far smaller."""
    if expected is not None and 4 * (expected + _OVERSAMPLING) < rows.columns:
        return False
    smaller = rows.columns if rows.count is None else min(rows.columns, rows.count)
    return smaller <= _MOST_COLUMNS and smaller * rows.columns <= 16 * _MOST_COLUMNS**2


def _measure_sketched(rows: Rows, size: int, threshold: float | None, seed: int) -> RankReport:
    basis = sketch_rows(rows, min(size, rows.columns), np.random.default_rng(seed))
    energy = 0.0

    def projected() -> Iterator[Matrix]:
        nonlocal energy
        for block in rows.blocks():
            energy += float((block**2).sum())
            yield block @ basis

    triangle = triangle_of(projected())
    right = np.column_stack([np.zeros(rows.columns), basis])
    return _report(triangle, right, rows, threshold, energy=energy)


def measure_head(
    features: Rows, head: Head, *, log_probabilities: bool = True, threshold: float | None = None
) -> RankReport:
    """The rank of log P, or of the logits, from the head's inputs (contexts × d): exact for any number of
    classes, since [1 H log Z] [b W −1]ᵀ never has to be multiplied out.

    Raises InputError when the inputs don't fit the head.
    """
    from scipy.special import logsumexp  # late, so that the command line starts without it

    if features.columns != head.features:
        raise InputError(f"inputs with {features.columns} features for a head with {head.features}.")
    weight, bias = head.rows(slice(None)), head.biases()
    columns = [bias, weight, -np.ones(head.classes)] if log_probabilities else [bias, weight]

    def partitions(block: Matrix) -> Vector:
        # A few rows at a time: their logits would fill the memory.
        parts = np.array_split(block, math.ceil(len(block) * head.classes / 2**22))
        return np.concatenate([logsumexp(part @ weight.T + bias, axis=1) for part in parts])

    def left() -> Iterator[Matrix]:
        for block in features.blocks():
            yield np.column_stack([block, partitions(block)]) if log_probabilities else block

    triangle = triangle_of(left())
    right = np.column_stack(columns)
    # The products are ours, in float64, but the features are no more exact than they were computed: those
    # behind a LayerNorm leave their hyperplane by a rounding.
    rows = Rows(head.classes, features.unit, features.read)
    return _report(triangle, right, rows, threshold)


def _report(
    triangle: Triangle,
    right: Matrix | None,
    rows: Rows,
    threshold: float | None,
    *,
    energy: float | None = None,
) -> RankReport:
    """The spectra of [1 T] rightᵀ (or T itself) from the triangle of [1 T].

    `energy` is the sum of squares of the whole matrix, where a sketch may miss some of it.
    """
    products = _products(triangle.factor, right)
    most = min(triangle.count, rows.columns)
    values = [_singular_values(product)[:most] for product in products]
    kept = float((values[0] ** 2).sum())
    missed = 0.0 if energy is None else max(0.0, energy - kept)
    size = math.sqrt((kept + missed) / (triangle.count * rows.columns))
    rounding = _ROUNDINGS * rows.unit * size * (math.sqrt(triangle.count) + math.sqrt(rows.columns))
    # The factorisations here have errors too, in float64: those that numpy's matrix_rank reckons with.
    ours = max(triangle.factor.shape) * float(np.finfo(np.float64).eps) * float(values[0][0])
    limit = rounding + ours if threshold is None else threshold * float(values[0][0])
    plain, shifted, centred = (Spectrum(each, limit, float((each**2).sum()) + missed) for each in values)
    return RankReport(triangle.count, rows.columns, plain, shifted, centred, energy is not None)


def _singular_values(matrix: Matrix) -> Vector:
    return np.asarray(np.linalg.svd(matrix, compute_uv=False), dtype=np.float64)


def _products(factor: Matrix, right: Matrix | None) -> tuple[Matrix, Matrix, Matrix]:
    """Matrices with the singular values of the plain, the shifted and the centred one.

    Row means go by taking them from the right factor's columns; column means with the triangle's first row.
    """
    if right is None:
        plain = factor[:, 1:]
        shifted = plain - plain.mean(axis=1, keepdims=True)
        return plain, shifted, shifted[1:]
    plain = factor @ upper_triangle(right).T
    even = upper_triangle(right - right.mean(axis=0)).T
    return plain, factor @ even, (factor @ even)[1:]
