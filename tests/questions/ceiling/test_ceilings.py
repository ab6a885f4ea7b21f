"""Ceilings: as independent solvers find them, never exceeded, and reached by their own points."""

from __future__ import annotations

import functools
import math

import flint
import numpy as np
import pytest
from convex_truth import (
    BOUNDED,
    DOMAINS,
    ENDLESS,
    exact_probability,
    largest_probability,
    probabilities,
    random_head,
    random_points,
)

import argmaxable as am
from argmaxable.check.probabilities import CeilingChecker

# Rounding of a softmax in float64.
FLOAT = 1e-12


def assert_reached(head: am.Head, found: am.Ceilings) -> None:
    """Every lower end is reached at its point, in arithmetic of 200 bits."""
    for ceiling in found.classes:
        if ceiling.lower > 0:
            assert ceiling.point is not None
            true = exact_probability(head, found.domain, ceiling.class_id, ceiling.point, found.temperature)
            with flint.ctx.workprec(200):
                assert true >= flint.arb(ceiling.lower), ceiling


@functools.cache
def ceilings_of(seed: int, name: str) -> am.Ceilings:
    """The ceilings of a random head over one of the domains, which several tests only read."""
    return am.ceilings(random_head(seed), DOMAINS[name])


# ---------------------------------------------------------------------- truth


@pytest.mark.parametrize("temperature", [1.0, 0.3, 4.0])
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("domain", BOUNDED.values(), ids=BOUNDED)
def test_ceilings_are_those_of_an_independent_solver(
    domain: am.Domain, bias: bool, temperature: float
) -> None:
    head = random_head(1, bias=bias)
    found = am.ceilings(head, domain, temperature=temperature)
    for ceiling in found.classes:
        truth = largest_probability(head, domain, ceiling.class_id, temperature)
        assert ceiling.lower - 1e-6 <= truth <= ceiling.upper + 1e-6


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("domain", ENDLESS.values(), ids=ENDLESS)
def test_ceilings_of_endless_domains_are_those_of_an_independent_solver(
    domain: am.Domain, bias: bool
) -> None:
    head = random_head(1, bias=bias)
    found = am.ceilings(head, domain)
    for ceiling in found.classes:
        truth = largest_probability(head, domain, ceiling.class_id)
        assert ceiling.lower - 1e-5 <= truth <= ceiling.upper + 1e-5


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", DOMAINS)
def test_both_ends_are_within_the_tolerance(name: str, seed: int) -> None:
    found = ceilings_of(seed, name)
    assert found.is_complete
    assert found.open == ()
    assert found.widest <= found.tolerance == 1e-6


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", DOMAINS)
def test_lower_ends_are_reached_by_their_points(name: str, seed: int) -> None:
    assert_reached(random_head(seed), ceilings_of(seed, name))


@pytest.mark.parametrize("name", ["wide box", "ball", "LayerNorm", "ReLU"])
def test_a_million_random_inputs_exceed_no_ceiling(name: str) -> None:
    domain = DOMAINS[name]
    head = random_head(2)
    upper = np.array([ceiling.upper for ceiling in ceilings_of(2, name).classes])
    for seed in range(10):
        x = random_points(domain, 100_000, head.features, seed)
        assert (probabilities(head, x).max(axis=0) <= upper + FLOAT).all()


@pytest.mark.parametrize("name", BOUNDED)
def test_gradient_ascent_from_random_starts_exceeds_no_ceiling(name: str) -> None:
    head, domain = random_head(3), BOUNDED[name]
    rows = head.rows(slice(None))
    for ceiling in ceilings_of(3, name).classes:
        z = random_points(_in_z(domain), 200, head.features, ceiling.class_id)
        for step in np.geomspace(3.0, 1e-4, 300):
            p = probabilities(head, _place(domain, z))
            slope = _gain(domain, head.features) * (rows[ceiling.class_id] - p @ rows)
            z = _project(domain, z + step * slope)
        best = probabilities(head, _place(domain, z))[:, ceiling.class_id].max()
        assert best <= ceiling.upper + FLOAT
        assert best >= ceiling.upper - 1e-3  # the ascent does get there: the test has teeth


