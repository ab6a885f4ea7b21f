"""Every set of at most k labels: proven by independence, by coherence or by trying all; refuted; open."""

from __future__ import annotations

import numpy as np

import argmaxable as am
from argmaxable.questions.sets.every import are_independent, is_incoherent

ONE = am.Engine(workers=1)


def test_independent_rows_prove_every_set_over_all_of_space() -> None:
    head = am.Head(np.random.default_rng(0).normal(size=(5, 5)), np.ones(5))
    found = am.every_set(head, am.Everywhere(), active=5, engine=ONE)
    assert (found.status, found.tried) == (am.EveryStatus.PROVEN, None)
    assert "independent" in found.why


def test_one_more_label_than_features_is_enough_for_the_top_k() -> None:
    head = am.Head(np.random.default_rng(0).normal(size=(4, 3)))
    assert are_independent(head, affinely=True)
    assert not are_independent(head, affinely=False)
    assert not are_independent(am.Head([[1.0, 0.0], [2.0, 0.0]]), affinely=False)


def test_nearly_orthogonal_rows_prove_small_sets() -> None:
    rows = np.vstack([np.eye(4), np.full((1, 4), 0.25) * [1, -1, 1, -1] + 0.4 * np.eye(4)[:1]])
    head, test = am.Head(rows * 4, np.full(5, -1.0)), am.SetTest("top")
    assert is_incoherent(am.Head(np.eye(6)[:, :6]), test, 3)
    assert not is_incoherent(head, test, 4)


def test_coherence_says_feasible_only_where_every_set_is() -> None:
    generator = np.random.default_rng(0)
    said = 0
    for _ in range(20):
        rows = np.eye(4)[generator.permutation(5) % 4] + 0.15 * generator.normal(size=(5, 4))
        head = am.Head(rows, np.full(5, -0.1))
        for kind in am.SetKind:
            if is_incoherent(head, am.SetTest(kind), 1):
                said += 1
                found = am.sets(head, am.Everywhere(), [[label] for label in range(5)], kind=kind, engine=ONE)
                assert len(found.having(am.Feasibility.FEASIBLE)) == 5
    assert said


def test_few_sets_are_all_tried() -> None:
    found = am.every_set(am.Head(np.eye(3), np.full(3, -0.5)), am.Box(-1.0, 1.0), active=2, engine=ONE)
    assert found.status is am.EveryStatus.PROVEN
    assert found.why == "all 7 sets were tried"


def test_a_refutation_is_a_set_with_proof() -> None:
    head = am.Head(np.random.default_rng(0).normal(size=(30, 2)))
    found = am.every_set(head, am.Everywhere(), active=3, tries=50, engine=ONE)
    assert found.status is am.EveryStatus.REFUTED
    assert found.refuted_by is not None
    assert found.refuted_by.certificate is not None


def test_what_is_not_all_tried_stays_open() -> None:
    generator = np.random.default_rng(0)
    head = am.Head(np.eye(12) + 0.01 * generator.normal(size=(12, 12)), np.full(12, -0.5))
    found = am.every_set(head, am.Box(-9.0, 9.0), active=3, tries=20, engine=ONE)
    assert (found.status, found.why) == (am.EveryStatus.OPEN, "20 of 299 sets were shown to come out")


def test_rows_whose_squares_underflow_are_not_taken_for_orthogonal() -> None:
    unit = np.sqrt(4.94e-324)
    centre, off = np.array([0.71, 0.71]) * unit, np.array([0.52, -0.52]) * unit
    head = am.Head(np.stack([centre, centre + off, centre - off]))  # the first is the mean of the other two
    assert not is_incoherent(head, am.SetTest("top"), 1)
    found = am.every_set(head, am.Everywhere(), active=1, kind="top", engine=ONE)
    assert found.status is am.EveryStatus.REFUTED
