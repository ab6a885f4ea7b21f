"""How many classes are ahead of another at a point: by more than four bounds on the rounding of float32."""

from __future__ import annotations

import numpy as np
import pytest

import argmaxable as am
from argmaxable.check import witnesses
from argmaxable.check.witnesses import _SINGLE, Scores
from argmaxable.compute.prepared import prepared

# Leads in bounds on rounding: float32 can't tell those around 4 from it, float64 can.
LEADS = (-6.0, 0.0, 1.0, 2.9, 3.1, 3.99, 4.01, 4.9, 5.1, 6.0, 50.0)
AHEAD = 5


def scores_of(rows: np.ndarray, biases: np.ndarray | None = None) -> Scores:
    head = am.Head(rows, biases)
    return Scores(prepared(head, np.zeros(head.features)), am.Everywhere())


def bound(scores: Scores, class_id: int, x: np.ndarray) -> float:
    """What two scores in float32 may be off together: the class's and that of the largest row."""
    error = scores._score_error(x[None], np.zeros((1, len(x))), _SINGLE)
    own = error(scores.norms[class_id], abs(scores.biases[class_id]), 0)
    return float(own + error(scores.norms.max(), np.abs(scores.biases).max(), 0))


@pytest.mark.parametrize("size", [1.0, 3.0])
@pytest.mark.parametrize("place", [0, 4])
def test_leads_of_rows_are_told_at_the_limit(size: float, place: int) -> None:
    x = np.array([size, 0.0, 0.0])
    rows = np.zeros((len(LEADS) + 2, 3))
    rows[:, 0] = 1.0
    rows[-1, 1] = 1.5  # the largest row, with the same score
    others = [i for i in range(len(LEADS) + 1) if i != place]
    slack = bound(scores_of(rows), place, x)
    rows[others, 0] += np.array(LEADS) * slack / size
    found = scores_of(rows).ahead(np.array([place]), x[None])
    assert found.tolist() == [AHEAD]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_leads_of_biases_are_told_at_the_limit(sign: float) -> None:
    x = np.array([0.5, -0.25])
    count = len(LEADS) + 3
    rows, biases = np.tile([1.0, 2.0], (count, 1)), np.zeros(count)
    biases[-2:] = 3.0 * sign, -3.0 * sign  # 0 on average: one is far ahead, one far behind
    slack = bound(scores_of(rows, biases), 0, x)
    biases[1:-2] = np.array(LEADS) * slack
    found = scores_of(rows, biases).ahead(np.array([0]), x[None])
    assert found.tolist() == [AHEAD + 1]


def test_each_class_has_its_own_point_and_count() -> None:
    """Against a count in float64 of rows that are far apart, in blocks of one class and of all."""
    rng = np.random.default_rng(0)
    rows, biases = rng.normal(size=(30, 4)), rng.normal(size=30)
    points = rng.normal(size=(30, 4))
    scores = scores_of(rows, biases)
    exact = points @ rows.T + biases
    expected = [int((exact[k] > exact[k, k] + 1e-4).sum()) for k in range(30)]
    assert len(set(expected)) > 10
    assert scores.ahead(np.arange(30), points).tolist() == expected
    assert scores.ahead(np.arange(30)[::-1], points[::-1]).tolist() == expected[::-1]
    assert scores.ahead(np.array([3, 3]), points[[3, 7]])[0] == expected[3]


def test_blocks_of_work_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    rows, points = rng.normal(size=(7, 2)), rng.normal(size=(7, 2))
    rows[3:] = rows[:4] * (1 + 1e-6)
    scores = scores_of(rows)
    whole = scores.ahead(np.arange(7), points).tolist()
    monkeypatch.setattr(witnesses, "_COUNTED_SCORES", 1)
    assert scores.ahead(np.arange(7), points).tolist() == whole


def test_leads_are_differences_of_scores() -> None:
    rng = np.random.default_rng(2)
    rows, biases, x = rng.normal(size=(6, 3)), rng.normal(size=6), rng.normal(size=(3, 3))
    classes, rivals = np.array([0, 4, 2]), np.array([5, 1, 2])
    found = scores_of(rows, biases)._leads(classes, rivals, x)
    expected = [
        rows[r] @ x[k] + biases[r] - rows[c] @ x[k] - biases[c]
        for k, (c, r) in enumerate(zip(classes, rivals, strict=True))
    ]
    assert found == pytest.approx(expected, abs=1e-12)


def test_scores_of_all_classes_at_once_are_within_their_errors() -> None:
    rng = np.random.default_rng(3)
    rows, biases = rng.normal(size=(9, 5)), rng.normal(size=9)
    for some in (biases, None):
        scores = scores_of(rows, some)
        points = rng.normal(size=(4, 5))
        exact = points @ rows.T + (0 if some is None else some - some.mean())
        values, errors = scores.all_scores(points)
        for k in range(4):
            off = np.abs(values[k] - exact[k])
            assert (off <= errors(k)).all()
            assert (errors(k) < 1e-4).all()
            value, error = scores.scores64(points[k])
            assert (np.abs(value - exact[k]) <= error + 1e-14).all()
            assert (error < 1e-13).all()
            assert (error > 0).all()
