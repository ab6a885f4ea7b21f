"""Reaches as data: what is refused, what is written and read again, what people are told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import Command

import argmaxable as am
from argmaxable.core.domains import domain_from_record
from argmaxable.questions.ranking.rankings import is_feasible

BASE, MOVES = [1.0, 0.0], [[0.1, 0.0, 1.0], [0.0, 1.0, 1.0]]
REACH = am.Reach(BASE, MOVES, am.Box([0, 0, -1], [1, 2, 1]))


@pytest.mark.parametrize(
    ("base", "moves", "within", "message"),
    [
        (BASE, [1.0, 2.0], am.Box(0, 1), "a row for each move"),
        (BASE, [[], []], am.Box(0, 1), "a row for each move"),
        ([1.0], MOVES, am.Box(0, 1), r"row of moves \(2\), found shape \(1,\)"),
        (1.0, MOVES, am.Box(0, 1), "found shape"),
        ([1.0, np.nan], MOVES, am.Box(0, 1), "base holds NaN"),
        (BASE, [[1.0, np.inf], [0.0, 0.0]], am.Box(0, 1), "move 1"),
        (BASE, MOVES, am.Box(0, np.inf), "finite bounds"),
        (BASE, MOVES, am.Everywhere(), "finite bounds"),
        (BASE, MOVES, am.Box([0, 0], [1, 1]), "has 2 entries"),
    ],
)
def test_what_does_not_fit_together_is_refused(base: Any, moves: Any, within: Any, message: str) -> None:
    with pytest.raises(am.DomainError, match=message):
        am.Reach(base, moves, within)


def test_the_features_must_be_those_of_the_head() -> None:
    with pytest.raises(am.DomainError, match="base has 2 features but the head has 3"):
        am.verify(am.Head(np.eye(3)), REACH)


@pytest.mark.parametrize("within", [am.Box([0, 0, -1], [1, 2, 1]), am.Box(-1, 0.1), am.Ball(0.1)], ids=str)
def test_a_reach_is_rebuilt_from_its_record(within: am.Box | am.Ball) -> None:
    reach = am.Reach([0.1, 1e300], MOVES, within)
    again = domain_from_record(json.loads(json.dumps(reach.as_record())))
    assert again == reach
    assert hash(again) == hash(reach)
    assert again != am.Reach([0.1, 1e300], MOVES, am.Ball(7.0))


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [2, 4]},
        {"moves": "?"},
        {"within": {"kind": "everywhere"}},
        {"within": None},
        {"within": am.Box(0, np.inf).as_record()},
        {"base": ["0x1p0"]},
    ],
)
def test_a_forged_record_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(am.DomainError):
        domain_from_record(REACH.as_record() | change)


def test_the_command_line_reads_it_from_a_file(tmp_path: Path) -> None:
    np.savez(tmp_path / "box.npz", base=BASE, moves=MOVES, lo=[0, 0, -1], hi=[1, 2, 1])
    np.savez(tmp_path / "ball.npz", base=BASE, moves=MOVES, radius=0.5)
    assert am.parse_domain(f"reach:{tmp_path / 'box.npz'}") == REACH
    assert am.parse_domain(f"reach:{tmp_path / 'ball.npz'}") == am.Reach(BASE, MOVES, am.Ball(0.5))


@pytest.mark.parametrize(
    "arrays",
    [
        {"base": BASE, "moves": MOVES},
        {"base": BASE, "moves": MOVES, "lo": 0.0},
        {"base": BASE, "moves": MOVES, "lo": 0.0, "hi": 1.0, "radius": 1.0},
        {"base": BASE, "moves": MOVES, "radius": [1.0, 2.0]},
        {"base": np.array(BASE, object), "moves": MOVES, "radius": 1.0},
    ],
)
def test_a_file_with_other_arrays_is_refused(tmp_path: Path, arrays: dict[str, Any]) -> None:
    np.savez(tmp_path / "reach.npz", **arrays)
    with pytest.raises(am.DomainError, match=r"reach\.npz"):
        am.parse_domain(f"reach:{tmp_path / 'reach.npz'}")


def test_a_file_that_is_not_there_or_not_an_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.npz").write_text("text")
    np.save(tmp_path / "one.npy", np.eye(2))
    for name in ("missing.npz", "text.npz", "one.npy"):
        with pytest.raises(am.DomainError, match=name):
            am.parse_domain(f"reach:{tmp_path / name}")


def test_the_answer_speaks_of_reach_and_its_proofs_are_accepted(command: Command, tmp_path: Path) -> None:
    np.savez(tmp_path / "reach.npz", base=BASE, moves=MOVES, lo=[0, 0, -1], hi=[1, 2, 1])
    np.savez(tmp_path / "head.npz", W=np.array([[1.0, 0.0], [0.0, 1.0], [-9.0, 1.0]]))
    ran = command(
        "verify", tmp_path / "head.npz", "--domain", f"reach:{tmp_path / 'reach.npz'}", "--no-db",
        "--output", tmp_path / "proofs",
    )  # fmt: skip
    assert ran.code == 1
    assert ran.out.splitlines()[:2] == [
        "1 of 3 classes can never be predicted within reach of these 3 moves.",
        "Domain: reach of 3 moves, as asked.",
    ]
    assert command("check", tmp_path / "proofs", tmp_path / "head.npz").code == 0


@pytest.mark.parametrize(
    "question",
    [
        lambda head: am.ceilings(head, REACH),
        lambda head: am.repair(head, REACH),
        lambda head: is_feasible(head, [0, 1, 2], REACH),
        lambda head: am.verify(head, REACH, method="reflection"),
        lambda head: am.verify(head, REACH, method="chebyshev"),
    ],
)
def test_questions_that_need_directions_are_refused(question: Callable[[am.Head], object]) -> None:
    with pytest.raises(am.DomainError, match="reach of 3 moves"):
        question(am.Head([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]))


def test_a_class_is_explained_and_ranked_within_reach() -> None:
    head = am.Head([[1.0, 0.0], [0.0, 1.0], [-9.0, 1.0]], [0.0, 0.5, 0.0])
    told = am.explain(head, REACH, class_=2)
    assert told.verdict.status is am.Status.UNARGMAXABLE
    (rank,) = am.best_ranks(head, REACH)
    assert (rank.class_id, rank.lower, rank.upper) == (2, 2, 2)


@pytest.mark.parametrize("scale", [1e-300, 1e-10, 1e10, 1e150])
def test_moves_of_any_size_get_verdicts_that_hold(scale: float) -> None:
    head = am.Head([[1.0, 0.0], [0.0, 1.0], [-9.0, -1.0]])
    reach = am.Reach(np.array(BASE) * scale, np.array(MOVES) * scale, am.Box(0, 1))
    result = am.verify(head, reach)
    assert {verdict.class_id for verdict in result.unargmaxable} <= {2, 1}
    assert {verdict.class_id for verdict in result.argmaxable} <= {0, 1}
