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
    from argmaxable.core.arrays import Ids, Matrix32, Vector32

# Features that are looked at first.
_FIRST_FEATURES = 8
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
    near = _within_reach(coordinates, certificate.classes, weights, open_ids)
    if not len(near):
        return near, np.empty(0)
    uppers = checker.bounds(near, certificate)
    return near[uppers <= 0], uppers[uppers <= 0]


@np.errstate(over="ignore", invalid="ignore")
def _within_reach(coordinates: Coordinates, rows: Ids, weights: NDArray[np.float64], open_ids: Ids) -> Ids:
    """The classes whose dual bound under the weights is below zero, as float32 sees it.

    Where each feature adds to the bound, the first few rule out nearly all classes.
    """
    mixture = weights.astype(np.float32) @ coordinates.rows32[rows]
    level = float(weights @ coordinates.biases[rows])
    adds_up = coordinates.corners is None and bool(
        (coordinates.lo <= 0).all() and (coordinates.hi >= 0).all()
    )
    if adds_up and isinstance(coordinates.rows32, np.ndarray):
        away = coordinates.rows32[open_ids, :_FIRST_FEATURES] - mixture[:_FIRST_FEATURES]
        open_ids = open_ids[_supports(coordinates, away) + coordinates.biases[open_ids] < level]
    away = coordinates.rows32[open_ids] - mixture
    return open_ids[_supports(coordinates, away) + coordinates.biases[open_ids] < level]


def _supports(coordinates: Coordinates, directions: Matrix32) -> Vector32:
    """The support function at directions, or at their first features alone."""
    if coordinates.corners is not None:
        return np.asarray((directions @ coordinates.corners.astype(np.float32).T).max(axis=1))
    if coordinates.radius is not None:
        return np.asarray(coordinates.radius * np.sqrt((directions * directions).sum(axis=1)))
    lo, hi = (side[: directions.shape[1]].astype(np.float32) for side in (coordinates.lo, coordinates.hi))
    return np.asarray(np.maximum(lo * directions, hi * directions).sum(axis=1))


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
