"""Theorem 2 both ways: the least cross-entropy of a head, and the largest entropy under its constraints."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize
from scipy.special import entr, log_softmax

import argmaxable as am
from argmaxable.core.errors import InputError
from argmaxable.core.head import Head
from argmaxable.theory.cross_entropy import (
    by_features,
    cross_entropy,
    entropy,
    kl_divergence,
    least_cross_entropy,
    mode_matching,
)


def head_of(classes: int, features: int, *, bias: bool = False, seed: int = 0) -> Head:
    generator = np.random.default_rng(seed)
    weight = generator.standard_normal((classes, features))
    return Head(weight, generator.standard_normal(classes) if bias else None)


def targets_of(count: int, classes: int, concentration: float = 1.0, *, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(classes, concentration), count)


@pytest.mark.parametrize("concentration", [0.05, 1.0])
@pytest.mark.parametrize("bias", [False, True])
def test_the_duality_gap_is_below_1e_8_on_1000_random_targets(bias: bool, concentration: float) -> None:
    found = least_cross_entropy(head_of(60, 8, bias=bias), targets_of(1000, 60, concentration))
    assert found.gap.max() < 1e-8
    assert found.gap.min() > -1e-12
    assert found.residual.max() < 1e-12


@pytest.mark.parametrize("bias", [False, True])
def test_both_sides_are_what_they_say(bias: bool) -> None:
    head, targets = head_of(30, 5, bias=bias), targets_of(50, 30, 0.3)
    found = least_cross_entropy(head, targets)
    log_q = log_softmax(found.h @ head.weight.T + head.biases(), axis=1)
    assert cross_entropy(targets, log_q) == pytest.approx(found.primal, abs=1e-12)
    r = found.distribution
    assert (r >= 0).all()
    assert r.sum(axis=1) == pytest.approx(1)
    assert r @ head.weight == pytest.approx(targets @ head.weight, abs=1e-12)
    assert entr(r).sum(axis=1) + (r - targets) @ head.biases() == pytest.approx(found.dual, abs=1e-12)


@pytest.mark.parametrize("bias", [False, True])
def test_a_general_solver_finds_the_same_on_either_side(bias: bool) -> None:
    head, target = head_of(7, 2, bias=bias), targets_of(1, 7)[0]
    found = least_cross_entropy(head, target)
    bias_values = head.biases()

    def loss(h: np.ndarray) -> float:
        return float(cross_entropy(target, log_softmax(head.weight @ h + bias_values)))

    def negative_entropy(r: np.ndarray) -> float:
        return float(-entr(r.clip(0)).sum() - (r - target) @ bias_values)

    least = minimize(loss, np.zeros(2), tol=1e-12).fun
    rows = np.vstack([head.weight.T, np.ones(7)])
    largest = -minimize(
        negative_entropy, target, bounds=[(1e-9, 1)] * 7, method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
        constraints=LinearConstraint(rows, rows @ target, rows @ target),
    ).fun  # fmt: skip
    assert found.primal[0] == pytest.approx(least, abs=1e-7)
    assert found.dual[0] == pytest.approx(largest, abs=1e-6)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("features", [19, 20, 25], ids=["C-1", "C", "above C"])
def test_as_many_features_as_classes_reach_the_entropy_of_the_target(features: int, bias: bool) -> None:
    targets = targets_of(300, 20, 0.2)
    found = least_cross_entropy(head_of(20, features, bias=bias), targets)
    assert found.primal == pytest.approx(entropy(targets), abs=1e-6)


@pytest.mark.parametrize("bias", [False, True])
def test_the_least_cross_entropy_never_rises_with_d(bias: bool) -> None:
    targets = targets_of(200, 16, 0.5)
    falls = by_features(head_of(16, 16, bias=bias), targets, range(1, 17))
    assert falls.shape == (16, 200)
    assert (np.diff(falls, axis=0) <= 1e-9).all()
    assert (falls >= entropy(targets) - 1e-9).all()
    assert falls[0].mean() > falls[8].mean() + 0.1 > falls[15].mean() + 0.2
    assert falls[15] == pytest.approx(entropy(targets), abs=1e-6)


def test_moving_all_rows_or_scaling_them_changes_nothing() -> None:
    head, targets = head_of(25, 4), targets_of(40, 25)
    moved = Head(head.weight * 7 + np.array([1.0, -2.0, 3.0, 0.5]))
    assert least_cross_entropy(moved, targets).primal == pytest.approx(
        least_cross_entropy(head, targets).primal, abs=1e-9
    )


def test_features_that_repeat_change_nothing() -> None:
    head, targets = head_of(25, 4), targets_of(40, 25)
    doubled = Head(np.hstack([head.weight, head.weight @ np.ones((4, 2))]))
    found = least_cross_entropy(doubled, targets)
    assert found.h.shape == (40, 6)
    assert found.primal == pytest.approx(least_cross_entropy(head, targets).primal, abs=1e-9)


def test_a_head_that_tells_no_classes_apart_is_uniform() -> None:
    found = least_cross_entropy(Head(np.ones((8, 3))), targets_of(5, 8))
    assert found.primal == pytest.approx(np.log(8))
    assert found.gap == pytest.approx(0, abs=1e-12)


def test_a_model_is_its_own_best_approximation() -> None:
    head, h = head_of(40, 6, bias=True), np.random.default_rng(3).standard_normal((20, 6))
    targets = np.exp(log_softmax(h @ head.weight.T + head.biases(), axis=1))
    found = least_cross_entropy(head, targets, gap=1e-14)
    assert found.primal == pytest.approx(entropy(targets), abs=1e-9)
    assert found.h == pytest.approx(h, abs=1e-5)
    assert found.is_attained.all()


@pytest.mark.parametrize("bias", [False, True])
def test_one_class_alone_costs_nothing_in_the_limit_exactly_if_argmaxable_without_bias(bias: bool) -> None:
    head = head_of(24, 3, bias=bias)
    # Far out a bias does not count: what does is whether the row is a vertex of the hull of all rows.
    found = least_cross_entropy(head, np.eye(24))
    free = {
        verdict.class_id
        for verdict in am.verify(Head(head.weight), am.Everywhere(), engine=am.Engine(workers=1)).argmaxable
    }
    assert set(np.flatnonzero(found.primal < 1e-6)) == free
    assert set(np.flatnonzero(~found.is_attained)) == free
    assert found.primal[sorted(set(range(24)) - free)].min() > 0.1
    assert found.gap.max() < 1e-8


def test_a_target_on_a_face_of_the_hull_is_approached_and_never_attained() -> None:
    # Between two corners of a square: the others' probability has to vanish, the two stay even.
    head = Head([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    found = least_cross_entropy(head, [[0.5, 0.5, 0.0, 0.0], [0.5, 0.0, 0.0, 0.5]])
    assert found.primal == pytest.approx([np.log(2), np.log(4)], abs=1e-8)
    assert found.is_attained.tolist() == [False, True]


def test_many_classes_with_zeros_close_the_gap_too() -> None:
    targets = targets_of(50, 400, 0.004)
    assert (targets == 0).any()
    assert least_cross_entropy(head_of(400, 10, bias=True), targets).gap.max() < 1e-8


def test_one_target_may_be_a_vector() -> None:
    assert least_cross_entropy(head_of(5, 2), np.full(5, 0.2)).primal == pytest.approx([np.log(5)])


@pytest.mark.parametrize("target", [[0.5, 0.6], [1.5, -0.5], [np.nan, 1.0], [0.2, 0.3, 0.5]], ids=str)
def test_what_is_no_distribution_is_refused(target: list[float]) -> None:
    with pytest.raises(InputError):
        least_cross_entropy(head_of(2, 2), target)


def test_features_that_the_head_does_not_have_are_refused() -> None:
    with pytest.raises(InputError, match="1 to 3"):
        by_features(head_of(5, 3), np.full(5, 0.2), [4])


# ---------------------------------------------------------------------- measures


def test_kl_is_cross_entropy_less_entropy_and_zero_for_the_same() -> None:
    p, q = targets_of(10, 6), targets_of(10, 6, seed=2)
    direct = (p * (np.log(p) - np.log(q))).sum(axis=1)
    assert kl_divergence(p, np.log(q)) == pytest.approx(direct)
    assert kl_divergence(p, np.log(p)) == pytest.approx(0, abs=1e-12)


def test_a_class_without_probability_costs_nothing_unless_it_happens() -> None:
    log_q = np.array([0.0, -np.inf])
    assert cross_entropy([1.0, 0.0], log_q) == 0
    assert cross_entropy([0.5, 0.5], log_q) == np.inf


def test_mode_matching_counts_contexts_whose_first_class_is_right() -> None:
    p = [[0.6, 0.4], [0.3, 0.7], [0.5, 0.5], [0.9, 0.1]]
    log_q = np.log([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7], [0.5, 0.5]])
    assert mode_matching(p, log_q) == 0.5
