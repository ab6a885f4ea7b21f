"""verify --top-k and what check makes of its evidence, honest or forged."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import Command, is_one_clear_line

import argmaxable as am
from argmaxable.proofs.claims_file import read_claims
from argmaxable.proofs.ranks import RANKS, write_ranks

Change = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="module")
def head() -> am.Head:
    rng = np.random.default_rng(0)
    return am.Head(rng.normal(size=(40, 3)), rng.normal(size=40) * 0.3, name="head.npz")


@pytest.fixture
def model(head: am.Head, tmp_path: Path) -> Path:
    np.savez(tmp_path / "head.npz", W=head.weight, b=head.biases())
    return tmp_path / "head.npz"


@pytest.fixture(scope="module")
def honest(head: am.Head, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ranks")
    result = am.verify(head, am.Box(-1.0, 1.0), engine=am.Engine(workers=1))
    write_ranks(result, am.best_ranks(result.head, result.domain, result=result, top_k=3), folder, top_k=3)
    return folder


def forged(honest: Path, tmp_path: Path, change: Change) -> Path:
    """A copy whose first class with a lower bound of 4 or more and a point is changed."""
    folder = shutil.copytree(honest, tmp_path / "forged")
    lines = [json.loads(line) for line in (folder / "ranks.jsonl").read_text("utf-8").splitlines()]
    change(next(line for line in lines if line["lower"] >= 4 and line["proof"].get("shares")))
    (folder / "ranks.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return folder


def test_the_answer_is_printed_and_every_bound_checks(command: Command, model: Path, tmp_path: Path) -> None:
    proofs = tmp_path / "proofs"
    ran = command("verify", model, "--domain", "box:1", "--top-k", "3", "--no-db", "--output", proofs)
    assert ran.code == 1
    assert "Among the first 3" in ran.out
    assert "never, proven" in ran.out
    checked = command("check", proofs, model)
    assert checked.code == 0
    assert "27 of 27 bounds on best ranks proven." in checked.out


def test_json_has_the_answer_for_each_class(command: Command, model: Path) -> None:
    record = command("verify", model, "--domain", "box:1", "--top-k", "3", "--no-db", "--json").record
    assert record["top_k"] == 3
    assert {rank["among_first"] for rank in record["best_ranks"]} == {"yes", "no"}
    assert len(record["best_ranks"]) == record["unargmaxable"]


def test_a_run_without_the_question_leaves_no_old_answer(
    command: Command, model: Path, tmp_path: Path
) -> None:
    proofs = tmp_path / "proofs"
    command("verify", model, "--domain", "box:1", "--top-k", "2", "--no-db", "--output", proofs)
    assert (proofs / "ranks.jsonl").exists()
    command("verify", model, "--domain", "box:1", "--no-db", "--output", proofs)
    assert not list(proofs.glob("ranks*"))


@pytest.mark.parametrize("k", ["0", "-3"])
def test_a_k_that_counts_no_places_is_refused(command: Command, model: Path, k: str) -> None:
    ran = command("verify", model, "--top-k", k, "--no-db")
    assert ran.code == 2
    assert is_one_clear_line(ran)


def test_honest_ranks_survive_being_written_and_read(honest: Path, head: am.Head) -> None:
    found = am.recheck(read_claims(RANKS, honest), head)
    assert (found.proven, found.failures) == (27, ())


def raise_lower(line: dict[str, Any]) -> None:
    line["lower"] += 1


def raise_with_ties(line: dict[str, Any]) -> None:
    line["lower_with_ties"] = line["lower"]
    line["proof_with_ties"] = {"certificates": [], "shares": [], "whole": 1}


def lower_upper(line: dict[str, Any]) -> None:
    line["upper"] = line["lower"]
    del line["proof"]["shares"]
    line["lower"] = line["lower_with_ties"] = 1


def use_a_certificate_twice(line: dict[str, Any]) -> None:
    line["proof"]["certificates"] = line["proof"]["certificates"][:1] * len(line["proof"]["shares"])


def double_the_shares(line: dict[str, Any]) -> None:
    line["proof"]["shares"] = [2 * share for share in line["proof"]["shares"]]
    line["lower"] += 1
    line["upper"] = max(line["upper"], line["lower"])


def drop_the_proof(line: dict[str, Any]) -> None:
    del line["proof"]


def drop_the_point(line: dict[str, Any]) -> None:
    for name in ("point32", "point64"):
        line.pop(name, None)


def swap_the_point(line: dict[str, Any]) -> None:
    name = "point32" if "point32" in line else "point64"
    line[name] = (line[name] + 1) % 5


def claim_it_needs_no_shares(line: dict[str, Any]) -> None:
    del line["proof"]["shares"]
    line["lower"] += 1
    line["upper"] = max(line["upper"], line["lower"])


def rename_the_class(line: dict[str, Any]) -> None:
    line["class"] = 10_000


@pytest.mark.parametrize(
    "change",
    [
        raise_lower,
        raise_with_ties,
        lower_upper,
        use_a_certificate_twice,
        double_the_shares,
        drop_the_proof,
        drop_the_point,
        swap_the_point,
        claim_it_needs_no_shares,
        rename_the_class,
    ],
)
def test_a_forged_claim_is_refused(honest: Path, head: am.Head, tmp_path: Path, change: Change) -> None:
    found = am.recheck(read_claims(RANKS, forged(honest, tmp_path, change)), head)
    assert len(found.failures) == 1


def test_a_certificate_with_weight_on_the_class_itself_is_refused(
    honest: Path, head: am.Head, tmp_path: Path
) -> None:
    folder = shutil.copytree(honest, tmp_path / "forged")
    arrays = dict(np.load(folder / "ranks.npz"))
    arrays["certificate_classes"][:] = read_claims(RANKS, folder).claims[0].class_id
    np.savez(folder / "ranks.npz", **arrays)
    assert (
        am.recheck(read_claims(RANKS, folder), head).failures[0].key
        == read_claims(RANKS, folder).claims[0].class_id
    )


def test_a_class_claimed_twice_is_refused(honest: Path, head: am.Head, tmp_path: Path) -> None:
    folder = shutil.copytree(honest, tmp_path / "forged")
    text = (folder / "ranks.jsonl").read_text("utf-8")
    (folder / "ranks.jsonl").write_text(text + text.splitlines()[0] + "\n", "utf-8")
    assert len(am.recheck(read_claims(RANKS, folder), head).failures) == 1


def test_ranks_of_another_head_are_refused(honest: Path, head: am.Head) -> None:
    other = am.Head(head.weight, head.biases() + 1e-3 * np.arange(40))
    with pytest.raises(am.BundleError, match="another head"):
        am.recheck(read_claims(RANKS, honest), other)


@pytest.mark.parametrize("text", ["{", '{"class": -1}', '{"class": 0, "lower": 1.5}', "[]"])
def test_a_line_that_is_none_is_a_clear_error(honest: Path, tmp_path: Path, text: str) -> None:
    folder = shutil.copytree(honest, tmp_path / "broken")
    (folder / "ranks.jsonl").write_text(text + "\n", "utf-8")
    with pytest.raises(am.BundleError, match="line 1"):
        read_claims(RANKS, folder)
