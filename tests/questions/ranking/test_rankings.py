"""Feasibility of orders: decided, by evidence that holds, and in agreement with independent oracles."""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracles import exact_margin, margin_by_clarabel, margin_by_highs
from order_truths import evidence_holds, gap_head

import argmaxable as am
from argmaxable.core.feasibility import Feasibility
from argmaxable.core.orders import Order, chain, top
from argmaxable.questions.ranking.rankings import RankingVerdict, is_feasible

EVERYWHERE = am.Everywhere()
FEASIBLE, INFEASIBLE = Feasibility.FEASIBLE, Feasibility.INFEASIBLE


def decided(head: am.Head, ranking: object, domain: am.Domain = EVERYWHERE) -> RankingVerdict:
    """The verdict, whose evidence holds."""
    verdict = is_feasible(head, ranking, domain)  # type: ignore[arg-type]
    assert evidence_holds(head, verdict), verdict
    return verdict


# ---------------------------------------------------------------------- heads, orders and domains at random


def normal(rng: np.random.Generator, classes: int, features: int, bias: bool) -> am.Head:
    return am.Head(rng.normal(size=(classes, features)), rng.normal(size=classes) if bias else None)


def single(rng: np.random.Generator, classes: int, features: int, bias: bool) -> am.Head:
    weight = rng.normal(size=(classes, features)).astype(np.float32)
    return am.Head(weight, rng.normal(size=classes).astype(np.float32) if bias else None)


def small_integers(rng: np.random.Generator, classes: int, features: int, bias: bool) -> am.Head:
    weight = rng.integers(-2, 3, (classes, features))
    return am.Head(weight, rng.integers(-2, 3, classes) if bias else None)


def with_duplicates(rng: np.random.Generator, classes: int, features: int, bias: bool) -> am.Head:
    chosen = rng.integers(0, max(1, classes - 2), classes)
    head = small_integers(rng, classes, features, bias)
    return am.Head(head.weight[chosen], None if head.bias is None else head.bias[chosen])


def flat(rng: np.random.Generator, classes: int, features: int, bias: bool) -> am.Head:
    """Rows on one line: as degenerate as a head can be."""
    line = np.outer(rng.integers(-3, 4, classes), rng.integers(-3, 4, features))
    return am.Head(line, rng.integers(-1, 2, classes) if bias else None)


HEADS = {f.__name__: f for f in (normal, single, small_integers, with_duplicates, flat)}
EXACT_IN_FLOATS = [name for name in HEADS if name != "normal"]


def random_orders(rng: np.random.Generator, classes: int) -> list[Order]:
    """A full ranking, a beginning, a chain, and pairs: circles and repetitions included."""
    ranking = rng.permutation(classes).tolist()
    few = int(rng.integers(1, classes + 1))
    pairs = rng.integers(0, classes, (int(rng.integers(1, 7)), 2))
    return [chain(ranking), top(ranking[:few], of=classes), chain(ranking[:few]), Order(pairs)]


def boxes(rng: np.random.Generator, features: int) -> list[am.Box | am.Everywhere]:
    lo, hi = -rng.integers(0, 4, features).astype(float), rng.integers(0, 4, features).astype(float)
    open_lo = np.where(rng.random(features) < 0.5, -math.inf, lo)
    open_hi = np.where(rng.random(features) < 0.5, math.inf, hi)
    return [EVERYWHERE, am.Box(-100, 100), am.Box(0, math.inf), am.Box(lo, hi), am.Box(open_lo, open_hi)]


def solids(rng: np.random.Generator, features: int) -> list[am.Ball | am.RMSNorm | am.LayerNorm]:
    gain, shift = rng.normal(size=features), rng.normal(size=features)
    return [
        am.Ball(2.0),
        am.RMSNorm(gain),
        am.RMSNorm(gain, shift),
        am.LayerNorm(gain),
        am.LayerNorm(gain, shift),
    ]


def questions(name: str, seed: int) -> tuple[np.random.Generator, am.Head, list[Order]]:
    rng = np.random.default_rng((seed, *map(ord, name)))
    classes, features = int(rng.integers(1, 8)), int(rng.integers(1, 5))
    return rng, HEADS[name](rng, classes, features, bool(rng.random() < 0.6)), random_orders(rng, classes)


# ---------------------------------------------------------------------- against oracles


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", HEADS)
def test_over_boxes_every_order_is_decided_by_evidence_that_holds(name: str, seed: int) -> None:
    rng, head, orders = questions(name, seed)
    for domain in boxes(rng, head.features):
        for order in orders:
            decided(head, order, domain)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", EXACT_IN_FLOATS)
