"""Every verdict's evidence, checked again from nothing but the head, the domain and the result."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from oracles import certificate_proves, exact_gap, exact_margin

import argmaxable as am

Statuses = list[am.Status]


def verified(head: am.Head, domain: am.Domain, *, seed: int = 0) -> am.Result:
    """The verdicts of all classes: each decided, each by evidence that holds."""
    result = am.verify(head, domain, engine=am.Engine(workers=1), seed=seed)
    assert [verdict.class_id for verdict in result.verdicts] == list(range(head.classes))
    assert not result.undecided, [(verdict.class_id, verdict.reason) for verdict in result.undecided]
    assert_evidence_holds(head, domain, result)
    return result


def statuses(result: am.Result) -> Statuses:
    """The statuses of all classes, in order."""
    return [verdict.status for verdict in result.verdicts]


def assert_evidence_holds(head: am.Head, domain: am.Domain, result: am.Result) -> None:
    """A fresh checker proves every status and every bound that the result reports."""
    checker = am.Checker(head, domain, centre=result.centre)
    _assert_lower_bounds_hold(checker, result)
    for verdict in result.verdicts:
        _assert_upper_bound_holds(checker, verdict)


def _assert_lower_bounds_hold(checker: am.Checker, result: am.Result) -> None:
    claimed = [verdict for verdict in result.verdicts if verdict.lower > -math.inf]
    assert all(verdict.witness is not None for verdict in claimed)
    assert all(verdict.lower > -math.inf for verdict in result.argmaxable)
    if not claimed:
        return
    ids = np.array([verdict.class_id for verdict in claimed])
    points = np.array([checker.point(verdict.class_id, verdict.witness) for verdict in claimed])
    proven = checker.gaps(ids, points, claims=np.array([verdict.lower for verdict in claimed])).lower
    for verdict, lower in zip(claimed, proven, strict=True):
        assert lower >= verdict.lower, (verdict, lower)
        assert verdict.status is not am.Status.ARGMAXABLE or lower > 0, verdict


def _assert_upper_bound_holds(checker: am.Checker, verdict: am.Verdict) -> None:
    if verdict.upper == math.inf:
        assert verdict.status is not am.Status.UNARGMAXABLE, verdict
        return
    proven = checker.bound(verdict.class_id, verdict.certificate).upper
    if verdict.status is am.Status.UNARGMAXABLE:
        assert verdict.upper <= 0, verdict
        assert proven <= 0, verdict
    # Where the bound is not enough, exact arithmetic may be.
    assert proven <= verdict.upper or checker.proves(verdict.class_id, verdict.certificate, verdict.upper), (
        verdict
    )


def assert_evidence_holds_exactly(head: am.Head, domain: am.Domain, result: am.Result) -> None:
    """The same by rationals, without the package's own checker: for small heads."""
    rebuilt = am.Checker(head, domain, centre=result.centre)
    for verdict in result.verdicts:
        class_id = verdict.class_id
        if -math.inf < verdict.lower < math.inf:
            gap = exact_gap(head, domain, class_id, rebuilt.point(class_id, verdict.witness))
            assert gap is not None
            assert gap >= Fraction(verdict.lower), verdict
        if verdict.upper < math.inf:
            upper = Fraction(float(verdict.upper))
            assert certificate_proves(head, domain, class_id, verdict.certificate, upper), verdict


def assert_agrees_exactly(head: am.Head, domain: am.Box | am.Everywhere) -> None:
    """Every verdict and bound over a box agrees with the rational simplex."""
    result = verified(head, domain)
    assert_evidence_holds_exactly(head, domain, result)
    for verdict in result.verdicts:
        margin = exact_margin(head, domain, verdict.class_id)
        assert (verdict.status is am.Status.ARGMAXABLE) == (margin > 0), (verdict, margin)
        assert verdict.lower <= margin <= verdict.upper, (verdict, margin)
