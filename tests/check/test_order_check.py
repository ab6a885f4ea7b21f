"""The check of evidence about orders: what holds passes, what was tampered with does not."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from order_truths import exact_scores

import argmaxable as am
from argmaxable.check.orders import OrderCertificate, proven_gap, proves_infeasible
from argmaxable.core.orders import Order, chain, top

EVERYWHERE = am.Everywhere()
# Class 2 lies in the middle of 0 and 1: never above both.
MIDDLE = am.Head([[0.0, 0.0], [2.0, 4.0], [1.0, 2.0]])
ABOVE_BOTH = Order([(2, 0), (2, 1)])
PROOF = OrderCertificate(np.array([[2, 0], [2, 1]]), (1, 1))


def test_weights_that_cancel_prove_that_an_order_is_infeasible() -> None:
    assert proves_infeasible(MIDDLE, EVERYWHERE, ABOVE_BOTH, PROOF)


@pytest.mark.parametrize(
    "tampered",
    [
        replace(PROOF, weights=(1, 2)),  # does not cancel
        replace(PROOF, weights=(0, 0)),  # says nothing
        replace(PROOF, weights=(-1, -1)),
        replace(PROOF, weights=(1.0, 1.0)),  # type: ignore[arg-type]  # floats may be rounded
        replace(PROOF, weights=(1,)),
        replace(PROOF, pairs=np.array([[2, 0], [0, 2]])),  # cancels, but the order has no pair (0, 2)
        OrderCertificate(np.empty((0, 2), np.intp), ()),
    ],
)
def test_a_tampered_certificate_proves_nothing(tampered: OrderCertificate) -> None:
    assert not proves_infeasible(MIDDLE, EVERYWHERE, ABOVE_BOTH, tampered)


def test_a_bias_too_small_to_see_in_floats_makes_the_difference() -> None:
    order, proof = ABOVE_BOTH, PROOF
    barely = am.Head(MIDDLE.weight, [1.0, -1.0, 1e-300])
    assert not proves_infeasible(barely, EVERYWHERE, order, proof)
    assert proves_infeasible(am.Head(MIDDLE.weight, [1.0, -1.0, -1e-300]), EVERYWHERE, order, proof)


def test_a_certificate_may_use_the_edge_of_the_domain() -> None:
    # s_0 − s_1 = x − 3: over the box ±2 one pair alone is proof enough.
    head, order = am.Head([[1.0], [0.0]], [0.0, 3.0]), chain([0, 1])
    alone = OrderCertificate(np.array([[0, 1]]), (7,))
    assert proves_infeasible(head, am.Box(-2, 2), order, alone)
    assert proves_infeasible(head, am.Box(-3, 3), order, alone)  # at best a tie
    assert not proves_infeasible(head, am.Box(-4, 4), order, alone)
    assert not proves_infeasible(head, EVERYWHERE, order, alone)


def test_a_certificate_uses_the_edge_that_the_order_needs() -> None:
    # s_0 − s_1 = x − 1: the order needs x > 1.
    head, order = am.Head([[1.0], [0.0]], [0.0, 1.0]), chain([0, 1])
    alone = OrderCertificate(np.array([[0, 1]]), (1,))
    assert proves_infeasible(head, am.Box(-5, 1), order, alone)
    assert not proves_infeasible(head, am.Box(-1, 5), order, alone)


def test_weights_are_whole_numbers_of_any_size() -> None:
    large = 2**62
    assert proves_infeasible(MIDDLE, EVERYWHERE, ABOVE_BOTH, replace(PROOF, weights=(large, large)))
    unequal = replace(PROOF, weights=(large + 1, large - 1))
    assert not proves_infeasible(MIDDLE, EVERYWHERE, ABOVE_BOTH, unequal)


def test_a_weight_may_be_zero_and_not_negative() -> None:
    # Over the rows 0, 1 and 2 both pairs hold at x > 0, though 2 (w_1 − w_0) − (w_2 − w_0) = 0.
    line, order = am.Head([[0.0], [1.0], [2.0]]), Order([(1, 0), (2, 0)])
    assert not proves_infeasible(line, EVERYWHERE, order, OrderCertificate(order.pairs, (2, -1)))
    three = Order([(2, 0), (2, 1), (0, 1)])
    assert proves_infeasible(MIDDLE, EVERYWHERE, three, OrderCertificate(three.pairs, (1, 1, 0)))


def test_a_pair_that_overflows_does_not_hide_one_that_fails() -> None:
    head = am.Head([[1e308, 1e308], [1e308, 9e307], [0.0, 0.0], [1.0, 0.0]])
    order = Order([(0, 1), (2, 3)])
    assert proven_gap(head, EVERYWHERE, order, np.array([10.0, 10.0])) < 0


def test_a_gap_is_proven_at_points_of_the_domain_alone() -> None:
    head = am.Head([[1.0], [0.0]])
    assert 0.999 < proven_gap(head, am.Box(-1, 1), chain([0, 1]), np.array([1.0])) <= 1
    assert proven_gap(head, am.Box(-1, 1), chain([0, 1]), np.array([1.5])) == -math.inf
    assert proven_gap(head, am.Ball(1.0), chain([0, 1]), np.array([1.0 + 2**-52])) == -math.inf


def test_a_tie_is_no_gap() -> None:
    head = am.Head([[0.1, 0.2], [0.2, 0.1]])
    assert proven_gap(head, EVERYWHERE, chain([0, 1]), np.array([1.0, 1.0])) == 0
    assert proven_gap(head, EVERYWHERE, chain([1, 0]), np.array([1.0, 1.0])) == 0


def test_gaps_below_the_rounding_of_floats_are_told_apart_exactly() -> None:
    # The floats 0.1 and 0.2 make a little more than the float 0.3, by 2^-55.
    decimal = am.Head([[0.1, 0.2], [0.3, 0.0]])
    assert proven_gap(decimal, EVERYWHERE, chain([0, 1]), np.ones(2)) == 2.0**-55
    # The sums cancel in float64: 2^60 + 1 − 2^60 is 1 only in exact arithmetic.
    head, point = am.Head([[2.0**60, 1.0, -(2.0**60)], [0.0, 0.0, 0.0]]), np.ones(3)
    assert proven_gap(head, EVERYWHERE, chain([0, 1]), point) == 1.0
    assert proven_gap(head, EVERYWHERE, chain([1, 0]), point) < 0


def test_an_empty_order_holds_wherever_the_domain_does() -> None:
    assert proven_gap(MIDDLE, am.Box(0, 1), Order([]), np.array([0.5, 0.5])) == math.inf
    assert proven_gap(MIDDLE, am.Box(0, 1), Order([]), np.array([0.5, 2.0])) == -math.inf


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kind", ["everywhere", "rmsnorm", "layernorm"])
def test_the_proven_gap_is_never_above_the_exact_one_and_has_its_sign(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(-8, 8)
    head = am.Head(scale * rng.normal(size=(9, 5)), rng.normal(size=9))
    gain, shift = rng.normal(size=5), rng.normal(size=5)
    domain = {
        "everywhere": EVERYWHERE,
        "rmsnorm": am.RMSNorm(gain, shift),
        "layernorm": am.LayerNorm(gain, shift),
    }[kind]
    point = rng.uniform(-0.9, 0.9, size=5)
    scores = exact_scores(head, domain, point)
    assert scores is not None
    ranking = sorted(range(9), key=lambda number: -scores[number])
    for order in (chain(ranking), top(ranking[:3], of=9), chain(ranking[::-1])):
        exact = min(scores[above] - scores[below] for above, below in order.pairs.tolist())
        proven = proven_gap(head, domain, order, point)
        assert proven <= exact
        assert (proven > 0) == (exact > 0)
        assert proven >= exact - abs(exact) * 1e-6 - 1e-12 * (1 + scale)
