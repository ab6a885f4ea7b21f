"""Best ranks: bounds that hold, and meet where brute force can follow."""

from __future__ import annotations

import numpy as np
import pytest
from rank_truths import best_rank_by_force, rank_at

import argmaxable as am
from argmaxable.check.ranks import failed_ranks
from argmaxable.core.progress import Deadline
from argmaxable.questions.best_rank.search import RankSearch
from argmaxable.questions.best_rank.top_k import sharing
from argmaxable.theory.enumeration import enumerate_rankings

DOMAINS: list[am.Box | am.Everywhere] = [
    am.Everywhere(),
    am.Box(-100.0, 100.0),
    am.Box(0.0, 1.0),
    am.Box(-1.0, np.inf),
]
CURVED: list[am.Domain] = [am.Ball(2.0), am.RMSNorm([1.0, 0.5, 2.0], 0.1), am.LayerNorm([1.0, 0.5, 2.0])]


def some_head(seed: int) -> am.Head:
    """Up to 12 classes, up to 3 features; every other head of small whole numbers, with ties and
    duplicates."""
    rng = np.random.default_rng(seed)
    features = int(rng.integers(1, 4))
    if seed % 2:
        classes = int(rng.integers(3, 13))
        bias = rng.normal(size=classes) * 0.3 if rng.random() < 0.6 else None
        return am.Head(rng.normal(size=(classes, features)), bias)
    classes = int(rng.integers(3, 9))
    weight = rng.integers(-2, 3, (classes, features)).astype(float)
    weight[-1] = weight[0]
    return am.Head(weight, rng.integers(-1, 2, classes) if rng.random() < 0.6 else None)


def ranks_of(head: am.Head, domain: am.Domain, **options: int | None) -> tuple[am.BestRank, ...]:
    return am.best_ranks(head, domain, engine=am.Engine(workers=1), **{"rounds": 400, **options})


