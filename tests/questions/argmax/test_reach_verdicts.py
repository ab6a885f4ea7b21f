"""Verdicts over what a user can reach, against a linear programme and a cone programme over the moves."""

from __future__ import annotations

import numpy as np
import pytest
from evidence import assert_evidence_holds_exactly
from oracles import margin_by_clarabel, margin_by_highs

import argmaxable as am

# What the solvers can't tell from zero.
CLEAR = 1e-8


def problem(seed: int) -> tuple[am.Head, am.Reach]:
    """A small head and a reach: with and without bias, of round numbers, more moves than features and fewer,
    moves without room."""
    rng = np.random.default_rng(seed)
    features, classes, count = rng.integers(1, 6), rng.integers(2, 14), rng.integers(1, 8)
    weight = rng.standard_normal((classes, features))
    bias = rng.standard_normal(classes) if seed % 2 else None
    base, moves = rng.standard_normal(features), rng.standard_normal((features, count))
    lo, hi = -rng.random(count), rng.random(count) * rng.choice([0.1, 1.0, 10.0])
    if seed % 5 == 0:
        weight, bias = np.round(weight), None if bias is None else np.round(bias)
        base, moves, lo, hi = np.round(base), np.round(moves), np.round(lo), np.round(hi)
    if seed % 3 == 0:
        lo[0] = hi[0]
    if seed % 10 == 0:
        base[:] = 0.0
    within = am.Ball(float(hi.sum()) + 0.5) if seed % 7 == 0 else am.Box(lo, hi)
    return am.Head(weight, bias), am.Reach(base, moves, within)


def margin(head: am.Head, reach: am.Reach, class_id: int) -> float:
    """The margin over the moves: the head in front of which the affine map stands, in floats."""
    rows = head.rows(slice(None))
    moved = am.Head(rows @ reach.moves, head.biases() + rows @ reach.base)
    if isinstance(reach.within, am.Ball):
        return margin_by_clarabel(moved, reach.within, class_id)
    return margin_by_highs(moved, reach.within, class_id)


@pytest.mark.parametrize("first", range(0, 70, 7))
def test_verdicts_agree_with_a_linear_programme(first: int) -> None:
    for seed in range(first, first + 7):
        head, reach = problem(seed)
        result = am.verify(head, reach)
        assert_evidence_holds_exactly(head, reach, result)
        for verdict in result.verdicts:
            truth = margin(head, reach, verdict.class_id)
            # A tie is met by exact weights over a box; over a ball none need exist.
            if isinstance(reach.within, am.Box) or abs(truth) > CLEAR:
                assert verdict.status is not am.Status.UNDECIDED, (seed, verdict, truth)
            if abs(truth) > CLEAR:
                assert (truth > 0) == (verdict.status is am.Status.ARGMAXABLE), (seed, verdict)
            assert verdict.lower <= truth + CLEAR
            assert verdict.upper >= truth - CLEAR


def test_with_moves_along_the_features_verdicts_are_those_of_a_box() -> None:
    rng = np.random.default_rng(2)
    head = am.Head(rng.standard_normal((40, 3)), rng.standard_normal(40))
    box = am.Box([-1.0, 0.0, 1.0], [3.0, 2.0, 2.0])
    reach = am.Reach([1.0, 1.0, 1.5], np.diag([2.0, 1.0, 0.5]), am.Box(-1, 1))
    by_reach = [verdict.status for verdict in am.verify(head, reach).verdicts]
    assert by_reach == [verdict.status for verdict in am.verify(head, box).verdicts]


def test_no_moves_of_any_size_leave_the_base_and_its_winner() -> None:
    head = am.Head([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    for reach in (
        am.Reach([1.0, 2.0], [[1.0], [1.0]], am.Box(0, 0)),
        am.Reach([1.0, 2.0], [[0.0], [0.0]], am.Box(-1, 1)),
    ):
        assert [verdict.class_id for verdict in am.verify(head, reach).argmaxable] == [2]


def test_wider_limits_never_make_a_class_unargmaxable() -> None:
    rng = np.random.default_rng(3)
    head = am.Head(rng.standard_normal((300, 8)))
    base, moves = rng.standard_normal(8), rng.standard_normal((8, 5))
    near, far = (
        {v.class_id for v in am.verify(head, am.Reach(base, moves, am.Box(-size, size))).argmaxable}
        for size in (0.2, 1.0)
    )
    assert near < far


def test_points_outside_the_limits_prove_nothing() -> None:
    head, reach = problem(1)
    points = np.full((1, reach.moves.shape[1]), 100.0)
    assert am.Checker(head, reach).gaps(np.array([0]), points).lower[0] == -np.inf
