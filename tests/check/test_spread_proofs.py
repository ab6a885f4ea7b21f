"""Certificates with a basis larger than the number of equations: exact weights are shown to exist nearby."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, nnls

import argmaxable as am
from argmaxable.check.checker import Checker
from argmaxable.check.solutions import Equations
from argmaxable.core.verdict import Certificate, Strength


def mixture_weights(head: am.Head, class_id: int) -> Certificate:
    """The weights on all other classes that come closest to reproducing the class, each kept above zero."""
    others = np.delete(np.arange(head.classes), class_id)
    rows = np.vstack([head.rows(others).T, np.ones(len(others))])
    target = np.append(head.rows(np.array([class_id]))[0], 1.0)
    floor = 0.02 / len(others)
    weights = nnls(rows, target - rows @ np.full(len(others), floor))[0] + floor
    return Certificate(others, weights, len(others))


def is_in_hull(head: am.Head, class_id: int) -> bool:
    others = np.delete(np.arange(head.classes), class_id)
    rows = np.vstack([head.rows(others).T, np.ones(len(others))])
    target = np.append(head.rows(np.array([class_id]))[0], 1.0)
    return bool(linprog(np.zeros(len(others)), A_eq=rows, b_eq=target, method="highs").status == 0)


@settings(max_examples=150)
@given(seed=st.integers(0, 10**6), features=st.integers(1, 5), reach=st.floats(0.0, 1.6))
def test_what_a_large_basis_proves_is_true(seed: int, features: int, reach: float) -> None:
    generator = np.random.default_rng(seed)
    weight = generator.standard_normal((4 * features + 4, features))
    weight[0] *= reach
    head = am.Head(weight)
    bound = Checker(head, am.Everywhere()).bound(0, mixture_weights(head, 0))
    if bound.upper <= 0:
        assert is_in_hull(head, 0)


def test_a_class_inside_the_hull_is_proven_without_choosing_a_basis() -> None:
    weight = np.vstack([np.full((1, 3), 0.05), np.random.default_rng(0).standard_normal((30, 3))])
    head = am.Head(weight)
    bound = Checker(head, am.Everywhere()).bound(0, mixture_weights(head, 0))
    assert (bound.upper, bound.strength) == (0.0, Strength.INTERVAL)


def test_weights_that_miss_the_class_by_more_than_they_can_give_are_refused() -> None:
    weight = np.vstack([np.full((1, 3), 0.05), np.random.default_rng(0).standard_normal((30, 3))])
    head = am.Head(weight)
    good = mixture_weights(head, 0)
    off = Certificate(good.classes, good.weights[::-1].copy(), good.basis)
    assert Checker(head, am.Everywhere()).bound(0, off).upper == np.inf


def test_rows_that_do_not_span_the_space_prove_nothing() -> None:
    weight = np.random.default_rng(0).standard_normal((30, 3))
    weight[:, 2] = weight[:, 0] + weight[:, 1]
    weight[0] = weight[1:].mean(axis=0)
    weight[0, 2] += 1e-6
    head = am.Head(weight)
    checker = Checker(head, am.Everywhere())
    found = mixture_weights(head, 0)
    equations = Equations(head, checker.domain, checker.centre, found.classes, found.basis)
    assert equations.errors(np.array([0]), found.weights[None]) == np.inf


@pytest.mark.parametrize("bias", [False, True])
def test_heads_of_many_features_are_proven_by_large_bases(bias: bool) -> None:
    generator = np.random.default_rng(1)
    weight = generator.standard_normal((900, 140)).astype(np.float32)
    for class_id in range(5):
        some = generator.choice(np.arange(5, 900), 500, replace=False)
        weight[class_id] = generator.dirichlet(np.ones(500)) @ weight[some]
    head = am.Head(weight, np.where(np.arange(900) < 5, -0.5, 0).astype(np.float32) if bias else None)
    result = am.verify(head, am.Everywhere(), only=range(5), engine=am.Engine(workers=1))
    assert len(result.unargmaxable) == 5
    certificates = [verdict.certificate for verdict in result.unargmaxable]
    assert any(certificate is not None and certificate.basis > 141 for certificate in certificates)


def test_large_bases_survive_a_bundle(tmp_path: object) -> None:
    generator = np.random.default_rng(2)
    weight = generator.standard_normal((700, 130)).astype(np.float32)
    weight[0] = generator.dirichlet(np.ones(699)) @ weight[1:]
    head = am.Head(weight)
    result = am.verify(head, only=[0], engine=am.Engine(workers=1))
    am.write_bundle(result, f"{tmp_path}/proofs")
    found = am.recheck(am.read_bundle(f"{tmp_path}/proofs"), head)
    assert (found.proven, found.failures) == (1, ())


def test_biases_that_cancel_a_large_shift_are_known_only_up_to_its_rounding() -> None:
    """Over a norm with shift S scores have the offsets b + w·S. With rows 0, −a, 3a and biases τ, β, −3β the
    weights 3/4 and 1/4 prove t* ≤ τ for the first class, no less. Where β ≈ aS the offsets nearly vanish, and
    in float64 they are off by the rounding of aS: far more than τ, with either sign.
    """
    generator = np.random.default_rng(0)
    certificate = Certificate(np.array([1, 2]), np.array([0.75, 0.25]), 2)
    for _ in range(20):
        a, shift = float(np.float32(generator.uniform(1, 2))), generator.uniform(1e10, 2e10)
        tau, beta = 1e-12, float(np.float32(a * shift))  # of 24 bits, so that 3a and 3β are floats too
        # The last class only makes the mean bias, which is taken off, as good as 0.
        head = am.Head([[0.0], [-a], [3 * a], [0.0]], [tau, beta, -3 * beta, 2 * beta])
        checker = Checker(head, am.RMSNorm(np.ones(1), np.full(1, shift)), centre=np.zeros(1))
        assert checker.bound(0, certificate).upper >= tau
