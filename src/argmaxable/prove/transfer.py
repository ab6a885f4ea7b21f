"""Transfer: a proof is a convex combination (Σλ_i w_i, Σλ_i b_i), and whatever it dominates is
unargmaxable too. On one real head a single proof settles more than half of the unargmaxable classes.

A class close to one that was proven is often a mixture of the same rows with slightly different weights:
λ + δ with Σ δ_i (w_i, 1) = (w_c, 1) − Σ λ_i (w_i, 1), δ as small as can be relative to λ. For some classes at
once these take less time than a Newton step. Where λ + δ ≥ 0 it is a candidate, checked like everything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from argmaxable.compute.lapack import dpotrf, dpotrs
from argmaxable.core.verdict import Certificate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from argmaxable.check.checker import Bound, Checker
    from argmaxable.compute.coordinates import Coordinates
    from argmaxable.core.arrays import Ids

# Classes that one proof's weights are changed for, the nearest ones.
_NEAREST = 64


def transfer(
    coordinates: Coordinates, checker: Checker, certificate: Certificate, open_ids: Ids
) -> tuple[Ids, NDArray[np.float64]]:
    """The open classes that the certificate proves unargmaxable as well, with checked bounds.

    Only literal weights transfer: a basis certificate speaks about one class exactly.
    """
    if certificate.basis or coordinates.is_cone or not len(open_ids):
        return np.empty(0, np.intp), np.empty(0)
    weights = certificate.weights / certificate.weights.sum()
    with np.errstate(over="ignore", invalid="ignore"):
        near = open_ids[_rough_bounds(coordinates, certificate.classes, weights, open_ids) < 0]
    if not len(near):
        return near, np.empty(0)
    uppers = checker.bounds(near, certificate)
    return near[uppers <= 0], uppers[uppers <= 0]


def _rough_bounds(
    coordinates: Coordinates, rows: Ids, weights: NDArray[np.float64], open_ids: Ids
) -> NDArray[np.float64]:
    """Float32 estimates of each class's dual bound under the weights."""
    mixture = weights.astype(np.float32) @ coordinates.rows32[rows]
    direction = coordinates.rows32[open_ids] - mixture
    offset = coordinates.biases[open_ids] - float(weights @ coordinates.biases[rows])
    if coordinates.corners is not None:
        return np.asarray((direction @ coordinates.corners.astype(np.float32).T).max(axis=1) + offset)
    if coordinates.radius is not None:
        return np.asarray(coordinates.radius * np.sqrt((direction * direction).sum(axis=1)) + offset)
    lo, hi = coordinates.lo.astype(np.float32), coordinates.hi.astype(np.float32)
    return np.asarray(np.maximum(lo * direction, hi * direction).sum(axis=1) + offset)


def reweighted(
    coordinates: Coordinates, checker: Checker, certificate: Certificate, open_ids: Ids
) -> Iterator[tuple[int, Bound, Certificate]]:
    """Open classes near the mixture that other weights on the same rows prove unargmaxable, each with its
    checked bound and certificate."""
    if certificate.basis or not coordinates.is_bounded or not len(open_ids):
        return
    rows = certificate.classes
    weights = certificate.weights / certificate.weights.sum()
    near = _nearest(coordinates, rows, weights, open_ids)
    changed = _changed(coordinates, rows, weights, near)
    with np.errstate(over="ignore", invalid="ignore"):  # enormous biases; what is not a number is not above
        is_above = (changed >= 0).all(axis=1) & (
            changed @ coordinates.biases[rows] > coordinates.biases[near]
        )
    for place in np.flatnonzero(is_above).tolist():
        class_id, candidate = int(near[place]), Certificate(rows, changed[place])
        bound = checker.bound(class_id, candidate)
        if bound.upper <= 0:
            yield class_id, bound, candidate


def _nearest(coordinates: Coordinates, rows: Ids, weights: NDArray[np.float64], open_ids: Ids) -> Ids:
    """The open classes nearest to the mixture, other than its rows."""
    others = open_ids[~np.isin(open_ids, rows)]
    with np.errstate(over="ignore", invalid="ignore"):
        away = coordinates.rows32[others] - weights.astype(np.float32) @ coordinates.rows32[rows]
        distance = np.einsum("ij,ij->i", away, away)
    return others if len(others) <= _NEAREST else others[np.argpartition(distance, _NEAREST)[:_NEAREST]]


@np.errstate(all="ignore")  # what comes of extreme rows is not positive, or fails its check
def _changed(
    coordinates: Coordinates, rows: Ids, weights: NDArray[np.float64], classes: Ids
) -> NDArray[np.float64]:
    """For each class the weights nearest to these, relative to their size, that mix the rows to the class;
    they may be negative."""
    table = np.ones((len(rows), coordinates.size + 1))
    table[:, :-1] = coordinates.rows(rows)
    scaled = table * weights[:, None]
    normal = scaled.T @ scaled
    normal.reshape(-1)[:: len(normal) + 1] *= 1 + 1e-12
    factor, failed = dpotrf(normal, lower=1, clean=0, overwrite_a=1)
    if failed:
        return np.full((len(classes), len(rows)), -1.0)
    missing = np.ones((len(classes), coordinates.size + 1))
    missing[:, :-1] = coordinates.rows(classes)
    missing -= weights @ table
    change = dpotrs(factor, missing.T, lower=1)[0].T @ scaled.T
    return np.asarray(weights * (1 + change))
