"""How near a linear softmax head can come to given distributions in squared error of log P, for every d.

Theorem 1 of Ganea et al. 2019: log P of a head has rank at most d + 1, so that Eckart & Young bound its
distance. All matrices here are contexts × classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from argmaxable.core.errors import InputError
from argmaxable.theory.rank import most_rank

if TYPE_CHECKING:
    from argmaxable.core.arrays import Matrix, Vector


@dataclass(frozen=True, eq=False)
class SquaredErrorBounds:
    """Lower bounds on ‖log P* − log Q‖² over all heads; entry d is for d features, 0 and more.

    `plain` is the theorem's: what the best matrix of rank d + 1 (d + 2 with a bias) leaves. `centred`
    knows more: the matrix is one of rank d plus a constant for each row (and with a bias a constant for
    each column), and the best such constants are means. It is never below `plain`.
    """

    plain: Vector
    centred: Vector


def squared_error_bounds(log_p: ArrayLike, *, bias: bool = False) -> SquaredErrorBounds:
    """Bounds for every d up to the number of classes. Raises InputError unless log P is a finite matrix."""
    target = _matrix(log_p)
    classes = target.shape[1]
    first = most_rank(0, bias=bias)
    plain, centred = _tails(target, classes + first), _tails(_centred(target, bias=bias), classes)
    return SquaredErrorBounds(plain[first:], centred)


def nearest_of_rank(log_p: ArrayLike, features: int, *, bias: bool = False) -> Matrix:
    """The matrix that reaches the plain bound: the first d + 1 (d + 2) terms of the singular value
    decomposition. In general its rows are no log-probabilities."""
    _require_count(features)
    return _truncated(_matrix(log_p), most_rank(features, bias=bias))


def nearest_logits(log_p: ArrayLike, features: int, *, bias: bool = False) -> Matrix:
    """The matrix that reaches the centred bound: logits of a head with d features, plus the best constant
    for each row. Their softmax is a model of that size; its log P has log Z in place of the best
    constants."""
    _require_count(features)
    target = _matrix(log_p)
    centred = _centred(target, bias=bias)
    return _truncated(centred, features) + (target - centred)


def _require_count(features: int) -> None:
    if features < 0:
        raise InputError(f"a head has 0 features or more, found {features}.")


def _matrix(log_p: ArrayLike) -> Matrix:
    target = np.asarray(log_p, dtype=np.float64)
    if target.ndim != 2 or not target.size or not np.isfinite(target).all():
        raise InputError(
            "log P must be a matrix (contexts × classes) of finite numbers: no distribution with a "
            "probability of 0 is at a finite distance from a softmax."
        )
    return target


def _centred(target: Matrix, *, bias: bool) -> Matrix:
    rows: Matrix = target - target.mean(axis=1, keepdims=True)
    if bias:
        rows -= rows.mean(axis=0)
    return rows


def _tails(matrix: Matrix, most: int) -> Vector:
    """Σ_{k > r} σ_k² for r = 0, 1, …, most."""
    values = np.linalg.svd(matrix, compute_uv=False)
    squares = np.zeros(max(most, len(values)) + 1)
    squares[: len(values)] = values**2
    # From the small end, so that the last sums keep their digits.
    tails: Vector = np.cumsum(squares[::-1])[::-1][: most + 1]
    return tails


def _truncated(matrix: Matrix, rank: int) -> Matrix:
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    product: Matrix = (left[:, :rank] * values[:rank]) @ right[:rank]
    return product