def _in_z(domain: am.Domain) -> am.Domain:
    return am.Ball(math.sqrt(3)) if isinstance(domain, am.RMSNorm | am.LayerNorm) else domain


def _gain(domain: am.Domain, features: int) -> np.ndarray:
    return domain.gains(features) if isinstance(domain, am.RMSNorm | am.LayerNorm) else np.ones(features)


def _place(domain: am.Domain, z: np.ndarray) -> np.ndarray:
    if isinstance(domain, am.RMSNorm | am.LayerNorm):
        return z * domain.gains(z.shape[1]) + domain.shifts(z.shape[1])
    return z


def _project(domain: am.Domain, z: np.ndarray) -> np.ndarray:
    if isinstance(domain, am.Box):
        return np.clip(z, domain.lo, domain.hi)
    if isinstance(domain, am.LayerNorm):
        z = z - z.mean(axis=1, keepdims=True)
    radius = domain.radius if isinstance(domain, am.Ball) else math.sqrt(z.shape[1])
    return z * np.minimum(1.0, radius / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-300))


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
def test_any_tangent_is_an_upper_bound_on_what_is_reached(domain: am.Domain) -> None:
    head = random_head(5)
    bounds = CeilingChecker(am.Checker(head, domain), temperature=0.7)
    ids = np.repeat(np.arange(head.classes), 40)
    z = random_points(_in_z(domain), len(ids), head.features, 7)
    reached, allowed = bounds.reached(ids, z), bounds.allowed(ids, z)
    for class_id in range(head.classes):
        assert allowed[ids == class_id].min() >= reached[ids == class_id].max()


@pytest.mark.parametrize("size", [(20, 8), (60, 12)])
def test_larger_heads_meet_the_tolerance_too(size: tuple[int, int]) -> None:
    head = random_head(11, *size)
    for domain in (am.Box(-1.0, 1.0), am.Ball(3.0), am.Everywhere(), am.Box(0.0, np.inf)):
        found = am.ceilings(head, domain)
        assert found.open == (), domain
        assert_reached(head, found)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
def test_few_classes_meet_the_tolerance_too(domain: am.Domain, classes: int) -> None:
    head = random_head(20, classes)
    found = am.ceilings(head, domain)
    assert found.open == ()
    for ceiling in found.classes:
        truth = largest_probability(head, domain, ceiling.class_id)
        assert ceiling.lower - 1e-5 <= truth <= ceiling.upper + 1e-5


@pytest.mark.parametrize("temperature", [1e-3, 1e-2, 1e2])
@pytest.mark.parametrize("domain", BOUNDED.values(), ids=BOUNDED)
def test_cold_and_hot_softmaxes_meet_the_tolerance_too(domain: am.Domain, temperature: float) -> None:
    head = random_head(21)
    found = am.ceilings(head, domain, temperature=temperature)
    assert found.open == ()
    assert_reached(head, found)


# ---------------------------------------------------------------------- theorems


