"""Hulls as data: what is refused, what is written and read again, what people are told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from running import Command

import argmaxable as am
from argmaxable.core.domains import domain_from_record
from argmaxable.questions.arithmetic.survival import survival
from argmaxable.questions.ranking.rankings import is_feasible

SQUARE = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]


@pytest.mark.parametrize("points", [[], [[]], [1.0, 2.0], [[1.0], [2.0, 3.0]], [["a"]], np.zeros((2, 2, 2))])
def test_what_is_not_a_matrix_is_refused(points: object) -> None:
    with pytest.raises(am.DomainError, match="a row for each input"):
        am.Hull(points)  # type: ignore[arg-type]


def test_an_input_that_is_not_finite_is_named() -> None:
    with pytest.raises(am.DomainError, match="input 1"):
        am.Hull([[0.0, 1.0], [np.nan, 1.0]])


def test_the_features_must_be_those_of_the_head() -> None:
    with pytest.raises(am.DomainError, match="2 features but the head has 3"):
        am.verify(am.Head(np.eye(3)), am.Hull(SQUARE))


@pytest.mark.parametrize("points", [SQUARE, [[0.1, 1e300]], np.float32([[0.1, 3e38]])], ids=str)
def test_a_hull_is_rebuilt_from_its_record(points: list[list[float]]) -> None:
    hull = am.Hull(points)
    again = domain_from_record(json.loads(json.dumps(hull.as_record())))
    assert again == hull
    assert hash(again) == hash(hull)


def test_points_of_single_precision_are_written_as_such() -> None:
    assert am.Hull(np.float32([[0.1]])).as_record()["dtype"] == "float32"
    assert am.Hull([[0.1]]).as_record()["dtype"] == "float64"


@pytest.mark.parametrize(
    "change", [{"shape": [5, 2]}, {"shape": [4]}, {"points": "?"}, {"dtype": "float16"}, {"points": None}]
)
def test_a_forged_record_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(am.DomainError):
        domain_from_record(am.Hull(SQUARE).as_record() | change)


def test_the_command_line_reads_it_from_a_file(tmp_path: Path) -> None:
    np.save(tmp_path / "features.npy", np.array(SQUARE))
    assert am.parse_domain(f"hull:{tmp_path / 'features.npy'}") == am.Hull(SQUARE)


def test_a_file_that_is_not_there_or_not_an_array_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.npy").write_text("text")
    for name in ("missing.npy", "text.npy"):
        with pytest.raises(am.DomainError, match=name):
            am.parse_domain(f"hull:{tmp_path / name}")


def test_the_answer_speaks_of_mixtures(command: Command, tmp_path: Path) -> None:
    np.save(tmp_path / "features.npy", np.array(SQUARE))
    np.savez(tmp_path / "head.npz", W=np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]), b=[0.0, 0.0, -1.0])
    ran = command("verify", tmp_path / "head.npz", "--domain", f"hull:{tmp_path / 'features.npy'}", "--no-db")
    assert ran.code == 1
    assert ran.out.splitlines()[:2] == [
        "1 of 3 classes can't be predicted at any mixture of these 4 inputs.",
        "Domain: hull of 4 inputs, as asked.",
    ]


def test_weights_whose_sum_overflows_prove_nothing_false() -> None:
    """In floats Σμ is infinite and x = 0, where class 0 would win; the mixture itself is 0.495."""
    head, hull = am.Head([[0.0], [1.0]], [0.1, 0.0]), am.Hull([[0.49], [0.5]])
    gaps = am.Checker(head, hull).gaps(np.array([0]), np.array([[1e308, 1e308]]))
    assert gaps.lower[0] < -0.39


@pytest.mark.parametrize("scale", [1e-300, 1e-10, 1e10, 1e150, 1.7e308])
def test_vectors_of_any_size_get_verdicts_that_hold(scale: float) -> None:
    head = am.Head([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    result = am.verify(head, am.Hull(np.array(SQUARE) * scale))
    assert {verdict.class_id for verdict in result.unargmaxable} <= {2}
    assert {verdict.class_id for verdict in result.argmaxable} <= {0, 1}
    if 1e-100 < scale < 1e100:  # beyond, floats may leave classes undecided
        assert not result.undecided


def test_weights_near_underflow_are_placed_exactly() -> None:
    head, hull = am.Head([[0.0], [1.0]], [0.1, 0.0]), am.Hull([[0.0], [0.5]])
    gaps = am.Checker(head, hull).gaps(np.array([0, 0]), np.array([[5e-324, 5e-324], [5e-324, 0.0]]))
    assert gaps.lower[0] == -0.15
    assert gaps.lower[1] == 0.1


@pytest.mark.parametrize(
    "question",
    [
        lambda head, hull: am.ceilings(head, hull),
        lambda head, hull: am.repair(head, hull),
        lambda head, hull: is_feasible(head, [0, 1, 2], hull),
        lambda head, hull: survival(am.verify(head, hull), "bf16"),
    ],
)
def test_questions_that_need_directions_are_refused(question: Callable[[am.Head, am.Hull], object]) -> None:
    with pytest.raises(am.DomainError, match="hull of 4 inputs"):
        question(am.Head([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]), am.Hull(SQUARE))


def test_a_class_is_explained_over_a_hull() -> None:
    head = am.Head([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]], [0.0, 0.0, -1.0])
    told = am.explain(head, am.Hull(SQUARE), class_=2)
    assert told.verdict.status is am.Status.UNARGMAXABLE
    assert told.rank is not None
    assert told.rank.lower == told.rank.upper == 3
    assert told.margin.lower == pytest.approx(-1.0, rel=1e-6)
    assert told.margin.lower <= -1.0 <= told.margin.upper == pytest.approx(-1.0, rel=1e-6)
    (rank,) = am.best_ranks(head, am.Hull(SQUARE))
    assert (rank.class_id, rank.lower, rank.upper) == (2, 3, 3)


@pytest.mark.parametrize("method", ["reflection", "chebyshev"])
def test_methods_that_need_directions_are_refused(method: str) -> None:
    with pytest.raises(am.DomainError):
        am.verify(am.Head(np.eye(2)), am.Hull(SQUARE), method=method)
