"""Exact weights next to stored ones: the linear algebra behind certificates with a basis.

The basis weights solve Σ λ_i a_i = a_c, Σ λ_i = 1 exactly, where a_i is the row in coordinates of
the domain's z. `exact_weights` computes them as rationals (python-flint); `Equations` only show
that they exist and how far they are, by float64 with proven bounds, which is far cheaper.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.compute.blocks import row_blocks
from argmaxable.compute.lapack import dpotrf, dpotrs
from argmaxable.core.verdict import Certificate
from argmaxable.exact.dyadic import Dyadic
from argmaxable.exact.rounding import TINY, UNIT, gamma

if TYPE_CHECKING:
    from argmaxable.core.arrays import Ids, Mask, Matrix, Vector
    from argmaxable.core.domain import Domain
    from argmaxable.core.head import Head

# Any prime of 62 bits: an equation system independent modulo it is independent; the converse
# fails with probability 1e-16 and then only costs a refused certificate.
_PRIME = 4611686018427387847
_INVERSE_ITERATIONS = 8


def exact_weights(head: Head, domain: Domain, class_id: int, certificate: Certificate) -> Dyadic | None:
    """All weights as integers (up to one common positive factor), or None when there is no
    non-negative exact solution."""
    basis, coordinates = certificate.basis, certificate.coordinates
    if not _are_features(coordinates, head):
        return None
    equations = head.features if coordinates is None else len(coordinates)
    if basis > equations + 1:
        return None
    ids = np.append(certificate.classes, class_id)
    rows = _equations(domain, Dyadic.of(head.rows(ids)), coordinates)
    return weights_solving(rows, Dyadic.of(certificate.weights), basis)


def weights_solving(rows: Dyadic, weights: Dyadic, basis: int) -> Dyadic | None:
    """Weights on all rows but the last (as integers, up to one common positive factor) that mix them into the
    last: those of the first `basis` rows are solved for, the others are as given. None without such."""
    solved = _solve(rows, weights, basis)
    if solved is None:
        return None
    numerators, denominator = solved
    rest = weights[basis:] * denominator
    # numerators carry exponent 0, the kept weights their own: bring both to one exponent
    return _join(Dyadic(np.array(numerators, dtype=object), 0), rest)


def with_independent_basis(head: Head, domain: Domain, certificate: Certificate) -> Certificate:
    """The certificate with so few of its basis rows in the basis that they are independent; the others keep
    the weights they have. What many weights could solve, `exact_weights` then solves by these."""
    basis, coordinates = certificate.basis, certificate.coordinates
    if not basis or not _are_features(coordinates, head):  # nothing to choose from, or to be refused
        return certificate
    rows = _equations(domain, Dyadic.of(head.rows(certificate.classes[:basis])), coordinates)
    matrix = np.vstack([rows.integers.T, np.full((1, basis), 1, dtype=object)])
    first = _pivots(matrix)
    order = np.concatenate([first, np.setdiff1d(np.arange(len(certificate.classes)), first)])
    return Certificate(certificate.classes[order], certificate.weights[order], len(first), coordinates)


def _are_features(coordinates: Ids | None, head: Head) -> bool:
    return coordinates is None or bool(((coordinates >= 0) & (coordinates < head.features)).all())


def _equations(domain: Domain, rows: Dyadic, coordinates: Ids | None) -> Dyadic:
    """Rows in the coordinates that a combination has to reproduce."""
    rows = domain.scaled_rows(rows)
    if domain.removes_mean:  # only differences between features survive the mean's removal
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
    import flint  # late: most runs need no rationals

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
    found = _pivots(left.T)
    return found if len(found) == columns else None


def independent_rows(rows: NDArray[Any]) -> bool:
    """Whether rows of whole numbers are independent: they are if they are so modulo a large prime."""
    return len(_pivots(rows.T)) == len(rows)


def _pivots(matrix: NDArray[Any]) -> list[int]:
    """Independent columns, as many as there are and the first that will do, found modulo a large prime."""
    rows, columns = matrix.shape
    import flint

    reduced = flint.nmod_mat(rows, columns, [int(v) % _PRIME for v in matrix.ravel()], _PRIME)
    echelon, rank = reduced.rref()
    table = [[int(echelon[i, j]) for j in range(columns)] for i in range(rank)]
    return [next(j for j, value in enumerate(line) if value) for line in table]


def _join(first: Dyadic, second: Dyadic) -> Dyadic:
    zero = Dyadic(np.zeros(len(second.integers), dtype=object), 0)
    left = Dyadic(np.concatenate([first.integers, zero.integers]), first.exponent)
    right = Dyadic(
        np.concatenate([np.zeros(len(first.integers), dtype=object), second.integers]), second.exponent
    )
    return left + right


class Equations:
    """Σ λ_i a_i = a_c, Σ λ_i = 1 in float64, for certificates that have rows and basis in common.

    What depends on the basis alone is computed once, so that many classes can be proven over the same rows.
    """

    def __init__(self, head: Head, domain: Domain, centre: Vector, classes: Ids, basis: int) -> None:
        self.head, self.domain, self.centre = head, domain, centre
        self.classes, self.basis = classes, basis

    @property
    def count(self) -> int:
        return int((~self._constant).sum()) + (0 if self.domain.removes_mean else 1)

    @cached_property
    def _constant(self) -> Mask:
        """Features in which all the rows are equal: Σ λ_i = 1 implies their equations for a class that is
        equal too, and next to that equation they would make the matrix singular. Only for a basis larger than
        all equations; a smaller one, chosen for its rank, is solved in rationals."""
        if self.domain.removes_mean or self.basis <= self.head.features + 1:
            return np.zeros(self.head.features, bool)
        first = self.head.rows(self.classes[:1])
        equal = np.ones(self.head.features, bool)
        for block in row_blocks(len(self.classes), self.head.features):
            equal &= (self.head.rows(self.classes[block]) == first).all(axis=0)
        return equal

    def errors(self, class_ids: Ids, weights: Matrix) -> Vector:
        """How far exact basis weights can be from the stored ones (a row for each class); infinite when that
        is not shown. As many basis rows as equations have one solution; more of them have many, of which one
        is near.
        """
        errors = np.full(len(class_ids), math.inf)
        if self.basis < self.count:
            return errors
        fits = (self.head.rows(class_ids) == self.head.rows(self.classes[:1]))[:, self._constant].all(axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            for k, residual in enumerate(self._residuals(class_ids, weights)):
                shift = self._shift(residual) if fits[k] else None
                if shift is not None and (weights[k, : self.basis] >= shift).all():
                    errors[k] = shift
        return errors

    def _residuals(self, class_ids: Ids, weights: Matrix) -> Matrix:
        """Bounds on what the stored weights miss in each equation, for each class."""
        # n products and sums, the block sums among them, and a few roundings of the bound: γ_{n+6}. The rows'
        # own error is in `doubt`, with room for the rounding of its sums.
        own, doubt = self._points(class_ids)
        missed, spread = own, np.abs(own)
        for block in row_blocks(len(self.classes), self.head.features):
            points, slack = self._points(self.classes[block])
            some = weights[:, block]
            missed = missed - some @ points
            spread += some @ np.abs(points)
            doubt += some @ slack
        bound = np.abs(missed) + gamma(weights.shape[1] + 6) * spread + self.count * TINY
        return np.asarray(bound + doubt)

    def _shift(self, residual: Vector) -> float | None:
        if self.basis == self.count:
            return _only_solution(*self._points(self.classes[: self.basis]), residual)
        if self._stretch is None:
            return None
        scale, least = self._stretch
        return _frobenius(residual * scale) / least * (1 + gamma(8))

    @cached_property
    def _stretch(self) -> tuple[Vector, float] | None:
        """Powers of two for the equations, and a lower bound on the smallest singular value σ of the basis
        rows A so scaled: Aᵀδ = r has a solution with ‖δ‖ ≤ ‖r‖/σ. None when none is found.

        A positive lower bound on σ² is what Cholesky's factorisation of AᵀA − αI proves by succeeding:
        RᵀR differs from it by at most γ ‖R‖², in any order of summation (Higham, Theorem 10.3).
        """
        blocks = row_blocks(self.basis, self.head.features)
        largest = np.zeros(self.count)
        for block in blocks:
            points, _ = self._points(self.classes[: self.basis][block])
            largest = np.maximum(largest, np.abs(points).max(axis=0))
        # Scaling by powers of two is exact; without it an equation can drown in the others' rounding.
        scale = np.ldexp(1.0, -np.frexp(largest)[1])
        gram, squared, astray = np.zeros((self.count, self.count)), 0.0, 0.0
        for block in blocks:
            points, doubt = self._points(self.classes[: self.basis][block])
            points *= scale
            gram += points.T @ points
            squared += _frobenius(points) ** 2
            astray += _frobenius(doubt * scale) ** 2
        length, doubtful = (math.sqrt(value) * (1 + gamma(len(blocks) + 4)) for value in (squared, astray))
        # AᵀA: sums of as many products as the basis has rows, of entries that are off by `doubt`.
        error = gamma(self.basis + 4) * length**2 + 2 * length * doubtful + doubtful**2
        alpha = _smallest_eigenvalue(gram) / 2
        if not alpha > 0:
            return None
        gram.flat[:: self.count + 1] -= alpha
        factor, failed = dpotrf(gram, lower=1, clean=1)
        if failed:
            return None
        # Cholesky: γ_{k+1} ‖R‖² (Higham, Theorem 10.3); taking α off the diagonal rounds once an entry.
        error += gamma(self.count + 2) * _frobenius(factor) ** 2 + 4 * UNIT * length**2 + self.count * TINY
        square = alpha - error * (1 + gamma(16))
        return (scale, math.sqrt(square) / (1 + gamma(4))) if square > 0 else None

    def _points(self, ids: Ids) -> tuple[Matrix, Matrix]:
        """Rows and a one for each class, and a bound on the error of each entry."""
        rows, slack = _float_equations(self.head, self.domain, self.centre, ids)
        if self._constant.any():
            rows, slack = rows[:, ~self._constant], slack[:, ~self._constant]
        return np.hstack([rows, np.ones((len(rows), 1))]), np.hstack([slack, np.zeros((len(rows), 1))])


def _only_solution(points: Matrix, doubt: Matrix, residual: Vector) -> float | None:
    """With an approximate inverse Y of the basis matrix M, ‖I − YM‖ ≤ e < 1 proves M regular and
    |λ − λ̂| ≤ |Y r| / (1 − e) for the residual r of λ̂; every rounding is bounded."""
    size = len(points)
    matrix = points.T
    try:
        inverse = np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        return None
    magnitude = np.abs(inverse)
    # Products of k terms round by γ_k, the identity's subtraction once; entries of M are off by `doubt`.
    defect = np.abs(np.eye(size) - inverse @ matrix)
    defect += magnitude @ (gamma(size + 4) * np.abs(matrix) + doubt.T) + gamma(4) + size * TINY
    contraction = float(defect.sum(axis=1).max()) * (1 + gamma(size))
    if not contraction < 0.5:
        return None
    return float((magnitude @ residual).max()) * (1 + gamma(size + 8)) / (1 - contraction)


def _smallest_eigenvalue(gram: Matrix) -> float:
    """Roughly, by inverse iteration; 0 when the matrix is singular to rounding."""
    factor, failed = dpotrf(gram, lower=1)
    if failed:
        return 0.0
    vector = np.random.default_rng(0).standard_normal(len(gram))
    value = 0.0
    for _ in range(_INVERSE_ITERATIONS):
        length = float(np.sqrt(vector @ vector))
        vector, _ = dpotrs(factor, vector / length, lower=1)
        value = 1 / float(np.sqrt(vector @ vector))
    return value if math.isfinite(value) else 0.0


def _frobenius(matrix: NDArray[np.float64]) -> float:
    """An upper bound on the root of the sum of squares, for matrices with an entry above 1e-100."""
    return float(np.sqrt((matrix * matrix).sum())) * (1 + gamma(matrix.size + 4)) + matrix.size * TINY


def _float_equations(
    head: Head, domain: Domain, centre: Vector, ids: Ids
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The rows of `_equations`, centred, in float64, with a bound on the error of each entry."""
    with np.errstate(over="ignore", invalid="ignore"):
        rows = head.rows(ids) - centre
        if not domain.is_identity:
            rows = rows * domain.gains(head.features)
        # One rounding for the centring and one for the gain; γ_4 leaves room for sums of these bounds.
        slack = gamma(4) * np.abs(rows) + TINY
        if domain.removes_mean:
            rows, slack = rows[:, :-1] - rows[:, -1:], slack[:, :-1] + slack[:, -1:]
            slack = slack + gamma(2) * np.abs(rows)
    return rows, slack
