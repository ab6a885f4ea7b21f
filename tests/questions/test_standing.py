"""How far off unargmaxable classes are: known of every run that lists them, and the same in each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import argmaxable as am
from argmaxable.core.verdict import farthest_first

BOX = am.Box(-100, 100)


def shrunk(seed: int, classes: int = 120) -> am.Head:
    """A head with a bias, whose shorter rows are deeper inside the hull of the others."""
    rng = np.random.default_rng(seed)
    weight = rng.normal(size=(classes, 6)) * rng.uniform(0.05, 1.0, (classes, 1))
    return am.Head(weight, np.full(classes, -0.5) + 0.2 * rng.normal(size=classes))


def test_classes_that_can_win_have_nobody_counted_ahead() -> None:
    result = am.verify(shrunk(0), BOX, engine=am.Engine(workers=1))
    assert result.unargmaxable
    assert all((verdict.ahead is not None) == (verdict in result.unargmaxable) for verdict in result.verdicts)
    assert all(verdict.ahead for verdict in result.unargmaxable)


def test_the_deeper_a_class_is_in_the_hull_the_more_are_ahead() -> None:
    angles = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    depths = np.array([0.9, 0.7, 0.5, 0.3])
    inside = np.concatenate([depths[:, None] * ring[0], -depths[:, None] * ring[0]])  # the mean stays 0
    result = am.verify(am.Head(np.concatenate([ring, inside])), BOX, engine=am.Engine(workers=1))
    ahead = [verdict.ahead or 0 for verdict in result.verdicts[40:]]
    assert ahead[:4] == ahead[4:] == sorted(set(ahead))


def test_ties_come_last_and_have_nobody_ahead() -> None:
    weight = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1], [0.1, 0], [1, 1]])
    result = am.verify(am.Head(weight), BOX, engine=am.Engine(workers=1))
    ordered = farthest_first(result.unargmaxable)
    assert [verdict.class_id for verdict in ordered] == [4, 0, 5]
    assert [verdict.ahead is None for verdict in ordered] == [False, True, True]


def test_over_given_vectors_no_class_has_a_direction() -> None:
    vectors = np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]])
    head = am.Head(np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1], [0, 0]]))
    result = am.verify(head, am.Hull(vectors), engine=am.Engine(workers=1))
    assert result.unargmaxable
    assert all(verdict.ahead is None for verdict in result.verdicts)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_stored_run_that_was_stopped_ends_with_the_same_numbers(tmp_path: Path, seed: int) -> None:
    head, engine = shrunk(seed), am.Engine(workers=1)
    whole = am.verify(head, BOX, engine=engine)
    with am.open_store(str(tmp_path / "runs.db")) as store:
        am.verify(head, BOX, engine=engine, store=store, time_limit=1e-3)
        resumed = am.verify(head, BOX, engine=engine, store=store)
        found = am.verify(head, BOX, engine=engine, store=store)
        stored = store.read(store.runs()[0].run_id)
    numbers = [verdict.ahead for verdict in whole.verdicts]
    assert [verdict.ahead for verdict in resumed.verdicts] == numbers
    assert [verdict.ahead for verdict in found.verdicts] == numbers
    assert [verdict.ahead for verdict in stored.verdicts] == numbers
