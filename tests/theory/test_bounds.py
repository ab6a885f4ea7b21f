"""Squared error of log P: Theorem 1's bound, the matrix that reaches it, and the tighter centred bound."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import log_softmax

from argmaxable.core.errors import InputError
from argmaxable.theory.bounds import nearest_logits, nearest_of_rank, squared_error_bounds

CONTEXTS, CLASSES = 40, 15


@pytest.fixture
def log_p() -> np.ndarray:
    return np.log(np.random.default_rng(0).dirichlet(np.full(CLASSES, 0.5), CONTEXTS))


@pytest.mark.parametrize("bias", [False, True])
def test_the_truncated_decomposition_reaches_the_plain_bound(log_p: np.ndarray, bias: bool) -> None:
    bounds = squared_error_bounds(log_p, bias=bias)
    for d in range(CLASSES + 1):
        nearest = nearest_of_rank(log_p, d, bias=bias)
        assert np.linalg.matrix_rank(nearest) == min(CLASSES, d + (2 if bias else 1))
        assert ((nearest - log_p) ** 2).sum() == pytest.approx(bounds.plain[d], rel=1e-9, abs=1e-20)


@pytest.mark.parametrize("bias", [False, True])
def test_logits_with_the_best_shifts_reach_the_centred_bound(log_p: np.ndarray, bias: bool) -> None:
    bounds = squared_error_bounds(log_p, bias=bias)
    for d in range(CLASSES + 1):
        nearest = nearest_logits(log_p, d, bias=bias)
        assert ((nearest - log_p) ** 2).sum() == pytest.approx(bounds.centred[d], rel=1e-9, abs=1e-20)
        logits = nearest - nearest.mean(axis=1, keepdims=True)
        logits = logits - logits.mean(axis=0) if bias else logits
        assert np.linalg.matrix_rank(logits, tol=1e-9) <= d


@pytest.mark.parametrize("bias", [False, True])
def test_the_centred_bound_is_the_tighter_one(log_p: np.ndarray, bias: bool) -> None:
    bounds = squared_error_bounds(log_p, bias=bias)
    assert (bounds.centred >= bounds.plain - 1e-9).all()
    assert bounds.centred[3] > 1.01 * bounds.plain[3]


@pytest.mark.parametrize("bias", [False, True])
def test_bounds_fall_with_d_to_zero(log_p: np.ndarray, bias: bool) -> None:
    bounds = squared_error_bounds(log_p, bias=bias)
    for values in (bounds.plain, bounds.centred):
        assert len(values) == CLASSES + 1
        assert (np.diff(values) <= 0).all()
        assert values[0] > 1
        assert values[-1] == pytest.approx(0, abs=1e-20)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("features", [1, 3, 6])
def test_no_softmax_model_is_nearer_than_a_bound(log_p: np.ndarray, features: int, bias: bool) -> None:
    bounds = squared_error_bounds(log_p, bias=bias)
    generator = np.random.default_rng(1)
    near = nearest_logits(log_p, features, bias=bias)
    for scale in (0.0, 0.1, 1.0):
        noise = generator.standard_normal((CONTEXTS, features)) @ generator.standard_normal(
            (features, CLASSES)
        )
        low = near - near.mean(axis=1, keepdims=True)
        left, values, right = np.linalg.svd(low - (low.mean(axis=0) if bias else 0))
        kept = (left[:, :features] * values[:features]) @ (right[:features] + scale * noise[:features])
        model = log_softmax(kept + (low.mean(axis=0) if bias else 0), axis=1)
        error = ((model - log_p) ** 2).sum()
        assert error >= bounds.centred[features] >= bounds.plain[features] - 1e-9


def test_a_softmax_model_of_that_size_has_bound_zero() -> None:
    generator = np.random.default_rng(0)
    logits = generator.standard_normal((30, 4)) @ generator.standard_normal((4, 12))
    plain, biased = log_softmax(logits, axis=1), log_softmax(logits + generator.standard_normal(12), axis=1)
    assert squared_error_bounds(plain).centred[4] == pytest.approx(0, abs=1e-20)
    assert squared_error_bounds(plain).centred[3] > 0.1
    assert squared_error_bounds(biased).centred[4] > 0.1
    assert squared_error_bounds(biased, bias=True).centred[4] == pytest.approx(0, abs=1e-20)


def test_more_classes_than_contexts_are_fine() -> None:
    log_p = np.log(np.random.default_rng(0).dirichlet(np.ones(30), 5))
    bounds = squared_error_bounds(log_p)
    assert bounds.centred[5] == pytest.approx(0, abs=1e-20)
    assert len(bounds.plain) == 31


def test_probability_zero_is_refused() -> None:
    with pytest.raises(InputError, match="finite"), np.errstate(divide="ignore"):
        squared_error_bounds(np.log([[0.0, 1.0]]))


@pytest.mark.parametrize("nearest", [nearest_of_rank, nearest_logits])
def test_fewer_features_than_none_are_refused(nearest: Callable[..., np.ndarray], log_p: np.ndarray) -> None:
    with pytest.raises(InputError, match="found -1"):
        nearest(log_p, -1)
