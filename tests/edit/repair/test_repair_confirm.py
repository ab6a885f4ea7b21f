"""A repaired head is verified with the points that the repair found; a wrong point changes no verdict."""

from __future__ import annotations

import numpy as np
from damaged import BOX, damaged, random_damaged

import argmaxable as am
from argmaxable.core.progress import ignore_progress
from argmaxable.edit.repair.confirm import verify_with_points

ALONE = am.Engine(workers=1)


def test_points_that_prove_a_class_are_taken_over() -> None:
    head = damaged()
    known = am.verify(head, BOX, engine=ALONE)
    winner, witness = known.argmaxable[0].class_id, known.argmaxable[0].witness
    assert witness is not None
    point = am.Checker(head, BOX, centre=known.centre).point(winner, witness)
    result = verify_with_points(
        head, BOX, np.array([winner]), point[None], engine=ALONE, progress=ignore_progress
    )
    taken = next(verdict.witness for verdict in result.verdicts if verdict.class_id == winner)
    assert isinstance(taken, am.Point)
    assert np.array_equal(taken.values, point)


def test_points_that_prove_nothing_change_no_verdict() -> None:
    head = random_damaged(3)
    plain = am.verify(head, BOX, engine=ALONE)
    everywhere = np.random.default_rng(0).uniform(-1, 1, (head.classes, head.features))
    outside = np.full((1, head.features), 1e6)
    ids = np.append(np.arange(head.classes), 0)
    result = verify_with_points(
        head, BOX, ids, np.vstack([everywhere, outside]), engine=ALONE, progress=ignore_progress
    )
    assert [verdict.status for verdict in result.verdicts] == [verdict.status for verdict in plain.verdicts]
    assert result.is_complete
