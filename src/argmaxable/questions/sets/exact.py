"""Evidence about sets in rational arithmetic: exact weights next to float ones, and exact simplex.

Nothing here is trusted: check/sets.py has the last word.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.check.solutions import weights_solving
from argmaxable.core.label_sets import SetMethod
from argmaxable.core.verdict import Certificate
from argmaxable.exact.dyadic import Dyadic
from argmaxable.questions.sets.answer import SetAnswer

if TYPE_CHECKING:
    from argmaxable.core.arrays import Ids, Vector
    from argmaxable.prove.simplex import Vertex
    from argmaxable.questions.sets.geometry import SignedRows
# Exact simplex costs minutes beyond this many rational numbers in its table.
_LARGEST_TABLE = 60_000
# With more conditions than that it begins with a few and adds others, up to this number of coordinates and
# rounds.
_MOST_COORDINATES, _ROUNDS = 6, 60


def whole_certificate(rows: SignedRows, certificate: Certificate) -> Certificate | None:
    """The certificate with exact weights, as whole numbers; None without such.

    Weights of its basis solve u = 0 in the certificate's coordinates; for the top k the weights inside and
    outside the set have the same sum.
    """
    table = _table(rows, certificate.classes)
    if certificate.coordinates is not None and not rows.space.coordinates.domain.removes_mean:
        table = table[:, _columns(rows, certificate.coordinates, table.shape[1] - 1)]
    target = np.zeros((1, table.shape[1]), dtype=object)
    equations = Dyadic(np.vstack([table, target]), 0)
    solved = weights_solving(equations, Dyadic.of(certificate.weights), certificate.basis)
    return (
        None if solved is None else _whole(certificate.classes, [int(number) for number in solved.integers])
    )


def _table(rows: SignedRows, ids: Ids) -> NDArray[Any]:
    """σ_i w_i as z sees it in whole numbers (n × coordinates), up to a power of two; for the top k also σ_i.
    LayerNorm leaves only differences to the last feature."""
    head, domain = rows.space.checker.head, rows.space.coordinates.domain
    signs = np.where(rows.inside[ids], 1, -1).astype(object)
    seen = domain.rows_seen_exactly(Dyadic.of(head.rows(ids)))
    table = (seen[:, :-1] - seen[:, -1:] if domain.removes_mean else seen).integers * signs[:, None]
    return table if rows.space.has_cut else np.hstack([table, signs[:, None]])


def _columns(rows: SignedRows, coordinates: Ids, cut: int) -> list[int]:
    """Columns of the table for features, and for the cut where there is one."""
    features = [int(feature) for feature in coordinates if feature >= 0]
    return features if rows.space.has_cut else [*features, cut]


def _whole(ids: Ids, weights: list[int]) -> Certificate:
    divisor = math.gcd(*weights) or 1
    used = [k for k, weight in enumerate(weights) if weight]
    whole = tuple(weights[k] // divisor for k in used)
    total = sum(whole)
    return Certificate(ids[used], np.array([weight / total for weight in whole]), whole=whole)


# ---------------------------------------------------------------------- exact simplex


def settle_exactly(rows: SignedRows, near: Ids | None = None) -> SetAnswer | None:
    """A checked answer by exact simplex, where that is a matter of seconds; or None.

    Small questions are solved with all their conditions. Larger ones begin with the conditions `near`, and
    take in those that the vertex found does not meet.
    """
    coordinates = rows.space.coordinates
    if coordinates.radius is not None or coordinates.corners is not None:
        return None
    is_small = len(rows.asked) * (rows.size + 1) <= _LARGEST_TABLE
    if not is_small and (near is None or rows.size > _MOST_COORDINATES):
        return None
    ids = rows.asked if is_small or near is None else near
    for _ in range(_ROUNDS):
        vertex = _vertex(rows, ids)
        if vertex is None:
            return None
        if vertex.t <= 0:
            return _infeasible(rows, ids, vertex)
        answer = next(filter(None, (_answer_at(rows, point) for point in _points(rows, vertex))), None)
        missing = np.empty(0, np.intp) if answer is not None else _not_met(rows, ids, vertex)
        if not len(missing):
            return answer
        ids = np.append(ids, missing)
    return None


def _infeasible(rows: SignedRows, ids: Ids, vertex: Vertex) -> SetAnswer | None:
    common = math.lcm(*(weight.denominator for weight in vertex.weights))
    certificate = _whole(ids[vertex.rows], [int(weight * common) for weight in vertex.weights])
    upper = rows.space.checker.bound(rows.members, certificate).upper
    return None if upper > 0 else SetAnswer(certificate=certificate, upper=upper, method=SetMethod.SIMPLEX)


def _not_met(rows: SignedRows, ids: Ids, vertex: Vertex) -> Ids:
    """The conditions left out that the vertex breaks, the worst first; exactly."""
    left = np.setdiff1d(rows.asked, ids)
    table, offsets = _system(rows, left)
    common = math.lcm(*(value.denominator for value in vertex.x))
    x = np.array([int(value * common) for value in vertex.x], dtype=object)
    values = Dyadic(table.integers @ x[: table.integers.shape[1]], table.exponent)
    if not rows.space.has_cut:
        values = values - Dyadic(rows.signs[left].astype(int).astype(object) * x[-1], 0)
    if not rows.space.coordinates.is_cone:
        values = values + offsets * common
    order = np.argsort(values.integers, kind="stable")
    worst = order[: rows.size]
    return left[worst[values.sign()[worst] <= 0]]


def _answer_at(rows: SignedRows, point: Vector) -> SetAnswer | None:
    lower = float(rows.space.checker.margins([rows.members], point[None])[0])
    return SetAnswer(point, lower, method=SetMethod.SIMPLEX) if lower > 0 else None


def _vertex(rows: SignedRows, ids: Ids) -> Vertex | None:
    import flint

    from argmaxable.prove.simplex import ExactProblem, rationals, solve_exactly

    coordinates, head = rows.space.coordinates, rows.space.checker.head
    table, offsets = _system(rows, ids)
    exponents = [flint.fmpq(2) ** exponent for exponent in (table.exponent, offsets.exponent)]
    lines = [[flint.fmpq(-int(value)) * exponents[0] for value in line] for line in table.integers]
    limits = [flint.fmpq(int(value)) * exponents[1] for value in offsets.integers]
    lo, hi = coordinates.domain_bounds()
    if coordinates.is_cone:
        limits = [flint.fmpq(0)] * len(limits)
        lo, hi = coordinates.lo, coordinates.hi
    if coordinates.domain.removes_mean:  # one coordinate fewer, without sides of its own
        ends = np.ones(head.features - 1) if coordinates.is_cone else np.full(head.features - 1, np.inf)
        lo, hi = -ends, ends
    low, high = rationals(lo), rationals(hi)
    if not rows.space.has_cut:
        signs = rows.signs[ids]
        lines = [[*line, flint.fmpq(int(sign))] for line, sign in zip(lines, signs, strict=True)]
        low, high = [*low, *rationals(np.array([-np.inf]))], [*high, *rationals(np.array([np.inf]))]
    return solve_exactly(ExactProblem(ids, lines, limits, low, high))


def _system(rows: SignedRows, ids: Ids) -> tuple[Dyadic, Dyadic]:
    """a_i (without the cut) and β_i of some conditions, exactly."""
    coordinates, checker = rows.space.coordinates, rows.space.checker
    head, domain = checker.head, coordinates.domain
    signs = Dyadic(rows.signs[ids].astype(int).astype(object), 0)
    plain = Dyadic.of(head.rows(ids))
    offsets = Dyadic.of(head.biases(ids)) - Dyadic.of(checker.thresholds[ids])
    fixed = domain.fixed_part(head.features)
    if fixed.any():
        offsets = offsets + plain @ Dyadic.of(fixed)
    seen = domain.rows_seen_exactly(plain)
    table = seen[:, :-1] - seen[:, -1:] if domain.removes_mean else seen[:, coordinates.used]
    return table * signs[:, None], offsets * signs


def _points(rows: SignedRows, vertex: Vertex) -> list[Vector]:
    """The vertex as a point z of the domain; also shorter ones, which rounding may suit better."""
    coordinates = rows.space.coordinates
    values = vertex.x if rows.space.has_cut else vertex.x[:-1]
    try:
        x = np.array([[float(value) for value in values]])
    except OverflowError:
        return []
    if coordinates.domain.removes_mean:
        x = np.hstack([x, -x.sum(axis=1, keepdims=True)])
    return [coordinates.to_point(factor * x)[0] for factor in (1.0, 1 - 2.0**-20, 0.5)]
