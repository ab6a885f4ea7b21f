"""Top-p: who can enter the nucleus, who never can, and that nothing is said without proof."""

from __future__ import annotations

import numpy as np
import pytest
from convex_truth import BOUNDED, DOMAINS, probabilities, random_head, random_points

import argmaxable as am
from argmaxable.check.probabilities import CeilingChecker


def mass_above(p: np.ndarray) -> np.ndarray:
    """For softmaxes (n × classes): the mass of the classes strictly above each, by definition."""
    order = np.argsort(-p, axis=1, kind="stable")
    ranked = np.take_along_axis(p, order, axis=1)
    before = np.cumsum(ranked, axis=1) - ranked
    mass = np.empty_like(p)
    np.put_along_axis(mass, order, before, axis=1)
    return mass


@pytest.mark.parametrize("top_p", [0.05, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
def test_at_its_point_a_class_is_in_the_nucleus(domain: am.Domain, top_p: float) -> None:
    head = random_head(0)
    members = am.nucleus(head, am.ceilings(head, domain), top_p)
    assert members.having(am.Entry.YES)
    for member in members.having(am.Entry.YES):
        assert member.point is not None
        x = member.point[None]
        if isinstance(domain, am.LayerNorm):
            x = x - x.mean()
        if isinstance(domain, am.RMSNorm | am.LayerNorm):
            x = x * domain.gains(3) + domain.shifts(3)
        assert mass_above(probabilities(head, x))[0, member.class_id] < top_p


def test_every_argmaxable_class_enters_every_nucleus_that_its_ceiling_point_wins() -> None:
    head = random_head(1)
    found = am.ceilings(head)
    sure = {ceiling.class_id for ceiling in found.classes if ceiling.lower > 0.5}
    assert sure
    members = am.nucleus(head, found, 1e-6)
    assert sure <= {member.class_id for member in members.having(am.Entry.YES)}


@pytest.mark.parametrize("domain", BOUNDED.values(), ids=BOUNDED)
def test_a_class_that_never_enters_is_outside_at_random_inputs(domain: am.Domain) -> None:
    # A bias of −20 keeps class 0 far below everybody.
    rows = random_head(2).rows(slice(None))
    rows *= 0.1 if domain != BOUNDED["wide box"] else 0.001
    head = am.Head(rows, [-20.0] + [0.0] * 8)
    members = am.nucleus(head, am.ceilings(head, domain), 0.9)
    assert [member.class_id for member in members.having(am.Entry.NO)] == [0]
    mass = mass_above(probabilities(head, random_points(domain, 50_000, 3, 3)))
    assert mass[:, 0].min() >= 0.9


def test_ties_count_as_above() -> None:
    head = am.Head(np.zeros((4, 2)))
    bounds = CeilingChecker(am.Checker(head, am.Box(-1.0, 1.0)))
    assert bounds.mass_above(np.array([0]), np.zeros((1, 2)))[0] == pytest.approx(0.75)


def test_the_mass_above_is_never_understated() -> None:
    head, domain = random_head(3), am.Ball(2.0)
    bounds = CeilingChecker(am.Checker(head, domain))
    x = random_points(domain, 500, 3, 4) * (1 - 1e-9)  # inside in spite of rounding
    truth = mass_above(probabilities(head, x))
    for class_id in range(head.classes):
        found = bounds.mass_above(np.full(len(x), class_id), x)
        assert (found >= truth[:, class_id] - 1e-13).all()
        assert (found <= truth[:, class_id] + 1e-9).all()


def test_a_point_outside_the_domain_proves_no_entry() -> None:
    bounds = CeilingChecker(am.Checker(random_head(4), am.Box(-1.0, 1.0)))
    assert bounds.mass_above(np.array([0]), np.full((1, 3), 1.5))[0] == 1.0


def test_what_is_not_proven_is_unknown() -> None:
    # Class 0 is in the middle of the others: never above all of them, yet not kept out by its ceiling.
    head = am.Head([[0.0, 0.0], [1.0, 0.0], [-1.0, 1.0], [-1.0, -1.0]], [-0.1, 0.0, 0.0, 0.0])
    members = am.nucleus(head, am.ceilings(head), 0.2)
    assert members.members[0].entry is am.Entry.UNKNOWN
    assert members.members[0].point is None


def test_the_only_class_is_the_whole_nucleus() -> None:
    head = am.Head(np.ones((1, 2)))
    (member,) = am.nucleus(head, am.ceilings(head), 0.5).members
    assert (member.entry, member.mass) == (am.Entry.YES, 0.0)


def test_a_witness_of_the_verdict_helps_where_the_ceiling_point_does_not() -> None:
    head = random_head(6, classes=40)
    found = am.ceilings(head)
    verdicts = am.verify(head, engine=am.Engine(workers=1)).verdicts
    won = {verdict.class_id for verdict in verdicts if verdict.status is am.Status.ARGMAXABLE}
    alone, helped = am.nucleus(head, found, 1e-9), am.nucleus(head, found, 1e-9, verdicts=verdicts)
    assert won == {member.class_id for member in helped.having(am.Entry.YES)}
    assert len(alone.having(am.Entry.YES)) <= len(won)


@pytest.mark.parametrize("top_p", [0.0, -0.5, 1.5, np.nan])
def test_a_share_that_is_none_is_refused(top_p: float) -> None:
    head = random_head(0)
    with pytest.raises(am.InputError, match="top-p"):
        am.nucleus(head, am.ceilings(head), top_p)


def test_ceilings_of_another_head_are_refused() -> None:
    with pytest.raises(am.InputError, match="another head"):
        am.nucleus(random_head(1), am.ceilings(random_head(0)), 0.9)
