"""Re-checks evidence about orders of classes, exactly and without a solver (check.py's counterpart).

A point of the domain proves an order feasible when every pair (i, j) of it has s_i(x) > s_j(x) there. Weights
λ ≥ 0 on its pairs, not all zero, prove that no point does, by weak duality (Farkas' lemma):

    h_X(u) + Σ λ_ij (b_i − b_j) ≤ 0   with   u = Σ λ_ij (w_i − w_j)

where h_X is the domain's support function: at any x of the domain the weighted gaps add up to zero or less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.compute.blocks import row_blocks
from argmaxable.exact.dyadic import Dyadic, round_down
from argmaxable.exact.rounding import TINY, UNIT, gamma

if TYPE_CHECKING:
    from argmaxable.core.arrays import Ids, Vector
    from argmaxable.core.domain import Domain
    from argmaxable.core.head import Head
    from argmaxable.core.orders import Order, Pairs


@dataclass(frozen=True, eq=False)
class OrderCertificate:
    """Exact non-negative integer weights on pairs (n × 2) of an order; only their ratios matter."""

    pairs: Pairs
    weights: tuple[int, ...]


def proven_gap(head: Head, domain: Domain, order: Order, point: Vector) -> float:
    """A lower bound on the smallest gap s_i − s_j over all pairs at a point z of the domain.

    Positive only when the point ranks the classes as the order asks; −∞ outside the domain. Floats
    with a bound on their rounding decide what they can, integers the rest.
    """
    if not domain.contains(point[None])[0]:
        return -math.inf
    if not len(order.pairs):
        return math.inf
    ids, places = np.unique(order.pairs, return_inverse=True)
    above, below = places.reshape(-1, 2).T
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        scores, errors = _scores(head, domain, ids, point)
        gaps = scores[above] - scores[below]
        doubts = errors[above] + errors[below] + 8 * UNIT * np.abs(gaps)
        lower = gaps - doubts
        fails = bool((gaps + doubts < 0).any())
    unclear = np.flatnonzero(~(lower > 0))
    if not fails and len(unclear):
        lower[unclear] = _exact_gaps(head, domain, order.pairs[unclear], point)
    smallest = float(lower.min())
    return -math.inf if math.isnan(smallest) else smallest


def _scores(head: Head, domain: Domain, ids: Ids, point: Vector) -> tuple[Vector, Vector]:
    """Scores of these classes in float64, and bounds on their errors (any order of summation)."""
    features = head.features
    (x,), (misplaced,) = domain.place(point[None])
    scores, errors = np.empty(len(ids)), np.empty(len(ids))
    for block in row_blocks(len(ids), features):
        rows, biases = head.rows(ids[block]), head.biases(ids[block])
        sizes = np.abs(rows)
        scores[block] = rows @ x + biases
        # d products and sums, the bias, and a few for the point and the difference of two scores.
        rounding = gamma(features + 10) * (sizes @ np.abs(x) + np.abs(biases))
        underflow = features * TINY * (1 + np.abs(x).max()) * (1 + sizes.max(axis=1))
        # Twice, because the bound itself is rounded.
        errors[block] = 2 * (rounding + sizes @ misplaced + underflow)
    return scores, errors


def _exact_gaps(head: Head, domain: Domain, pairs: Pairs, point: Vector) -> Vector:
    """The gaps of these pairs, rounded down from their exact values."""
    x, denominator = domain.place_exactly(point)
    gaps = np.empty(len(pairs))
    for k, pair in enumerate(pairs):
        rows, biases = Dyadic.of(head.rows(pair)), Dyadic.of(head.biases(pair))
        score, offset = (rows[0] - rows[1]) @ x, biases[0] - biases[1]
        gaps[k] = round_down(score.fraction() / denominator + offset.fraction())
    return gaps


def proves_infeasible(head: Head, domain: Domain, order: Order, certificate: OrderCertificate) -> bool:
    """Whether the certificate's weights lie on pairs of the order and prove that no point satisfies it."""
    if not _is_well_formed(order, certificate):
        return False
    balance: dict[int, int] = {}
    for (above, below), weight in zip(certificate.pairs.tolist(), certificate.weights, strict=True):
        balance[above] = balance.get(above, 0) + weight
        balance[below] = balance.get(below, 0) - weight
    ids = np.array(list(balance))
    factors = Dyadic(np.array(list(balance.values()), dtype=object), 0)
    u = Dyadic.of(np.zeros(head.features))
    for block in row_blocks(len(ids), head.features):
        u = u + factors[block] @ Dyadic.of(head.rows(ids[block]))
    offset = factors @ Dyadic.of(head.biases(ids))
    return domain.support_is_at_most(u, offset * -1)


def _is_well_formed(order: Order, certificate: OrderCertificate) -> bool:
    weights = certificate.weights
    known = set(map(tuple, order.pairs.tolist()))
    return (
        len(certificate.pairs) == len(weights)
        and all(tuple(pair) in known for pair in certificate.pairs.tolist())
        and all(type(weight) is int and weight >= 0 for weight in weights)
        and any(weights)
    )
