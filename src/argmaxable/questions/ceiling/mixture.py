"""Finds mixtures that prove ceilings (check/mixtures.py says what they prove).

Unbounded domains need them: there a tangent proves something only when its slope is exactly zero, which
exact weights can be and floats are not. Nothing here is trusted.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.core.ceiling import Mixture
from argmaxable.core.verdict import Certificate
from argmaxable.prove.boundary import basis_certificate

if TYPE_CHECKING:
    from argmaxable.check.checker import Checker
    from argmaxable.compute.coordinates import Coordinates
    from argmaxable.core.arrays import Ids, Matrix, Vector
    from argmaxable.questions.ceiling.descent import Landing, Slope

# Softmax weights below this share of the largest are left out: together they are worth less than 1e-9.
_SUPPORT = 1e-14
# A slope above this share of the rows means that its feature is held at a bound.
_HELD = 1e-9
# Added to the margin that floats find, in units of its terms, so that exact arithmetic confirms it.
_ROOM = 1e-11


def twin_mixture(twins: Ids) -> Mixture:
    """Equal weights on classes with the same row and bias: P(c) ≤ 1/k for k of them, c included."""
    return Mixture(Certificate(twins, np.ones(len(twins))), 0.0)


@np.errstate(all="ignore")
def mixture_at(checker: Checker, slope: Slope, class_id: int, landing: Landing) -> Mixture | None:
    """The softmax weights where a descent ended, moved by a hair so that u vanishes where the domain has
    no end; None when that can't be done."""
    coordinates = slope.coordinates
    rows = np.flatnonzero(landing.weights > _SUPPORT * landing.weights.max())
    weights = landing.weights[rows] / landing.weights[rows].sum()
    differences = _differences(coordinates, class_id, rows)
    size = float(weights @ np.abs(differences).sum(axis=1))
    free = _endless(weights @ differences, coordinates.lo, coordinates.hi, size)
    certificate: Certificate | None = Certificate(rows, weights)
    if len(free):
        chosen = None if len(free) == coordinates.head.features else free
        certificate = basis_certificate(coordinates, class_id, rows, weights, chosen, whole=True)
    if certificate is None:
        return None
    margin = _margin(coordinates, class_id, certificate, free)
    return Mixture(certificate, margin) if math.isfinite(margin) else None


def _differences(coordinates: Coordinates, class_id: int, rows: Ids) -> Matrix:
    return np.asarray(coordinates.rows(np.array([class_id])) - coordinates.rows(rows))


def _margin(coordinates: Coordinates, class_id: int, certificate: Certificate, free: Ids) -> float:
    """The bound on the margin by a certificate whose u vanishes in the free features, with a little room."""
    rows, weights = certificate.classes, certificate.weights
    u = weights @ _differences(coordinates, class_id, rows)
    u[free] = 0.0
    pulls = np.where(u == 0, 0.0, u * np.where(u > 0, coordinates.hi, coordinates.lo))
    drops = weights * (coordinates.biases[class_id] - coordinates.biases[rows])
    room = _ROOM * float(np.abs(pulls).sum() + np.abs(drops).sum() + coordinates.scale)
    return (float(pulls.sum() + drops.sum()) + room) / coordinates.scale


def _endless(u: Vector, lo: Vector, hi: Vector, size: float) -> Ids:
    """The features in which u has to vanish: those with an endless side, unless u points away from it."""
    is_open = np.isinf(lo) | np.isinf(hi)
    held = (np.abs(u) > _HELD * size / max(len(u), 1)) & np.isfinite(np.where(u > 0, hi, lo))
    return np.flatnonzero(is_open & ~held)
