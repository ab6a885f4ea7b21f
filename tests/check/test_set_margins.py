"""Margins of sets step by step: bounds on scores over their thresholds, the smallest gap, what is claimed."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from oracles import rationals
from order_truths import exact_scores

import argmaxable as am
from argmaxable.check import sets
from argmaxable.check.sets import SetChecker, cut_head
from argmaxable.core.label_sets import SetTest
from argmaxable.core.verdict import Certificate, Strength
from argmaxable.exact.dyadic import round_down

INF = math.inf
UNIT = Fraction(2) ** -53
EXACTLY, TOP, AT_LEAST = am.SetKind.EXACTLY, am.SetKind.TOP, am.SetKind.AT_LEAST
KINDS = tuple(am.SetKind)
LINE = am.Head([[1.0], [-1.0], [1.0]], [0.0, 0.0, -3.0])


def checker_of(kind: am.SetKind, classes: int = 6, features: int = 2, seed: int = 0) -> SetChecker:
    rng = np.random.default_rng(seed)
    head = am.Head(rng.normal(size=(classes, features)), rng.normal(size=classes) * 3)
    return SetChecker(
        head, am.Everywhere(), SetTest(kind, 0.0 if kind is TOP else tuple(rng.normal(size=classes)))
    )


def test_the_cut_is_one_more_row_of_zeros() -> None:
    cut = cut_head(LINE, SetTest(EXACTLY, (0.5, 0.0, -3.0)))
    assert cut.rows(slice(None)).tolist() == [[1.0], [-1.0], [1.0], [0.0]]
    assert cut.biases().tolist() == [-0.5, 0.0, 0.0, 0.0]
    assert cut_head(am.Head([[1.0], [2.0]]), SetTest()).bias is None


# ---------------------------------------------------------------------- bounds on scores


@pytest.mark.parametrize("kind", [EXACTLY, AT_LEAST])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_score_over_its_threshold_counts_both_errors_and_four_units(kind: am.SetKind, sign: float) -> None:
    checker = checker_of(kind)
    x = sign * np.array([0.3, -0.7])
    scores, slack = checker.scores.scores64(x)
    low, high = checker._enclosed(scores, slack)
    biases = rationals(np.abs(checker.prepared.head.biases(slice(0, 6))))
    exact, errors = rationals(scores), rationals(slack)
    for i in range(6):
        gap = exact[i] - exact[6]
        width = errors[i] + errors[6] + 4 * UNIT * (abs(gap) + biases[i])
        size = abs(gap) + biases[i]
        assert abs(Fraction(float(low[i])) - (gap - width)) <= UNIT * size
        assert abs(Fraction(float(high[i])) - (gap + width)) <= UNIT * size


def test_scores_of_the_top_are_off_by_their_own_errors() -> None:
    checker = checker_of(TOP)
    scores, slack = np.arange(6.0), np.full(6, 0.25)
    low, high = checker._enclosed(scores, slack)
    assert low.tolist() == (scores - 0.25).tolist()
    assert high.tolist() == (scores + 0.25).tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_scores_that_are_no_numbers_may_be_anything(kind: am.SetKind) -> None:
    checker = checker_of(kind)
    scores = np.zeros(7 if checker.has_cut else 6)
    scores[2] = math.nan
    low, high = checker._enclosed(scores, np.zeros_like(scores))
    assert (low[2], high[2]) == (-INF, INF)
    assert np.isfinite(np.delete(low, 2)).all()


# ---------------------------------------------------------------------- the smallest gap

LOW, HIGH = np.array([5.0, 1.0, -2.0, 4.0]), np.array([6.0, 2.0, -1.0, 7.0])


@pytest.mark.parametrize(
    ("kind", "members", "expected"),
    [
        (AT_LEAST, (0, 3), (4.0, 6.0)),
        (AT_LEAST, (0, 1), (1.0, 2.0)),
        (AT_LEAST, (), (INF, INF)),
        (EXACTLY, (0, 3), (-2.0, -1.0)),  # label 1 is above its threshold
        (EXACTLY, (0, 1, 3), (1.0, 2.0)),
        (EXACTLY, (0, 1, 2, 3), (-2.0, -1.0)),
        (EXACTLY, (), (-7.0, -5.0)),
    ],
)
def test_the_smallest_gap_to_thresholds(
    kind: am.SetKind, members: tuple[int, ...], expected: tuple[float, float]
) -> None:
    assert checker_of(kind, 4)._smallest(members, LOW, HIGH) == expected


@pytest.mark.parametrize(
    ("members", "low", "high"),
    [((0,), -2.0, 2.0), ((0, 3), 2.0, 5.0), ((1,), -6.0, -3.0), ((0, 1, 3), 2.0, 4.0), ((2,), -9.0, -6.0)],
)
def test_the_gap_below_the_top_is_a_difference_that_rounds_once(
    members: tuple[int, ...], low: float, high: float
) -> None:
    found = checker_of(TOP, 4)._smallest(members, LOW, HIGH)
    assert found == (low - 2.0**-53 * abs(low), high + 2.0**-53 * abs(high))


# ---------------------------------------------------------------------- what is claimed


@pytest.mark.parametrize("kind", KINDS)
def test_a_margin_is_claimed_so_far_below_that_anybody_finds_it_again(kind: am.SetKind) -> None:
    """Three bounds on its rounding below what float32 found: one is its own, two are for others."""
    for seed in range(20):
        checker = checker_of(kind, seed=seed)
        x = np.random.default_rng(seed).normal(size=2)
        values, errors = checker.scores.all_scores(x[None])
        low, high = checker._enclosed(values[0].astype(float), errors(0))
        over = (low + high) / 2
        members = tuple(
            sorted(np.argsort(-over)[:2].tolist() if kind is TOP else np.flatnonzero(over > 0).tolist())
        )
        if checker.test.asks_nothing(members, 6):
            continue
        least, most = checker._smallest(members, low, high)
        found = checker.margins([members], x[None])[0]
        assert least - (most - least) > 0  # float32 is enough here
        assert found == pytest.approx(least - (most - least), rel=1e-15)
        assert checker.margins([members], x[None], claims=np.array([found]))[0] >= found


def test_points_outside_leave_those_inside_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """One set in each block of work: the first has nothing to do."""
    monkeypatch.setattr(sets, "_BLOCK_SCORES", 4)
    checker = SetChecker(LINE, am.Box(-1, 1), SetTest())
    points = np.array([[2.0], [1.0], [-3.0], [-1.0]])
    found = checker.margins([(0,), (0,), (1,), (1,)], points)
    assert found[[0, 2]].tolist() == [-INF, -INF]
    assert found[[1, 3]] == pytest.approx([1.0, 1.0], rel=1e-4)
    assert (found[[1, 3]] <= 1).all()


def test_labels_and_features_must_fit() -> None:
    with pytest.raises(am.ArgmaxableError):
        SetChecker(LINE, am.Box(-1, 1), SetTest(EXACTLY, (0.0, 1.0)))
    with pytest.raises(am.ArgmaxableError):
        SetChecker(LINE, am.Box([0.0, 0.0], [1.0, 1.0]), SetTest())


# ---------------------------------------------------------------------- weights


def weights(on: dict[int, float], **more: Any) -> Certificate:
    return Certificate(np.array(list(on)), np.array(list(on.values())), **more)


@pytest.mark.parametrize(
    ("kind", "members", "proof", "is_balanced"),
    [
        (AT_LEAST, (0, 1), weights({0: 1.0, 1: 1.0}), True),
        (AT_LEAST, (0, 1), weights({0: 1.0, 2: 0.0}), True),
        (AT_LEAST, (0, 1), weights({0: 1.0, 2: 0.5}), False),
        (AT_LEAST, (0, 1), weights({0: 1.0, 2: 0.5}, whole=(1, 0)), True),
        (AT_LEAST, (0, 1), weights({0: 1.0, 2: 0.0}, whole=(1, 1)), False),
        (EXACTLY, (0, 1), weights({2: 1.0}), True),
        (EXACTLY, (), weights({2: 1.0}), True),
        (TOP, (0, 1), weights({0: 1.0, 1: 1.0, 2: 0.5}), True),
        (TOP, (0, 1), weights({0: 0.5, 1: 0.0, 2: 0.5}), True),
        (TOP, (0, 1), weights({0: 1.0, 1: 1.0}), False),
        (TOP, (0, 1), weights({0: 1.0, 2: 0.0}), False),
        (TOP, (0, 1), weights({2: 1.0}), False),
        (TOP, (0, 1), weights({0: 0.0, 2: 1.0}), False),
        (TOP, (0, 1), weights({0: 1.0, 2: 1.0}, whole=(1, 0)), False),
        (TOP, (0,), weights({0: 1.0, 1: 0.25, 2: 0.0}), True),
    ],
)
def test_weights_are_where_the_question_has_conditions(
    kind: am.SetKind, members: tuple[int, ...], proof: Certificate, is_balanced: bool
) -> None:
    checker = SetChecker(LINE, am.Box(-1, 1), SetTest(kind))
    assert (checker.bound(members, proof).upper < INF) is is_balanced


@pytest.mark.parametrize("kind", KINDS)
def test_weights_far_below_others_are_left_to_integers(kind: am.SetKind) -> None:
    """A share of 2^−1000 times a row of 2^990 matters, and floats may have lost its digits."""
    head = am.Head([[2.0**990], [1.0], [-1.0], [0.5]])
    checker = SetChecker(head, am.Box(-1, 1), SetTest(kind))
    inside = np.ones(4, bool) if kind is AT_LEAST else np.array([True, True, False, False])
    few = Certificate(np.arange(4), np.array([2.0**-1000, 1.0, 1.0, 1.0]))
    assert checker._float_bound(inside, few) == INF
    assert checker._float_bound(inside, Certificate(np.arange(4), np.array([0.0, 1.0, 1.0, 1.0]))) < INF
    assert checker._float_bound(inside, Certificate(np.arange(4), np.array([2.0**-890, 1.0, 1.0, 1.0]))) < INF
    members = (0, 1, 2, 3) if kind is AT_LEAST else (0, 1)
    assert checker.bound(members, few).strength is Strength.EXACT


def test_sums_that_overflow_bound_nothing() -> None:
    head = am.Head([[1.5e308], [1.5e308], [-1.5e308]], [1.5e308, 1.5e308, -1.5e308])
    proof = Certificate(np.arange(3), np.ones(3))
    for kind, inside in ((EXACTLY, [True, True, False]), (TOP, [True, True, False])):
        checker = SetChecker(head, am.Box(-1, 1), SetTest(kind))
        assert checker._float_bound(np.array(inside), proof) == INF


def test_bounds_of_nothing_count_what_underflows() -> None:
    checker = SetChecker(am.Head(np.zeros((2, 1))), am.Box(0, 0), SetTest())
    proof = Certificate(np.arange(2), np.ones(2))
    # Four for each of two weights, one for the feature's support and one at the end.
    found = checker._float_bound(np.array([True, True]), proof) / 2.0**-1021
    assert found == pytest.approx(10.0)
    wide = SetChecker(am.Head(np.zeros((2, 1))), am.Box(-1, 1), SetTest())
    assert wide._float_bound(np.array([True, True]), proof) / 2.0**-1021 == pytest.approx(18.0)


# ---------------------------------------------------------------------- exact margins


def true_margin(checker: SetChecker, members: tuple[int, ...], z: np.ndarray) -> Fraction:
    scores = exact_scores(checker.head, checker.domain, z)
    assert scores is not None
    over = [s - t for s, t in zip(scores, rationals(checker.thresholds), strict=True)]
    inside = [over[i] for i in members]
    outside = [each for i, each in enumerate(over) if i not in members]
    if checker.test.kind is TOP:
        return min(inside) - max(outside)
    return min([*inside, *(-each for each in outside if checker.test.kind is EXACTLY)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("domain", [am.Everywhere(), am.LayerNorm([0.5, -3.0, 1.0], [0.1, 0.2, 0.3])])
def test_exact_margins_are_rounded_down_however_little_floats_know(
    kind: am.SetKind, domain: am.Domain
) -> None:
    """Bounds on scores say which labels may decide: they are as tight as can be, loose, or nothing at all."""
    rng = np.random.default_rng(5)
    for _ in range(15):
        head = am.Head(rng.normal(size=(6, 3)), rng.normal(size=6))
        limits = 0.0 if kind is TOP else tuple(rng.normal(size=6))
        checker = SetChecker(head, domain, SetTest(kind, limits))
        z = rng.normal(size=3) / 3
        scores = exact_scores(head, domain, z)
        assert scores is not None
        over = np.array([float(s - t) for s, t in zip(scores, rationals(checker.thresholds), strict=True)])
        members = tuple(sorted(rng.choice(6, size=int(rng.integers(1, 6)), replace=False).tolist()))
        expected = round_down(true_margin(checker, members, z))
        for width in (1e-14, 0.5, 5.0, INF):
            assert checker._exact_margin(members, z, over - width, over + width) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_labels_known_exactly_decide_among_themselves(kind: am.SetKind) -> None:
    """Whole numbers: the bounds are the scores, and ties are ties."""
    head = am.Head(np.zeros((5, 1)), [3.0, 2.0, 2.0, -1.0, -4.0])
    checker = SetChecker(head, am.Box(0, 0), SetTest(kind))
    scores, z = np.array([3.0, 2.0, 2.0, -1.0, -4.0]), np.zeros(1)
    for members in ((0,), (0, 1), (0, 1, 2), (3,), (1, 2), (0, 4), (3, 4)):
        expected = float(true_margin(checker, members, z))
        assert checker._exact_margin(members, z, scores, scores) == expected
        assert checker.margins([members], z[None])[0] <= expected
        claims = np.array([expected])
        assert checker.margins([members], z[None], claims=claims)[0] == expected


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_in_integers_are_no_larger_than_those_in_floats(kind: am.SetKind) -> None:
    rng = np.random.default_rng(6)
    for _ in range(10):
        head = am.Head(rng.normal(size=(5, 2)), rng.normal(size=5))
        checker = SetChecker(head, am.Box(-1, 2), SetTest(kind, 0.0 if kind is TOP else 0.25))
        members = (0, 1, 2, 3, 4) if kind is AT_LEAST else (0, 2)
        inside = np.isin(np.arange(5), members)
        proof = Certificate(np.arange(5), rng.uniform(0.1, 1, 5))
        loose = checker._float_bound(inside, proof)
        exact = checker._exact_bound(inside, proof, INF).upper
        assert exact < loose < exact + 1e-12
        assert checker.proves(members, proof, exact)
        assert not checker.proves(members, proof, math.nextafter(exact, -INF))
