"""Explanations of small heads against independent truths."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from oracles import certificate_proves, exact_gap, exact_margin, margin_by_clarabel

import argmaxable as am

BOX = am.Box(-3.0, 2.0)


def head_with_bias(seed: int, classes: int = 14, features: int = 2) -> am.Head:
    rng = np.random.default_rng(seed)
    return am.Head(rng.normal(size=(classes, features)), rng.normal(size=classes) * 0.3)


@pytest.mark.parametrize("seed", range(6))
def test_the_margin_is_enclosed_to_six_digits(seed: int) -> None:
    head = head_with_bias(seed)
    for class_id in range(head.classes):
        margin = am.explain(head, BOX, class_=class_id, rounds=0).margin
        truth = exact_margin(head, BOX, class_id)
        assert Fraction(margin.lower) <= truth <= Fraction(margin.upper)
        assert margin.upper - margin.lower <= 1e-5 * max(1e-3, abs(float(truth)))


@pytest.mark.parametrize("seed", range(3))
def test_both_bounds_come_with_evidence_that_rationals_confirm(seed: int) -> None:
    head = head_with_bias(seed)
    for class_id in range(head.classes):
        margin = am.explain(head, BOX, class_=class_id, rounds=0).margin
        assert margin.point is not None
        assert margin.certificate is not None
        gap = exact_gap(head, BOX, class_id, margin.point)
        assert gap is not None
        assert gap >= Fraction(margin.lower)
        assert certificate_proves(head, BOX, class_id, margin.certificate, Fraction(margin.upper))


@pytest.mark.parametrize(
    "domain", [am.Ball(2.0), am.RMSNorm(0.5, 0.1), am.LayerNorm([1.0, 2.0, 0.5])], ids=str
)
def test_margins_over_curved_domains_agree_with_clarabel(domain: am.Ball | am.RMSNorm | am.LayerNorm) -> None:
    head = head_with_bias(1, classes=12, features=3)
    for class_id in range(head.classes):
        margin = am.explain(head, domain, class_=class_id, rounds=0).margin
        truth = margin_by_clarabel(head, domain, class_id)
        assert margin.lower - 1e-7 <= truth <= margin.upper + 1e-7
        assert margin.upper - margin.lower <= 1e-4


def test_a_bias_raised_by_the_deficit_frees_the_class_and_by_less_does_not() -> None:
    head = head_with_bias(3)
    unargmaxable = am.verify(head, BOX, engine=am.Engine(workers=1)).unargmaxable[0].class_id
    least, enough = am.explain(head, BOX, class_=unargmaxable, rounds=0).deficit
    assert 0 < least <= enough
    for raise_by, status in (
        (least * 0.9999, am.Status.UNARGMAXABLE),
        (enough * 1.0001, am.Status.ARGMAXABLE),
    ):
        bias = head.biases()
        bias[unargmaxable] += raise_by
        assert (
            am.verify(am.Head(head.weight, bias), BOX, only=[unargmaxable], engine=am.Engine(workers=1))
            .verdicts[0]
            .status
            is status
        )


def test_the_mixture_has_few_classes_and_weights_that_add_up_to_one() -> None:
    head = head_with_bias(4, classes=200, features=5)
    for verdict in am.verify(head, BOX, engine=am.Engine(workers=1)).unargmaxable[:10]:
        mixture = am.explain(head, BOX, class_=verdict.class_id, rounds=0).mixture
        assert 0 < len(mixture) <= 6
        assert math.isclose(sum(share.weight for share in mixture), 1)
        weights = [share.weight for share in mixture]
        assert weights == sorted(weights, reverse=True)


def test_without_bias_the_row_grows_by_the_factor_at_which_it_leaves_the_hull() -> None:
    corners = [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]
    head = am.Head([*corners, [0.25, 0.0]])
    growth = am.explain(head, am.Box(-1.0, 1.0), class_=4).growth
    assert growth is not None
    # The mean row is (0.05, 0), and the side of the square is at x = 1.
    truth = (1 - 0.05) / (0.25 - 0.05)
    assert growth.lower <= truth * (1 + 1e-6)
    assert growth.upper >= truth * (1 - 1e-6)
    assert growth.upper / growth.lower < 1.05


def test_the_widest_witness_of_a_symmetric_head_is_as_wide_as_geometry_says() -> None:
    head = am.Head([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    explanation = am.explain(head, am.Box(-1.0, 1.0), class_=0)
    assert explanation.width is not None
    # Around (1, 0) the nearest ties are the diagonals.
    assert math.isclose(explanation.width.radius, math.sqrt(0.5), rel_tol=1e-6)
    assert math.isclose(explanation.width.margin, 1.0, rel_tol=1e-6)


def test_the_best_rank_and_its_input_come_with_the_classes_above() -> None:
    head = am.Head([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [0.1, 0.1]], labels=list("abcde"))
    explanation = am.explain(head, am.Box(-1.0, 1.0), class_="e")
    assert explanation.rank is not None
    assert (explanation.rank.lower, explanation.rank.upper) == (2, 2)
    assert explanation.input is not None
    scores = head.rows(slice(None)) @ explanation.input
    assert (scores >= scores[4]).sum() == 2
    assert len(explanation.competitors) == 1
    assert explanation.competitors[0].ahead > 0


def test_identical_classes_are_named() -> None:
    head = am.Head([[1.0], [1.0], [-1.0]], [0.5, 0.5, 0.0])
    explanation = am.explain(head, am.Box(-1.0, 1.0), class_=0)
    assert explanation.verdict.tied_with == (1,)
    assert [share.class_id for share in explanation.mixture] == [1]
    assert explanation.deficit == (0, 0)


def test_a_head_of_one_class_is_explained() -> None:
    explanation = am.explain(am.Head([[1.0, 2.0]]), class_=0)
    assert explanation.verdict.status is am.Status.ARGMAXABLE
    assert explanation.width is None


@pytest.mark.parametrize("domain", [am.Everywhere(), am.LayerNorm(1.0)], ids=str)
def test_a_head_of_identical_rows_is_explained_without_a_factor_that_frees(domain: am.Domain) -> None:
    explanation = am.explain(am.Head(np.zeros((4, 3))), domain, class_=0)
    assert explanation.rank is not None
    assert (explanation.rank.lower, explanation.rank.upper) == (4, 4)
    assert explanation.growth is not None
    assert explanation.growth.upper == math.inf
