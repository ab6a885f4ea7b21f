"""Which rows stand out."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from argmaxable import Head
from argmaxable.doctor.rows import odd_rows
from argmaxable.questions.arithmetic.formats import rounded


def trained(classes: int = 500, features: int = 24, seed: int = 0) -> NDArray[np.float64]:
    """Rows as training leaves them: a common part, features of unequal spread, norms that vary."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(classes, features)) * np.geomspace(0.1, 3, features)
    return rows * rng.uniform(0.5, 1.5, size=(classes, 1)) + rng.normal(size=features)


def like_transformers(rows: NDArray[np.float64], count: int, seed: int = 0) -> NDArray[np.float64]:
    """New rows as resize_token_embeddings draws them."""
    covariance = np.cov(rows.T, bias=True)
    return np.random.default_rng(seed).multivariate_normal(rows.mean(axis=0), 1e-9 * covariance, count)


def test_no_row_of_a_trained_head_stands_out() -> None:
    odd = odd_rows(Head(trained(), np.random.default_rng(1).normal(size=500)))
    for rows in (odd.zero, odd.at_mean, odd.near_mean, odd.shadowed, odd.norm, odd.bias):
        assert rows.tolist() == []


@pytest.mark.parametrize("dtype", ["bf16", "fp16", "fp32"])
@pytest.mark.parametrize("count", [1, 7, 200])
def test_new_rows_at_the_mean_are_named_exactly(dtype: str, count: int) -> None:
    rows = rounded(Head(trained()), dtype).rows(slice(None))
    head = rounded(Head(np.concatenate([rows, like_transformers(rows, count)])), dtype)
    assert odd_rows(head).at_mean.tolist() == list(range(500, 500 + count))


def test_rows_that_are_exactly_the_mean_are_named() -> None:
    rows = trained()
    head = Head(np.concatenate([rows, [rows.mean(axis=0)] * 3]))
    assert odd_rows(head).at_mean.tolist() == [500, 501, 502]


def test_a_row_set_by_hand_behind_new_ones_does_not_hide_them() -> None:
    rows = trained()
    head = Head(np.concatenate([rows, like_transformers(rows, 4), np.full((1, 24), 30.0)]))
    assert odd_rows(head).at_mean.tolist() == [500, 501, 502, 503]


def test_rows_that_have_left_the_mean_a_little_are_near_it_and_no_longer_at_it() -> None:
    rows = trained()
    moved = like_transformers(rows, 4) + 0.01 * np.random.default_rng(2).normal(size=(4, 24))
    odd = odd_rows(Head(np.concatenate([rows, moved])))
    assert odd.at_mean.tolist() == []
    assert odd.near_mean.tolist() == [500, 501, 502, 503]


def test_zero_rows_are_named_as_nothing_else() -> None:
    rows = trained()
    rows[[3, 8]] = 0
    odd = odd_rows(Head(rows))
    assert odd.zero.tolist() == [3, 8]
    assert odd.at_mean.tolist() == odd.near_mean.tolist() == odd.norm.tolist() == []


def test_identical_rows_are_named_whatever_their_bias() -> None:
    rows = trained()
    rows[9], rows[11] = rows[4], rows[7]
    bias = np.zeros(500)
    bias[7] = 1
    odd = odd_rows(Head(rows, bias))
    assert odd.shadowed.tolist() == [4, 9, 11]


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_rows_of_outlying_norm_are_named(factor: float) -> None:
    rows = trained()
    rows -= rows.mean(axis=0)
    rows += 5 * rows[0] / np.linalg.norm(rows[0])  # so that a small row is far from the mean
    rows[17] *= factor
    assert odd_rows(Head(rows)).norm.tolist() == [17]


@pytest.mark.parametrize("value", [-1e4, 50.0])
def test_a_bias_far_from_the_others_is_named(value: float) -> None:
    bias = np.random.default_rng(3).normal(size=500)
    bias[21] = value
    assert odd_rows(Head(trained(), bias)).bias.tolist() == [21]


def test_a_long_tail_of_biases_is_no_outlier() -> None:
    bias = np.random.default_rng(4).standard_t(3, size=500)
    assert odd_rows(Head(trained(), bias)).bias.tolist() == []


def test_a_head_of_equal_rows_has_none_at_the_mean() -> None:
    odd = odd_rows(Head(np.ones((6, 3))))
    assert odd.at_mean.tolist() == []
    assert odd.shadowed.tolist() == [0, 1, 2, 3, 4, 5]


def test_one_class_and_one_feature_have_nothing_odd() -> None:
    odd = odd_rows(Head([[2.0]]))
    assert odd.at_mean.tolist() == odd.norm.tolist() == odd.near_mean.tolist() == []


def test_huge_rows_do_not_put_the_others_at_the_mean() -> None:
    odd = odd_rows(Head(np.concatenate([trained(), 1e30 * trained(2, seed=5)])))
    assert odd.at_mean.tolist() == []
    assert odd.norm.tolist() == [500, 501]


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e200, 1e306])
def test_the_scale_of_a_head_does_not_matter(scale: float) -> None:
    rows = trained()
    rows = np.concatenate([rows, like_transformers(rows, 2), np.zeros((1, 24))])
    odd = odd_rows(Head(rows * scale))
    assert odd.at_mean.tolist() == [500, 501]
    assert odd.zero.tolist() == [502]
    assert odd.norm.tolist() == odd.near_mean.tolist() == []