def test_over_boxes_an_order_is_feasible_when_its_margin_by_rational_simplex_is_positive(
    name: str, seed: int
) -> None:
    rng, head, orders = questions(name, seed)
    for domain in boxes(rng, head.features):
        for order in orders:
            margin = exact_margin(gap_head(head, order), domain, 0)
            assert bool(is_feasible(head, order, domain)) == (margin > 0), (order.pairs, domain, margin)


@pytest.mark.parametrize("seed", range(12))
def test_over_boxes_float64_heads_agree_with_highs(seed: int) -> None:
    rng, head, orders = questions("normal", 100 + seed)
    for domain in boxes(rng, head.features):
        for order in orders:
            above, below = order.pairs.T
            gaps = np.vstack([np.zeros(head.features), head.weight[below] - head.weight[above]])
            offsets = np.append(0.0, head.biases(below) - head.biases(above))
            margin = margin_by_highs(am.Head(gaps, offsets), domain, 0)
            if abs(margin) > 1e-7:  # as exact as HiGHS is
                assert bool(is_feasible(head, order, domain)) == (margin > 0), (order.pairs, domain, margin)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", HEADS)
def test_over_solids_every_decision_holds_and_agrees_with_clarabel(name: str, seed: int) -> None:
    rng, head, orders = questions(name, seed)
    for domain in solids(rng, head.features):
        for order in orders:
            verdict = is_feasible(head, order, domain)
            if verdict.status is Feasibility.UNDECIDED:
                pytest.fail(f"undecided: {order.pairs.tolist()} over {domain}")
            assert evidence_holds(head, verdict)
            if len(order.pairs) and name != "normal":
                margin = margin_by_clarabel(gap_head(head, order), domain, 0)
                assert abs(margin) < 1e-6 or bool(verdict) == (margin > 0), (order.pairs, domain, margin)


@pytest.mark.parametrize("domain", [EVERYWHERE, am.Box(-100, 100), am.Ball(30.0)], ids=str)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("make", [normal, single], ids=["float64", "float32"])
def test_orders_of_larger_heads_are_decided_too(make: object, bias: bool, domain: am.Domain) -> None:
    rng = np.random.default_rng(4)
    head = make(rng, 60, 6, bias)  # type: ignore[operator]
    ranking = rng.permutation(60).tolist()
    assert decided(head, ranking, domain).status is INFEASIBLE
    assert decided(head, chain(ranking[:4]), domain).status is FEASIBLE
    statuses = {decided(head, top([number], of=60), domain).status for number in ranking[:12]}
    assert statuses == {FEASIBLE, INFEASIBLE}


# ---------------------------------------------------------------------- facts


def test_a_full_ranking_is_realised_at_its_point_in_that_order() -> None:
    head = am.Head(np.eye(4))
    verdict = decided(head, [2, 0, 3, 1])
    assert verdict.point is not None
    assert np.argsort(-verdict.point).tolist() == [2, 0, 3, 1]


def test_an_order_and_its_reverse_need_not_both_be_feasible_with_a_bias() -> None:
    # Three lines: class 1 is on top in the middle, so it is never at the bottom.
    head = am.Head([[1.0], [0.0], [-1.0]], [0.0, 1.0, 0.0])
    assert decided(head, [1, 0, 2]).status is FEASIBLE
    assert decided(head, Order([(0, 1), (2, 1)])).status is INFEASIBLE


def test_without_bias_the_reverse_of_a_feasible_ranking_is_feasible_too() -> None:
    rng = np.random.default_rng(5)
    head = normal(rng, 6, 2, False)
    rankings = [rng.permutation(6).tolist() for _ in range(40)] + [
        np.argsort(-head.weight @ rng.normal(size=2)).tolist() for _ in range(10)
    ]
    statuses = [decided(head, ranking).status for ranking in rankings]
    assert statuses == [decided(head, ranking[::-1]).status for ranking in rankings]
    assert set(statuses) == {FEASIBLE, INFEASIBLE}


@pytest.mark.parametrize("domain", [EVERYWHERE, am.Box(-1, 1), am.Ball(1.0), am.LayerNorm(1.0, 0.5)], ids=str)
def test_a_circle_is_infeasible_whatever_the_head(domain: am.Domain) -> None:
    head = normal(np.random.default_rng(6), 5, 3, True)
    verdict = decided(head, Order([(0, 1), (1, 2), (2, 0), (3, 4)]), domain)
    assert verdict.status is INFEASIBLE
    assert verdict.certificate is not None
    assert sorted(map(tuple, verdict.certificate.pairs.tolist())) == [(0, 1), (1, 2), (2, 0)]


