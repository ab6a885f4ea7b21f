"""Classes settled side by side get what they would get alone, each with evidence that checks."""

from __future__ import annotations

import numpy as np
import pytest

import argmaxable as am
from argmaxable.check.checker import Checker
from argmaxable.core.progress import Deadline, TimeIsOver
from argmaxable.prove.attempt import Answer
from argmaxable.prove.prover import Prover
from argmaxable.run.engines.engine import settle_each


def clustered(*, has_bias: bool) -> am.Head:
    """Far rows around near ones, so that many classes are unargmaxable and many are not."""
    rng = np.random.default_rng(11)
    rows = rng.normal(size=(260, 12)) * np.where(np.arange(260) < 200, 1.0, 0.4)[:, None]
    return am.Head(rows, rng.normal(size=260) * 0.5 if has_bias else None)


def prover_of(head: am.Head, domain: am.Domain) -> Prover:
    return Prover(Checker(head, domain), ignored=np.empty(0, np.intp), tied=frozenset(), score=None, seed=0)


def status(answer: Answer, checker: Checker) -> str:
    """What the evidence proves, checked anew."""
    ids = np.array([answer.class_id])
    if answer.point is not None:
        assert checker.gaps(ids, answer.point[None]).lower[0] > 0
        return "argmaxable"
    assert answer.certificate is not None
    assert checker.bound(answer.class_id, answer.certificate).upper <= 0
    return "unargmaxable"


@pytest.mark.parametrize("domain", [am.Box(-100, 100), am.Box(0, float("inf")), am.Ball(10)], ids=str)
@pytest.mark.parametrize("has_bias", [True, False])
def test_classes_side_by_side_get_the_status_that_each_gets_alone(domain: am.Domain, has_bias: bool) -> None:
    head, classes = clustered(has_bias=has_bias), list(range(185, 215))
    together, alone = prover_of(head, domain), prover_of(head, domain)
    assert together.together > 1
    found = [report.settled.answer for report in settle_each(together, classes)]
    assert [answer.class_id for answer in found] == classes
    checker = Checker(head, domain)
    said = [status(answer, checker) for answer in found]
    assert said == [status(alone.settle(class_id).answer, checker) for class_id in classes]
    assert len(set(said)) == 2


def test_many_features_are_settled_one_class_at_a_time() -> None:
    rng = np.random.default_rng(3)
    assert prover_of(am.Head(rng.normal(size=(600, 300))), am.Box(-1, 1)).together == 1


def test_the_time_of_classes_side_by_side_is_shared_out() -> None:
    prover = prover_of(clustered(has_bias=True), am.Box(-100, 100))
    reports = list(settle_each(prover, list(range(prover.together))))
    assert len({report.seconds for report in reports}) == 1


def test_exact_simplex_ends_at_the_deadline() -> None:
    """Near-equal features are beyond the interior point: only rationals tell."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(40, 8)) * 10.0 ** np.linspace(-7, 7, 8)
    rows[0] = rng.dirichlet(np.ones(39)) @ rows[1:]
    checker = Checker(am.Head(rows), am.Everywhere())
    settings = {"ignored": np.empty(0, np.intp), "tied": frozenset[int](), "score": None, "seed": 0}
    assert Prover(checker, **settings).settle(0).method is am.Method.SIMPLEX
    with pytest.raises(TimeIsOver):
        Prover(checker, **settings, deadline=Deadline(0.0)).settle(0)
