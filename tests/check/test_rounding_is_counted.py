"""Cases that rounding decides: every bound on it is needed, and rationals say what is true."""

from __future__ import annotations

import math
from fractions import Fraction

import flint
import numpy as np
import pytest
from oracles import certificate_proves, dot, exact_gap, rationals
from order_truths import exact_scores

import argmaxable as am
from argmaxable.check.checker import Checker
from argmaxable.check.orders import proven_gap
from argmaxable.check.probabilities import CeilingChecker
from argmaxable.check.solutions import Equations
from argmaxable.core.orders import chain
from argmaxable.core.verdict import Certificate

SIZES = [(2, 3), (7, 12), (30, 2)]  # classes in a certificate, features


def combined(weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """What weights make of rows, but for rounding: the difference is all rounding."""
    return np.asarray(weights @ rows / weights.sum())


# ---------------------------------------------------------------------- certificates


@pytest.mark.parametrize(("count", "features"), SIZES)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_direction_that_is_all_rounding_is_bounded(count: int, features: int, sign: float) -> None:
    """The class is the combination but for rounding, which a box of 1e9 makes large. No bias pays for it."""
    rng = np.random.default_rng(count)
    for _ in range(6):
        rows = sign * rng.uniform(0.5, 1, (count, features)) + 100
        weights = rng.uniform(0.1, 1, count)
        head = am.Head(np.vstack([combined(weights, rows), rows]))
        proof = Certificate(np.arange(1, count + 1), weights)
        for domain in (am.Box(0, 1e9), am.Box(-1e9, 0), am.Ball(1e9)):
            for centre in (None, np.zeros(features)):
                upper = Checker(head, domain, centre=centre).bounds(np.array([0]), proof)[0]
                assert certificate_proves(head, domain, 0, proof, Fraction(float(upper)))


@pytest.mark.parametrize(("count", "features"), SIZES)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_offset_that_is_all_rounding_is_bounded(count: int, features: int, sign: float) -> None:
    """At the one point 0 only biases count; those of the class are the others' combined, but for rounding."""
    rng = np.random.default_rng(count)
    for _ in range(6):
        biases = sign * rng.uniform(0.5, 1, count) * 1e6
        weights = rng.uniform(0.1, 1, count)
        own = float(weights @ biases / weights.sum())
        head = am.Head(rng.normal(size=(count + 2, features)), [own, *biases, -sign * 1e6])
        proof = Certificate(np.arange(1, count + 1), weights)
        upper = Checker(head, am.Box(0, 0)).bounds(np.array([0]), proof)[0]
        assert certificate_proves(head, am.Box(0, 0), 0, proof, Fraction(float(upper)))


@pytest.mark.parametrize("total", [1e-200, 1e-160, 1.0])
def test_products_that_underflow_are_counted(total: float) -> None:
    """λ w and λ b are 0 in floats; divided by the total again they are not."""
    tiny = 1e-200
    proof = Certificate(np.array([1]), np.array([total]))
    two = Certificate(np.array([1, 2]), np.array([total, total]))
    for head, domain in (
        (am.Head([[tiny], [0.0], [0.0]]), am.Box(0, 1)),
        (am.Head([[0.0], [0.0], [0.0]], [tiny, 0.0, 0.0]), am.Box(0, 1)),
        (am.Head([[-tiny], [0.0], [0.0]]), am.Box(-1, 0)),
    ):
        checker = Checker(head, domain, centre=np.zeros(1))
        for evidence in (proof, two):
            upper = float(checker.bounds(np.array([0]), evidence)[0])
            assert certificate_proves(head, domain, 0, evidence, Fraction(upper))


def test_one_class_that_overflows_leaves_the_bounds_of_others_alone() -> None:
    """A row of 1e300 by a weight of 1e9 is infinite: its class is not proven, its neighbours are."""
    head = am.Head([[1e300, 0.0], [1.0, 1.0], [2.0, 2.0], [3.0, 1.0]], [0.0, -5.0, -5.0, 0.0])
    proof = Certificate(np.array([3]), np.array([1e9]))
    for domain in (am.Box(-1, 1), am.Box(0, 0)):
        uppers = Checker(head, domain, centre=np.zeros(2)).bounds(np.arange(3), proof)
        assert uppers[0] == math.inf
        for class_id in (1, 2):
            assert certificate_proves(head, domain, class_id, proof, Fraction(float(uppers[class_id])))
            assert not certificate_proves(
                head, domain, class_id, proof, Fraction(float(uppers[class_id] - 1e-6))
            )
        rivals = Checker(head, domain, centre=np.zeros(2)).rival_bounds(np.arange(3), np.array([3, 3, 3]))
        assert all(
            certificate_proves(
                head, domain, c, Certificate(np.array([3]), np.ones(1)), Fraction(float(rivals[c]))
            )
            for c in (1, 2)
        )


def test_bounds_are_close_to_what_is_true() -> None:
    rng = np.random.default_rng(0)
    head = am.Head(rng.normal(size=(9, 4)), rng.normal(size=9))
    weights = rng.uniform(0.1, 1, 5) * 1e3
    proof = Certificate(np.arange(4, 9), weights)
    for domain in (am.Box(-1, 2), am.Ball(3.0)):
        for class_id, upper in enumerate(Checker(head, domain).bounds(np.arange(4), proof).tolist()):
            assert certificate_proves(head, domain, class_id, proof, Fraction(upper))
            assert not certificate_proves(head, domain, class_id, proof, Fraction(upper - 1e-11))


@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_the_bound_from_one_rival_counts_its_roundings(shift: float) -> None:
    """Biases that nearly cancel what the rows have at a one-point box."""
    rng = np.random.default_rng(1)
    for _ in range(60):
        x = rng.uniform(0.5, 1)
        rows = rng.uniform(0.5, 1, (2, 1)) * 10.0 ** rng.integers(-3, 3)
        drop = float((rows[1, 0] - rows[0, 0]) * x)
        head = am.Head(rows, [drop + shift * 1e5, shift * 1e5])
        domain = am.Box(x, x)
        upper = float(Checker(head, domain).rival_bounds(np.array([0]), np.array([1]))[0])
        proof = Certificate(np.array([1]), np.ones(1))
        assert certificate_proves(head, domain, 0, proof, Fraction(upper))
        room = 1e-14 * (np.abs(rows).max() + abs(drop) + 2e5 * shift)
        assert not certificate_proves(head, domain, 0, proof, Fraction(upper - room))


def test_twins_with_other_biases_differ_by_them() -> None:
    head = am.Head([[0.1, 0.7], [0.1, 0.7], [0.1, 0.7]], [0.3, 0.1, -0.2])
    for class_id, rival in ((0, 1), (1, 0), (2, 0), (0, 2)):
        biases = rationals(head.biases())
        bound = Checker(head, am.Everywhere()).bound(
            class_id, Certificate(np.array([rival]), np.array([7.0]))
        )
        exact = biases[class_id] - biases[rival]
        assert exact <= Fraction(bound.upper) <= exact + Fraction(1e-16)
        assert bound.strength is am.Strength.EXACT


# ---------------------------------------------------------------------- witnesses


@pytest.mark.parametrize("features", [1, 3, 30, 120])
@pytest.mark.parametrize("step", [2.0**-26, 2.0**-55])
@pytest.mark.parametrize("scale", [2.0**-60, 1.0, 2.0**60])
def test_gaps_that_are_all_rounding_are_never_overstated(features: int, step: float, scale: float) -> None:
    """The rival is the class itself, moved at random by less than floats of one width or the other see."""
    rng = np.random.default_rng(features)
    for _ in range(5):
        row = rng.normal(size=features)
        rows = np.vstack([row, row * (1 + step * rng.normal(size=features)), -row])
        head = am.Head(rows, [0.3, 0.3 * (1 + step), 0.0] if features % 2 else None)
        point = rng.normal(size=features) * scale
        for domain in (
            am.Everywhere(),
            am.RMSNorm(rng.normal(size=features) * 1e9, rng.normal(size=features)),
        ):
            if isinstance(domain, am.RMSNorm):
                point = point / np.sqrt(point @ point + 1) * 0.9
            truth = exact_gap(head, domain, 0, point)
            assert truth is not None
            for claim in (None, np.array([float(truth) + step])):
                lower = Checker(head, domain).gaps(np.array([0]), point[None], claims=claim).lower[0]
                assert lower <= truth
                assert (lower > 0) == (truth > 0)


@pytest.mark.parametrize("exponent", [-90, -3, 0, 40])
def test_own_gaps_that_are_all_rounding_are_never_overstated(exponent: int) -> None:
    """Rows 1e-4 apart and less: the gaps at their own directions are as small as float32's rounding."""
    rng = np.random.default_rng(0)
    for features, apart in ((2, 1e-4), (30, 1e-4), (30, 1e-6)):
        rows = rng.normal(size=(1, features)) + apart * rng.normal(size=(12, features))
        head = am.Head(rows, rng.normal(size=12) * 1e-9 if features == 2 else None)
        checker = Checker(head, am.Everywhere(), centre=np.zeros(features))
        ids, exponents = np.arange(12), np.full(12, exponent)
        for some, gaps in checker.own_gaps(ids, exponents):
            for class_id, lower in zip(ids[some].tolist(), gaps.lower.tolist(), strict=True):
                truth = exact_gap(head, am.Everywhere(), class_id, np.ldexp(rows[class_id], exponent))
                assert truth is not None
                assert lower <= truth
                assert (lower > 0) == (truth > 0)


def test_own_directions_over_every_kind_of_domain_are_what_gaps_says() -> None:
    rng = np.random.default_rng(3)
    head = am.Head(rng.normal(size=(9, 3)), rng.normal(size=9) * 0.01)
    gain, shift = rng.normal(size=3), rng.normal(size=3)
    for domain in (
        am.Everywhere(), am.Box(-1, 1), am.Box(0.5, 2), am.Ball(1.0), am.RMSNorm(gain),
        am.RMSNorm(gain, shift),
        am.RMSNorm(gain, [0.0, 0.5, 0.0]), am.LayerNorm(gain), am.LayerNorm(gain, shift),
    ):  # fmt: skip
        for centre in (None, np.array([0.3, -0.2, 5.0])):
            checker = Checker(head, domain, centre=centre)
            for claims in (None, np.full(9, 1e-3)):
                exponents = np.array([0, 1, -1, -2, 3, -9, 0, -1, -4])
                seen: list[int] = []
                for some, gaps in checker.own_gaps(np.arange(9), exponents, claims=claims):
                    seen += some.tolist()
                    points = checker.rebuild(some, exponents[some])
                    there = checker.gaps(some, points, claims=None if claims is None else claims[some])
                    assert (np.sign(gaps.lower) == np.sign(there.lower)).all()
                    assert gaps.lower == pytest.approx(there.lower, rel=1e-4, abs=1e-5)
                    for class_id, point, lower in zip(some, points, gaps.lower, strict=True):
                        truth = exact_gap(head, domain, int(class_id), point)
                        assert lower == -math.inf if truth is None else lower <= truth
                assert sorted(seen) == list(range(9))


# ---------------------------------------------------------------------- weights to be solved for


def exact_basis_weights(rows: np.ndarray, target: np.ndarray) -> list[Fraction]:
    """λ with Σ λ_i (row_i, 1) = (target, 1), by Gauss in rationals."""
    size = len(rows)
    system = [
        [*(Fraction(float(v)) for v in column), Fraction(float(t))]
        for column, t in zip(np.hstack([rows, np.ones((size, 1))]).T, np.append(target, 1.0), strict=True)
    ]
    for k in range(size):
        pivot = next(i for i in range(k, size) if system[i][k])
        system[k], system[pivot] = system[pivot], system[k]
        system[k] = [value / system[k][k] for value in system[k]]
        for i in range(size):
            if i != k:
                factor = system[i][k]
                system[i] = [a - factor * b for a, b in zip(system[i], system[k], strict=True)]
    return [row[-1] for row in system]


@pytest.mark.parametrize("scale", [1.0, 1e-5, 1e6])
@pytest.mark.parametrize("features", [1, 2, 4])
def test_weights_are_no_further_from_the_exact_ones_than_is_said(features: int, scale: float) -> None:
    rng = np.random.default_rng(features)
    checked = 0
    for _ in range(40):
        rows = rng.normal(size=(features + 1, features)) * scale + rng.normal(size=features)
        exact = rng.dirichlet(np.ones(features + 1) * 5)
        target = exact @ rows
        head = am.Head(np.vstack([target, rows]))
        stored = exact + rng.choice([0.0, 1e-16, 1e-9]) * rng.normal(size=features + 1)
        centre = rng.choice([0.0, 1.0]) * rows.mean(axis=0)
        found = Equations(head, am.Everywhere(), centre, np.arange(1, features + 2), features + 1)
        shift = float(found.errors(np.array([0]), stored[None])[0])
        if shift < math.inf:
            truth = exact_basis_weights(rows, target)
            far = max(abs(a - Fraction(float(b))) for a, b in zip(truth, stored, strict=True))
            condition = float(np.linalg.cond(np.hstack([rows, np.ones((features + 1, 1))])))
            assert far <= Fraction(shift) <= 100 * condition * (far + Fraction(1e-14) * (1 + Fraction(scale)))
            checked += 1
    assert checked > 30


@pytest.mark.parametrize(
    "domain", [am.Everywhere(), am.RMSNorm([0.5, -3.0], 0.0), am.LayerNorm([0.5, -3.0], 0.0)]
)
def test_a_large_basis_has_a_solution_as_near_as_is_said(domain: am.Domain) -> None:
    """The nearest solution by least squares, in rationals: no entry is further away than it is long."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        rows = rng.normal(size=(8, 2))
        exact = rng.dirichlet(np.ones(8) * 5)
        head = am.Head(np.vstack([exact @ rows, rows]))
        stored = exact + rng.choice([1e-16, 1e-9, 1e-6]) * rng.normal(size=8)
        shift = float(
            Equations(head, domain, np.zeros(2), np.arange(1, 9), 8).errors(np.array([0]), stored[None])[0]
        )
        assert shift < 1e-3
        gain = rationals(domain.gains(2)) if not isinstance(domain, am.Everywhere) else [Fraction(1)] * 2
        seen = [[g * v for g, v in zip(gain, rationals(row), strict=True)] for row in head.rows(slice(None))]
        if isinstance(domain, am.LayerNorm):
            seen = [[row[0] - row[1]] for row in seen]
        lines = [[*row, Fraction(1)] for row in seen]
        missed = [
            lines[0][k] - dot(rationals(stored), [line[k] for line in lines[1:]])
            for k in range(len(lines[0]))
        ]
        # δ = A (AᵀA)⁻¹ r, whose square is r·(AᵀA)⁻¹ r.
        gram = flint.fmpq_mat(
            [
                [q(dot([a[i] for a in lines[1:]], [a[j] for a in lines[1:]])) for j in range(len(missed))]
                for i in range(len(missed))
            ]
        )
        solved = gram.solve(flint.fmpq_mat([[q(value)] for value in missed]))
        square = sum(
            (Fraction(int(solved[i, 0].p), int(solved[i, 0].q)) * value for i, value in enumerate(missed)),
            Fraction(0),
        )
        assert square <= Fraction(shift) ** 2


def q(value: Fraction) -> flint.fmpq:
    return flint.fmpq(value.numerator, value.denominator)


# ---------------------------------------------------------------------- orders and probabilities


@pytest.mark.parametrize("features", [1, 3, 60])
@pytest.mark.parametrize("scale", [1e-155, 1.0, 1e100])
def test_orders_that_only_rounding_decides_are_decided_exactly(features: int, scale: float) -> None:
    rng = np.random.default_rng(features)
    for _ in range(12):
        row = rng.normal(size=features) * scale
        rows = np.vstack([row, row * (1 + 2.0**-52 * rng.normal(size=features))])
        head = am.Head(rows, 0.1 + 2.0**-55 * rng.integers(0, 3, 2))
        point = rng.normal(size=features) * min(scale, 0.5)
        for domain in (am.Everywhere(), am.LayerNorm(rng.normal(size=features), 0.3)):
            scores = exact_scores(head, domain, point)
            assert scores is not None
            for order in (chain([0, 1]), chain([1, 0])):
                above, below = order.pairs[0].tolist()
                exact = scores[above] - scores[below]
                proven = proven_gap(head, domain, order, point)
                assert proven <= exact
                assert (proven > 0) == (exact >= Fraction(5e-324))


def exact_softmax(
    head: am.Head, x: np.ndarray, class_id: int, temperature: float
) -> tuple[flint.arb, flint.arb]:
    """The probability of a class, and that of all classes not below it together, to 300 bits."""
    scores = exact_scores(head, am.Everywhere(), x)
    assert scores is not None
    terms = [(flint.arb(q((s - scores[class_id]) / Fraction(temperature)))).exp() for s in scores]
    above = [
        t
        for i, (t, s) in enumerate(zip(terms, scores, strict=True))
        if i != class_id and s >= scores[class_id]
    ]
    total = sum(terms, flint.arb(0))
    return 1 / total, sum(above, flint.arb(0)) / total


@pytest.mark.parametrize("temperature", [1.0, 0.3])
@pytest.mark.parametrize(("features", "scale"), [(1, 1.0), (20, 1.0), (20, 1e5), (3, 1e-3), (3, 1e9)])
def test_at_a_single_point_both_ends_are_the_probability(
    features: int, scale: float, temperature: float
) -> None:
    """Over a box of one point the tangent has nothing to give away: whatever rounding takes shows."""
    rng = np.random.default_rng(features)
    for _ in range(10):
        x = rng.normal(size=features)
        rows = rng.normal(size=features) * scale + rng.normal(size=(6, features)) / np.sqrt(features)
        head = am.Head(rows, rng.normal(size=6) * rng.choice([0.0, 1.0, scale]))
        if scale > 1:  # scores that nearly tie, so that probabilities are neither 0 nor 1
            head = am.Head(rows, -(rows @ x) + rng.normal(size=6))
        checker = CeilingChecker(Checker(head, am.Box(x, x)), temperature=temperature)
        ids, points = np.arange(6), np.tile(x, (6, 1))
        lower, upper, mass = (
            checker.reached(ids, points),
            checker.allowed(ids, points),
            checker.mass_above(ids, points),
        )
        with flint.ctx.workprec(300):
            for c in range(6):
                true, above = exact_softmax(head, x, c, temperature)
                assert flint.arb(float(lower[c])) <= true <= flint.arb(float(upper[c]))
                assert above <= flint.arb(float(mass[c]))
                room = 1e-11 * max(1.0, scale) * features / temperature
                assert upper[c] <= float(true.upper()) * (1 + room) + 1e-25
                assert lower[c] >= float(true.lower()) * (1 - room) - 1e-25
                assert mass[c] <= float(above.upper()) + room + 1e-25


def test_the_tangent_at_one_point_allows_what_another_one_has() -> None:
    rng = np.random.default_rng(7)
    for domain in (am.Box(-1, 2), am.Ball(2.0), am.RMSNorm([1.0, 0.5, -2.0], [0.1, 0.2, 0.3])):
        head = am.Head(rng.normal(size=(5, 3)), rng.normal(size=5))
        here = rng.uniform(-0.5, 0.5, (5, 3))
        checker = CeilingChecker(Checker(head, domain))
        upper = checker.allowed(np.arange(5), here)
        for _ in range(40):
            there = rng.uniform(-1, 1, (5, 3))
            assert (checker.reached(np.arange(5), there) <= upper).all()
