"""Sets of labels against brute force, over every domain, with ties, and what arguments are refused."""

from __future__ import annotations

import itertools
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import argmaxable as am
from argmaxable.check.sets import SetChecker

ONE = am.Engine(workers=1)
KINDS = tuple(am.SetKind)
FEASIBLE, INFEASIBLE = am.Feasibility.FEASIBLE, am.Feasibility.INFEASIBLE


def every_subset(labels: int) -> list[tuple[int, ...]]:
    return [one for size in range(labels + 1) for one in itertools.combinations(range(labels), size)]


def feasible(head: am.Head, domain: am.Domain, kind: am.SetKind, **options: object) -> set[tuple[int, ...]]:
    """The feasible sets; no set may be undecided."""
    found = am.sets(head, domain, every_subset(head.classes), kind=kind, engine=ONE, **options)  # type: ignore[arg-type]
    assert not found.having(am.Feasibility.UNDECIDED)
    return {claim.members for claim in found.having(FEASIBLE)}


# ---------------------------------------------------------------------- brute force


def sign_patterns(weight: np.ndarray) -> set[tuple[int, ...]]:
    """The sets of labels above 0 somewhere in the plane, without bias: one between neighbouring lines."""
    normals = np.arctan2(weight[:, 1], weight[:, 0])
    lines = np.sort(np.mod(np.concatenate([normals + np.pi / 2, normals - np.pi / 2]), 2 * np.pi))
    middles = (lines + np.append(lines[1:], lines[0] + 2 * np.pi)) / 2
    scores = weight @ np.stack([np.cos(middles), np.sin(middles)])
    return {tuple(np.flatnonzero(column > 0).tolist()) for column in scores.T}


def tops(weight: np.ndarray, size: int) -> set[tuple[int, ...]]:
    """The sets of this size that score highest somewhere in the plane, without bias."""
    pairs = itertools.combinations(range(len(weight)), 2)
    differences = np.array([weight[i] - weight[j] for i, j in pairs])
    normals = np.arctan2(differences[:, 1], differences[:, 0])
    lines = np.sort(np.mod(np.concatenate([normals + np.pi / 2, normals - np.pi / 2]), 2 * np.pi))
    middles = (lines + np.append(lines[1:], lines[0] + 2 * np.pi)) / 2
    scores = weight @ np.stack([np.cos(middles), np.sin(middles)])
    return {tuple(sorted(np.argsort(-column)[:size].tolist())) for column in scores.T}


@pytest.mark.parametrize("seed", range(3))
def test_exactly_the_sign_patterns_of_the_plane_are_feasible(seed: int) -> None:
    weight = np.random.default_rng(seed).normal(size=(6, 2))
    patterns = sign_patterns(weight)
    assert len(patterns) == 2 * 6  # Cover: 2 (C(5,0) + C(5,1))
    assert feasible(am.Head(weight), am.Everywhere(), am.SetKind.EXACTLY) == patterns
    assert feasible(am.Head(weight), am.Box(-1.0, 1.0), am.SetKind.EXACTLY) == patterns


@pytest.mark.parametrize("seed", range(3))
def test_exactly_the_tops_of_the_plane_are_feasible(seed: int) -> None:
    weight = np.random.default_rng(seed).normal(size=(6, 2))
    found = feasible(am.Head(weight), am.Ball(1.0), am.SetKind.TOP)
    for size in range(1, 6):
        assert {members for members in found if len(members) == size} == tops(weight, size)
    assert {(), tuple(range(6))} <= found  # they ask for nothing


def inputs_of_all_cells(normals: np.ndarray) -> np.ndarray:
    """An input in every cell that planes through 0 cut space into. A cell has a ray where two planes meet,
    and lies on one side of each beside it."""
    found = []
    for one, two in itertools.combinations(normals, 2):
        ray = np.cross(one, two)
        beside = np.linalg.lstsq(np.stack([one, two]), np.eye(2), rcond=None)[0].T
        for sign, first, second in itertools.product((1, -1), repeat=3):
            found.append(sign * ray / np.linalg.norm(ray) + 1e-7 * (first * beside[0] + second * beside[1]))
    return np.array(found)


