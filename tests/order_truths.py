"""Truths about orders of classes by other means than the package's: rationals, HiGHS, Clarabel."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from oracles import dot, exact_head, placed, rationals, support_is_at_most

import argmaxable as am
from argmaxable.core.feasibility import Feasibility
from argmaxable.core.orders import Order
from argmaxable.questions.ranking.rankings import RankingVerdict


def exact_scores(head: am.Head, domain: am.Domain, z: np.ndarray) -> list[Fraction] | None:
    """The scores of all classes at a point z, exactly; None outside the domain."""
    x = placed(domain, rationals(z))
    if x is None:
        return None
    rows, biases = exact_head(head)
    return [dot(row, x) + bias for row, bias in zip(rows, biases, strict=True)]


def ranks_so(head: am.Head, domain: am.Domain, z: np.ndarray, pairs: list[tuple[int, int]]) -> bool:
    """Whether the point belongs to the domain and in every pair the first class scores above the second."""
    scores = exact_scores(head, domain, z)
    return scores is not None and all(scores[above] > scores[below] for above, below in pairs)


def evidence_holds(head: am.Head, verdict: RankingVerdict) -> bool:
    """Whether the verdict is decided, and its evidence proves it by rationals alone."""
    pairs = [(above, below) for above, below in verdict.order.pairs.tolist()]
    if verdict.status is Feasibility.FEASIBLE:
        assert verdict.point is not None
        return verdict.margin > 0 and ranks_so(head, verdict.domain, verdict.point, pairs)
    if verdict.certificate is None:
        return False
    rows, biases = exact_head(head)
    u, offset = [Fraction(0)] * head.features, Fraction(0)
    for (above, below), weight in zip(
        verdict.certificate.pairs.tolist(), verdict.certificate.weights, strict=True
    ):
        assert (above, below) in pairs
        assert weight > 0
        gap = [a - b for a, b in zip(rows[above], rows[below], strict=True)]
        u = [total + weight * entry for total, entry in zip(u, gap, strict=True)]
        offset += weight * (biases[above] - biases[below])
    return len(verdict.certificate.weights) > 0 and support_is_at_most(verdict.domain, u, -offset)


def gap_head(head: am.Head, order: Order) -> am.Head:
    """The head whose class 0 is argmaxable exactly when the order is feasible: for weights whose
    differences are floats, which is asserted."""
    rows, biases = [np.zeros(head.features)], [0.0]
    for above, below in order.pairs.tolist():
        (first, second), (b_first, b_second) = (
            head.rows(np.array([above, below])),
            head.biases(np.array([above, below])),
        )
        exact = [b - a for a, b in zip(rationals(first), rationals(second), strict=True)]
        assert rationals(second - first) == exact
        assert Fraction(b_second - b_first) == Fraction(b_second) - Fraction(b_first)
        rows.append(second - first)
        biases.append(b_second - b_first)
    return am.Head(np.array(rows), np.array(biases))
