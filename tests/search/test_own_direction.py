"""How many classes are ahead of a class in its own direction: counted as rationals count."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import dot, exact_differences, placed, rationals

import argmaxable as am
from argmaxable.check.checker import Checker
from argmaxable.compute.prepared import PreparedHead
from argmaxable.search.own_direction import ahead_in_own_direction, own_exponents

DOMAINS = {
    "box": am.Box(-100, 100),
    "behind a ReLU": am.Box(0, np.inf),
    "everywhere": am.Everywhere(),
    "ball": am.Ball(3.0),
    "layer norm": am.LayerNorm(np.linspace(0.5, 2, 5), np.linspace(-1, 1, 5)),
}


def head_of(seed: int, *, scale: float = 1.0) -> am.Head:
    """Rows of uneven length, two of them identical, and two that float32 can't tell apart."""
    rng = np.random.default_rng(seed)
    weight = rng.normal(size=(40, 5)) * rng.uniform(0.05, 1.5, (40, 1)) * scale
    weight[7] = weight[3]
    weight[8] = weight[4] * (1 + 1e-9)
    bias = rng.normal(size=40) * scale / 5
    bias[8] = bias[4]
    return am.Head(weight, bias)


def counted_exactly(head: am.Head, domain: am.Domain, class_id: int, point: np.ndarray) -> int:
    """Rivals with a lead over the class, each against it alone. Float32 can't tell 4 and 8 apart."""
    x = placed(domain, rationals(point))
    assert x is not None
    rivals = [rival for rival in range(head.classes) if rival != class_id]
    return sum(
        dot(gap, x) + drop < 0
        for rival, gap, drop in zip(rivals, *exact_differences(head, class_id), strict=True)
        if {rival, class_id} != {4, 8}
    )


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
@pytest.mark.parametrize("scale", [1.0, 1e-18, 1e18])
def test_the_count_is_that_of_rationals(domain: am.Domain, scale: float) -> None:
    head = head_of(3, scale=scale)
    checker, classes = Checker(PreparedHead(head), domain), np.arange(head.classes)
    points = checker.rebuild(classes, own_exponents(checker, classes))
    expected = [counted_exactly(head, domain, k, points[k]) for k in classes]
    assert ahead_in_own_direction(checker, classes).tolist() == expected


def test_the_count_does_not_depend_on_which_classes_are_asked_for_together() -> None:
    head = head_of(5)
    checker = Checker(PreparedHead(head), am.Box(-100, 100))
    together = ahead_in_own_direction(checker, np.arange(40))
    alone = [int(ahead_in_own_direction(checker, np.array([k]))[0]) for k in range(40)]
    assert together.tolist() == alone


def test_of_classes_that_are_the_same_up_to_rounding_none_is_ahead() -> None:
    same = np.array([0.5, 0.25]) * (1 + np.array([[0.0], [1e-12], [1e-10], [1e-9], [1e-8]]))
    rows = np.concatenate([np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]]), same])
    checker = Checker(PreparedHead(am.Head(rows)), am.Box(-1, 1))
    assert len(set(ahead_in_own_direction(checker, np.arange(4, 9)).tolist())) == 1


def test_identical_classes_are_not_ahead_of_each_other() -> None:
    checker = Checker(PreparedHead(am.Head(np.ones((5, 2)))), am.Box(-1, 1))
    assert ahead_in_own_direction(checker, np.arange(5)).tolist() == [0] * 5
