"""Proofs that serve other classes: as they are, or with other weights on the same rows."""

from __future__ import annotations

import numpy as np
import pytest

import argmaxable as am
from argmaxable.check.checker import Checker
from argmaxable.compute.coordinates import coordinates_of
from argmaxable.core.verdict import Certificate
from argmaxable.prove.transfer import reweighted, transfer

# Eight corners around two classes inside and one outside; biases of the inner ones a little lower.
ANGLES = np.arange(8) * np.pi / 4
CORNERS = np.arange(8)
PROVEN, NEAR, OUTSIDE, HIGH = 8, 9, 10, 11
INNER = np.array([[0, 0], [0.2, 0.1], [2, 0.1], [0.1, 0]])
ROWS = np.vstack([np.column_stack([np.cos(ANGLES), np.sin(ANGLES)]), INNER])
HEAD = am.Head(ROWS, np.array([0.0] * 8 + [-0.1, -0.1, -0.1, 0.2]))
OPEN = np.array([NEAR, OUTSIDE, HIGH])
PROOF = Certificate(CORNERS, np.full(8, 1 / 8))


def checker() -> Checker:
    return Checker(HEAD, am.Box(-100, 100))


def test_other_weights_on_a_proofs_rows_prove_a_class_nearby() -> None:
    check = checker()
    coordinates = coordinates_of(check.prepared, check.domain)
    assert check.bound(PROVEN, PROOF).upper < 0
    assert transfer(coordinates, check, PROOF, OPEN)[0].tolist() == []  # too far for the same weights
    found = list(reweighted(coordinates, check, PROOF, OPEN))
    # Neither the class outside the hull nor the one whose bias is too high.
    assert [class_id for class_id, _, _ in found] == [NEAR]
    for class_id, bound, certificate in found:
        assert bound.upper <= 0
        assert checker().proves_in_rationals(class_id, certificate)
        assert certificate.classes.tolist() == CORNERS.tolist()


def test_weights_are_changed_only_where_the_domain_is_bounded() -> None:
    check = Checker(HEAD, am.Box(0.0, np.inf))
    coordinates = coordinates_of(check.prepared, check.domain)
    assert list(reweighted(coordinates, check, PROOF, OPEN)) == []


def test_a_row_of_the_proof_is_not_tried() -> None:
    check = checker()
    coordinates = coordinates_of(check.prepared, check.domain)
    assert list(reweighted(coordinates, check, PROOF, CORNERS)) == []


@pytest.mark.parametrize("domain", [am.Box(-100, 100), am.Box(-0.5, 2), am.Box(1, 3), am.Ball(10)], ids=str)
def test_the_first_features_rule_out_no_class_that_a_proof_settles(domain: am.Domain) -> None:
    rng = np.random.default_rng(8)
    far, near = rng.normal(size=(20, 20)), rng.normal(size=(200, 20)) * np.geomspace(1e-5, 1, 200)[:, None]
    head = am.Head(np.vstack([far, -far, near]), np.concatenate([np.full(40, 3.0), rng.normal(size=200)]))
    proof, classes, check = Certificate(np.arange(40), np.ones(40)), np.arange(40, 240), Checker(head, domain)
    moved, _ = transfer(coordinates_of(check.prepared, domain), check, proof, classes)
    assert moved.tolist() == classes[check.bounds(classes, proof) <= 0].tolist()
    assert 0 < len(moved) < len(classes)
