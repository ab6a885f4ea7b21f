"""Enumeration of rankings: as many as the theory says, each with a witness, and none missing."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from oracles import exact_margin
from order_truths import exact_scores, gap_head

import argmaxable as am
from argmaxable.core.orders import chain, top
from argmaxable.theory.enumeration import Rankings, enumerate_rankings, feasible_top_k
from argmaxable.theory.regions import count_regions

SHAPES = [(classes, dims) for classes in range(2, 7) for dims in range(1, 5) if classes * dims <= 20]
SIZES = [(classes, dims, bias) for classes, dims in SHAPES for bias in (False, True)]
SIZES += [
    (7, dims, bias) for dims in (1, 2) for bias in (False, True)
]  # thousands of rankings beyond the plane
# 90 heads in all: the more rankings a head has, the fewer of its size.
HEADS_OF_SIZE = {2: 3, 3: 3, 4: 2, 5: 2, 6: 1, 7: 1}


def generic_head(classes: int, dims: int, bias: bool, seed: int) -> am.Head:
    rng = np.random.default_rng((classes, dims, bias, seed))
    return am.Head(rng.normal(size=(classes, dims)), rng.normal(size=classes) if bias else None)


def rankings_of(found: Rankings) -> set[tuple[int, ...]]:
    """The rankings, each realised at its point by rational arithmetic, none twice, nothing undecided."""
    assert found.undecided == ()
    for ranked in found:
        scores = exact_scores(found.head, found.domain, ranked.point)
        assert scores is not None
        first = [scores[number] for number in ranked.classes]
        rest = [scores[number] for number in set(range(found.head.classes)).difference(ranked.classes)]
        assert all(above > below for above, below in itertools.pairwise(first))
        assert all(first[-1] > score for score in rest)
        gaps = [above - below for above, below in itertools.pairwise(first)]
        assert 0 < ranked.margin <= min([*gaps, *(first[-1] - score for score in rest)])
    rankings = {ranked.classes for ranked in found}
    assert len(rankings) == len(found)
    return rankings


def test_the_sizes_below_make_90_heads() -> None:
    assert sum(HEADS_OF_SIZE[classes] for classes, _, _ in SIZES) == 90


@pytest.mark.parametrize(("classes", "dims", "bias"), SIZES)
def test_a_generic_head_has_as_many_rankings_as_regions(classes: int, dims: int, bias: bool) -> None:
    for seed in range(HEADS_OF_SIZE[classes]):
        head = generic_head(classes, dims, bias, seed)
        found = enumerate_rankings(head)
        assert len(rankings_of(found)) == count_regions(classes, dims, bias=bias).total
        argmaxable = [
            verdict.class_id
            for verdict in am.verify(head, am.Everywhere(), engine=am.Engine(workers=1)).argmaxable
        ]
        assert list(found.winners) == argmaxable


def small_head(seed: int) -> am.Head:
    """Small integers, so that margins of zero, parallel rows and identical ones are common."""
    rng = np.random.default_rng(seed)
    classes, dims = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    weight = rng.integers(-1, 2, (classes, dims))
    return am.Head(weight, rng.integers(-1, 2, classes) if seed % 2 else None)


DOMAINS = [am.Everywhere(), am.Box(-1, 1), am.Box(0, math.inf), am.Box(0, 0)]


@pytest.mark.parametrize("seed", range(8))
def test_degenerate_heads_have_the_rankings_that_rational_simplex_finds(seed: int) -> None:
    head = small_head(seed)
    for domain in DOMAINS:
        expected = {
            ranking
            for ranking in itertools.permutations(range(head.classes))
            if exact_margin(gap_head(head, chain(ranking)), domain, 0) > 0
        }
        assert rankings_of(enumerate_rankings(head, domain)) == expected


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_feasible_tops_are_those_that_rational_simplex_finds(k: int, seed: int) -> None:
    head = small_head(seed)
    if k > head.classes:
        with pytest.raises(am.InputError, match="k must be between 1 and the number of classes"):
            feasible_top_k(head, k)
        return
    for domain in (am.Everywhere(), am.Box(-1, 1)):
        expected = {
            classes
            for classes in itertools.permutations(range(head.classes), k)
            if exact_margin(gap_head(head, top(classes, of=head.classes)), domain, 0) > 0
        }
        assert rankings_of(feasible_top_k(head, k, domain)) == expected


@pytest.mark.parametrize("bias", [False, True])
def test_the_tops_of_a_generic_head_are_the_beginnings_of_its_rankings(bias: bool) -> None:
    head = generic_head(5, 2, bias, 9)
    rankings = rankings_of(enumerate_rankings(head))
    for k in range(1, 6):
        assert rankings_of(feasible_top_k(head, k)) == {ranking[:k] for ranking in rankings}


@pytest.mark.parametrize(
    "domain", [am.Ball(1.5), am.RMSNorm(0.7, 0.3), am.LayerNorm([0.5, 1, -2], 0.3)], ids=str
)
def test_over_solids_every_sampled_ranking_is_among_those_enumerated(domain: am.Domain) -> None:
    head = generic_head(5, 3, True, 1)
    rankings = rankings_of(enumerate_rankings(head, domain))
    assert rankings <= rankings_of(enumerate_rankings(head))
    rng = np.random.default_rng(2)
    directions = rng.normal(size=(2000, 3))
    z = directions / np.linalg.norm(directions, axis=1, keepdims=True) * rng.random((2000, 1)) ** (1 / 3)
    z = z * (domain.radius if isinstance(domain, am.Ball) else math.sqrt(3)) * (1 - 1e-9)
    x = z
    if isinstance(domain, am.RMSNorm | am.LayerNorm):
        centred = z - z.mean(axis=1, keepdims=True) if isinstance(domain, am.LayerNorm) else z
        x = centred * domain.gains(3) + domain.shifts(3)
    scores = x @ head.weight.T + head.biases()
    sampled = {tuple(line) for line in np.argsort(-scores, axis=1).tolist()}
    assert sampled <= rankings


def test_rankings_come_in_lexicographic_order() -> None:
    listed = [ranked.classes for ranked in enumerate_rankings(generic_head(5, 2, True, 3))]
    assert listed == sorted(listed)


def test_two_identical_classes_leave_no_strict_ranking_but_a_top() -> None:
    head = am.Head([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    assert len(enumerate_rankings(head)) == 0
    assert feasible_top_k(head, 1).winners == (0,)


def test_one_class_has_one_ranking() -> None:
    assert [ranked.classes for ranked in enumerate_rankings(am.Head([[3.0]]), am.Box(1, 2))] == [(0,)]


def test_a_line_with_many_classes_is_no_obstacle() -> None:
    # 11 classes on a line have 11 · 10/2 + 1 rankings, each next to the one before; 11! is no limit.
    head = generic_head(11, 1, True, 4)
    assert len(enumerate_rankings(head)) == 56


@pytest.mark.parametrize("head", [am.Head(np.eye(12)), am.Head(np.ones((50_000, 2)))], ids=["12", "50000"])
def test_a_head_that_may_have_too_many_rankings_is_refused_at_once(head: am.Head) -> None:
    with pytest.raises(am.InputError, match="may have more than 100,000 rankings"):
        enumerate_rankings(head)
    with pytest.raises(am.InputError, match="more than 7 rankings"):
        feasible_top_k(head, 2, most=7)


def test_a_domain_that_does_not_fit_is_refused() -> None:
    with pytest.raises(am.DomainError, match="2 entries"):
        enumerate_rankings(am.Head(np.eye(3)), am.RMSNorm([1.0, 2.0]))