@pytest.mark.parametrize("seed", range(3))
def test_exactly_the_sign_patterns_of_space_are_feasible(seed: int) -> None:
    weight = np.random.default_rng(seed).normal(size=(6, 3))
    scores = inputs_of_all_cells(weight) @ weight.T
    patterns = {tuple(np.flatnonzero(row > 0).tolist()) for row in scores}
    assert len(patterns) == 2 * (1 + 5 + 10)
    assert feasible(am.Head(weight), am.Everywhere(), am.SetKind.EXACTLY) == patterns


@pytest.mark.parametrize("seed", range(3))
def test_exactly_the_tops_of_space_are_feasible(seed: int) -> None:
    weight = np.random.default_rng(seed).normal(size=(6, 3))
    pairs = itertools.combinations(range(6), 2)
    scores = inputs_of_all_cells(np.array([weight[i] - weight[j] for i, j in pairs])) @ weight.T
    found = feasible(am.Head(weight), am.Everywhere(), am.SetKind.TOP)
    for size in range(1, 6):
        truth = {tuple(sorted(np.argsort(-row)[:size].tolist())) for row in scores}
        assert {members for members in found if len(members) == size} == truth


def test_the_number_of_sign_patterns_in_space_is_covers() -> None:
    weight = np.random.default_rng(0).normal(size=(6, 3))
    assert len(feasible(am.Head(weight), am.Everywhere(), am.SetKind.EXACTLY)) == 2 * (1 + 5 + 10)
    bias = np.random.default_rng(1).normal(size=6)
    assert len(feasible(am.Head(weight[:, :2], bias), am.Everywhere(), am.SetKind.EXACTLY)) == 1 + 6 + 15


# ---------------------------------------------------------------------- every domain, every kind

