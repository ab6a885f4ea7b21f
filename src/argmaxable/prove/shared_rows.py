"""Proofs for many classes over the same rows, for heads without bias: λ_i ∝ exp(a_i·θ), tilted to each class.

A class deep inside the hull (hardly trained, or a mixture of many others) is a mixture of almost any rows,
a few for each feature. The θ at which the tilted rows' mean is the class is the minimum of a smooth convex
function; with whitened rows plain gradients find it, and for many classes at once they are products of
matrices: a class takes a fraction of one Newton step of a solve of its own. What comes out is a candidate,
checked like everything else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from argmaxable.compute.blocks import blocks, row_blocks
from argmaxable.compute.lapack import dpotrf, dpotrs, dtrtrs, strtrs
from argmaxable.core.verdict import Certificate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from argmaxable.compute.coordinates import Coordinates
    from argmaxable.core.arrays import Ids, Matrix, Matrix32, Vector32

# Rows drawn for each feature, then for classes that these missed, and the fewest that are worth trying: of
# mixtures of three random rows for each feature nearly all are found with eight, none with four. More than
# fourteen would take more memory than a solve.
_ROWS, _FEWEST_ROWS = (8, 14), 5
# Below, a solve is cheap. Fewer classes do not pay for the factorisation.
_MANY_FEATURES, _MANY_CLASSES = 128, 4
# As many basis rows for each equation: their smallest singular value must be well above zero.
_BASIS = 1.5
# Gradients are followed until this short (whitened rows have length √d), or for so many steps.
_CLOSE, _STEPS = 3e-6, 150
_FIRST_STEP, _SHORTEST, _LONGEST = 0.7, 0.05, 100.0
# Each takes the residual down to the rounding of float32 times what it was.
_CORRECTIONS = 3
# Weights held at a time.
_ENTRIES = 1 << 23


@dataclass(frozen=True, eq=False)
class Candidates:
    """Classes with a certificate each, all over the same rows."""

    classes: Ids
    certificates: list[Certificate]


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows that everybody shares: whitened, with what takes them there."""

    coordinates: Coordinates
    ids: Ids
    mean: NDArray[np.float64]
    factor: Matrix
    whitened: Matrix32


def prove_together(coordinates: Coordinates, classes: Ids, others: Ids, *, seed: int) -> Iterator[Candidates]:
    """Certificates over rows drawn from `others` for those of the classes that have one, some at a time."""
    if not coordinates.is_cone or coordinates.size < _MANY_FEATURES or len(classes) < _MANY_CLASSES:
        return
    for number in _ROWS:
        rows = _draw(coordinates, others, number, seed)
        if rows is None:
            return
        missed = []
        for block in blocks(len(classes), len(rows.ids), _ENTRIES):
            found = _candidates(rows, classes[block])
            if len(found.classes):
                yield found
            missed.append(np.setdiff1d(classes[block], found.classes))
        left = np.concatenate(missed)
        if len(left) in (0, len(classes)) or len(rows.ids) == len(others):
            return
        classes = left


def _candidates(rows: _Rows, classes: Ids) -> Candidates:
    # A class outside these rows' hull runs away; what comes of it has no positive weights.
    with np.errstate(all="ignore"):
        weights = _corrected(rows, classes, _tilted(rows, classes))
    proven = np.flatnonzero((weights > 0).all(axis=1))
    basis = int(_BASIS * (rows.coordinates.size + 1))
    return Candidates(classes[proven], [Certificate(rows.ids, weights[k], basis) for k in proven])


def _draw(coordinates: Coordinates, others: Ids, number: int, seed: int) -> _Rows | None:
    """Rows, so many for each feature, whitened; None when there are too few or they do not span the space."""
    count = min(number * coordinates.size, len(others))
    if count < _FEWEST_ROWS * coordinates.size:
        return None
    ids = np.sort(np.random.default_rng(seed).choice(others, count, replace=False))
    rows = np.ascontiguousarray(coordinates.rows32[ids])
    mean = rows.mean(axis=0, dtype=np.float64)
    rows -= mean.astype(np.float32)
    factor, failed = dpotrf((rows.T @ rows).astype(np.float64) / count, lower=1, clean=1)
    if failed or not np.isfinite(factor).all():
        return None
    whitened, singular = strtrs(factor.astype(np.float32), rows.T, lower=1, overwrite_b=1)
    return None if singular else _Rows(coordinates, ids, mean, factor, np.ascontiguousarray(whitened.T))


def _tilted(rows: _Rows, classes: Ids) -> Matrix:
    """Positive weights, a row for each class, whose mean is close to the class where that could be reached.

    Gradients with the two step lengths of Barzilai and Borwein in turn.
    """
    own = (rows.coordinates.rows(classes) - rows.mean).T
    target = np.ascontiguousarray(dtrtrs(rows.factor, own, lower=1)[0].T, np.float32)
    theta, active = target.copy(), np.arange(len(classes))
    steps = np.full(len(classes), _FIRST_STEP, np.float32)
    previous: tuple[Matrix32, Matrix32] | None = None
    for number in range(_STEPS):
        here = theta[active]
        gradient = _softmax(here @ rows.whitened.T) @ rows.whitened - target[active]
        if previous is not None:
            steps = _step_lengths(here - previous[0], gradient - previous[1], longer=bool(number % 2))
        theta[active] = here - steps[:, None] * gradient
        far = np.sqrt((gradient * gradient).sum(axis=1)) > _CLOSE
        if not far.any():
            break
        active, steps, previous = active[far], steps[far], (here[far], gradient[far])
    return _softmax(theta @ rows.whitened.T).astype(np.float64)


def _step_lengths(moved: Matrix32, turned: Matrix32, *, longer: bool) -> Vector32:
    along = np.maximum((moved * turned).sum(axis=1), np.finfo(np.float32).tiny)
    if longer:
        lengths = (moved * moved).sum(axis=1) / along
    else:
        lengths = along / np.maximum((turned * turned).sum(axis=1), np.finfo(np.float32).tiny)
    return np.asarray(np.clip(lengths, _SHORTEST, _LONGEST), np.float32)


def _softmax(scores: Matrix32) -> Matrix32:
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    return scores


def _corrected(rows: _Rows, classes: Ids, weights: Matrix) -> Matrix:
    """The weights moved, as little as can be, to where they give the class up to float64's rounding."""
    count = len(rows.ids)
    portions = row_blocks(count, rows.coordinates.size)
    for _ in range(_CORRECTIONS):
        missing, total = rows.coordinates.rows(classes) - rows.mean, np.ones(len(classes))
        for portion in portions:
            missing -= weights[:, portion] @ (rows.coordinates.rows(rows.ids[portion]) - rows.mean)
            total -= weights[:, portion].sum(axis=1)
        direction = dpotrs(rows.factor, missing.T, lower=1)[0] / count
        for portion in portions:
            around = rows.coordinates.rows(rows.ids[portion]) - rows.mean
            weights[:, portion] += (around @ direction).T + total[:, None] / count
    return weights
