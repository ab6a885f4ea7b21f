"""Evidence about orders in rational arithmetic: exact weights next to float ones, and exact simplex.

An order over a box is a system of strict linear inequalities: a gap g·x + o > 0 for each pair. Written in
(y, τ) with x = y/τ, together with τ > 0 and the walls of the box, all of them are homogeneous. So the
system is solvable exactly when it is in the unit box, and no stand-in for infinity is needed.
Nothing here is trusted: order_check.py has the last word.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import flint
import numpy as np
from numpy.typing import NDArray

from argmaxable.check.orders import OrderCertificate
from argmaxable.core.arrays import Vector
from argmaxable.exact.dyadic import Dyadic
from argmaxable.prove.simplex import ExactProblem, Vertex, solve_exactly

if TYPE_CHECKING:
    from argmaxable.core.domain import Domain
    from argmaxable.core.head import Head
    from argmaxable.core.orders import Order, Pairs
    from argmaxable.core.verdict import Certificate

Integers = NDArray[Any]
Evidence = Vector | OrderCertificate


def _gaps(head: Head, domain: Domain, pairs: Pairs) -> tuple[Dyadic, Dyadic]:
    """Gap rows (n × coordinates) and offsets (n) of pairs: s_i − s_j = row · z + offset, exactly.

    The mean's removal by LayerNorm leaves one coordinate fewer: the last one is minus the sum of the others.
    """
    above, below = pairs.T
    rows = Dyadic.of(head.rows(above)) - Dyadic.of(head.rows(below))
    offsets = Dyadic.of(head.biases(above)) - Dyadic.of(head.biases(below))
    if not domain.is_identity:
        offsets = offsets + rows @ Dyadic.of(domain.shifts(head.features))
    rows = domain.scaled_rows(rows)
    return (rows[:, :-1] - rows[:, -1:], offsets) if domain.removes_mean else (rows, offsets)


# ---------------------------------------------------------------------- exact weights next to float ones


def exact_certificate(
    head: Head, domain: Domain, pairs: Pairs, certificate: Certificate
) -> OrderCertificate | None:
    """The certificate (whose class k stands for pair k − 1) with exact weights, or None without such.

    Weights of its basis solve u = 0 in the certificate's coordinates; see verdict.Certificate.
    """
    chosen = pairs[certificate.classes - 1]
    weights = Dyadic.of(certificate.weights)
    used = weights.integers * 2 ** max(weights.exponent, 0)
    if not certificate.basis:
        return _certificate(chosen, used.tolist())
    rows = _gaps(head, domain, chosen)[0].integers
    if certificate.coordinates is not None and not domain.removes_mean:
        rows = rows[:, certificate.coordinates]
    solved = _solve(rows, used, 2 ** max(-weights.exponent, 0), certificate.basis)
    return None if solved is None else _certificate(chosen, solved)


def _solve(rows: Integers, used: Integers, unit: int, basis: int) -> list[int] | None:
    """Weights on all rows that cancel: free ones on the first `basis`, the others in the ratios used.

    The used weights are integers over `unit`. Together all weights make one, as they did in floats; the
    solution must be unique up to a factor, and of one sign.
    """
    columns = [*rows[:basis]]
    if basis < len(rows):
        columns.append(used[basis:] @ rows[basis:])
    matrix = np.array(columns).T.tolist()
    if basis < len(rows):
        matrix.append([1] * basis + [int(used[basis:].sum()) - unit])
    if not matrix:
        return None
    solutions, count = flint.fmpz_mat(matrix).nullspace()
    if count != 1:
        return None
    values = [int(solutions[i, 0]) for i in range(len(columns))]
    sign = 1 if values[-1] > 0 else -1
    values = [sign * value for value in values]
    if min(values) < 0 or not values[-1]:
        return None
    return values if basis == len(rows) else [*values[:-1], *(values[-1] * used[basis:]).tolist()]


def _certificate(pairs: Pairs, weights: list[int]) -> OrderCertificate:
    """The pairs with a weight, and the weights in lowest terms."""
    divisor = math.gcd(*weights) or 1
    used = [k for k, weight in enumerate(weights) if weight]
    return OrderCertificate(pairs[used], tuple(weights[k] // divisor for k in used))


# ---------------------------------------------------------------------- exact simplex


@dataclass(frozen=True, eq=False)
class _System:
    """Rows (first the pairs', then τ's and the walls') · (y, τ) > 0, each divided by 2^bits, and the
    coordinates that y stands for."""

    order: Order
    rows: Integers
    bits: list[int]
    used: NDArray[np.intp]

    def problem(self) -> ExactProblem:
        """Maximise t with −row · (y, τ) + t ≤ 0 in the unit box."""
        count, width = self.rows.shape
        rows = [
            [flint.fmpq(-int(value), 1 << bits) for value in row]
            for row, bits in zip(self.rows, self.bits, strict=True)
        ]
        one = flint.fmpq(1)
        return ExactProblem(np.arange(count), rows, [flint.fmpq(0)] * count, [-one] * width, [one] * width)

    def certificate(self, vertex: Vertex) -> OrderCertificate | None:
        """The vertex's weights on pairs, as integers."""
        used = [(i, w) for i, w in zip(vertex.rows, vertex.weights, strict=True) if i < len(self.order.pairs)]
        if not used:
            return None
        weights = [weight / (1 << self.bits[i]) for i, weight in used]
        common = math.lcm(*(weight.denominator for weight in weights))
        return _certificate(self.order.pairs[[i for i, _ in used]], [int(w * common) for w in weights])


def table_size(head: Head, domain: Domain, order: Order) -> int:
    """How many rational numbers exact simplex would work on: says what it costs."""
    walls = int(np.isfinite(domain.bounds(head.features)).sum())
    return (len(order.pairs) + 1 + walls) * (head.features + 1)


def settle_exactly(head: Head, domain: Domain, order: Order) -> Evidence | None:
    """A point or a certificate, unchecked; None where simplex takes too many steps.

    A ball or a norm's solid is no box. There the system is solved without walls: its certificates hold
    for every domain, its points after scaling when no offset matters.
    """
    system = _system(head, domain, order)
    vertex = solve_exactly(system.problem())
    if vertex is None:
        return None
    if vertex.t <= 0:
        return system.certificate(vertex)
    return _point(head, domain, system.used, [value / vertex.x[-1] for value in vertex.x[:-1]])


def _system(head: Head, domain: Domain, order: Order) -> _System:
    gaps, offsets = _gaps(head, domain, order.pairs)
    lo, hi = (bound[: gaps.integers.shape[1]] for bound in domain.bounds(head.features))
    used, fixed = np.flatnonzero(lo < hi), np.flatnonzero(lo == hi)
    if len(fixed):
        offsets = offsets + gaps[:, fixed] @ Dyadic.of(lo[fixed])
    walls = _walls(lo[used], hi[used])
    rows = np.vstack([_beside(gaps[:, used], offsets), Dyadic.of(walls).integers])
    bits = [max((abs(int(value)) for value in row), default=0).bit_length() for row in rows]
    return _System(order, rows, bits, used)


def _beside(gaps: Dyadic, offsets: Dyadic) -> Integers:
    """[gaps offsets] in units of one power of two."""
    count, width = gaps.integers.shape
    left, right = np.zeros((2, count, width + 1), dtype=object)
    left[:, :-1], right[:, -1] = gaps.integers, offsets.integers
    return (Dyadic(left, gaps.exponent) + Dyadic(right, offsets.exponent)).integers


def _walls(lo: Vector, hi: Vector) -> NDArray[np.float64]:
    """τ > 0, y − lo τ > 0 and hi τ − y > 0, the finite ones, as rows of coefficients."""
    eye, count = np.eye(len(lo)), len(lo)
    below = np.hstack([eye, -lo[:, None]])[np.isfinite(lo)]
    above = np.hstack([-eye, hi[:, None]])[np.isfinite(hi)]
    return np.vstack([np.append(np.zeros(count), 1.0), below, above])


def _point(head: Head, domain: Domain, used: NDArray[np.intp], values: list[Fraction]) -> Vector | None:
    """The domain's point z with these coordinates, rounded; None where they are no floats."""
    try:
        coordinates = np.array([float(value) for value in values])
    except OverflowError:
        return None
    if domain.removes_mean:
        return _shrunk(domain, np.append(coordinates, -coordinates.sum()))
    lo, hi = domain.bounds(head.features)
    z = np.array(lo)
    z[used] = coordinates
    return _shrunk(domain, np.clip(z, lo, hi))


def _shrunk(domain: Domain, z: Vector) -> Vector:
    """The point divided by the power of two that brings it inside a ball, where the domain has one."""
    radius = domain.ball_radius(len(z))
    length = float(np.abs(z).max()) * math.sqrt(len(z))
    if not length >= radius:
        return z
    return np.ldexp(z, -math.frexp(length / radius)[1])
