"""Certificates with few classes: at most one more than there are features (Carathéodory).

A certificate's weights reproduce a point, Σ λ_i w_i. Among weights that reproduce the same point those with
the largest Σ λ_i b_i prove most, and moving towards them empties one class after another until the rows
that are left are independent: one pass of the primal simplex method. The checker says whether the result
still proves it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from argmaxable.compute.lapack import pivoted_qr
from argmaxable.compute.threads import one_thread

if TYPE_CHECKING:
    from argmaxable.check.checker import Checker
    from argmaxable.core.arrays import Matrix, Vector
    from argmaxable.core.verdict import Certificate

# Diagonal entries of R below this share of the first mean linear dependence.
_RANK = 1e-11
# Weights below this share of the largest are rounding residue of the pass.
_RESIDUE = 1e-13
# Exchanges after which the basis is inverted anew: each update loses a few digits.
_FRESH = 32


@one_thread()
def with_few_classes(checker: Checker, class_id: int, certificate: Certificate) -> Certificate:
    """A certificate on few of the same classes with a bound on the same side of 0, or the one given."""
    used = certificate.weights > 0
    if certificate.basis or not used.all():
        used[: certificate.basis] = True
        certificate = replace(
            certificate, classes=certificate.classes[used], weights=certificate.weights[used]
        )
    if len(certificate.classes) == certificate.basis:
        return certificate
    bound = checker.bound(class_id, certificate).upper
    fewer = _purified(checker, certificate)
    if fewer is not None and _is_as_good(checker.bound(class_id, fewer).upper, bound):
        return fewer
    return certificate


def _is_as_good(bound: float, former: float) -> bool:
    return bound < 0 or (bound <= 0 and former == 0)


def _purified(checker: Checker, certificate: Certificate) -> Certificate | None:
    rows = checker.head.rows(certificate.classes) - checker.centre
    points = np.hstack([rows / max(float(np.abs(rows).max()), 1e-300), np.ones((len(rows), 1))])
    with np.errstate(all="ignore"):
        weights = purify(points, certificate.weights, checker.head.biases(certificate.classes))
    if not np.isfinite(weights).all():
        return None
    kept = np.flatnonzero(weights > _RESIDUE * weights.max())
    # With a basis the exact weights are solved for, which needs independent rows: all that are left.
    basis = len(kept) if certificate.basis else 0
    return replace(certificate, classes=certificate.classes[kept], weights=weights[kept], basis=basis)


def purify(points: Matrix, weights: Vector, values: Vector) -> Vector:
    """Weights ≥ 0 on independent points (n × m) with the same Σ λ_i p_i and no smaller Σ λ_i values_i."""
    weights = weights.copy()
    orthogonal, triangle, order = pivoted_qr((points * weights[:, None]).T)
    diagonal = np.abs(np.diag(triangle))
    rank = int((diagonal > _RANK * diagonal[0]).sum())
    points = points @ orthogonal[:, :rank]
    basis = np.array(order[:rank])
    inverse = np.linalg.inv(points[basis])
    exchanges = 0
    for entering in order[rank:]:
        shares = points[entering] @ inverse  # the point as a combination of the basis
        leaving, step = _step(weights, basis, entering, shares, values)
        weights[entering] -= step
        weights[basis] = np.maximum(weights[basis] + step * shares, 0)
        if leaving is None:
            weights[entering] = 0
            continue
        weights[basis[leaving]] = 0
        basis[leaving] = entering
        exchanges += 1
        if exchanges % _FRESH == 0:
            inverse = np.linalg.inv(points[basis])
        else:
            shares[leaving] -= 1
            inverse = inverse - np.outer(inverse[:, leaving], shares) / (shares[leaving] + 1)
    return weights


def _step(
    weights: Vector, basis: NDArray[np.intp], entering: int, shares: Vector, values: Vector
) -> tuple[int | None, float]:
    """How much weight to take off a point (or put on it, below 0), and which basis point that empties."""
    gains = float(shares @ values[basis]) >= values[entering]
    sinks = np.flatnonzero(shares < 0 if gains else shares > 0)
    room = weights[basis[sinks]] / np.abs(shares[sinks])
    if gains and (not len(sinks) or room.min() >= weights[entering]):
        return None, float(weights[entering])
    nearest = int(room.argmin())
    return int(sinks[nearest]), float(room[nearest]) if gains else -float(room[nearest])
