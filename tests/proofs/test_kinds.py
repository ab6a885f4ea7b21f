"""The seam that every kind of claim goes through: files of its own, one count, one way to say what held."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from convex_truth import random_head
from running import Command

import argmaxable as am
from argmaxable.core.head import Facts
from argmaxable.proofs.bundle import read_all
from argmaxable.proofs.ceilings import CEILINGS, write_ceilings
from argmaxable.proofs.claims_file import are_in, read_claims
from argmaxable.proofs.kinds import KINDS
from argmaxable.proofs.ranks import RANKS, write_ranks
from conformance.forge import seal_files

DOMAIN = am.Ball(2.0)


def write_all(folder: Path, head: am.Head) -> am.Result:
    result = am.verify(head, DOMAIN, engine=am.Engine(workers=1))
    am.write_bundle(result, folder)
    write_ceilings(am.ceilings(head, DOMAIN), folder)
    write_ranks(result, am.best_ranks(head, DOMAIN, result=result), folder, top_k=None)
    am.write_sets(am.sets(head, DOMAIN, [[0], [1, 2]], engine=am.Engine(workers=1)), folder)
    return result


def test_no_two_kinds_share_a_file_a_format_or_a_name() -> None:
    files = [name for kind in KINDS for name in (kind.files.header, kind.files.lines, kind.files.arrays)]
    assert len(set(files)) == 3 * len(KINDS)
    for names in ({kind.format for kind in KINDS}, {kind.noun for kind in KINDS}):
        assert len(names) == len(KINDS)


def test_a_folder_is_read_kind_by_kind(tmp_path: Path) -> None:
    write_all(tmp_path, random_head(0))
    assert [bundle.kind for bundle in read_all(tmp_path)] == list(KINDS)


def test_a_folder_without_verdicts_and_sets_is_not_a_bundle(tmp_path: Path) -> None:
    write_all(tmp_path, random_head(0))
    (tmp_path / "manifest.json").unlink()
    (tmp_path / "sets.json").unlink()
    with pytest.raises(am.BundleError, match=r"manifest\.json"):
        read_all(tmp_path)


def test_claims_over_another_domain_than_the_verdicts_are_refused(tmp_path: Path) -> None:
    head = random_head(0)
    write_all(tmp_path, head)
    write_ceilings(am.ceilings(head, am.Ball(0.001)), tmp_path)
    with pytest.raises(am.BundleError, match=r"ceilings in .* are about the domain ball of radius 0\.001"):
        read_all(tmp_path)


def test_a_new_bundle_leaves_no_claims_of_an_earlier_one(tmp_path: Path) -> None:
    result = write_all(tmp_path, random_head(0))
    am.write_bundle(result, tmp_path)
    assert [kind for kind in KINDS if are_in(kind, tmp_path)] == [KINDS[0]]
    assert len(list(tmp_path.iterdir())) == 3


def test_a_ceiling_from_0_to_1_is_undecided_and_not_proven(tmp_path: Path) -> None:
    head = random_head(0)
    known = am.ceilings(head, DOMAIN)
    nothing = am.Ceiling(0, "0", 0.0, 1.0)
    found = am.Ceilings(
        facts=Facts.of(head), domain=DOMAIN, temperature=1.0, tolerance=1e-6,
        classes=(nothing, *known.classes[1:]), seconds=0.0, is_complete=False,
    )  # fmt: skip
    write_ceilings(found, tmp_path)
    assert am.recheck(read_claims(CEILINGS, tmp_path), head) == am.Recheck(head.classes - 1, 1, 0, ())


def test_a_best_rank_between_1_and_the_number_of_classes_is_undecided(tmp_path: Path) -> None:
    head = random_head(0)
    result = am.verify(head, DOMAIN, engine=am.Engine(workers=1))
    nothing = am.BestRank(
        class_id=2, label="2", lower=1, upper=head.classes, lower_with_ties=1, proof=None,
        proof_with_ties=None, point=None,
    )  # fmt: skip
    write_ranks(result, [nothing], tmp_path, top_k=2)
    assert am.recheck(read_claims(RANKS, tmp_path), head) == am.Recheck(0, 1, 0, ())


def test_check_exits_with_3_when_any_kind_leaves_something_undecided(
    tmp_path: Path, command: Command
) -> None:
    head = random_head(0)
    np.savez(tmp_path / "head.npz", W=head.weight, b=head.bias)
    write_all(tmp_path / "proofs", head)
    assert command("check", tmp_path / "proofs", tmp_path / "head.npz").code == 0
    path = tmp_path / "proofs" / "ceilings.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[4] = '{"class":4,"label":"4","lower":0.0,"upper":1.0}'
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    seal_files(tmp_path / "proofs" / "ceilings.json")
    ran = command("check", tmp_path / "proofs", tmp_path / "head.npz")
    assert ran.code == 3
    assert "1 undecided, 0 classes without a ceiling." in ran.out
