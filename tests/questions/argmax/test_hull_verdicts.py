"""Verdicts over hulls, against a linear programme over the weights of the given vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

import argmaxable as am
from argmaxable.core.verdict import Status

Matrix = NDArray[np.float64]
# What HiGHS can't tell from zero.
CLEAR = 1e-9


def problem(seed: int) -> tuple[am.Head, am.Hull]:
    """A small head and hull: with and without bias, of round numbers, flat hulls, few vectors and many."""
    rng = np.random.default_rng(seed)
    features, classes, count = rng.integers(1, 6), rng.integers(2, 14), rng.integers(1, 20)
    weight = rng.standard_normal((classes, features))
    bias = rng.standard_normal(classes) if seed % 2 else None
    if seed % 5 == 0:
        weight, bias = np.round(weight), None if bias is None else np.round(bias)
    points = rng.standard_normal((count, features)) * rng.choice([0.1, 1.0, 10.0])
    if seed % 7 == 0:
        points = np.round(points)
    if seed % 3 == 0:
        points[:, 0] = points[0, 0]
    return am.Head(weight, bias), am.Hull(points)


def margin(head: am.Head, hull: am.Hull, class_id: int) -> float:
    """max over mixtures of the least gap, by HiGHS."""
    scores = hull.points @ head.rows(slice(None)).T + head.biases()
    gaps = scores[:, [class_id]] - np.delete(scores, class_id, axis=1)
    count, rivals = gaps.shape
    found = linprog(
        np.append(np.zeros(count), -1.0),
        A_ub=np.hstack([-gaps.T, np.ones((rivals, 1))]),
        b_ub=np.zeros(rivals),
        A_eq=[[*np.ones(count), 0.0]],
        b_eq=[1.0],
        bounds=[(0, None)] * count + [(None, None)],
    )
    return float(-found.fun)


@pytest.mark.parametrize("first", range(0, 70, 7))
def test_verdicts_agree_with_a_linear_programme(first: int) -> None:
    for seed in range(first, first + 7):
        head, hull = problem(seed)
        for verdict in am.verify(head, hull).verdicts:
            truth = margin(head, hull, verdict.class_id)
            assert verdict.status is not Status.UNDECIDED, (seed, verdict)
            if abs(truth) > CLEAR:
                assert (truth > 0) == (verdict.status is Status.ARGMAXABLE), (seed, verdict)
            assert verdict.lower <= truth + CLEAR
            assert verdict.upper >= truth - CLEAR


def test_a_hull_of_many_vectors_takes_corners_in_as_it_needs_them() -> None:
    rng = np.random.default_rng(1)
    head = am.Head(rng.standard_normal((30, 6)), rng.standard_normal(30))
    hull = am.Hull(rng.standard_normal((500, 6)))
    result = am.verify(head, hull)
    assert not result.undecided
    assert result.unargmaxable
    for verdict in result.verdicts:
        assert (margin(head, hull, verdict.class_id) > 0) == (verdict.status is Status.ARGMAXABLE)


def test_within_the_hull_of_a_boxs_corners_verdicts_are_the_boxs() -> None:
    rng = np.random.default_rng(2)
    head = am.Head(rng.standard_normal((30, 3)), rng.standard_normal(30))
    corners = np.array(np.meshgrid(*[[-2.0, 2.0]] * 3)).reshape(3, -1).T
    by_hull = [verdict.status for verdict in am.verify(head, am.Hull(corners)).verdicts]
    assert by_hull == [verdict.status for verdict in am.verify(head, am.Box(-2, 2)).verdicts]


def test_more_vectors_never_make_a_class_unargmaxable() -> None:
    rng = np.random.default_rng(3)
    head = am.Head(rng.standard_normal((40, 4)), rng.standard_normal(40))
    points = rng.standard_normal((30, 4))
    few, many = ({v.class_id for v in am.verify(head, am.Hull(points[:n])).argmaxable} for n in (10, 30))
    assert few <= many


def test_a_hull_of_one_vector_leaves_its_winner() -> None:
    head = am.Head([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    result = am.verify(head, am.Hull([[1.0, 2.0]]))
    assert [verdict.class_id for verdict in result.argmaxable] == [2]


def test_a_forged_mixture_proves_nothing() -> None:
    head, hull = problem(1)
    checker = am.Checker(head, hull)
    for weights in (np.full(len(hull.points), -1.0), np.zeros(len(hull.points))):
        assert checker.gaps(np.array([0]), weights[None]).lower[0] == -np.inf


@pytest.mark.parametrize("vectors", [12, 90])
def test_a_flat_hull_around_0_decides_every_class_of_a_head_without_bias(vectors: int) -> None:
    # All margins are 0 or above: no float proves one that is 0, and the plane is not along any feature.
    rng = np.random.default_rng(4)
    weight = rng.standard_normal((24, 4)).astype(np.float32)
    points = rng.standard_normal((vectors, 4))
    points[:, 3] = points[:, 0]  # exactly in a plane
    seen = weight.astype(np.float64)[:, :3] + np.outer(weight.astype(np.float64)[:, 3], [1.0, 0.0, 0.0])
    result = am.verify(am.Head(weight), am.Hull(points), engine=am.Engine(workers=1))
    truth = am.verify(am.Head(seen), am.Everywhere(), engine=am.Engine(workers=1))
    assert not result.undecided
    assert [each.status for each in result.verdicts] == [each.status for each in truth.verdicts]
    assert any(each.method is am.Method.SIMPLEX for each in result.verdicts)


def test_a_hull_that_is_flat_but_for_rounding_still_has_0_inside(tmp_path: Path) -> None:
    # The smallest mixtures point everywhere, so that verdicts are those of all of feature space, by
    # mixtures that float64 can't hold.
    rng = np.random.default_rng(0)
    head = am.Head(rng.standard_normal((24, 3)).astype(np.float32))
    points = rng.standard_normal((12, 2)) @ rng.standard_normal((2, 3))
    result = am.verify(head, am.Hull(points), engine=am.Engine(workers=1))
    truth = am.verify(head, am.Everywhere(), engine=am.Engine(workers=1))
    assert not result.undecided
    assert [each.status for each in result.verdicts] == [each.status for each in truth.verdicts]
    am.write_bundle(result, tmp_path / "proofs")
    assert not am.recheck(am.read_bundle(tmp_path / "proofs"), head).failures
