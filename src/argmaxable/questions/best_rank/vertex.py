"""Certificates with few classes: at most one more than there are features (Carathéodory).

A certificate's weights reproduce a point, Σ λ_i w_i. Among weights that reproduce the same point those with
the largest Σ λ_i b_i prove most, and moving towards them empties one class after another until the rows
that are left are independent: one pass of the primal simplex method. The checker says whether the result
still proves it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.compute.lapack import pivoted_qr
from argmaxable.compute.threads import one_thread

if TYPE_CHECKING:
    from argmaxable.check.checker import Checker
    from argmaxable.core.arrays import Ids, Matrix, Vector
    from argmaxable.core.verdict import Certificate

# Diagonal entries of R below this share of the first mean linear dependence.
_RANK = 1e-11
# Weights below this share of the largest are rounding residue of the pass.
_RESIDUE = 1e-13
# Points taken in before the others' shares are computed anew: each exchange loses a few digits.
_BLOCK = 32
# What the dearest class costs, in units of the biases' spread: so much that prices decide.
_DEARNESS = 1000.0


@one_thread()
def with_few_classes(
    checker: Checker, class_id: int, certificate: Certificate, *, prices: Vector | None = None
) -> Certificate:
    """A certificate on few of the same classes with a bound on the same side of 0, or the one given. With
    prices, one for each class of the head, it has little weight on dear ones if there is such a one."""
    used = certificate.weights > 0
    if certificate.basis or not used.all():
        used[: certificate.basis] = True
        certificate = replace(
            certificate, classes=certificate.classes[used], weights=certificate.weights[used]
        )
    if len(certificate.classes) == certificate.basis:
        return certificate
    bound = checker.bound(class_id, certificate).upper
    biases = checker.head.biases(certificate.classes)
    values = [biases]
    if prices is not None and prices.any():
        scale = _DEARNESS * (float(biases.std()) or 1.0) / float(prices.max())
        values.insert(0, biases - scale * prices[certificate.classes])
    for each in values:
        fewer = _purified(checker, certificate, each)
        if fewer is not None and _is_as_good(checker.bound(class_id, fewer).upper, bound):
            return fewer
    return certificate


def _is_as_good(bound: float, former: float) -> bool:
    return bound < 0 or (bound <= 0 and former == 0)


def _purified(checker: Checker, certificate: Certificate, values: Vector) -> Certificate | None:
    rows = checker.head.rows(certificate.classes) - checker.centre
    points = np.hstack([rows / max(float(np.abs(rows).max()), 1e-300), np.ones((len(rows), 1))])
    try:
        with np.errstate(all="ignore"):
            weights = purify(points, certificate.weights, values)
    except np.linalg.LinAlgError:
        return None
    if not np.isfinite(weights).all():
        return None
    kept = np.flatnonzero(weights > _RESIDUE * weights.max())
    # With a basis the exact weights are solved for, which needs independent rows: all that are left.
    basis = len(kept) if certificate.basis else 0
    return replace(certificate, classes=certificate.classes[kept], weights=weights[kept], basis=basis)


def purify(points: Matrix, weights: Vector, values: Vector) -> Vector:
    """Weights ≥ 0 on independent points (n × m) with the same Σ λ_i p_i and no smaller Σ λ_i values_i."""
    orthogonal, triangle, order = pivoted_qr((points * weights[:, None]).T)
    diagonal = np.abs(np.diag(triangle))
    rank = int((diagonal > _RANK * diagonal[0]).sum())
    points = points @ orthogonal[:, :rank]
    basis = _Carriers(np.array(order[:rank]), weights[order[:rank]])
    for first in range(rank, len(order), _BLOCK):
        basis.take_in(order[first : first + _BLOCK], points, weights, values)
    purified = np.zeros(len(weights))
    purified[basis.ids] = basis.weights
    return purified


@dataclass(eq=False)
class _Carriers:
    """Independent points and their weights; other points' weights move onto them."""

    ids: Ids
    weights: Vector

    def take_in(self, entering: Ids, points: Matrix, weights: Vector, values: Vector) -> None:
        """Empty these points one after the other, or let them take a basis point's place."""
        shares = np.linalg.solve(points[self.ids].T, points[entering].T).T  # as combinations of the basis
        gains = shares @ values[self.ids] - values[entering]
        for place, (number, weight) in enumerate(zip(entering, weights[entering].tolist(), strict=True)):
            mine, is_gain = shares[place], gains[place] >= 0
            shrinking = mine if is_gain else -mine
            room = np.where(shrinking < 0, self.weights / -shrinking, np.inf)
            leaving = int(room.argmin())
            if is_gain and room[leaving] >= weight:
                self.weights = np.maximum(self.weights + weight * mine, 0)
                continue
            step = room[leaving] if is_gain else -room[leaving]
            self.weights = np.maximum(self.weights + step * mine, 0)
            self.ids[leaving], self.weights[leaving] = number, weight - step
            # The points that are left, as combinations of the new basis.
            rest = shares[place + 1 :]
            share = rest[:, leaving] / mine[leaving]
            rest -= share[:, None] * mine
            rest[:, leaving] = share
            gains[place + 1 :] -= share * gains[place]
