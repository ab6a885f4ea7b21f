"""Grades by examples: what they say, and how well they foretell."""

from __future__ import annotations

import numpy as np
import pytest
from teaching_world import DOMAIN, NEVER, ONE, classified, examples, head

import argmaxable as am


def test_every_class_has_one_grade_and_proofs_come_first() -> None:
    result = am.verify(head(), DOMAIN, engine=ONE)
    seen = am.observe(result, examples())
    assert seen.classes[NEVER].grade is am.Grade.UNARGMAXABLE
    winners = set((examples().features @ head().weight.T + head().biases()).argmax(axis=1).tolist())
    wins = {each.class_id for each in seen.having(am.Grade.WINS)}
    assert wins == winners
    assert len(wins) + len(seen.having(am.Grade.NEVER_SEEN)) + 1 == head().classes


def test_the_precision_counts_what_other_sources_show() -> None:
    """Class a wins on both sources, b on neither, c on the second only."""
    small = am.Head(np.eye(4, dtype=np.float32), None, ["a", "b", "c", "z"])
    one = np.array([[1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 1]])
    two = np.array([[1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]])
    given = classified(np.concatenate([one, two]), list("abcabc"), ["one"] * 3 + ["two"] * 3)
    seen = am.observe(am.verify(small, am.Box(-1.0, 1.0), engine=ONE), given)
    assert seen.folds == ("one", "two")
    # Graded "never seen": b twice and, by the first source, c; b never wins, c does on the second.
    assert seen.never_again == am.Rate(2, 3)
    # Graded "wins": a twice and, by the second source, c, which does not win on the first.
    assert seen.again == am.Rate(2, 3)


def test_wins_of_a_class_that_can_not_win_in_the_domain_are_outside_of_it() -> None:
    small = am.Head(np.array([[1.0], [0.0]], np.float32), np.array([0, 5], np.float32), ["a", "b"])
    result = am.verify(small, am.Box(-1.0, 1.0), engine=ONE)
    seen = am.observe(result, classified(np.array([[9.0], [0.0]]), ["a", "b"], ["x", "x"]))
    assert seen.outside == 1
    assert seen.classes[0].grade is am.Grade.UNARGMAXABLE


def test_labels_that_the_head_has_no_class_for_are_refused() -> None:
    result = am.verify(head(), DOMAIN, engine=ONE)
    strange = classified(np.zeros((2, head().features)), ["c1", "nobody"], ["x", "x"])
    with pytest.raises(am.InputError, match=r"the examples name nobody, which the head has no class for"):
        am.observe(result, strange)
