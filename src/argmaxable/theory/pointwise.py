"""What pointwise functions of the logits do to their rank: section 4 of Ganea et al. 2019.

A softmax over f(logits) is as fast as one over logits and ranks classes alike when f increases, but log P
is no longer bound to rank d + 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from argmaxable.core.arrays import Matrix, Vector
from argmaxable.core.errors import InputError
from argmaxable.theory.exact_rank import exact_rank, find_pivots

Function = Callable[[Matrix], Matrix]

# Random values fail with a probability of 1e-9 or so; a second failure means something else.
_MOST_DRAWS = 8


@dataclass(frozen=True, eq=False)
class PiecewiseLinear:
    """A continuous, strictly increasing bijection of ℝ: straight between its knots, and beyond the last
    ones with the slopes `left` and `right`."""

    knots: Vector
    values: Vector
    left: float
    right: float

    def __post_init__(self) -> None:
        rises = (np.diff(self.knots) > 0).all() and (np.diff(self.values) > 0).all()
        if not (rises and self.left > 0 and self.right > 0):
            raise InputError("a piecewise linear bijection needs knots, values and end slopes that increase.")

    def __call__(self, x: ArrayLike) -> Matrix:
        x = np.asarray(x, dtype=np.float64)
        values: Matrix = np.interp(x, self.knots, self.values)
        values = values + np.minimum(x - self.knots[0], 0) * self.left
        values = values + np.maximum(x - self.knots[-1], 0) * self.right
        return values

    def inverse(self) -> PiecewiseLinear:
        return PiecewiseLinear(self.values, self.knots, 1 / self.left, 1 / self.right)

    @property
    def slopes(self) -> Vector:
        """Between knots."""
        return np.diff(self.values) / np.diff(self.knots)


# ---------------------------------------------------------------------- Theorem 3


def increasing_like(matrix: ArrayLike, function: Function, *, seed: int = 0) -> PiecewiseLinear:
    """Theorem 3: an increasing bijection g for which g(A) has at least the rank of f(A), for whatever f.

    The proof, run: on a regular submatrix of f(A), with the distinct entries b of A there, g(b) is a
    random value within a quarter of the least distance between such entries. The determinant is a
    polynomial in these values that f shows not to vanish everywhere, so it vanishes almost nowhere. Ranks
    are those of the floats, exactly. Raises InputError if the entries are too close to have floats in
    between.
    """
    a = np.asarray(matrix, dtype=np.float64)
    pivots = find_pivots(np.asarray(function(a), dtype=np.float64))
    if not len(pivots):
        return PiecewiseLinear(np.array([0.0, 1.0]), np.array([0.0, 1.0]), 1.0, 1.0)
    part = a[np.ix_(pivots.rows, pivots.columns)]
    b = np.unique(part)
    reach = float(np.diff(b).min(initial=4.0)) / 4
    generator = np.random.default_rng(seed)
    for _ in range(_MOST_DRAWS):
        c = b + generator.uniform(-reach, reach, size=len(b))
        knots, values = _with_fixed_points(b, c, reach)
        if (np.diff(values) > 0).all() and (np.diff(knots) > 0).all():
            g = PiecewiseLinear(knots, values, 1.0, 1.0)
            if exact_rank(g(part)) == len(pivots):
                return g
    raise InputError(
        f"entries as near as {4 * reach:.3g} leave no room for other values between them in float64."
    )


def _with_fixed_points(b: Vector, c: Vector, reach: float) -> tuple[Vector, Vector]:
    """Each b to its c, and halfway to the next entry and at the ends every point to itself."""
    fixed = np.unique(np.concatenate([[b[0] - 2 * reach], b + 2 * reach]))
    knots, values = np.concatenate([b, fixed]), np.concatenate([c, fixed])
    order = np.argsort(knots, kind="stable")
    return knots[order], values[order]


# ---------------------------------------------------------------------- Lemma 4


def separating_contexts(matrix: ArrayLike) -> NDArray[np.intp] | None:
    """Lemma 4's condition on logits (contexts × classes): for each class another context, whose logit for it
    occurs nowhere else in the matrix; None when there are no such contexts.

    If there are, a pointwise function makes the matrix of full rank: `indicator` does, and by Theorem 3 an
    increasing one. None proves nothing. Equal means equal as floats.
    """
    a = np.asarray(matrix, dtype=np.float64)
    _, inverse, counts = np.unique(a, return_inverse=True, return_counts=True)
    alone = csr_array((counts[inverse.reshape(a.shape)] == 1).T)
    contexts = maximum_bipartite_matching(alone, perm_type="column")
    return None if (contexts < 0).any() else contexts.astype(np.intp)


def indicator(values: ArrayLike) -> Function:
    """The function that is 1 at these values and 0 elsewhere."""
    chosen = np.asarray(values, dtype=np.float64)
    return lambda x: np.isin(x, chosen).astype(np.float64)


# ---------------------------------------------------------------------- Theorems 5 and 6


def power_rank_bound(rank: int, power: int, shape: tuple[int, int]) -> int:
    """Theorem 5 (Amini et al. 2012): the most that the rank of A with every entry raised to a power can
    be."""
    if rank < 0 or power < 1 or min(shape) < 1:
        raise InputError(f"no matrix: rank {rank}, power {power}, shape {shape}.")
    return min(*shape, math.comb(rank + power - 1, power)) if rank else 0


def random_of_rank(
    shape: tuple[int, int], rank: int, generator: np.random.Generator, *, largest: int = 999
) -> NDArray[np.object_]:
    """A random matrix of integers, of this rank or (by accident) less: exact, powers of it too."""
    left = generator.integers(-largest, largest + 1, (shape[0], rank)).astype(object)
    right = generator.integers(-largest, largest + 1, (rank, shape[1])).astype(object)
    product: NDArray[np.object_] = left @ right
    return product


def squares_to_full_rank(size: int, generator: np.random.Generator) -> bool:
    """Theorem 6 on a random matrix: whether squaring its entries lifts it from rank N − 1 to N, proven.

    Almost always for N ≥ 3. For N = 2 never: rank 1 stays rank 1, by Theorem 5, though the paper says N > 1.
    """
    return exact_rank(random_of_rank((size, size), size - 1, generator) ** 2) == size


# ---------------------------------------------------------------------- equation 9


@dataclass(frozen=True, eq=False)
class LogEmphasis:
    """What an error of ε in a probability x does to its logarithm, for each unit of error: between 1/(x +
    ε) and 1/x, so that squared error of log P minds small probabilities most."""

    below: Vector
    change: Vector
    above: Vector


def log_emphasis(probabilities: ArrayLike, error: float) -> LogEmphasis:
    """Equation 9: 1/(x + ε) < (log(x + ε) − log x)/ε < 1/x."""
    x = np.asarray(probabilities, dtype=np.float64)
    if not ((x > 0).all() and error > 0):
        raise InputError("equation 9 is about probabilities and errors above 0.")
    # log1p: the difference of two logarithms would lose the digits that tell the bounds apart.
    return LogEmphasis(1 / (x + error), np.log1p(error / x) / error, 1 / x)


# ---------------------------------------------------------------------- Theorem 7


def approximate(function: Function, *, reach: float, bins: int) -> PiecewiseLinear:
    """Theorem 7: the PLIF that meets an increasing function at K + 1 evenly spaced knots on [−T, T];
    beyond them its end slopes go on. Raises InputError when the function does not increase from knot to
    knot."""
    _require_bins(bins, reach)
    knots = np.linspace(-reach, reach, bins + 1)
    values = np.asarray(function(knots), dtype=np.float64)
    slopes = np.diff(values) / np.diff(knots)
    if not (slopes > 0).all():
        at = knots[int(np.argmin(slopes > 0))]
        raise InputError(f"the function does not increase from {at:.4g} to {at + 2 * reach / bins:.4g}.")
    return PiecewiseLinear(knots, values, float(slopes[0]), float(slopes[-1]))


def approximation_bound(steepest: float, *, reach: float, bins: int) -> float:
    """How far that PLIF is from a function with slopes up to R, at most: 2RT/K.

    Both increase by at most 2RT/K over a bin, and meet at its ends. (The paper's proof gives twice this.)
    """
    _require_bins(bins, reach)
    return 2 * steepest * reach / bins


def _require_bins(bins: int, reach: float) -> None:
    if bins < 1 or not reach > 0:
        raise InputError(f"a PLIF needs a bin and T above 0, found {bins} and {reach}.")
