"""argmaxable card: a section that people read, and metadata that the hub's own library reads back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from huggingface_hub import ModelCard
from keeping import CORNERS, keep, keep_some, lossy

import argmaxable as am
from argmaxable.cli.app import app

NASTY = ("a: b", "---", "| `x` <b>", '"quoted"', "line\nbreak", "# 词")


def run(*words: str) -> str:
    done = CliRunner().invoke(app, ["card", *words])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Run 1 is finished, its labels are unpleasant; run 2 was stopped."""
    path = tmp_path_factory.mktemp("kept") / "runs.db"
    keep(path, lossy(name="na: sty", labels=NASTY))
    keep_some(path, lossy(), (0, 1, 5))
    return str(path)


def test_the_hubs_library_reads_the_entry_back(db: str) -> None:
    card = ModelCard(run("1", "--db", db, "--task", "image-to-text"))
    found = {result.metric_type: result for result in card.data.eval_results}
    assert card.data.model_name == "na: sty"
    assert {kind: result.metric_value for kind, result in found.items()} == {
        "classes": 6, "unargmaxable_classes": 3, "undecided_classes": 0,
    }  # fmt: skip
    assert {result.task_type for result in found.values()} == {"image-to-text"}
    assert found["classes"].dataset_name == "every input of the domain box ±100"


def test_classes_without_a_verdict_count_as_undecided(db: str) -> None:
    metadata = yaml.safe_load(run("2", "--db", db, "--part", "metadata"))
    metrics = metadata["model-index"][0]["results"][0]["metrics"]
    assert {metric["type"]: metric["value"] for metric in metrics}["undecided_classes"] == 3


def test_the_section_has_the_answer_and_how_to_check_it(db: str) -> None:
    text = run("1", "--db", db, "--part", "section")
    assert "**3 of 6 classes can never be predicted for features within ±100.**" in text
    assert "2 of them tie with classes that have identical rows." in text
    assert "$ argmaxable export 1 --format bundle -o proofs" in text
    assert [line for line in text.splitlines() if line.startswith("---")] == []


def test_a_model_is_verified_and_its_card_written_to_a_file(tmp_path: Path) -> None:
    np.savez(tmp_path / "head.npz", W=CORNERS)
    run(str(tmp_path / "head.npz"), "--domain", "box:7", "--no-db", "-o", str(tmp_path / "README.md"))
    card = ModelCard.load(tmp_path / "README.md")
    assert card.data.eval_results[1].metric_value == 3
    assert "box ±7" in card.content


def test_a_bundle_says_that_it_was_not_checked(tmp_path: Path) -> None:
    am.write_bundle(am.verify(lossy(), engine=am.Engine(workers=1)), tmp_path / "proofs")
    assert "were not checked again" in run(str(tmp_path / "proofs"), "--part", "section")


def test_an_unknown_name_is_an_error(db: str) -> None:
    done = CliRunner().invoke(app, ["card", "nothing", "--db", db])
    assert done.exit_code != 0
