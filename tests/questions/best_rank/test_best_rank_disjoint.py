"""Supports without a common class, what they give up to each other, and certificates without dear classes."""

from __future__ import annotations

import numpy as np
import pytest

import argmaxable as am
from argmaxable.core.best_rank import support_of
from argmaxable.core.verdict import Certificate
from argmaxable.questions.best_rank.disjoint import DisjointSupports
from argmaxable.questions.best_rank.vertex import with_few_classes


def two_supports() -> DisjointSupports:
    supports = DisjointSupports(10, np.random.default_rng(0))
    supports.add(np.array([1, 2, 3, 4]))
    supports.add(np.array([5, 6]))
    return supports


def test_a_support_that_shares_a_class_is_not_added() -> None:
    supports = two_supports()
    supports.add_if_disjoint(np.array([6, 7]))
    supports.add_if_disjoint(np.array([8, 9]))
    assert supports.count == 3
    assert supports.used.tolist() == [1, 2, 3, 4, 5, 6, 8, 9]


def test_a_replaced_support_frees_its_classes() -> None:
    supports = two_supports()
    supports.replace(0, np.array([1, 8]))
    assert supports.count == 2
    assert supports.used.tolist() == [1, 5, 6, 8]


def test_the_support_with_most_scarce_classes_gives_up_half_of_them() -> None:
    supports = two_supports()
    place, excluded = next(supports.offers(np.array([1, 2, 3, 4, 5])))
    assert place == 0
    assert {5, 6} <= set(excluded.tolist())
    assert len(set(excluded.tolist()) & {1, 2, 3, 4}) == 2


def test_no_offer_takes_classes_of_another_support() -> None:
    supports = two_supports()
    for place, excluded in supports.offers(np.array([1, 2, 5, 6])):
        others = np.flatnonzero((supports.owner >= 0) & (supports.owner != place))
        assert np.isin(others, excluded).all()


def test_no_supports_make_no_offers() -> None:
    supports = DisjointSupports(4, np.random.default_rng(0))
    assert not list(supports.offers(np.empty(0, np.intp)))


def test_classes_are_dearer_where_fewer_are_above() -> None:
    supports = two_supports()
    supports.note_scarce(np.array([1, 2, 3, 4]))
    supports.note_scarce(np.array([5]))
    assert supports.prices[5] > supports.prices[1] > supports.prices[0] == 0


@pytest.mark.parametrize(("dear", "left"), [([1], {3, 4}), ([3, 4], {1, 2})])
def test_a_certificate_avoids_dear_classes_if_it_can(dear: list[int], left: set[int]) -> None:
    rows = np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]], np.float32)
    checker = am.Checker(am.Head(rows, np.array([-1, 0, 0, 0, 0], np.float32)), am.Box(-1.0, 1.0))
    prices = np.zeros(5)
    prices[dear] = 1.0
    everyone = Certificate(np.arange(1, 5), np.full(4, 0.25))
    few = with_few_classes(checker, 0, everyone, prices=prices)
    assert set(support_of(few).tolist()) == left
    assert checker.bound(0, few).upper < 0
