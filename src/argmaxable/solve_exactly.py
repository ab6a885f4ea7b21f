"""Exact weights next to stored ones: the linear algebra behind certificates with a basis.

The basis weights solve Σ λ_i a_i = a_c, Σ λ_i = 1 exactly, where a_i is the row in coordinates of
the domain's z. `exact_weights` computes them as rationals (python-flint); `basis_error` only shows
that they exist and how far they are, by a verified inverse in float64, which is far cheaper.
"""

from __future__ import annotations

import math
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from argmaxable.domain import Domain, LayerNorm, RMSNorm
from argmaxable.exact import Dyadic
from argmaxable.geometry import TINY, gamma, scaled_rows
from argmaxable.head import Head
from argmaxable.verdict import Certificate

Vector = NDArray[np.float64]
# Any prime of 62 bits: an equation system independent modulo it is independent; the converse
# fails with probability 1e-16 and then only costs a refused certificate.
_PRIME = 4611686018427387847


def exact_weights(head: Head, domain: Domain, class_id: int, certificate: Certificate) -> Dyadic | None:
    """All weights as integers (up to one common positive factor), or None when there is no
    non-negative exact solution."""
    basis, features = certificate.basis, head.features
    coordinates = certificate.coordinates
    if coordinates is not None and ((coordinates < 0) | (coordinates >= features)).any():
        return None
    ids = np.append(certificate.classes, class_id)
    rows = _equations(domain, Dyadic.of(head.rows(ids)), coordinates)
    if basis > rows.integers.shape[1] + 1:
        return None
    weights = Dyadic.of(certificate.weights)
    solved = _solve(rows, weights, basis)
    if solved is None:
        return None
    numerators, denominator = solved
    rest = weights[basis:] * denominator
    # numerators carry exponent 0, the kept weights their own: bring both to one exponent
    return _join(Dyadic(np.array(numerators, dtype=object), 0), rest)


def _equations(domain: Domain, rows: Dyadic, coordinates: NDArray[np.intp] | None) -> Dyadic:
    """Rows in the coordinates that a combination has to reproduce."""
    rows = scaled_rows(domain, rows)
    if isinstance(domain, LayerNorm):  # only differences between features survive the mean's removal
        return rows[:, :-1] - rows[:, -1:]
    return rows if coordinates is None else rows[:, coordinates]


def _solve(rows: Dyadic, weights: Dyadic, basis: int) -> tuple[list[int], int] | None:
    """Basis weights as integers over a common denominator, checked against every equation."""
    ones = np.full((1, rows.integers.shape[0]), 1, dtype=object)
    # Σ λ a = a_c and Σ λ = 1; every equation scaled to integers on its own
    matrix = np.vstack([rows.integers.T, ones])
    # right-hand side: target minus the kept weights' share, times 2^-weights.exponent
    scale = 1 << max(0, -weights.exponent)
    lift = 1 << max(0, weights.exponent)
    kept = weights.integers[basis:] * lift
    right = matrix[:, -1] * scale - matrix[:, basis:-1] @ kept if len(kept) else matrix[:, -1] * scale
    left = matrix[:, :basis]
    chosen = _independent_equations(left)
    if chosen is None:
        return None
    square = flint.fmpz_mat([[int(v) for v in left[i]] for i in chosen])
    try:
        solution = square.solve(flint.fmpz_mat([[int(right[i])] for i in chosen]))
    except ZeroDivisionError:
        return None
    entries = [solution[i, 0] for i in range(basis)]
    if any(entry < 0 for entry in entries):
        return None
    denominator = math.lcm(*(int(entry.q) for entry in entries))
    numerators = [int(entry.p) * (denominator // int(entry.q)) for entry in entries]
    if (left @ np.array(numerators, dtype=object) != right * denominator).any():
        return None
    # λ_B = numerators / (denominator · scale)
    return numerators, denominator * scale


def _independent_equations(left: NDArray[Any]) -> list[int] | None:
    """As many independent rows as there are columns, found modulo a large prime."""
    rows, columns = left.shape
    if rows == columns:
        return list(range(rows))
    reduced = flint.nmod_mat(columns, rows, [int(v) % _PRIME for v in left.T.ravel()], _PRIME)
    echelon, rank = reduced.rref()
    if rank < columns:
        return None
    table = [[int(echelon[i, j]) for j in range(rows)] for i in range(columns)]
    return [next(j for j, value in enumerate(line) if value) for line in table]


def _join(first: Dyadic, second: Dyadic) -> Dyadic:
    zero = Dyadic(np.zeros(len(second.integers), dtype=object), 0)
    left = Dyadic(np.concatenate([first.integers, zero.integers]), first.exponent)
    right = Dyadic(
        np.concatenate([np.zeros(len(first.integers), dtype=object), second.integers]), second.exponent
    )
    return left + right


def basis_error(
    head: Head, domain: Domain, centre: Vector, class_id: int, certificate: Certificate
) -> float | None:
    """How far exact basis weights can be from the stored ones, or None when that is not shown.

    With an approximate inverse Y of the basis matrix M, ‖I − YM‖ ≤ e < 1 proves M regular and
    |λ − λ̂| ≤ |Y r| / (1 − e) for the residual r of λ̂; every rounding is bounded.
    """
    basis = certificate.basis
    rows, slack = _float_equations(head, domain, centre, np.append(certificate.classes, class_id))
    size = rows.shape[1] + 1
    if basis != size:
        return None
    points = np.hstack([rows, np.ones((len(rows), 1))])
    slack = np.hstack([slack, np.zeros((len(rows), 1))])
    matrix, doubt = points[:basis].T, slack[:basis].T
    try:
        inverse = np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        return None
    magnitude = np.abs(inverse)
    with np.errstate(over="ignore", invalid="ignore"):
        defect = np.abs(np.eye(size) - inverse @ matrix)
        defect += magnitude @ (gamma(size + 4) * np.abs(matrix) + doubt) + gamma(4) + size * TINY
        contraction = float(defect.sum(axis=1).max()) * (1 + gamma(size))
        if not contraction < 0.5:
            return None
        weights = certificate.weights
        residual = points[-1] - weights @ points[:-1]
        spread = weights @ np.abs(points[:-1]) + np.abs(points[-1])
        residual_bound = np.abs(residual) + gamma(len(weights) + 6) * spread + size * TINY
        residual_bound += weights @ slack[:-1] + slack[-1]
        shift = float((magnitude @ residual_bound).max()) * (1 + gamma(size + 8)) / (1 - contraction)
    return shift if (weights[:basis] >= shift).all() else None


def _float_equations(
    head: Head, domain: Domain, centre: Vector, ids: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The rows of `_equations`, centred, in float64, with a bound on the error of each entry."""
    with np.errstate(over="ignore", invalid="ignore"):
        rows = head.rows(ids) - centre
        if isinstance(domain, RMSNorm | LayerNorm):
            rows = rows * domain.gains(head.features)
        slack = gamma(4) * np.abs(rows) + TINY
        if isinstance(domain, LayerNorm):
            rows, slack = rows[:, :-1] - rows[:, -1:], slack[:, :-1] + slack[:, -1:]
            slack = slack + gamma(2) * np.abs(rows)
    return rows, slack
