"""Claims about sets of labels: margins and bounds against rationals, and claims with one thing wrong."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from drawn import drawn
from hypothesis import strategies as st
from oracles import dot, rationals, support_is_at_most
from order_truths import exact_scores

import argmaxable as am
from argmaxable.check.sets import SetChecker, failed_sets
from argmaxable.compute.prepared import prepared
from argmaxable.core.label_sets import SetClaim, SetTest
from argmaxable.core.verdict import Certificate
from argmaxable.exact.dyadic import round_down

INF = math.inf
KINDS = tuple(am.SetKind)
EXACTLY, TOP, AT_LEAST = am.SetKind.EXACTLY, am.SetKind.TOP, am.SetKind.AT_LEAST
YES, NO, OPEN = am.Feasibility.FEASIBLE, am.Feasibility.INFEASIBLE, am.Feasibility.UNDECIDED
DOMAINS = {
    "box": am.Box(-4, 4),
    "everywhere": am.Everywhere(),
    "ball": am.Ball(4.0),
    "LayerNorm": am.LayerNorm([0.1, -3.0], [0.3, -7.0]),
    "hull": am.Hull([[0.1, -3.0], [5.0, 0.3]]),
}
every_domain = pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)


def true_margin(test: SetTest, head: am.Head, domain: am.Domain, members: tuple[int, ...], z: Any) -> Any:
    """The smallest gap at a point, exactly; None outside the domain, ∞ where nothing is asked."""
    scores = exact_scores(head, domain, np.asarray(z, float))
    if scores is None:
        return None
    over = [s - t for s, t in zip(scores, rationals(test.of_labels(head.classes)), strict=True)]
    inside = [over[i] for i in members]
    outside = [score for i, score in enumerate(over) if i not in members]
    if test.kind is TOP:
        return min(inside) - max(outside) if inside and outside else INF
    return min([*inside, *([] if test.kind is AT_LEAST else [-score for score in outside])], default=INF)


def true_factors(test: SetTest, members: tuple[int, ...], certificate: Certificate) -> list[Fraction]:
    """f_i by the words of check/sets.py."""
    lambdas = [Fraction(k) for k in certificate.whole] or rationals(certificate.weights)
    inside = [int(i) in members for i in certificate.classes]
    total = {
        side: sum(w for w, one in zip(lambdas, inside, strict=True) if one is side) for side in (True, False)
    }
    if test.kind is not TOP:
        total = dict.fromkeys(total, sum(lambdas))
    pairs = zip(lambdas, inside, strict=True)
    return [(w if one else -w) / total[one] if w else Fraction(0) for w, one in pairs]


def is_proven(
    test: SetTest,
    head: am.Head,
    domain: am.Domain,
    members: tuple[int, ...],
    proof: Certificate,
    claim: Fraction,
) -> bool:
    factors = true_factors(test, members, proof)
    rows = [rationals(row) for row in head.rows(proof.classes)]
    offsets = [
        b - t
        for b, t in zip(
            rationals(head.biases(proof.classes)),
            rationals(test.of_labels(head.classes)[proof.classes]),
            strict=True,
        )
    ]
    u = [dot(factors, column) for column in zip(*rows, strict=True)]
    return support_is_at_most(domain, u, claim - dot(factors, offsets))


@st.composite
def questions(draw: st.DrawFn) -> tuple[am.Head, SetTest, tuple[int, ...]]:
    entry = st.integers(-2, 2).map(float) | st.sampled_from([0.1, 1 + 2.0**-52, -0.3, 1e-30, 1e30])
    count = draw(st.integers(2, 4))
    rows = draw(st.lists(st.tuples(entry, entry), min_size=count, max_size=count))
    bias = draw(st.none() | st.lists(entry, min_size=count, max_size=count))
    kind = draw(st.sampled_from(KINDS))
    limits = 0.0 if kind is TOP else draw(entry | st.lists(entry, min_size=count, max_size=count).map(tuple))
    members = draw(st.sets(st.integers(0, count - 1)))
    return am.Head(rows, bias), SetTest(kind, limits), tuple(sorted(members))


coordinates = st.integers(-8, 8).map(lambda k: k / 4) | st.sampled_from([0.1, 0.3, 1.0, 5.0])


Question = tuple[am.Head, SetTest, tuple[int, ...]]


@functools.cache
def some_points() -> list[tuple[Question, tuple[float, float]]]:
    return drawn(st.tuples(questions(), st.tuples(coordinates, coordinates)), 30)


@every_domain
def test_the_margin_is_proven_with_its_sign_and_as_a_claim_exactly(domain: am.Domain) -> None:
    for question, z in some_points():
        assert_margin_is_proven_exactly(domain, question, z)


def assert_margin_is_proven_exactly(domain: am.Domain, question: Question, z: tuple[float, float]) -> None:
    head, test, members = question
    truth = true_margin(test, head, domain, members, z)
    checker, points = SetChecker(head, domain, test), np.array([z])
    lower = float(checker.margins([members], points)[0])
    if truth is None or truth == INF:
        assert lower == (-INF if truth is None else INF)
        return
    assert lower <= truth
    assert (lower > 0) == (truth >= Fraction(5e-324))
    claim = round_down(truth)
    assert checker.margins([members], points, claims=np.array([claim]))[0] >= claim
    above = math.nextafter(claim, INF)
    assert checker.margins([members], points, claims=np.array([above]))[0] < above


@st.composite
def weighings(draw: st.DrawFn) -> tuple[Question, list[float], tuple[int, ...]]:
    question = draw(questions())
    classes = question[0].classes
    weight = st.sampled_from([0.0, 0.5, 1.0, 1 / 3, 1e-300, 1e300])
    values = draw(st.lists(weight, min_size=classes, max_size=classes))
    return question, values, draw(st.just(()) | st.tuples(*[st.integers(0, 3)] * classes))


@functools.cache
def some_weighings() -> list[tuple[Question, list[float], tuple[int, ...]]]:
    return drawn(weighings(), 30)


@every_domain
def test_no_weights_prove_more_than_rationals_confirm(domain: am.Domain) -> None:
    for question, values, whole in some_weighings():
        assert_weights_prove_what_rationals_confirm(domain, question, values, whole)


def assert_weights_prove_what_rationals_confirm(
    domain: am.Domain, question: Question, values: list[float], whole: tuple[int, ...]
) -> None:
    head, test, members = question
    proof = Certificate(np.arange(head.classes), np.array(values), whole=whole)
    checker = SetChecker(head, domain, test)
    upper = checker.bound(members, proof).upper
    lambdas = whole or values
    on = [any(w for i, w in enumerate(lambdas) if (i in members) is side) for side in (True, False)]
    usable = sum(values) > 0 and (not whole or any(whole))
    usable &= on[0] and on[1] if test.kind is TOP else test.kind is EXACTLY or not on[1]
    if not usable:
        assert upper == INF
        assert not checker.proves(members, proof, 1e308)
        return
    for claim in (0.0, upper, math.nextafter(upper, -INF)):
        if math.isfinite(claim):
            proven = is_proven(test, head, domain, members, proof, Fraction(claim))
            found = checker.proves(members, proof, claim)
            # Over a ball the support is a root, which is compared exactly with 0 alone.
            assert found == proven or (proven and claim != 0 and isinstance(domain, am.Ball | am.LayerNorm))
    assert upper == INF or is_proven(test, head, domain, members, proof, Fraction(upper))
    assert (upper <= 0) == is_proven(test, head, domain, members, proof, Fraction(0))


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_by_floats_cover_their_rounding(kind: am.SetKind) -> None:
    """Many terms of both signs that nearly cancel: every bound below 0 is one in rationals."""
    rng = np.random.default_rng(0)
    for features in (3, 40):
        for _ in range(25):
            rows = rng.normal(size=(30, features)) * 10.0 ** rng.integers(-3, 4)
            head = am.Head(rows, rng.normal(size=30) * 10.0 ** rng.integers(-3, 4))
            members = tuple(range(30 if kind is AT_LEAST else 15))
            proof = Certificate(np.arange(30), rng.uniform(0.1, 1, 30))
            test = SetTest(kind, 0.0 if kind is TOP else rng.normal(size=30))
            for domain in (am.Box(-1e-9, 1e-9), am.Box(0.3, 0.3)):
                upper = SetChecker(head, domain, test)._float_bound(is_in(members), proof)
                assert is_proven(test, head, domain, members, proof, Fraction(upper))
                size = 1e-11 * (1 + abs(upper)) * (1 + np.abs(rows).max() + np.abs(head.biases()).max())
                assert not is_proven(test, head, domain, members, proof, Fraction(upper - size))


def is_in(members: tuple[int, ...]) -> np.ndarray:
    return np.isin(np.arange(30), members)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e30])
def test_margins_by_floats_cover_their_rounding(kind: am.SetKind, scale: float) -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        head = am.Head(rng.normal(size=(12, 50)) * scale, rng.normal(size=12) * scale)
        test = SetTest(kind, 0.0 if kind is TOP else rng.normal(size=12) * scale)
        z = rng.normal(size=50)
        scores = exact_scores(head, am.Everywhere(), z)
        assert scores is not None
        over = [s - t for s, t in zip(scores, rationals(test.of_labels(12)), strict=True)]
        best = sorted(range(12), key=lambda i: -over[i])
        members = tuple(sorted(best[:4] if kind is TOP else [i for i in best if over[i] > 0]))
        lower = SetChecker(head, am.Everywhere(), test).margins([members], z[None])[0]
        truth = true_margin(test, head, am.Everywhere(), members, z)
        assert truth - Fraction(1e-2 * scale) <= lower <= truth


# ---------------------------------------------------------------------- claims

# Labels x, −x and x − 3 over [−1, 1]: the last is never on, the others are never on together.
LINE = am.Head([[1.0], [-1.0], [1.0]], [0.0, 0.0, -3.0])
BOX = am.Box(-1, 1)
ONES = np.ones(1)


def weights(on: dict[int, float], basis: int = 0, **more: Any) -> Certificate:
    return Certificate(np.array(list(on)), np.array(list(on.values())), basis, **more)


def claim(
    members: tuple[int, ...], status: am.Feasibility, lower: float = -INF, upper: float = INF, **more: Any
) -> SetClaim:
    return SetClaim(members, (), status, lower, upper, **more)


def failures(*claims: SetClaim, test: SetTest | None = None, domain: am.Domain = BOX) -> list[Any]:
    return [failure.key for failure in failed_sets(prepared(LINE), domain, claims, test or SetTest())]


BOTH = weights({0: 0.5, 1: 0.5})
SOUND = {
    "a point": claim((0,), YES, 1.0, point=ONES),
    "less than at the point": claim((0,), YES, 0.5, point=ONES),
    "a point that misses": claim((0, 1), OPEN, -1.0, point=ONES),
    "weights": claim((0, 1), NO, upper=0.0, certificate=BOTH),
    "weights on one": claim((0, 2), NO, upper=-2.0, certificate=weights({2: 1.0})),
    "both": claim((0, 1), NO, 0.0, 0.0, point=np.zeros(1), certificate=BOTH),
    "whole weights": claim((0, 1), NO, upper=0.0, certificate=weights({0: 1.0, 1: 0.0}, whole=(1, 1))),
    "nothing": claim((0, 1), OPEN),
}
FORGED = {
    "a margin too large": claim((0,), YES, math.nextafter(1.0, INF), point=ONES),
    "another set's point": claim((1,), YES, 1.0, point=ONES),
    "a point outside": claim((0,), YES, 1.0, point=2 * ONES),
    "a point outside that claims nothing": claim((0,), OPEN, -INF, point=2 * ONES),
    "a point too long": claim((0,), YES, 1.0, point=np.ones(2)),
    "no point": claim((0,), YES, 1.0),
    "a tie that is feasible": claim((0,), YES, 0.0, point=np.zeros(1)),
    "a margin that decides nothing": claim((0,), OPEN, 1.0, point=ONES),
    "a bound too low": claim((0, 1), NO, upper=math.nextafter(0.0, -INF), certificate=BOTH),
    "another set's weights": claim((0,), NO, upper=0.0, certificate=BOTH),
    "unequal weights": claim((0, 1), NO, upper=0.0, certificate=weights({0: 0.5, 1: 0.25})),
    "no weights": claim((0, 1), NO, upper=0.0),
    "weights to be solved for": claim((0, 1), NO, upper=0.0, certificate=weights({0: 0.5, 1: 0.5}, 2)),
    "a label twice": claim((0, 1), NO, upper=0.0, certificate=Certificate(np.array([0, 0]), np.ones(2))),
    "a label that the head has not got": claim((0, 1), NO, upper=0.0, certificate=weights({0: 0.5, 3: 0.5})),
    "a bound that is not low enough": claim((0, 1), NO, upper=0.5, certificate=BOTH),
}  # fmt: skip


@pytest.mark.parametrize("sound", SOUND.values(), ids=SOUND)
def test_what_the_evidence_proves_passes(sound: SetClaim) -> None:
    assert failures(sound) == []


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_what_the_evidence_does_not_prove_is_named_once(forged: SetClaim) -> None:
    assert failures(
        claim((1,), YES, 1.0, point=-ONES) if forged.members != (1,) else SOUND["a point"], forged
    ) == [forged.members]


def test_a_set_that_asks_for_nothing_needs_a_point_alone() -> None:
    top = SetTest(TOP)
    assert failures(claim((), YES, INF, point=ONES), test=top) == []
    assert failures(claim((0, 1, 2), YES, 0.0, point=ONES), test=top) == []
    assert failures(claim((), YES), test=top) == [()]
    assert failures(claim((), YES, INF, point=2 * ONES), test=top) == [()]
    assert failures(claim((), YES, INF, point=ONES), test=SetTest(AT_LEAST)) == []
    assert failures(claim((), YES, INF, point=ONES), test=SetTest(EXACTLY)) == [()]


def test_one_false_margin_among_many_is_found() -> None:
    members = [(0,), (1,)] * 40
    claims = [claim(some, YES, 1.0, point=ONES if some == (0,) else -ONES) for some in members]
    assert failures(*claims) == []
    claims[57] = claim((1,), YES, 1.0, point=ONES)
    assert failures(*claims) == [(1,)]


def test_one_bias_less_its_threshold_that_overflows_is_refused() -> None:
    head = am.Head(np.ones((2, 1)), np.array([1e308, 0.0]))
    with pytest.raises(am.InputError, match="beyond the range of float64"):
        SetChecker(head, am.Box(-1, 1), SetTest(EXACTLY, [-1e308, 0.0]))


def test_whole_weights_are_taken_as_they_are_and_literal_ones_by_floats_first() -> None:
    # Labels 0 and 1 are opposites: both on at once is impossible by 1, which either kind of weights proves.
    checker = SetChecker(am.Head([[1.0], [-1.0]], [-1.0, -1.0]), am.Box(-4, 4), SetTest(EXACTLY))
    ids, halves = np.array([0, 1]), np.array([0.5, 0.5])
    literal = checker.bound((0, 1), Certificate(ids, halves))
    assert literal.upper == pytest.approx(-1)
    assert literal.strength is am.Strength.FLOAT64
    whole = checker.bound((0, 1), Certificate(ids, halves, whole=(1, 1)))
    assert (whole.upper, whole.strength) == (-1, am.Strength.EXACT)
    # Whole numbers count, not the floats beside them: 2 to 1 leave u = 1/3, and 4/3 − 1 as the bound.
    assert checker.bound((0, 1), Certificate(ids, halves, whole=(2, 1))).upper == pytest.approx(1 / 3)
