"""`verify --queries`: observed queries as the domain, and what is said about vectors of items."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from running import Command

import argmaxable as am
from argmaxable.core.queries import domain_of_queries
from argmaxable.questions.retrieval import equal_lengths, within_rounding

ITEMS = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
USERS = np.array([[0.5, 0.1], [0.2, 0.9], [0.3, 0.3]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("items")
    np.save(folder / "items.npy", ITEMS)
    np.save(folder / "users.npy", USERS)
    np.save(folder / "wide.npy", np.ones((2, 3)))
    np.savez(folder / "als.npz", item_factors=ITEMS, user_factors=USERS)
    np.savez(folder / "other.npz", x=USERS)
    return folder


def test_over_the_mixtures_of_queries_the_answer_says_so(command: Command, folder: Path) -> None:
    ran = command("verify", folder / "items.npy", "--queries", folder / "users.npy", "--no-db")
    assert ran.code == 1
    assert ran.out.splitlines()[0] == "1 of 3 classes can't be predicted at any mixture of these 3 inputs."


def test_users_of_a_recommender_are_found_by_name(command: Command, folder: Path) -> None:
    ran = command("verify", folder / "als.npz", "--queries", folder / "als.npz", "--no-db", "--json")
    assert (ran.code, ran.record["domain"]) == (1, "hull of 3 inputs")


@pytest.mark.parametrize(("kind", "domain"), [("box", "box with a range"), ("ball", "ball of radius 0.92")])
def test_queries_may_stand_for_a_box_or_a_ball(
    command: Command, folder: Path, kind: str, domain: str
) -> None:
    arguments = ("--queries", folder / "users.npy", "--queries-as", kind, "--no-db", "--json")
    assert command("verify", folder / "items.npy", *arguments).record["domain"].startswith(domain)


@pytest.mark.parametrize("kind", ["hull", "box", "ball"])
def test_the_domain_holds_every_query(kind: str) -> None:
    queries = np.random.default_rng(0).standard_normal((50, 3))
    domain = domain_of_queries(queries, kind)
    assert domain.contains(np.eye(50) if kind == "hull" else queries).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--queries", "wide.npy"), "2 queries with 3 features, but the items have 2"),
        (
            ("--queries", "wide.npy", "--queries-as", "ball"),
            "2 queries with 3 features, but the items have 2",
        ),
        (("--queries", "none.npy"), "can't be read"),
        (("--queries", "other.npz"), "no array called queries, user_factors"),
        (("--queries-as", "box"), "--queries-as needs --queries FILE"),
        (("--queries", "users.npy", "--domain", "box:1"), "Leave one out"),
    ],
)
def test_what_does_not_fit_is_refused(
    command: Command, folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    given = [folder / each if each.endswith((".npy", ".npz")) else each for each in arguments]
    ran = command("verify", folder / "items.npy", *given, "--no-db")
    assert ran.code == 2
    assert message in " ".join(ran.err.split())


def test_rows_of_one_length_are_told_with_what_rounding_leaves_open(command: Command, tmp_path: Path) -> None:
    rows = np.random.default_rng(1).standard_normal((30, 5))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    np.save(tmp_path / "unit.npy", rows)
    ran = command("verify", tmp_path / "unit.npy", "--no-db")
    assert ran.code == 0
    assert "as for cosine search" in ran.out
    found = equal_lengths(am.Head(rows))
    assert found is not None
    lengths = np.sqrt((rows.astype(np.float64) ** 2).sum(axis=1))
    assert found.smallest <= lengths.min() <= lengths.max() <= found.largest
    assert 0 < found.spread < 1e-6
    assert 0 < found.doubtful_degrees < 0.1


def test_rows_of_several_lengths_or_with_a_bias_are_not() -> None:
    assert equal_lengths(am.Head(ITEMS)) is None
    assert equal_lengths(am.Head(ITEMS[:2], [0.0, 1.0])) is None
    assert equal_lengths(am.Head(np.zeros((2, 2)))) is None


def test_an_item_out_of_doubt_is_first_at_its_own_vector() -> None:
    """Rows that differ by as much as the stated angle allows: c loses to a longer row only within it."""
    long, angle = 1 + 1e-6, np.radians(0.1)
    head = am.Head([[1.0, 0.0], [long * np.cos(angle), long * np.sin(angle)]])
    found = equal_lengths(head)
    assert found is not None
    assert found.doubtful_degrees > 0.08
    assert am.verify(head, am.Everywhere()).verdicts[0].status is am.Status.ARGMAXABLE


def test_verdicts_within_the_rounding_of_a_bias_are_counted() -> None:
    result = am.verify(am.Head([[1.0], [1.0], [0.0]], [0.0, 1e-9, 0.0]), am.Box(-1, 1))
    assert within_rounding(result, 1e-12) == ()
    assert within_rounding(result, 1e-8) == (0, 1)