@pytest.mark.parametrize("domain", [EVERYWHERE, am.Box(-1, 1), am.Ball(1.0), am.RMSNorm(1.0, 0.5)], ids=str)
def test_identical_classes_can_not_be_put_into_an_order(domain: am.Domain) -> None:
    head = am.Head([[1.0, 2.0], [1.0, 2.0], [0.0, 1.0]], [3.0, 3.0, 0.0])
    assert decided(head, chain([0, 1]), domain).status is INFEASIBLE
    assert decided(head, [2, 1, 0], domain).status is INFEASIBLE


@pytest.mark.parametrize("domain", [EVERYWHERE, am.Box(-1, 1), am.Ball(1.0), am.RMSNorm(1.0, 0.5)], ids=str)
def test_of_two_classes_with_one_row_the_larger_bias_is_always_above(domain: am.Domain) -> None:
    head = am.Head([[0.3, 0.1], [0.3, 0.1]], [1.0, 1.0 + 2.0**-52])
    assert decided(head, [1, 0], domain).status is FEASIBLE
    assert decided(head, [0, 1], domain).status is INFEASIBLE


def test_a_head_with_one_class_has_one_ranking() -> None:
    assert decided(am.Head([[1.0, 2.0]]), [0], am.Box(1, 2)).margin == math.inf


def test_the_domain_decides() -> None:
    head, order = am.Head([[1.0], [0.0]], [0.0, 3.0]), chain([0, 1])  # s_0 − s_1 = x − 3
    assert decided(head, order).status is FEASIBLE
    assert decided(head, order, am.Box(-3, 3)).status is INFEASIBLE
    assert decided(head, order, am.Ball(3.0)).status is INFEASIBLE
    assert decided(head, order, am.Ball(3.0 + 1e-9)).status is FEASIBLE
    assert decided(head, order, am.Box(3, 3)).status is INFEASIBLE
    assert decided(head, order, am.Box(4, 4)).status is FEASIBLE


def test_a_region_far_away_is_found_everywhere() -> None:
    # Above the crossing at x = 2^80 class 0 wins; a box that stands for infinity would miss it.
    head = am.Head([[2.0**-40], [0.0]], [0.0, 2.0**40])
    verdict = decided(head, [0, 1])
    assert verdict.point is not None
    assert verdict.point[0] > 2.0**80


def test_differences_that_no_float_can_hold_are_decided_exactly() -> None:
    # s_0 − s_1 = (1 − 2^-60) x + y + z and s_2 − s_3 = −x − y − z: rounded, one is minus the other.
    head = am.Head([[1.0, 1.0, 1.0], [2.0**-60, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    assert decided(head, Order([(0, 1), (2, 3)])).status is FEASIBLE
    # With s_1 − s_2 = 2^-60 x > 0 as well, the three add up to zero.
    assert decided(head, Order([(0, 1), (2, 3), (1, 2)])).status is INFEASIBLE


def test_a_difference_beyond_all_floats_is_no_obstacle() -> None:
    head = am.Head([[1.5e308], [-1.5e308], [0.0]])
    assert decided(head, [0, 2, 1]).status is FEASIBLE
    assert decided(head, Order([(2, 0), (2, 1)])).status is INFEASIBLE


@pytest.mark.parametrize("seed", range(5))
def test_the_tops_of_size_one_are_the_core_s_verdicts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    head = small_integers(rng, 9, 3, bool(seed % 2))
    for domain in (EVERYWHERE, am.Box(-2, 2), am.Ball(2.0)):
        argmaxable = {
            verdict.class_id for verdict in am.verify(head, domain, engine=am.Engine(workers=1)).argmaxable
        }
        tops = {number for number in range(9) if decided(head, top([number], of=9), domain)}
        assert tops == argmaxable


def test_an_undecided_verdict_is_neither_true_nor_false() -> None:
    verdict = RankingVerdict(chain([0, 1]), EVERYWHERE, Feasibility.UNDECIDED, reason="no luck")
    with pytest.raises(am.ArgmaxableError, match="undecided: no luck"):
        bool(verdict)


def test_a_domain_that_does_not_fit_is_refused() -> None:
    with pytest.raises(am.DomainError, match="2 entries"):
        is_feasible(am.Head(np.eye(3)), [0, 1, 2], am.Box([0, 0], [1, 1]))