@pytest.mark.parametrize("seed", range(16))
def test_the_search_equals_brute_force_on_small_heads(seed: int) -> None:
    head, domain = some_head(seed), DOMAINS[seed // 2 % len(DOMAINS)]
    for rank in ranks_of(head, domain):
        truth = best_rank_by_force(head, domain, rank.class_id)
        assert (rank.lower, rank.upper) == (truth, truth), rank


@pytest.mark.parametrize("seed", range(32, 36))
def test_bounds_after_few_rounds_enclose_the_truth(seed: int) -> None:
    head, domain = some_head(seed), DOMAINS[seed % len(DOMAINS)]
    for ranks in zip(*(ranks_of(head, domain, rounds=rounds) for rounds in (0, 1, 3)), strict=True):
        truth = best_rank_by_force(head, domain, ranks[0].class_id)
        assert all(rank.lower <= truth <= rank.upper for rank in ranks), ranks


@pytest.mark.parametrize("domain", [am.Everywhere(), am.Box(-1.0, 1.0)], ids=str)
def test_the_best_rank_is_the_best_place_in_all_rankings(domain: am.Domain) -> None:
    rng = np.random.default_rng(7)
    head = am.Head(rng.normal(size=(7, 2)), rng.normal(size=7) * 0.3)
    rankings = enumerate_rankings(head, domain)
    assert not rankings.undecided
    ranks = {rank.class_id: rank for rank in ranks_of(head, domain)}
    for class_id in range(head.classes):
        place = min(ranked.classes.index(class_id) + 1 for ranked in rankings)
        assert (place == 1) == (class_id not in ranks)
        if class_id in ranks:
            assert (ranks[class_id].lower, ranks[class_id].upper) == (place, place)


@pytest.mark.parametrize("seed", range(12))
def test_the_point_gives_the_class_its_rank_by_rationals(seed: int) -> None:
    head, domain = some_head(seed), DOMAINS[seed % len(DOMAINS)]
    for rank in ranks_of(head, domain, rounds=3):
        assert rank.point is not None
        assert rank_at(head, domain, rank.class_id, rank.point)[0] <= rank.upper


@pytest.mark.parametrize("domain", CURVED, ids=lambda domain: type(domain).__name__)
def test_curved_domains_have_bounds_that_no_random_point_breaks(domain: am.Domain) -> None:
    rng = np.random.default_rng(3)
    head = am.Head(rng.normal(size=(16, 3)), rng.normal(size=16) * 0.2)
    ranks = ranks_of(head, domain, rounds=40)
    assert ranks
    points = rng.normal(size=(20, 3))
    points *= 0.999 * 2**0.5 / np.linalg.norm(points, axis=1, keepdims=True)  # in each of the solids
    for rank in ranks:
        for point in points:
            strict, tied = rank_at(head, domain, rank.class_id, point)
            assert strict >= rank.lower
            assert tied >= rank.lower_with_ties


def test_ties_at_zero_are_not_counted_as_being_above() -> None:
    head = am.Head([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [0.0, 0.0]])
    (rank,) = ranks_of(head, am.Box(-1.0, 1.0))
    assert (rank.class_id, rank.lower, rank.upper, rank.lower_with_ties) == (4, 3, 3, 1)
    assert rank.is_among_first(1) is am.TopK.AT_BEST_TIED
    assert rank.is_among_first(3) is am.TopK.YES


def test_identical_classes_share_a_place_that_counts_against_each() -> None:
    head = am.Head([[1.0], [1.0], [1.0], [-1.0]], [0.0, 0.0, 0.5, 0.0])
    ranks = {rank.class_id: rank for rank in ranks_of(head, am.Everywhere())}
    assert {class_id: (rank.lower, rank.upper) for class_id, rank in ranks.items()} == {0: (3, 3), 1: (3, 3)}
    assert {rank.lower_with_ties for rank in ranks.values()} == {2}  # class 2 is above at every input


def test_whole_classes_are_needed_where_shares_of_them_would_do() -> None:
    angles = 2 * np.pi * np.arange(9) / 9
    head = am.Head(np.vstack([np.column_stack([np.cos(angles), np.sin(angles)]), np.zeros(2)]))
    (rank,) = ranks_of(head, am.Everywhere())
    assert (rank.lower, rank.upper) == (
        5,
        5,
    )  # a half plane has four of nine points, triangles only nine thirds
    assert rank.proof is not None
    assert not rank.proof.shares


def test_the_search_stops_once_k_is_settled() -> None:
    rng = np.random.default_rng(0)
    head = am.Head(rng.normal(size=(60, 2)), rng.normal(size=60) * 0.1)
    for rank in ranks_of(head, am.Box(-1.0, 1.0), top_k=2):
        assert rank.is_among_first(2) in (am.TopK.YES, am.TopK.NO)


def test_a_time_limit_leaves_bounds_and_a_reason() -> None:
    rng = np.random.default_rng(1)
    head = am.Head(rng.normal(size=(60, 3)))
    result = am.verify(head, am.Everywhere(), engine=am.Engine(workers=1))
    ranks = am.best_ranks(head, am.Everywhere(), result=result, time_limit=1e-9)
    assert ranks
    assert all(rank.reason == "the time limit passed" for rank in ranks if not rank.is_exact)


def test_argmaxable_heads_have_nothing_to_search() -> None:
    assert ranks_of(am.Head(np.eye(3)), am.Everywhere()) == ()


def test_a_k_below_one_is_refused() -> None:
    with pytest.raises(am.InputError, match="can't be 0"):
        ranks_of(am.Head(np.eye(3)), am.Everywhere(), top_k=0)


def test_other_processes_change_no_answer() -> None:
    rng = np.random.default_rng(5)
    head = am.Head(rng.normal(size=(40, 3)), rng.normal(size=40) * 0.2, [f"class {k}" for k in range(40)])
    alone, shared = (
        am.best_ranks(head, am.Box(-1.0, 1.0), rounds=12, engine=am.Engine(workers=workers))
        for workers in (1, 3)
    )
    assert len(alone) >= 8
    assert [rank.as_record() for rank in shared] == [rank.as_record() for rank in alone]


def test_certificates_that_are_lent_decide_without_a_search() -> None:
    angles = 2 * np.pi * np.arange(9) / 9
    rows = np.concatenate([np.stack([np.cos(angles), np.sin(angles)], axis=1), [[0, 0], [1e-3, 0]]])
    head = am.Head(rows, np.append(np.zeros(9), [-1, -1]))
    checker = am.Checker(head, am.Box(-1.0, 1.0))
    search = RankSearch(checker, checker.prepared.twins, np.array([9, 10]))
    own = search.best_rank(9, [], stop_at=2, rounds=400, deadline=Deadline(None))
    assert own.proof is not None
    lent = search.best_rank(10, [], own.proof.certificates, stop_at=2, rounds=0, deadline=Deadline(None))
    assert lent.lower >= 3
    assert not list(failed_ranks(checker, [lent]))


def test_certificates_on_the_same_classes_make_a_group() -> None:
    angles = 2 * np.pi * np.arange(9) / 9
    rows = np.concatenate([np.stack([np.cos(angles), np.sin(angles)], axis=1), np.full((5, 2), 1e-3)])
    result = am.verify(am.Head(rows), am.Everywhere(), engine=am.Engine(workers=1))
    never = [verdict for verdict in result.verdicts if verdict.status is not am.Status.ARGMAXABLE]
    groups = sharing(never)
    assert sorted(number for group in groups for number in group) == list(range(len(never)))
    for first, *rest in groups:
        certificate = never[first].certificate
        assert certificate is not None or not rest
        for number in rest:
            other = never[number].certificate
            assert certificate is not None
            assert other is not None
            assert np.array_equal(other.classes, certificate.classes)


def test_rivals_above_everywhere_decide_without_a_search() -> None:
    rng = np.random.default_rng(5)
    head = am.Head(rng.standard_normal((60, 4)), rng.standard_normal(60))
    domain = am.Reach(rng.standard_normal(4), 0.05 * rng.standard_normal((4, 3)), am.Box(0.0, 1.0))
    result = am.verify(head, domain, engine=am.Engine(workers=1))
    ranks = am.best_ranks(head, domain, result=result, top_k=3, rounds=0, engine=am.Engine(workers=1))
    assert not list(failed_ranks(am.Checker(head, domain), ranks))
    never = [rank for rank in ranks if rank.lower > 3]
    assert len(never) > 40
    # The truth: over a box a rival is above everywhere exactly when it is at the worst corner.
    base, moves = domain.base, domain.moves
    scores = head.rows(slice(None)) @ base + head.biases()
    shifts = head.rows(slice(None)) @ moves
    for rank in ranks:
        ahead = scores - scores[rank.class_id] + np.minimum(shifts - shifts[rank.class_id], 0).sum(axis=1)
        assert (rank.lower > 3) == (int((ahead > 0).sum()) >= 3)