def test_an_unargmaxable_class_never_has_more_than_one_half() -> None:
    head = random_head(4, classes=30)
    unargmaxable = {verdict.class_id for verdict in am.verify(head, engine=am.Engine(workers=1)).unargmaxable}
    assert unargmaxable
    for ceiling in am.ceilings(head).classes:
        if ceiling.class_id in unargmaxable:
            assert ceiling.upper <= 0.5


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
@pytest.mark.parametrize("copies", [2, 3, 5])
def test_one_of_k_identical_classes_never_has_more_than_one_kth(domain: am.Domain, copies: int) -> None:
    rng = np.random.default_rng(copies)
    weight = np.vstack([np.repeat(rng.normal(size=(1, 3)), copies, axis=0), rng.normal(size=(4, 3))])
    found = am.ceilings(am.Head(weight), domain)
    for ceiling in found.classes[:copies]:
        assert ceiling.upper <= math.nextafter(1 / copies, 1)
    assert found.open == ()


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
def test_the_only_class_is_always_certain(domain: am.Domain) -> None:
    (ceiling,) = am.ceilings(am.Head(np.ones((1, 3))), domain).classes
    assert (ceiling.lower, ceiling.upper) == (1.0, 1.0)


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
def test_rows_of_zeros_share_the_probability_evenly(domain: am.Domain) -> None:
    found = am.ceilings(am.Head(np.zeros((4, 3))), domain)
    for ceiling in found.classes:
        assert ceiling.lower <= 0.25 <= ceiling.upper
        assert ceiling.gap < 1e-12


def test_two_classes_over_an_interval_have_a_sigmoid_for_a_ceiling() -> None:
    found = am.ceilings(am.Head([[1.0], [0.0]]), am.Box(-2.0, 3.0))
    for ceiling, edge in zip(found.classes, (3.0, 2.0), strict=True):
        assert ceiling.lower <= 1 / (1 + math.exp(-edge)) <= ceiling.upper


def test_a_class_in_a_bounded_cell_has_a_ceiling_below_1_even_everywhere() -> None:
    # Argmaxable, but only next to 0: scores −x, 1 and x give it e/(e + 2) at most.
    found = am.ceilings(am.Head([[-1.0], [0.0], [1.0]], [0.0, 1.0, 0.0]), am.Everywhere())
    middle = found.classes[1]
    assert middle.lower <= math.e / (math.e + 2) <= middle.upper
    assert middle.gap <= 1e-6


def test_a_ceiling_that_is_met_only_at_infinity_is_proven_from_above() -> None:
    # Far to the right class 0 and 1 share everything: 1/2 is never reached, and never exceeded.
    found = am.ceilings(am.Head([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]), am.Everywhere())
    assert found.classes[0].lower < 0.5
    assert found.classes[0].upper <= math.nextafter(0.5, 1)
    assert found.classes[0].gap <= 1e-6


def test_a_higher_temperature_lowers_no_ceiling_of_a_class_that_never_wins() -> None:
    head = random_head(6, classes=30)
    unargmaxable = [
        verdict.class_id
        for verdict in am.verify(head, am.Ball(4.0), engine=am.Engine(workers=1)).unargmaxable
    ]
    cold, warm = (am.ceilings(head, am.Ball(4.0), only=unargmaxable, temperature=t) for t in (0.5, 1.0))
    for low, high in zip(cold.classes, warm.classes, strict=True):
        assert low.lower <= high.upper


def test_a_larger_domain_lowers_no_ceiling() -> None:
    head = random_head(7)
    small, large = am.ceilings(head, am.Box(-1.0, 1.0)), am.ceilings(head, am.Box(-2.0, 2.0))
    for inner, outer in zip(small.classes, large.classes, strict=True):
        assert inner.lower <= outer.upper


def test_a_vector_added_to_every_row_changes_nothing() -> None:
    head = random_head(8)
    moved = am.Head(np.add(head.rows(slice(None)), [4.0, -8.0, 2.0]), head.bias)
    for one, other in zip(am.ceilings(head).classes, am.ceilings(moved).classes, strict=True):
        assert max(one.lower, other.lower) <= min(one.upper, other.upper)


# ---------------------------------------------------------------------- extremes


@pytest.mark.parametrize("size", [1e-30, 1e-8, 1e6, 1e30, 1e150, 1e300])
def test_extreme_weights_give_true_intervals(size: float) -> None:
    rows = random_head(9).rows(slice(None))
    head = am.Head(rows * size)
    for domain in (am.Box(-1.0, 1.0), am.Ball(1.0), am.Everywhere()):
        found = am.ceilings(head, domain)
        assert_reached(head, found)
        with np.errstate(over="ignore", invalid="ignore"):
            p = probabilities(head, random_points(domain, 2000, 3, 1))
        best = np.where(np.isfinite(p), p, 0).max(axis=0)
        assert all(best[c.class_id] <= c.upper + FLOAT for c in found.classes)


