"""Attacks on certificates with a basis: what must not be believed, and what must not be lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import argmaxable as am
from argmaxable.check.checker import Checker
from argmaxable.core.verdict import Certificate, Status

SMALLEST = 2.0**-1074
NEAR, FAR = [256, 512, 768, 1024, 1280], [1, 2, 3, 4, 5]


def head_in_the_middle_of_near_rows() -> am.Head:
    """Class 0 is the mean of the classes NEAR; those of FAR are all on one side of it."""
    rows = np.random.default_rng(0).standard_normal((1300, 2))
    rows[0] = rows[NEAR].mean(axis=0)
    rows[FAR] = [[10, 0], [11, 0], [10, 1], [12, 3], [10, 5]]
    return am.Head(rows)


def even_certificate(classes: NDArray[Any]) -> Certificate:
    return Certificate(classes, np.full(5, 0.2), 4)


@pytest.mark.parametrize("basis", [2, 4])
@pytest.mark.parametrize("domain", [am.Everywhere(), am.Box(-1, 1), am.Ball(1.0), am.RMSNorm(1.0)])
def test_a_lead_by_the_smallest_bias_there_is_is_not_lost_to_underflow(domain: am.Domain, basis: int) -> None:
    head = am.Head([[0.0], [-1.0], [1.0], [-2.0], [2.0]], [SMALLEST, 0.0, 0.0, 0.0, 0.0])
    certificate = Certificate(np.arange(1, 5), np.full(4, 0.25), basis)
    assert Checker(head, domain).bound(0, certificate).upper >= SMALLEST


def test_no_class_is_lost_when_biases_are_as_small_as_can_be() -> None:
    rows = [[3, 1], [0, 1], [3, -3], [1, -3], [2, -2], [0, -2], [1, 2], [3, -2], [1, 3], [1, -3]]
    biases = np.array([0, 0, 0, 1, 1, 0, 1, 0, 0, 0]) * SMALLEST
    # At x = (0.5, 0) · SMALLEST class 4 wins, were there such a float: multiply all by 2^1074.
    verdict = am.verify(
        am.Head(rows, biases), am.Everywhere(), only=[4], engine=am.Engine(workers=1)
    ).verdicts[0]
    assert verdict.status is not Status.UNARGMAXABLE


def test_a_certificate_is_not_taken_for_one_whose_ids_have_the_same_bytes() -> None:
    checker = Checker(head_in_the_middle_of_near_rows(), am.Everywhere())
    assert checker.bound(0, even_certificate(np.array(NEAR, ">i2"))).upper <= 0
    assert checker.bound(0, even_certificate(np.array(FAR, "<i2"))).upper > 0


def test_ids_changed_after_a_check_prove_nothing_about_the_ids_they_were() -> None:
    checker = Checker(head_in_the_middle_of_near_rows(), am.Everywhere())
    ids = np.array(FAR)
    assert checker.bound(0, even_certificate(ids)).upper > 0
    ids[:] = NEAR
    assert checker.bound(0, even_certificate(np.array(FAR))).upper > 0


@pytest.mark.parametrize("constant", [0.0, 7.0])
def test_a_constant_feature_leaves_no_deep_class_undecided(constant: float) -> None:
    generator = np.random.default_rng(0)
    rows = generator.standard_normal((900, 130))
    rows[:2] = generator.dirichlet(np.ones(898), 2) @ rows[2:]
    rows[:, 5] = constant
    result = am.verify(am.Head(rows), am.Everywhere(), only=range(2), engine=am.Engine(workers=1))
    assert len(result.unargmaxable) == 2


def test_weights_of_float32_are_not_summed_in_float32() -> None:
    head = am.Head(np.zeros((4, 1)), [1e-6, 0.0, 0.0, -1000.0])
    certificate = Certificate(np.array([1, 2]), np.array([1.0, 2.0**-25], np.float32))
    assert Checker(head, am.Box(-1, 1)).bound(0, certificate).upper > 0  # class 0 wins everywhere
