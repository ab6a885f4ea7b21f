"""Sets of labels on the trigonometric curve: the alternation rule against linear programmes, and the
counts."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

import argmaxable as am
from argmaxable.exact.trigonometric import proven_active
from argmaxable.theory.sign_patterns import (
    count_sign_patterns,
    is_alternation_feasible,
    sign_changes,
    trigonometric_rows,
)

Pattern = tuple[int, ...]


def all_patterns(labels: int) -> list[Pattern]:
    return list(itertools.product((-1, 1), repeat=labels))


def turned_apart(labels: int) -> list[Pattern]:
    """One pattern for all that are the same up to a turn of the circle and the choice of signs."""
    seen: set[Pattern] = set()
    found = []
    for pattern in all_patterns(labels):
        if pattern not in seen:
            found.append(pattern)
            for sign in (1, -1):
                signed = tuple(sign * value for value in pattern)
                seen |= {signed[k:] + signed[:k] for k in range(labels)}
    return found


def margin(rows: np.ndarray, pattern: Pattern) -> float:
    """max over the box ±1 of the least signed score, by HiGHS."""
    signed = rows * np.array(pattern)[:, None]
    size = rows.shape[1]
    answer = linprog(
        np.append(np.zeros(size), -1.0),
        A_ub=np.hstack([-signed, np.ones((len(rows), 1))]),
        b_ub=np.zeros(len(rows)),
        bounds=[(-1, 1)] * size + [(None, None)],
    )
    return float(-answer.fun)


@pytest.mark.parametrize("active", [1, 2])
@pytest.mark.parametrize("labels", range(3, 13))
def test_the_rule_agrees_with_a_linear_programme_on_every_pattern(labels: int, active: int) -> None:
    rows = trigonometric_rows(labels, active)
    for pattern in turned_apart(labels):
        assert (margin(rows, pattern) > 1e-9) == is_alternation_feasible(pattern, active), pattern


@pytest.mark.parametrize("active", [1, 2])
@pytest.mark.parametrize("labels", range(3, 13))
def test_the_rule_is_the_answer_about_every_set(labels: int, active: int) -> None:
    patterns = turned_apart(labels)
    asked = [tuple(k for k, sign in enumerate(pattern) if sign > 0) for pattern in patterns]
    head = am.Head(trigonometric_rows(labels, active))
    found = am.sets(head, am.Everywhere(), asked, engine=am.Engine(workers=1))
    allowed = [is_alternation_feasible(pattern, active) for pattern in patterns]
    assert not found.having(am.Feasibility.UNDECIDED)
    assert [claim.status is am.Feasibility.FEASIBLE for claim in found.claims] == allowed


@pytest.mark.parametrize("active", [0, 1, 2, 3])
@pytest.mark.parametrize("labels", range(1, 13))
def test_as_many_patterns_fulfil_the_rule_as_are_feasible_in_general_position(
    labels: int, active: int
) -> None:
    allowed = sum(is_alternation_feasible(pattern, active) for pattern in all_patterns(labels))
    assert allowed == count_sign_patterns(labels, 2 * active + 1)


def test_the_count_agrees_with_enumeration_for_random_rows() -> None:
    rng = np.random.default_rng(0)
    for labels, dims in ((5, 2), (6, 3), (7, 2)):
        rows = rng.standard_normal((labels, dims))
        feasible = sum(margin(rows, pattern) > 1e-9 for pattern in all_patterns(labels))
        assert feasible == count_sign_patterns(labels, dims)
    with_bias = np.hstack([rng.standard_normal((6, 2)), np.ones((6, 1))])
    feasible = sum(margin(with_bias, pattern) > 1e-9 for pattern in all_patterns(6))
    assert feasible == count_sign_patterns(6, 2, bias=True)


def test_everything_is_feasible_with_a_feature_for_each_label() -> None:
    assert count_sign_patterns(9, 9) == count_sign_patterns(9, 40) == 2**9
    assert count_sign_patterns(9, 8, bias=True) == 2**9


def test_sign_changes_are_counted_around_the_circle() -> None:
    assert sign_changes([1, 1, -1, -1]) == 2
    assert sign_changes([True, False, True, False]) == 4
    assert sign_changes([1, 1]) == sign_changes([1]) == 0


@pytest.mark.parametrize("call", [lambda: count_sign_patterns(0, 1), lambda: trigonometric_rows(3, -1)])
def test_what_can_not_be_counted_is_refused(call: object) -> None:
    with pytest.raises(am.InputError):
        call()  # type: ignore[operator]


def exactly_on(rows: np.ndarray, chosen: tuple[int, ...]) -> bool:
    """Whether exactly these labels can be on over all of space, by verdict: the class of zeros wins against
    the signed rows."""
    signs = np.full(len(rows), 1.0)
    signs[list(chosen)] = -1.0
    head = am.Head(np.vstack([rows * signs[:, None], np.zeros((1, rows.shape[1]))]))
    verdict = am.verify(head, am.Everywhere(), only=[len(rows)]).verdicts[0]
    assert verdict.status is not am.Status.UNDECIDED
    return verdict.status is am.Status.ARGMAXABLE


@pytest.mark.parametrize(
    ("labels", "active", "dtype", "proven"),
    [
        (12, 2, np.float64, 2),
        (12, 2, np.float32, 2),
        (100, 2, np.float16, 1),
        (9, 3, np.float32, 3),
        (9000, 1, np.float32, 1),
        (9000, 12, np.float32, 1),
        (9000, 12, np.float64, 2),
    ],
)
def test_how_many_active_labels_stored_rows_are_proven_for(
    labels: int, active: int, dtype: type, proven: int
) -> None:
    rows = trigonometric_rows(labels, active).astype(dtype).astype(np.float64)
    assert proven_active(rows) == proven


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize(("labels", "active"), [(8, 1), (8, 2), (7, 3)])
def test_every_set_that_is_proven_is_feasible(labels: int, active: int, dtype: type) -> None:
    rows = trigonometric_rows(labels, active).astype(dtype).astype(np.float64)
    rows *= np.random.default_rng(0).uniform(0.5, 2, (labels, 1))
    for size in range(proven_active(rows) + 1):
        assert all(exactly_on(rows, chosen) for chosen in itertools.combinations(range(labels), size))


def test_equal_rows_are_proven_for_nothing_but_the_empty_set() -> None:
    rows = trigonometric_rows(6, 2)
    rows[3] = rows[2]
    assert proven_active(rows) == 0
    assert proven_active(-rows) == proven_active(rows * np.nan) == -1
    assert proven_active(np.ones((4, 3))) == 0


def test_the_point_of_the_proof_switches_on_a_set_exactly() -> None:
    """p = μ/2 − Π(1 − cos(θ − θ_i)) in rationals, for neighbours, at rows as float32 stores them."""
    rows = trigonometric_rows(40, 2).astype(np.float32)
    assert proven_active(rows.astype(np.float64)) == 2
    chosen = (7, 8)
    angles = 2 * np.pi * np.arange(40) / 40
    product = np.prod([1 - np.cos(angles - angles[i]) for i in chosen], axis=0)
    least = product[[k for k in range(40) if k not in chosen]].min()
    x = np.linalg.lstsq(trigonometric_rows(40, 2), least / 2 - product, rcond=None)[0]
    point = [Fraction(float(value)) for value in x]
    for label, row in enumerate(rows):
        score = sum(Fraction(float(a)) * b for a, b in zip(row, point, strict=True))
        assert (score > 0) == (label in chosen)
