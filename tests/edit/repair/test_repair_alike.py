"""Many classes with one and the same row: a few of them are solved first, and steps tell them apart."""

from __future__ import annotations

import numpy as np
import pytest

import argmaxable as am
from argmaxable.edit.repair import alike, raises
from argmaxable.edit.repair.alike import crowds_of
from argmaxable.edit.repair.raises import ACCURACY

ONE = am.Engine(workers=1)
BOX = am.Box(-10.0, 10.0)
OUTER, EQUAL = 36, 36


def crowded(features: int, equal: int = EQUAL) -> am.Head:
    """Rows around the origin, and at the origin many that are equal and too low to win."""
    generator = np.random.default_rng(features)
    outer = generator.standard_normal((OUTER, features))
    outer /= np.sqrt((outer * outer).sum(axis=1, keepdims=True))
    rows = np.concatenate([outer, np.zeros((equal, features))]).astype(np.float32)
    biases = np.concatenate([generator.uniform(0, 0.1, OUTER), np.full(equal, -0.05)]).astype(np.float32)
    return am.Head(rows, biases)


@pytest.fixture(autouse=True)
def _small_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alike, "_SAMPLE", EQUAL // 3)


def test_a_sample_and_the_rest_are_the_crowd_and_leaders_are_of_the_sample() -> None:
    small, large = np.arange(EQUAL // 2), np.arange(1000, 1500)
    (crowd,) = crowds_of([small, large])
    assert sorted([*crowd.sample, *crowd.rest]) == large.tolist()
    assert set(crowd.leaders) <= set(crowd.sample)
    assert len(crowd.leaders) == len(crowd.rest)


def test_an_expectation_gives_each_of_the_rest_what_its_leader_needs() -> None:
    (crowd,) = crowds_of([np.arange(200)])
    for cut, class_id, leader in zip(crowd.expectations(0.5), crowd.rest, crowd.leaders, strict=True):
        assert (cut.class_id, cut.constant) == (class_id, -0.5)
        assert (cut.classes.tolist(), cut.weights.tolist()) == ([leader], [1.0])


def test_at_a_level_each_of_the_rest_is_expected_to_be_as_high_as_its_leader() -> None:
    scores = np.random.default_rng(3).standard_normal(201)
    (crowd,) = crowds_of([np.arange(200)])
    for cut, class_id, leader in zip(
        crowd.at_level(scores).expectations(0.0), crowd.rest, crowd.leaders, strict=True
    ):
        assert scores[class_id] + cut.constant == pytest.approx(scores[leader])


@pytest.mark.parametrize("features", [6, 40])
def test_a_crowd_is_repaired_as_closely_as_few_classes(features: int) -> None:
    head = crowded(features)
    repaired = am.repair(head, BOX, margin=0.001, engine=ONE)
    assert len(repaired.chosen) == EQUAL
    assert repaired.margins.min() >= 0.001
    assert len(repaired.result.argmaxable) == head.classes
    assert repaired.reached is not None
    assert repaired.least is not None
    assert repaired.reached - repaired.least <= ACCURACY * repaired.reached


def test_rows_move_along_two_features_where_there_are_too_few_for_one_each() -> None:
    head = crowded(15)
    repaired = am.repair(head, BOX, margin=0.001, engine=ONE)
    moves = (repaired.after.weight != head.weight)[repaired.moved].sum(axis=1)
    assert len(repaired.moved) == EQUAL - 1
    assert set(moves.tolist()) == {2}
    assert len({row.tobytes() for row in repaired.after.weight}) == head.classes


# Few features, along all of which rows move; and one for each row.
@pytest.mark.parametrize(("features", "equal"), [(4, 50), (40, EQUAL)])
def test_for_a_large_crowd_a_point_for_each_is_enough(
    features: int, equal: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = crowded(features, equal)
    monkeypatch.setattr(alike, "_SAMPLE", equal // 3)
    closely = am.repair(head, BOX, margin=0.001, engine=ONE)
    monkeypatch.setattr(alike, "_MOST_SHARP", equal // 3)
    repaired = am.repair(head, BOX, margin=0.001, engine=ONE)
    assert repaired.margins.min() >= 0.001
    assert len(repaired.result.argmaxable) == head.classes
    assert closely.reached is not None
    assert repaired.reached is not None
    assert repaired.least is not None
    # What is proven to be needed is a bound for every repair, if a weaker one.
    assert repaired.least <= closely.reached
    assert repaired.reached <= 1.25 * closely.reached


def test_a_costly_crowd_is_solved_once_and_its_first_raise_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    equal = 50
    head = crowded(12, equal)
    closely = am.repair(head, BOX, margin=0.001, engine=ONE)
    monkeypatch.setattr(alike, "_MOST_SHARP", equal // 3)
    monkeypatch.setattr(raises, "_COSTLY", 0)
    rounds = []
    repaired = am.repair(head, BOX, margin=0.001, engine=ONE, progress=rounds.append)
    assert sum("raising biases, round" in one.phase and one.done == 1 for one in rounds) <= 2
    assert repaired.margins.min() >= 0.001
    assert len(repaired.result.argmaxable) == head.classes
    assert repaired.least <= closely.reached <= repaired.reached