def test_huge_logits_make_the_winner_certain_and_the_loser_impossible() -> None:
    head = am.Head([[1e8, 0.0], [-1e8, 0.0], [0.0, 1e8], [0.0, -1e8], [1.0, 1.0]])
    found = am.ceilings(head, am.Box([0.5, -1.0], [1.0, 1.0]))
    assert found.classes[0].lower == pytest.approx(1.0)
    assert found.classes[1].upper == 0.0 or found.classes[1].upper < 1e-20
    assert found.open == ()


def test_a_feature_that_the_domain_fixes_is_taken_into_account() -> None:
    found = am.ceilings(am.Head([[1.0, 1.0], [0.0, 0.0]]), am.Box([0.0, 2.0], [1.0, 2.0]))
    assert found.classes[0].lower <= 1 / (1 + math.exp(-3)) <= found.classes[0].upper
    assert found.open == ()


def test_a_domain_of_a_single_point_gives_its_softmax() -> None:
    head = random_head(10)
    x = np.array([0.5, -1.0, 2.0])
    found = am.ceilings(head, am.Box(x, x))
    truth = probabilities(head, x[None])[0]
    for ceiling in found.classes:
        assert ceiling.lower <= truth[ceiling.class_id] + FLOAT
        assert ceiling.upper >= truth[ceiling.class_id] - FLOAT
    assert found.open == ()


# ---------------------------------------------------------------------- work


def test_chosen_classes_alone_get_a_ceiling() -> None:
    found = am.ceilings(random_head(0), only=[5, 2, 5])
    assert [ceiling.class_id for ceiling in found.classes] == [2, 5]


def test_an_interruption_keeps_what_is_proven() -> None:
    head = random_head(12, classes=80)

    def interrupt(progress: am.Progress) -> None:
        if progress.done > 32:
            raise KeyboardInterrupt

    found = am.ceilings(head, am.Ball(2.0), progress=interrupt)
    assert not found.is_complete
    assert 0 < len(found.open) < 80
    assert_reached(head, found)


def test_a_time_limit_keeps_what_is_proven() -> None:
    head = random_head(13, classes=80)
    found = am.ceilings(head, am.Ball(2.0), time_limit=1e-9)
    assert not found.is_complete
    assert all(0 <= ceiling.lower <= ceiling.upper == 1 for ceiling in found.classes)


def test_progress_ends_with_all_classes() -> None:
    seen: list[tuple[int, int]] = []
    am.ceilings(
        random_head(14, classes=50), am.Ball(2.0), progress=lambda told: seen.append((told.done, told.total))
    )
    assert seen[0] == (0, 50)
    assert seen[-1] == (50, 50)


def test_ceilings_are_sorted_from_the_lowest() -> None:
    uppers = [ceiling.upper for ceiling in am.ceilings(random_head(15), am.Ball(1.0)).lowest()]
    assert uppers == sorted(uppers)


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.inf, math.nan])
def test_a_temperature_that_is_none_is_refused(temperature: float) -> None:
    with pytest.raises(am.InputError, match="temperature"):
        am.ceilings(random_head(0), temperature=temperature)


@pytest.mark.parametrize("tolerance", [0.0, 1.0, math.nan])
def test_a_tolerance_that_is_none_is_refused(tolerance: float) -> None:
    with pytest.raises(am.InputError, match="tolerance"):
        am.ceilings(random_head(0), tolerance=tolerance)


def test_a_class_that_does_not_exist_is_refused() -> None:
    with pytest.raises(am.InputError, match="class 9 does not exist"):
        am.ceilings(random_head(0), only=[9])