DOMAINS = {
    "everywhere": am.Everywhere(),
    "box": am.Box(-3.0, 3.0),
    "relu": am.Box(0.0, np.inf),
    "away": am.Box(1.0, 2.0),
    "point": am.Box(0.5, 0.5),
    "ball": am.Ball(2.5),
    "rmsnorm": am.RMSNorm([0.5, -1.0, 2.0], [0.1, 0.0, -0.2]),
    "layernorm": am.LayerNorm([0.5, -1.0, 2.0], [0.1, 0.0, -0.2]),
    "hull": am.Hull(np.random.default_rng(3).normal(size=(6, 3))),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", DOMAINS)
def test_every_set_is_decided_and_its_evidence_is_exact(name: str, kind: am.SetKind) -> None:
    generator, domain = np.random.default_rng(5), DOMAINS[name]
    for bias in (None, generator.normal(size=4).astype(np.float32)):
        head = am.Head(generator.normal(size=(4, 3)).astype(np.float32), bias)
        found = am.sets(head, domain, every_subset(4), kind=kind, engine=ONE)
        assert not found.having(am.Feasibility.UNDECIDED)
        for claim in found.claims:
            assert_proven(head, domain, kind, claim)


def assert_proven(head: am.Head, domain: am.Domain, kind: am.SetKind, claim: am.SetClaim) -> None:
    """By rationals, from the definition."""
    if claim.status is FEASIBLE:
        assert claim.point is not None
        x, over = domain.place_exactly(claim.point)
        scores = [
            sum(
                Fraction(float(w)) * Fraction(int(v)) * Fraction(2) ** x.exponent
                for w, v in zip(row, x.integers, strict=True)
            )
            / over
            + Fraction(float(b))
            for row, b in zip(head.rows(slice(None)), head.biases(), strict=True)
        ]
        inside = [scores[i] for i in claim.members]
        outside = [score for i, score in enumerate(scores) if i not in claim.members]
        if kind is am.SetKind.TOP:
            assert not inside or not outside or min(inside) > max(outside)
        else:
            assert all(score > 0 for score in inside)
            assert kind is am.SetKind.AT_LEAST or all(score < 0 for score in outside)
    else:
        assert claim.certificate is not None
        assert claim.upper <= 0


def test_kinds_are_nested() -> None:
    generator = np.random.default_rng(2)
    head = am.Head(generator.normal(size=(7, 3)), generator.normal(size=7))
    exactly, at_least = (
        feasible(head, am.Box(-3.0, 3.0), kind) for kind in (am.SetKind.EXACTLY, am.SetKind.AT_LEAST)
    )
    assert exactly <= at_least < set(every_subset(7))
    assert all(smaller in at_least for members in at_least for smaller in itertools.combinations(members, 1))


def test_thresholds_are_biases_with_the_other_sign() -> None:
    generator = np.random.default_rng(2)
    weight, thresholds = generator.normal(size=(6, 2)), generator.normal(size=6)
    shifted = feasible(am.Head(weight, -thresholds), am.Ball(2.0), am.SetKind.EXACTLY)
    assert feasible(am.Head(weight), am.Ball(2.0), am.SetKind.EXACTLY, thresholds=thresholds) == shifted


def test_a_probability_of_a_half_is_a_logit_of_0() -> None:
    assert am.logits_of(0.5) == 0
    assert am.logits_of([0.1, 0.9]) == pytest.approx([-np.log(9), np.log(9)])
    with pytest.raises(am.InputError, match="above 0 and below 1"):
        am.logits_of(1.0)


# ---------------------------------------------------------------------- ties, degenerate rows, large heads


def test_a_set_that_needs_a_tie_is_infeasible_and_told_to_be_tied() -> None:
    head = am.Head([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])  # labels 0 and 1 are identical
    (claim,) = am.sets(head, am.Box(-1.0, 1.0), [[0]], engine=ONE).claims
    assert claim.status is INFEASIBLE
    assert (claim.lower, claim.upper) == (0, 0)
    assert claim.is_at_best_tied


def test_ties_of_whole_numbers_are_decided() -> None:
    generator = np.random.default_rng(0)
    for _ in range(3):
        head = am.Head(generator.integers(-2, 3, (5, 2)), generator.integers(-1, 2, 5))
        for kind in KINDS:
            feasible(head, am.Box(-2.0, 2.0), kind)
            feasible(head, am.Everywhere(), kind)


def test_a_planted_infeasible_set_is_found_among_many_labels() -> None:
    generator = np.random.default_rng(0)
    weight, bias = generator.normal(size=(400, 16)).astype(np.float32), np.full(400, -1, np.float32)
    weight[2], bias[2] = (weight[0] + weight[1]) / 2, 0.5
    head = am.Head(weight, bias)
    found = am.sets(head, am.Box(0.0, np.inf), [[0, 1], [0, 1, 2]], kind="at-least", engine=ONE)
    assert [claim.status for claim in found.claims] == [FEASIBLE, FEASIBLE]
    (claim,) = am.sets(head, am.Box(0.0, np.inf), [[0, 1]], engine=ONE).claims
    assert claim.status is INFEASIBLE
    assert claim.certificate is not None
    assert SetChecker(head, am.Box(0.0, np.inf), am.SetTest()).bound((0, 1), claim.certificate).upper < 0


def test_processes_find_the_same() -> None:
    generator = np.random.default_rng(4)
    head = am.Head(generator.normal(size=(60, 4)), generator.normal(size=60))
    asked = [generator.choice(60, 3, replace=False) for _ in range(24)]
    alone, together = (
        am.sets(head, am.Box(-1.0, 1.0), asked, kind="top", engine=am.Engine(workers=workers))
        for workers in (1, 2)
    )
    assert [claim.status for claim in alone.claims] == [claim.status for claim in together.claims]


def test_weights_that_underflow_prove_nothing_in_floats() -> None:
    head = am.Head([[1e30], [-1.0]], [0.0, 1.0])
    certificate = am.Certificate(np.array([0, 1]), np.array([5e-324, 1.0]))
    checker = SetChecker(head, am.Box(-1e300, 1e300), am.SetTest("at-least"))
    assert checker.bound((0, 1), certificate).upper > 0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_weights_are_taken_as_they_are(dtype: str) -> None:
    weight = (
        np.random.default_rng(1)
        .normal(size=(5, 2))
        .astype(ml_dtypes.bfloat16 if dtype != "float16" else dtype)
    )
    wide = am.Head(weight.astype(np.float64))
    for kind in (am.SetKind.EXACTLY, am.SetKind.TOP):
        assert feasible(am.Head(weight), am.Ball(1.0), kind) == feasible(wide, am.Ball(1.0), kind)


# ---------------------------------------------------------------------- what is asked

HEAD = am.Head([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])


def test_sets_that_occur_twice_are_asked_about_once() -> None:
    found = am.sets(HEAD, am.Ball(1.0), [[0, 1], [1, 0], [2]], counts=[2, 3, 1], engine=ONE)
    assert [(claim.members, claim.count) for claim in found.claims] == [((0, 1), 5), ((2,), 1)]
    assert found.examples == 6


def test_a_time_limit_leaves_the_rest_undecided() -> None:
    found = am.sets(HEAD, am.Ball(1.0), [[0], [1]], time_limit=1e-9, engine=ONE)
    assert not found.is_complete
    assert [claim.reason for claim in found.claims] == ["not reached"] * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sets": [[3]]}, "label 3 does not exist: the head has labels 0 to 2"),
        ({"sets": [[-1]]}, "label -1 does not exist"),
        ({"sets": [[1, 1]]}, "label 1 occurs twice in a set"),
        ({"sets": [["a"]]}, "given by their numbers"),
        (
            {"sets": [[0]], "kind": "most"},
            "'most' is not a kind of set: choose one of exactly, top, at-least",
        ),
        ({"sets": [[0]], "thresholds": [0.0, 1.0]}, "2 thresholds for 3 labels"),
        ({"sets": [[0]], "thresholds": np.nan}, "finite numbers"),
        ({"sets": [[0]], "kind": "top", "thresholds": 1.0}, "they have no thresholds"),
        ({"sets": [[0]], "counts": [1, 2]}, "2 counts for 1 sets"),
        ({"sets": [[0]], "time_limit": 0}, "time limit must be above 0"),
        ({"sets": [[0]], "engine": am.Engine(ray="local")}, "processes of this machine"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(am.InputError, match=message):
        am.sets(HEAD, am.Ball(1.0), **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "domain",
    [am.Hull([[1.0]]), am.Hull([[1.0], [1.0]]), am.Box(1, 1), am.Reach([1.0], [[0.0]], am.Ball(2.0))],
    ids=["hull", "hull of equal points", "box", "reach"],
)
@pytest.mark.parametrize("kind", list(am.SetKind))
def test_over_a_single_point_every_set_is_decided(domain: am.Domain, kind: am.SetKind) -> None:
    head = am.Head(np.array([[-1.0], [-2.0], [0.0]]), np.array([-2.0, 0.5, 2.0]))  # scores −3, −1.5, 2
    asked = [members for size in (1, 2) for members in itertools.combinations(range(3), size)]
    found = am.sets(head, domain, asked, kind=kind, engine=am.Engine(workers=1))
    assert not found.having(am.Feasibility.UNDECIDED)
    first = {am.SetKind.EXACTLY: [(2,)], am.SetKind.TOP: [(2,), (1, 2)], am.SetKind.AT_LEAST: [(2,)]}[kind]
    assert [claim.members for claim in found.having(am.Feasibility.FEASIBLE)] == first


@pytest.mark.parametrize("within", [am.Ball(2.0), am.Box(-2.0, 2.0)])
@pytest.mark.parametrize("kind", [am.SetKind.EXACTLY, am.SetKind.AT_LEAST])
def test_a_reach_with_more_moves_than_features_is_its_image(within: am.Domain, kind: am.SetKind) -> None:
    """x = −1 + 0.5 v + w fills an interval, so that a box of x has the same answers."""
    head = am.Head(np.array([[-2.0], [1.0], [1.0], [-1.0]]), np.array([-2.0, -1.5, 0.5, -1.5]))
    thresholds = [2.0, 1.0, -1.5, -0.5]
    asked = [members for size in range(4) for members in itertools.combinations(range(4), size)]
    reach = am.Reach([-1.0], [[0.5, 1.0]], within)
    width = 3.0 if isinstance(within, am.Box) else 2.0 * 1.25**0.5
    settings = {"kind": kind, "thresholds": thresholds, "engine": am.Engine(workers=1)}
    box = am.Box(-1 - width, -1 + width)
    found, same = (am.sets(head, domain, asked, **settings) for domain in (reach, box))
    assert [claim.status for claim in found.claims] == [claim.status for claim in same.claims]


def test_a_bias_less_its_threshold_that_overflows_is_refused() -> None:
    head = am.Head(np.ones((2, 1)), np.array([1e308, 0.0]))
    with pytest.raises(am.InputError, match="beyond the range of float64"):
        am.sets(head, am.Box(-1, 1), [(0,)], thresholds=-1e308)
