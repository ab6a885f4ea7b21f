"""What theorems say about changed heads and changed evidence, on heads full of ties and boundaries."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from evidence import statuses, verified
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from oracles import certificate_proves, exact_gap

import argmaxable as am

INF = math.inf
SMALLEST = Fraction(5e-324)  # a gap below every float can't be reported as positive
ARGMAXABLE, UNARGMAXABLE = am.Status.ARGMAXABLE, am.Status.UNARGMAXABLE
deterministic = settings(
    derandomize=True,
    database=None,
    max_examples=30,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

# Each fits a head of any number of features, and holds the point 0 in its interior.
AROUND_ZERO = [am.Box(-100, 100), am.Box(-1, 2), am.Everywhere(), am.Ball(3.0), am.RMSNorm(1.0)]
DOMAINS = [*AROUND_ZERO, am.Box(0, INF), am.Box(1, 3), am.LayerNorm(2.0, 0.5), am.RMSNorm(-1.0, 0.25)]
around_zero, domains = st.sampled_from(AROUND_ZERO), st.sampled_from(DOMAINS)


@st.composite
def heads(draw: st.DrawFn, bias: bool | None = None, *, classes: tuple[int, int] = (2, 6)) -> am.Head:
    """Rows on a small grid of sixty-fourths or integers, so that sums stay exact and ties are common."""
    features, count = draw(st.integers(1, 4)), draw(st.integers(*classes))
    step = draw(st.sampled_from([1.0, 1.0, 1 / 64]))
    entry = st.integers(-3, 3).map(lambda value: value * step)
    rows = draw(
        st.lists(st.lists(entry, min_size=features, max_size=features), min_size=count, max_size=count)
    )
    has_bias = draw(st.booleans()) if bias is None else bias
    return am.Head(rows, draw(st.lists(entry, min_size=count, max_size=count)) if has_bias else None)


def parts(head: am.Head) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return head.rows(slice(None)), head.biases()


def with_class(head: am.Head, row: NDArray[np.float64], bias: float = 0.0) -> am.Head:
    rows, biases = parts(head)
    return am.Head(np.vstack([rows, row]), None if head.bias is None else np.append(biases, bias))


def distinct(rows: list[tuple[int, ...]]) -> NDArray[np.float64]:
    return np.array(sorted(set(rows)), float)


# ---------------------------------------------------------------------- changed heads


@deterministic
@given(heads(), domains, st.randoms(use_true_random=False))
def test_permuting_classes_permutes_statuses(head: am.Head, domain: am.Domain, random) -> None:
    order = np.array(random.sample(range(head.classes), head.classes))
    permuted = am.Head(head.weight[order], None if head.bias is None else head.bias[order])
    expected = statuses(verified(head, domain))
    assert statuses(verified(permuted, domain)) == [expected[i] for i in order]


@deterministic
@given(heads(), domains, st.data())
def test_adding_a_vector_to_every_row_changes_no_status(
    head: am.Head, domain: am.Domain, data: st.DataObject
) -> None:
    entry = st.integers(-(2**20), 2**20).map(lambda value: value / 64)
    vector = data.draw(st.lists(entry, min_size=head.features, max_size=head.features))
    rows, _ = parts(head)
    moved = am.Head(rows + np.array(vector), head.bias)
    assert statuses(verified(moved, domain)) == statuses(verified(head, domain))


@deterministic
@given(heads(bias=True), domains, st.integers(-(2**20), 2**20))
def test_adding_a_number_to_every_bias_changes_no_status(
    head: am.Head, domain: am.Domain, number: int
) -> None:
    rows, biases = parts(head)
    moved = am.Head(rows, biases + number / 64)
    assert statuses(verified(moved, domain)) == statuses(verified(head, domain))


@deterministic
@given(heads(), domains, st.integers(-60, 60))
def test_scaling_weights_and_biases_alike_changes_no_status(
    head: am.Head, domain: am.Domain, exponent: int
) -> None:
    rows, biases = parts(head)
    scaled = am.Head(np.ldexp(rows, exponent), None if head.bias is None else np.ldexp(biases, exponent))
    assert statuses(verified(scaled, domain)) == statuses(verified(head, domain))


@deterministic
@given(heads(bias=True), st.integers(-60, 60))
def test_scaling_weights_alone_changes_no_status_everywhere(head: am.Head, exponent: int) -> None:
    rows, biases = parts(head)
    scaled = am.Head(np.ldexp(rows, exponent), biases)
    assert statuses(verified(scaled, am.Everywhere())) == statuses(verified(head, am.Everywhere()))


@deterministic
@given(heads(bias=True), st.integers(-30, 30))
def test_scaling_weights_up_and_the_box_down_changes_no_status(head: am.Head, exponent: int) -> None:
    rows, biases = parts(head)
    scaled = am.Head(np.ldexp(rows, exponent), biases)
    low, high = np.ldexp(-1.0, -exponent), np.ldexp(2.0, -exponent)
    assert statuses(verified(scaled, am.Box(low, high))) == statuses(verified(head, am.Box(-1, 2)))


@deterministic
@given(heads(bias=False), around_zero, around_zero)
def test_without_bias_every_domain_around_zero_gives_the_same_statuses(
    head: am.Head, one: am.Domain, other: am.Domain
) -> None:
    assert statuses(verified(head, one)) == statuses(verified(head, other))


@deterministic
@given(heads(), domains, st.data())
def test_a_convex_combination_of_classes_is_unargmaxable_and_harms_nobody(
    head: am.Head, domain: am.Domain, data: st.DataObject
) -> None:
    eighths = data.draw(st.lists(st.integers(0, head.classes - 1), min_size=8, max_size=8))
    weights = np.bincount(eighths, minlength=head.classes) / 8
    rows, biases = parts(head)
    before = statuses(verified(head, domain))
    if weights.max() == 1.0:  # all on one class: a duplicate, whose class can only tie from now on
        before[int(weights.argmax())] = UNARGMAXABLE
    after = statuses(verified(with_class(head, weights @ rows, float(weights @ biases)), domain))
    assert after == [*before, UNARGMAXABLE]


# A point x ≠ 0 of each domain: a row along it wins there once it is long enough.
FAR = [
    (am.Box(-100, 100), 1.0),
    (am.Box(-1, 2), 2.0),
    (am.Box(-2, 0), -1.0),
    (am.Box(1, 3), 1.0),
    (am.Box(0, INF), 1.0),
    (am.Everywhere(), -1.0),
    (am.Ball(3.0), 1.0),
    (am.RMSNorm(1.0), 1.0),
    (am.LayerNorm(1.0, 2.0), 2.0),
]


@pytest.mark.parametrize(("domain", "entry"), FAR, ids=str)
@settings(deterministic, max_examples=8)
@given(heads())
def test_a_row_far_outside_is_argmaxable(domain: am.Domain, entry: float, head: am.Head) -> None:
    x = np.full(head.features, entry)
    result = verified(with_class(head, 2.0**20 * x), domain)
    assert result.verdicts[-1].status is ARGMAXABLE


@st.composite
def rows_of_equal_norm(draw: st.DrawFn) -> NDArray[np.float64]:
    """Distinct signed permutations of one integer vector."""
    vector = draw(st.lists(st.integers(0, 3), min_size=2, max_size=4).filter(any))
    signs = itertools.product([1, -1], repeat=len(vector))
    every = [tuple(np.multiply(sign, order)) for sign in signs for order in itertools.permutations(vector)]
    chosen = draw(st.lists(st.sampled_from(every), min_size=1, max_size=16))
    return distinct([tuple(int(value) for value in row) for row in chosen])


@deterministic
@given(rows_of_equal_norm(), around_zero)
def test_distinct_rows_of_equal_norm_are_all_argmaxable(rows: NDArray[np.float64], domain: am.Domain) -> None:
    assert not verified(am.Head(rows), domain).unargmaxable


@deterministic
@given(
    st.integers(1, 4).flatmap(
        lambda d: st.lists(st.tuples(*[st.integers(-4, 4)] * d), min_size=1, max_size=16)
    )
)
def test_with_the_voronoi_bias_distinct_rows_inside_the_box_are_all_argmaxable(rows: list) -> None:
    weight = distinct(rows)
    bias = -(weight * weight).sum(axis=1) / 2
    assert not verified(am.Head(weight, bias), am.Box(-4, 4)).unargmaxable


@deterministic
@given(heads(), domains, st.data())
def test_a_duplicate_ties_with_its_class_and_changes_no_other_status(
    head: am.Head, domain: am.Domain, data: st.DataObject
) -> None:
    chosen = data.draw(st.integers(0, head.classes - 1))
    rows, biases = parts(head)
    doubled = verified(with_class(head, rows[chosen], biases[chosen]), domain)
    expected = statuses(verified(head, domain))
    expected[chosen] = UNARGMAXABLE
    assert statuses(doubled) == [*expected, UNARGMAXABLE]
    best = all(biases[i] <= biases[chosen] for i in range(head.classes) if (rows[i] == rows[chosen]).all())
    if best:
        assert head.classes in doubled.verdicts[chosen].tied_with
        assert chosen in doubled.verdicts[-1].tied_with


@deterministic
@given(heads(), domains, st.data())
def test_a_duplicate_of_an_argmaxable_class_is_tied(
    head: am.Head, domain: am.Domain, data: st.DataObject
) -> None:
    chosen = data.draw(st.integers(0, head.classes - 1))
    rows, biases = parts(head)
    doubled = verified(with_class(head, rows[chosen], biases[chosen]), domain)
    if verified(head, domain).verdicts[chosen].status is ARGMAXABLE:
        assert doubled.verdicts[chosen].is_tied
        assert doubled.verdicts[-1].is_tied


def test_a_duplicate_of_a_dominated_class_is_not_tied() -> None:
    head = am.Head([[0.0], [2.0], [1.0], [1.0]], [0, 0, -1, -1])
    assert not verified(head, am.Box(-100, 100)).tied


def test_a_duplicate_of_a_class_that_could_only_tie_anyway_is_not_tied() -> None:
    """The middle of a square has t* = 0 even alone: its duplicate is not the only reason."""
    head = am.Head([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0], [1.0, 1.0], [1.0, 1.0]])
    assert not verified(head, am.Box(-100, 100)).tied


def test_identical_classes_that_a_third_beats_with_a_higher_bias_are_tied_with_each_other() -> None:
    result = verified(am.Head([[1.0], [1.0], [1.0], [0.0]], [0, 0, 1, 0]), am.Box(-100, 100))
    assert [verdict.tied_with for verdict in result.verdicts] == [(1,), (0,), (), ()]


# ---------------------------------------------------------------------- how the work is done


def head_with_every_kind(features: int = 3, classes: int = 20) -> am.Head:
    """Outer rows, inner rows, duplicates, and a bias that decides some of them."""
    generator = np.random.default_rng(features)
    rows = generator.normal(size=(classes, features))
    rows[::3] *= 0.3
    rows[5], rows[7] = rows[6], rows[8]
    bias = generator.normal(size=classes)
    bias[5], bias[7] = bias[6], bias[8] + 1
    return am.Head(rows, bias)


@functools.cache
def with_every_kind(number: int) -> am.Result:
    return verified(head_with_every_kind(), DOMAINS[number])


numbers = pytest.mark.parametrize("number", range(len(DOMAINS)), ids=lambda number: str(DOMAINS[number]))


@numbers
def test_the_seed_changes_no_status(number: int) -> None:
    head, domain, expected = head_with_every_kind(), DOMAINS[number], statuses(with_every_kind(number))
    assert set(expected) == {ARGMAXABLE, UNARGMAXABLE}
    for seed in (1, 12345):
        assert statuses(verified(head, domain, seed=seed)) == expected


@numbers
def test_asking_about_some_classes_only_changes_no_status(number: int) -> None:
    head, domain, expected = head_with_every_kind(), DOMAINS[number], statuses(with_every_kind(number))
    for only in ([0], [19], [5], [6], [7, 8], [5, 6, 15], range(0, 20, 6)):
        result = am.verify(head, domain, only=only, engine=am.Engine(workers=1))
        assert [verdict.class_id for verdict in result.verdicts] == list(only)
        assert statuses(result) == [expected[i] for i in only]


def test_two_processes_reach_the_statuses_of_one() -> None:
    head = head_with_every_kind(64, 900)
    one, two = (am.verify(head, am.Box(-100, 100), engine=am.Engine(workers=workers)) for workers in (1, 2))
    assert statuses(one) == statuses(two)
    assert not two.undecided


# ---------------------------------------------------------------------- changed evidence

EVIDENCE_DOMAINS = [*DOMAINS, am.Box([-1.0, 0.0, -INF], [1.0, INF, 0.5])]


@functools.cache
def settled(number: int) -> am.Result:
    """The verdicts over one of the domains, computed once: without bias for every second."""
    head = head_with_every_kind(classes=15)
    return verified(head if number % 2 else am.Head(head.weight), EVIDENCE_DOMAINS[number])


@functools.cache
def checker_of(number: int) -> am.Checker:
    result = settled(number)
    return am.Checker(result.head, result.domain, centre=result.centre)


NUMBERS = range(len(EVIDENCE_DOMAINS))
every_domain = pytest.mark.parametrize("number", NUMBERS, ids=lambda number: str(EVIDENCE_DOMAINS[number]))
Mutation = Callable[[am.Certificate, int, int], am.Certificate]


def changed(certificate: am.Certificate, **fields: object) -> am.Certificate:
    """The certificate with some fields replaced."""
    old = {name: getattr(certificate, name) for name in ("classes", "weights", "basis", "coordinates")}
    return am.Certificate(**{**old, **fields})


def with_weight(certificate: am.Certificate, value: float, entry: int = 0) -> am.Certificate:
    weights = np.array(certificate.weights)
    weights[entry] = value
    return changed(certificate, weights=weights)


def with_id(certificate: am.Certificate, class_id: int) -> am.Certificate:
    ids = np.array(certificate.classes)
    ids[0] = class_id
    return changed(certificate, classes=ids)


def twice(certificate: am.Certificate) -> am.Certificate:
    ids, weights = certificate.classes, certificate.weights
    return changed(certificate, classes=np.append(ids, ids[0]), weights=np.append(weights, weights[0]))


def with_self(certificate: am.Certificate, class_id: int) -> am.Certificate:
    ids, weights = certificate.classes, certificate.weights
    return changed(certificate, classes=np.append(ids, class_id), weights=np.append(weights, 1.0))


# (certificate, class, number of classes) → a certificate that is none
MALFORMED: dict[str, Mutation] = {
    "a negative weight": lambda lam, c, n: with_weight(lam, -0.5),
    "a weight barely negative": lambda lam, c, n: with_weight(lam, -5e-324),
    "a weight NaN": lambda lam, c, n: with_weight(lam, math.nan),
    "a weight infinite": lambda lam, c, n: with_weight(lam, INF),
    "a weight of minus infinity": lambda lam, c, n: with_weight(lam, -INF),
    "all weights zero": lambda lam, c, n: changed(lam, weights=0 * lam.weights),
    "weights whose sum overflows": lambda lam, c, n: changed(
        lam, classes=np.array([i for i in range(n) if i != c]), weights=np.full(n - 1, 1e308)
    ),
    "the class itself in place of another": lambda lam, c, n: with_id(lam, c),
    "the class itself besides the others": lambda lam, c, n: with_self(lam, c),
    "the class itself alone": lambda lam, c, n: am.Certificate(np.array([c]), np.ones(1)),
    "a class out of range": lambda lam, c, n: with_id(lam, n),
    "a class far out of range": lambda lam, c, n: with_id(lam, 2**40),
    "a negative class": lambda lam, c, n: with_id(lam, -1),
    "the class itself by a negative number": lambda lam, c, n: with_id(lam, c - n),
    "a class twice": lambda lam, c, n: twice(lam),
    "no classes": lambda lam, c, n: changed(lam, classes=lam.classes[:0], weights=lam.weights[:0]),
    "more weights than classes": lambda lam, c, n: changed(lam, weights=np.append(lam.weights, 1.0)),
    "fewer weights than classes": lambda lam, c, n: changed(lam, weights=lam.weights[:-1]),
    "a basis of more classes than there are": lambda lam, c, n: changed(lam, basis=len(lam.classes) + 1),
    "a negative basis": lambda lam, c, n: changed(lam, basis=-1),
    "a coordinate out of range": lambda lam, c, n: changed(
        lam, basis=len(lam.classes), coordinates=np.array([3])
    ),
    "a negative coordinate": lambda lam, c, n: changed(
        lam, basis=len(lam.classes), coordinates=np.array([-1])
    ),
}

# Well-formed changes: they may happen to prove something, but then rationals must agree.
ALTERED: dict[str, Mutation] = {
    "a weight doubled": lambda lam, c, n: with_weight(lam, 2 * lam.weights[0]),
    "a weight an ulp higher": lambda lam, c, n: with_weight(lam, np.nextafter(lam.weights[0], INF)),
    "a weight an ulp lower": lambda lam, c, n: with_weight(lam, np.nextafter(lam.weights[0], 0)),
    "the last weight zero": lambda lam, c, n: with_weight(lam, 0.0, -1),
    "the first weight zero": lambda lam, c, n: with_weight(lam, 0.0),
    "a weight tiny": lambda lam, c, n: with_weight(lam, 5e-324),
    "a weight huge": lambda lam, c, n: with_weight(lam, 1e300),
    "a weight almost infinite": lambda lam, c, n: with_weight(lam, 1.7e308),
    "all weights equal": lambda lam, c, n: changed(lam, weights=np.ones(len(lam.weights))),
    "all weights scaled": lambda lam, c, n: changed(lam, weights=lam.weights * 2.0**-40),
    "all weights tiny": lambda lam, c, n: changed(lam, weights=lam.weights * 2.0**-1060 + 5e-324),
    "another class": lambda lam, c, n: with_id(
        lam, next(i for i in range(n) if i != c and i not in lam.classes)
    ),
    "classes in another order": lambda lam, c, n: changed(lam, classes=np.roll(lam.classes, 1)),
    "classes and weights in another order": lambda lam, c, n: changed(
        lam, classes=np.roll(lam.classes, 1), weights=np.roll(lam.weights, 1)
    ),
    "one class dropped": lambda lam, c, n: changed(
        lam, classes=lam.classes[1:] if len(lam.classes) > 1 else lam.classes,
        weights=lam.weights[1:] if len(lam.classes) > 1 else lam.weights,
        basis=min(lam.basis, max(1, len(lam.classes) - 1)),
    ),
    "a uniform mixture of all others": lambda lam, c, n: am.Certificate(
        np.array([i for i in range(n) if i != c]), np.ones(n - 1)
    ),
    "no basis": lambda lam, c, n: changed(lam, basis=0, coordinates=None),
    "a basis of all classes": lambda lam, c, n: changed(lam, basis=len(lam.classes)),
    "a basis of one class": lambda lam, c, n: changed(lam, basis=1),
    "a smaller basis": lambda lam, c, n: changed(lam, basis=max(0, lam.basis - 1)),
    "one coordinate": lambda lam, c, n: changed(lam, coordinates=np.array([1])),
    "a coordinate twice": lambda lam, c, n: changed(lam, coordinates=np.array([0, 0])),
    "no coordinates": lambda lam, c, n: changed(lam, coordinates=np.array([], np.intp)),
    "every coordinate": lambda lam, c, n: changed(lam, coordinates=np.arange(3)),
}  # fmt: skip


def certificates(result: am.Result) -> list[tuple[int, am.Certificate]]:
    return [(v.class_id, v.certificate) for v in result.verdicts if v.certificate is not None]


def some_certificates(result: am.Result) -> list[tuple[int, am.Certificate]]:
    """Two of each form: so many classes, so many of them solved for, in all features or in some."""
    forms: dict[tuple[int, int, bool], list[tuple[int, am.Certificate]]] = {}
    for class_id, lam in certificates(result):
        form = (len(lam.classes), lam.basis, lam.coordinates is None)
        forms.setdefault(form, []).append((class_id, lam))
    return [one for form in forms.values() for one in form[:2]]


@pytest.mark.parametrize("mutate", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_certificate_proves_nothing(mutate: Mutation) -> None:
    for number in NUMBERS:
        result, checker = settled(number), checker_of(number)
        for class_id, certificate in certificates(result):
            broken = mutate(certificate, class_id, result.head.classes)
            where = (result.domain, class_id)
            assert checker.bound(class_id, broken).upper == INF, where
            assert not checker.proves(class_id, broken, 1e300), where
            assert checker.bounds(np.array([class_id]), broken)[0] == INF, where


@pytest.mark.parametrize("mutate", ALTERED.values(), ids=ALTERED)
@every_domain
def test_an_altered_certificate_proves_only_what_rationals_confirm(number: int, mutate: Mutation) -> None:
    result, checker = settled(number), checker_of(number)
    head, domain = result.head, result.domain
    for class_id, certificate in some_certificates(result):
        altered = mutate(certificate, class_id, head.classes)
        by_float = float(checker.bounds(np.array([class_id]), altered)[0])
        for upper in {checker.bound(class_id, altered).upper, by_float} - {INF}:
            assert certificate_proves(head, domain, class_id, altered, Fraction(float(upper)))
        proven = checker.proves(class_id, altered, 0.0)
        confirmed = certificate_proves(head, domain, class_id, altered, Fraction(0))
        # Of a basis with many solutions rationals look at all, the checker only near the stored weights.
        has_many = altered.basis > head.features + 1 and altered.coordinates is None
        assert proven <= confirmed if has_many else proven == confirmed


@every_domain
def test_a_certificate_of_one_class_proves_for_another_only_what_rationals_confirm(number: int) -> None:
    result, checker = settled(number), checker_of(number)
    head, domain = result.head, result.domain
    for (_, certificate), class_id in itertools.product(certificates(result)[::4], range(head.classes)):
        proven = checker.proves(class_id, certificate, 0.0)
        assert proven == certificate_proves(head, domain, class_id, certificate, Fraction(0))


@every_domain
def test_no_certificate_proves_less_than_a_witness_reaches(number: int) -> None:
    result, checker = settled(number), checker_of(number)
    for verdict in result.argmaxable:
        for _, certificate in certificates(result):
            assert not checker.proves(verdict.class_id, certificate, np.nextafter(verdict.lower, -INF))


def witnesses(result: am.Result) -> list[tuple[int, am.OwnDirection | am.Point]]:
    return [(v.class_id, v.witness) for v in result.verdicts if v.witness is not None]


PointMutation = Callable[[NDArray[np.float64]], NDArray[np.float64]]
NOWHERE: dict[str, PointMutation] = {
    "NaN in one feature": lambda z: np.append(z[:-1], math.nan),
    "infinite in one feature": lambda z: np.append(INF, z[1:]),
    "minus infinity in one feature": lambda z: np.append(-INF, z[1:]),
}
MOVED: dict[str, PointMutation] = {
    "reflected": lambda z: -z,
    "at zero": lambda z: 0 * z,
    "rolled": lambda z: np.roll(z, 1),
    "halved": lambda z: z / 2,
    "doubled": lambda z: 2 * z,
    "far away": lambda z: 1e30 * z,
    "nearly at zero": lambda z: 1e-300 * z,
    "an ulp outwards": lambda z: np.nextafter(z, np.copysign(INF, z)),
    "raised by a constant": lambda z: z + 1.0,
}


@pytest.mark.parametrize("move", NOWHERE.values(), ids=NOWHERE)
@every_domain
def test_a_point_that_is_none_proves_nothing(number: int, move: PointMutation) -> None:
    result, checker = settled(number), checker_of(number)
    for class_id, witness in witnesses(result):
        point = move(checker.point(class_id, witness))
        assert checker.gaps(np.array([class_id]), point[None]).lower[0] == -INF


def assert_proves_only_the_truth(number: int, class_id: int, point: NDArray[np.float64]) -> None:
    checker = checker_of(number)
    truth = exact_gap(checker.head, checker.domain, class_id, point)
    lower = float(checker.gaps(np.array([class_id]), point[None]).lower[0])
    where = (checker.domain, class_id)
    if truth is None:
        assert lower == -INF, where
    else:
        assert lower <= truth, where
        assert (lower > 0) == (truth >= SMALLEST), where


@pytest.mark.parametrize("move", MOVED.values(), ids=MOVED)
def test_a_moved_point_proves_only_what_rationals_confirm(move: PointMutation) -> None:
    for number in NUMBERS:
        for class_id, witness in witnesses(settled(number)):
            point = move(checker_of(number).point(class_id, witness))
            assert_proves_only_the_truth(number, class_id, point)


@every_domain
def test_a_witness_of_one_class_proves_nothing_for_any_other(number: int) -> None:
    result, checker = settled(number), checker_of(number)
    everyone = np.arange(result.head.classes)
    for verdict in result.argmaxable:
        point = checker.point(verdict.class_id, verdict.witness)
        lower = checker.gaps(everyone, np.tile(point, (len(everyone), 1))).lower
        assert list(np.flatnonzero(lower > 0)) == [verdict.class_id]


@pytest.mark.parametrize("exponent", [-2000, -1074, -60, -3, -1, 1, 3, 60, 1023, 2000])
def test_an_own_direction_with_another_exponent_proves_only_what_rationals_confirm(exponent: int) -> None:
    for number in NUMBERS:
        checker = checker_of(number)
        for class_id in range(checker.head.classes):
            point = checker.point(class_id, am.OwnDirection(exponent))
            assert_proves_only_the_truth(number, class_id, point)
