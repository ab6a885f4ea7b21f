"""What a bundle says in words: compared with its claims and its model, and refused where it is not so."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import Command

import argmaxable as am
from argmaxable.core.head import labels_sha256
from argmaxable.proofs.in_words import not_compared
from conformance.forge import reseal, seal_files

ENGINE = am.Engine(workers=1)
FIXTURES = Path(__file__).parents[1] / "fixtures" / "bundles-0.1.0"
LABELS = [f"word {number}" for number in range(8)]


def head(labels: list[str] | None = None) -> am.Head:
    weight = np.random.default_rng(5).normal(size=(8, 3)).astype(np.float32)
    weight[0] = weight[2:].mean(axis=0)
    weight[1] = weight[7]
    return am.Head(weight, labels=labels, name="model.npz")


def written(folder: Path, of: am.Head) -> Path:
    am.write_bundle(am.verify(of, am.Box(-1.0, 1.0), engine=ENGINE), folder)
    return folder


def contradictions(folder: Path, of: am.Head) -> str:
    found = am.recheck(am.read_bundle(folder), of)
    assert not found.failures
    return "; ".join(found.contradictions)


def edit_manifest(folder: Path, **changes: Any) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def edit_lines(folder: Path, **changes: Any) -> None:
    path = folder / "verdicts.jsonl"
    first, *rest = path.read_text(encoding="utf-8").splitlines()
    lines = [json.dumps(json.loads(first) | changes), *rest]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    reseal(folder)


# ---------------------------------------------------------------------- what is written


def test_the_manifest_names_files_and_labels_by_their_sha256(tmp_path: Path) -> None:
    manifest = am.read_bundle(written(tmp_path, head(LABELS))).manifest
    assert manifest["format"] == "argmaxable-proofs-2"
    assert set(manifest["files"]) == {"verdicts.jsonl", "evidence.npz"}
    assert manifest["head"]["labels_sha256"] == labels_sha256(LABELS)
    before = dict(manifest["files"])
    seal_files(tmp_path / "manifest.json")
    assert am.read_bundle(tmp_path).manifest["files"] == before


def test_a_model_without_labels_has_no_sha256_of_them(tmp_path: Path) -> None:
    assert am.read_bundle(written(tmp_path, head())).manifest["head"]["labels_sha256"] is None


def test_a_stored_run_is_exported_with_the_sha256_of_its_labels(tmp_path: Path) -> None:
    with am.open_store(str(tmp_path / "runs.db")) as store:
        am.verify(head(LABELS), am.Box(-1.0, 1.0), store=store, engine=ENGINE)
        am.write_bundle(store.read(1), tmp_path / "proofs")
    assert contradictions(tmp_path / "proofs", head(LABELS)) == ""
    assert am.read_bundle(tmp_path / "proofs").manifest["head"]["labels_sha256"] == labels_sha256(LABELS)


# ---------------------------------------------------------------------- labels


def test_the_labels_of_the_model_are_no_contradiction(tmp_path: Path) -> None:
    assert contradictions(written(tmp_path, head(LABELS)), head(LABELS)) == ""


def test_a_label_that_is_not_the_models_is_one(tmp_path: Path) -> None:
    edit_lines(written(tmp_path, head(LABELS)), label="word \x1b[2J")
    said = contradictions(tmp_path, head(LABELS))
    assert "1 of 8 labels are not the model's: class 0 is word 0, not word \\u{1b}[2J." in said


def test_a_model_with_other_labels_contradicts_the_bundle(tmp_path: Path) -> None:
    other = [f"name {number}" for number in range(8)]
    said = contradictions(written(tmp_path, head(LABELS)), head(other))
    assert "8 of 8 labels are not the model's" in said
    assert "labels_sha256" in said


def test_labels_that_the_model_has_not_are_compared_with_the_manifest_and_said_to_be_unknown(
    tmp_path: Path,
) -> None:
    written(tmp_path, head(LABELS))
    assert contradictions(tmp_path, head()) == ""
    assert "Pass --labels FILE" in " ".join(not_compared(am.read_bundle(tmp_path), head()))
    edit_lines(tmp_path, label="another")
    assert "labels_sha256" in contradictions(tmp_path, head())


def test_numbers_are_no_lie_about_a_model_that_has_labels(tmp_path: Path) -> None:
    written(tmp_path, head())
    assert contradictions(tmp_path, head(LABELS)) == ""
    edit_lines(tmp_path, label="7")
    assert "has no labels" in contradictions(tmp_path, head(LABELS))


@pytest.mark.parametrize("label", ["\ud800", "\ud83d\ude00", "\x00", "😀", '"\\\n'], ids=ascii)
def test_any_label_survives_the_comparison(label: str, tmp_path: Path) -> None:
    of = head([label, *LABELS[1:]])
    assert contradictions(written(tmp_path, of), of) == ""


# ---------------------------------------------------------------------- counts, sizes, files


@pytest.mark.parametrize("name", ["argmaxable", "unargmaxable", "tied", "undecided"])
@pytest.mark.parametrize("value", [99, None, "3", True])
def test_a_wrong_count_is_a_contradiction(name: str, value: object, tmp_path: Path) -> None:
    edit_manifest(written(tmp_path, head()), **{name: value})
    assert f"it says {name} {value}" in contradictions(tmp_path, head())


@pytest.mark.parametrize("name", ["classes", "features"])
def test_a_wrong_size_is_a_contradiction(name: str, tmp_path: Path) -> None:
    about = json.loads((written(tmp_path, head()) / "manifest.json").read_text())["head"]
    edit_manifest(tmp_path, head=about | {name: float(about[name])})
    assert name in contradictions(tmp_path, head())


@pytest.mark.parametrize("complete", [None, "yes", 1])
def test_complete_is_true_or_false(complete: object, tmp_path: Path) -> None:
    edit_manifest(written(tmp_path, head()), complete=complete)
    assert "complete" in contradictions(tmp_path, head())


def test_an_interrupted_run_is_not_complete(tmp_path: Path) -> None:
    of = head()
    am.write_bundle(am.verify(of, am.Box(-1.0, 1.0), engine=ENGINE, time_limit=1e-9), tmp_path)
    assert contradictions(tmp_path, of) == ""
    edit_manifest(tmp_path, complete=True)
    assert "complete" in contradictions(tmp_path, of)


@pytest.mark.parametrize("files", [None, {}, "none", {"verdicts.jsonl": "0" * 64}])
def test_files_that_the_manifest_does_not_name_are_contradictions(files: object, tmp_path: Path) -> None:
    edit_manifest(written(tmp_path, head()), files=files)
    said = contradictions(tmp_path, head())
    assert "verdicts.jsonl is not the file" in said
    assert "evidence.npz is not the file" in said


def test_a_group_of_twins_that_is_not_whole_is_a_contradiction(tmp_path: Path) -> None:
    weight = np.array(head().weight)
    weight[5] = weight[7]
    of = am.Head(weight)
    written(tmp_path, of)
    with np.load(tmp_path / "evidence.npz") as archive:
        arrays = {name: archive[name] for name in archive.files}
    assert arrays["tie_classes"].tolist() == [1, 5, 7]
    arrays |= {"tie_classes": np.array([1, 7]), "tie_start": np.array([0, 2])}
    np.savez(tmp_path / "evidence.npz", **arrays)
    seal_files(tmp_path / "manifest.json")
    found = am.recheck(am.read_bundle(tmp_path), of)
    assert "class 1 is one of 3 identical classes, not of 2" in found.contradictions


# ---------------------------------------------------------------------- the command


def test_check_tells_how_many_can_never_be_predicted(tmp_path: Path, command: Command) -> None:
    np.savez(tmp_path / "head.npz", W=head().weight)
    written(tmp_path / "proofs", am.load_head(str(tmp_path / "head.npz")))
    ran = command("check", tmp_path / "proofs", tmp_path / "head.npz")
    assert ran.code == 0
    assert ran.out == (
        "8 of 8 verdicts proven over the domain box ±1.\n"
        "3 of these classes can never be predicted for features within ±1.\n"
    )


def test_check_exits_with_1_where_the_words_are_not_true(tmp_path: Path, command: Command) -> None:
    np.savez(tmp_path / "head.npz", W=head().weight)
    written(tmp_path / "proofs", am.load_head(str(tmp_path / "head.npz")))
    edit_manifest(tmp_path / "proofs", unargmaxable=0)
    ran = command("check", tmp_path / "proofs", tmp_path / "head.npz")
    assert ran.code == 1
    assert "manifest.json is NOT TRUE: it says unargmaxable 0, found 3." in ran.out


def test_check_takes_labels_from_a_file(tmp_path: Path, command: Command) -> None:
    np.savez(tmp_path / "head.npz", W=head().weight)
    (tmp_path / "labels.txt").write_text("".join(label + "\n" for label in LABELS))
    asked = ("--labels", tmp_path / "labels.txt")
    command("verify", tmp_path / "head.npz", "--output", tmp_path / "proofs", "--no-db", *asked)
    ran = command("check", tmp_path / "proofs", tmp_path / "head.npz", *asked)
    assert (ran.code, "Not compared" in ran.out) == (0, False)
    ran = command("check", tmp_path / "proofs", tmp_path / "head.npz")
    assert (ran.code, "Not compared: the labels" in ran.out) == (0, True)


def test_check_says_that_proofs_are_for_another_model(tmp_path: Path, command: Command) -> None:
    written(tmp_path / "proofs", head())
    np.savez(tmp_path / "other.npz", W=np.ones((8, 3)))
    ran = command("check", tmp_path / "proofs", tmp_path / "other.npz")
    assert ran.code == 2
    assert "these proofs are for another model" in ran.err


def test_check_says_what_format_1_can_not_vouch_for(command: Command) -> None:
    ran = command("check", FIXTURES / "plain-ball", FIXTURES / "plain.npz")
    assert ran.code == 0
    assert "Not compared: the files and the labels with manifest.json" in ran.out


def test_a_lie_in_a_bundle_of_format_1_is_found_all_the_same(tmp_path: Path, command: Command) -> None:
    folder = shutil.copytree(FIXTURES / "plain-ball", tmp_path / "changed")
    edit_manifest(folder, tied=1 + json.loads((folder / "manifest.json").read_text())["tied"])
    assert command("check", folder, FIXTURES / "plain.npz").code == 1


# ---------------------------------------------------------------------- one reading


def test_a_key_twice_is_a_bundle_error(tmp_path: Path) -> None:
    path = written(tmp_path, head()) / "manifest.json"
    path.write_text(path.read_text().replace("{", '{"unargmaxable": 0,', 1))
    with pytest.raises(am.BundleError, match="'unargmaxable' occurs twice"):
        am.read_bundle(tmp_path)


@pytest.mark.parametrize("keys", [{"own": 0, "point32": 0}, {"rival": 1, "certificate": 0}], ids=str)
def test_evidence_that_excludes_other_is_a_bundle_error(keys: dict[str, int], tmp_path: Path) -> None:
    written(tmp_path, head())
    edit_lines(tmp_path, **keys)
    with pytest.raises(am.BundleError, match="exclude each other"):
        am.read_bundle(tmp_path)


# ---------------------------------------------------------------------- whole numbers


def deep_head() -> am.Head:
    """Rows 0 to 4 lie inside the hull of the others: proofs that have to be solved for everywhere."""
    weight = np.random.default_rng(1).normal(size=(40, 4)).astype(np.float32)
    weight[:5] = 0.1 * weight[:5]
    return am.Head(weight)


def test_whole_weights_prove_what_was_to_be_solved_for(tmp_path: Path) -> None:
    result = am.with_rational_weights(am.verify(deep_head(), am.Everywhere(), engine=ENGINE))
    solved = [verdict for verdict in result.unargmaxable if verdict.certificate and verdict.certificate.basis]
    assert len(solved) >= 5
    for verdict in solved:
        rows = result.head.rows(verdict.certificate.classes)
        own = result.head.rows(np.array([verdict.class_id]))[0]
        for column, value in zip(rows.T, own, strict=True):
            weighted = sum(
                w * Fraction(v) for w, v in zip(verdict.certificate.whole, column.tolist(), strict=True)
            )
            assert weighted == sum(verdict.certificate.whole) * Fraction(float(value))
    am.write_bundle(result, tmp_path)
    found = am.recheck(am.read_bundle(tmp_path), result.head, rational=True)
    assert found == am.Recheck(40, 0, 0, ())


def test_whole_weights_alone_count_where_they_are_given(tmp_path: Path) -> None:
    result = am.with_rational_weights(am.verify(deep_head(), am.Everywhere(), engine=ENGINE))
    verdicts = [with_another_weight(verdict) for verdict in result.verdicts]
    am.write_bundle(replace(result, verdicts=tuple(verdicts)), tmp_path)
    found = am.recheck(am.read_bundle(tmp_path), result.head)
    spoilt = [new.class_id for new, old in zip(verdicts, result.verdicts, strict=True) if new is not old]
    assert spoilt
    assert [failure.key for failure in found.failures] == spoilt


def with_another_weight(verdict: am.Verdict) -> am.Verdict:
    certificate = verdict.certificate
    if certificate is None or not certificate.whole:
        return verdict
    first, *rest = certificate.whole
    return replace(verdict, certificate=replace(certificate, whole=(first + 1, *rest)))


def test_verify_writes_whole_weights_when_asked(tmp_path: Path, command: Command) -> None:
    np.savez(tmp_path / "head.npz", W=deep_head().weight)
    asked = ("verify", tmp_path / "head.npz", "--domain", "everywhere", "--no-db", "--rational")
    assert command(*asked).code == 2
    assert command(*asked, "--output", tmp_path / "proofs").code == 1
    assert '"weights": ["0x' in (tmp_path / "proofs" / "verdicts.jsonl").read_text().replace(":[", ": [")
    assert command("check", tmp_path / "proofs", tmp_path / "head.npz").code == 0


THIN = am.Head(np.array([[3.0, -1.0], [-3.0, -1.0], [0.0, 0.0]]), np.array([-1.0, 1.0, 0.0]))
BOX = am.Box(0.0, [1.0, 2.0**-60])


@pytest.mark.parametrize(
    ("numbers", "exponent", "proven"),
    [
        ((round(Fraction(2**80, 3)), 2**20), -80, True),
        ((round(Fraction(2**80, 3)) + 2**21, 2**20), -80, False),  # too far from 1/3
        ((round(Fraction(2**80, 3)), 2**20 + 1), -80, False),  # outside the box
        ((round(Fraction(2**80, 3)),), -80, False),  # too short
    ],
)
def test_a_fine_point_is_a_witness_where_float64_is_too_coarse(
    numbers: tuple[int, ...], exponent: int, proven: bool, tmp_path: Path
) -> None:
    result = am.verify(THIN, BOX, engine=ENGINE)
    settled = replace(
        result.verdicts[2], status=am.Status.ARGMAXABLE, lower=2.0**-62, upper=np.inf, certificate=None,
        witness=am.FinePoint(numbers, exponent), reason="",
    )  # fmt: skip
    am.write_bundle(replace(result, verdicts=(*result.verdicts[:2], settled)), tmp_path)
    found = am.recheck(am.read_bundle(tmp_path), THIN)
    assert [failure.key for failure in found.failures] == ([] if proven else [2])
    assert found.contradictions == ()


# 3x − 4 wins against 0 and (3 + q)x − (4 + p) for 4/3 < x < p/q alone; no float64 lies there.
STEEP = 2**52 + 1
BETWEEN = am.Head([[3.0], [0.0], [3.0 + STEEP]], [-4.0, 0.0, -4.0 - (4 * STEEP + 1) // 3])


@pytest.mark.parametrize(
    ("head", "domain", "thin"),
    [(THIN, BOX, 2), (BETWEEN, am.Box(-100, 100), 0), (BETWEEN, am.Everywhere(), 0)],
)
def test_verify_finds_witnesses_that_float64_is_too_coarse_for(
    head: am.Head, domain: am.Domain, thin: int, tmp_path: Path
) -> None:
    result = am.verify(head, domain, engine=ENGINE)
    verdict = result.verdicts[thin]
    assert verdict.status is am.Status.ARGMAXABLE
    assert isinstance(verdict.witness, am.FinePoint)
    assert verdict.method is am.Method.SIMPLEX
    assert result.undecided == ()
    am.write_bundle(result, tmp_path / "proofs")
    found = am.recheck(am.read_bundle(tmp_path / "proofs"), head)
    assert (found.failures, found.contradictions, found.undecided) == ((), (), 0)
    np.savez(tmp_path / "head.npz", W=head.weight, b=head.bias)
    script = Path(__file__).parents[2] / "docs" / "checker.py"
    command = [sys.executable, script, tmp_path / "proofs", tmp_path / "head.npz"]
    assert subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == 0


def test_a_run_with_such_a_witness_is_stored_and_read_back(tmp_path: Path) -> None:
    with am.open_store(str(tmp_path / "runs.db")) as store:
        result = am.verify(THIN, BOX, engine=ENGINE, store=store)
        stored = list(store.verdicts(store.runs()[0].run_id))
        assert store.check().is_sound
    before, after = result.verdicts[2].witness, stored[2].witness
    assert isinstance(before, am.FinePoint)
    assert isinstance(after, am.FinePoint)
    assert (after.integers, after.exponent) == (before.integers, before.exponent)


# ---------------------------------------------------------------------- a single point


@pytest.mark.parametrize("bias", [None, [0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
@pytest.mark.parametrize("at", [0.0, 1.0, -1.0])
def test_identical_classes_at_a_single_point_are_not_proven_by_themselves(
    bias: list[float] | None, at: float, tmp_path: Path
) -> None:
    of = am.Head(np.array([[1.0], [1.0], [0.0]]), bias)
    result = am.verify(of, am.Box(at, at), engine=ENGINE)
    for verdict in result.verdicts:
        assert verdict.certificate is None or verdict.class_id not in verdict.certificate.classes
    am.write_bundle(result, tmp_path)
    assert am.recheck(am.read_bundle(tmp_path), of) == am.Recheck(3, 0, 0, ())
