"""argmaxable figure: files, and clear errors for what makes no sense."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from keeping import keep, keep_some, lossy
from running import Command, is_one_clear_line

import argmaxable as am
from argmaxable.core.verdict import Status
from argmaxable.models.random_heads import random_head
from argmaxable.report.figures import gallery
from argmaxable.report.published import UNNUMBERED
from argmaxable.store import PublishedVerdict, open_store

QUICK = {
    "decision-regions": ["--extent", "2"],
    "hull": ["--dims", "2", "--classes", "9", "--seed", "3"],
    "reflections": [],
    "braid": [],
    "slices": [],
    "construction": [],
    "random-heads": ["--classes", "12", "--dims", "2,3", "--seeds", "1"],
    "plif": ["--bins", "5", "--seed", "2"],
}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A head with two features and four classes, as a file."""
    path = tmp_path / "head.npz"
    np.savez(
        path,
        weight=np.array([[1.0, 1.9], [0, 0.5], [-1.7, 0.8], [0.8, -1.8]]),
        bias=np.ones(4) / [1, 2, 3, 4],
    )
    return path


@pytest.mark.parametrize("name", QUICK)
def test_a_figure_is_written(name: str, command: Command, tmp_path: Path) -> None:
    path = tmp_path / "figure.svg"
    ran = command("figure", name, *QUICK[name], "--title", "Heading", "-o", path)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == f"Figure: {path}\n"
    assert "Heading</text>" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["decision-regions", "hull", "reflections", "slices", "construction"])
def test_a_figure_can_be_about_a_model(name: str, model: Path, command: Command, tmp_path: Path) -> None:
    assert command("figure", name, model, "--output", tmp_path / "figure.PNG").code == 0
    assert (tmp_path / "figure.PNG").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["counts", "steps", "steps-needed"])
def test_runs_are_named_by_number_or_model(
    name: str, command: Command, database: Path, tmp_path: Path
) -> None:
    number = keep(database, lossy())
    keep(database, random_head(6, 2, seed=0))
    path = tmp_path / "figure.svg"
    assert command("figure", name, str(number), "random normal head, seed 0", "-o", path).code == 0
    page = path.read_text(encoding="utf-8")
    assert "lossy.npz" in page
    assert "random normal head" in page


def test_a_list_gives_runs_other_names(command: Command, database: Path, tmp_path: Path) -> None:
    keep(database, lossy())
    (tmp_path / "runs.txt").write_text("[Group]\nlossy.npz = My model\n", encoding="utf-8")
    path = tmp_path / "figure.svg"
    assert command("figure", "counts", "--runs", tmp_path / "runs.txt", "-o", path).code == 0
    assert "My model" in path.read_text(encoding="utf-8")


def test_a_database_stands_for_the_newest_whole_run_of_each_head(command: Command, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    keep(other, lossy(name="older"))
    keep(other, lossy(name="newer"), seed=1)
    keep_some(other, random_head(6, 2, seed=0), (1,))
    path = tmp_path / "figure.svg"
    assert command("figure", "counts", "--runs", other, "-o", path).code == 0
    page = path.read_text(encoding="utf-8")
    assert "unargmaxable classes in 1 of 1 runs" in page


def test_models_of_one_name_are_told_apart_by_their_runs(
    command: Command, database: Path, tmp_path: Path
) -> None:
    for seed in (0, 1):
        head = random_head(5, 2, seed=seed)
        keep(database, am.Head(head.weight, name="model.onnx"))
    path = tmp_path / "figure.svg"
    assert command("figure", "counts", "-o", path).code == 0
    page = path.read_text(encoding="utf-8")
    assert "model.onnx (run 1)" in page
    assert "model.onnx (run 2)" in page


def test_all_writes_the_whole_set(
    command: Command, database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gallery, "RANDOM_CLASSES", 20)  # half a second instead of twenty
    keep(database, lossy(), family="Family")
    rows = [PublishedVerdict(UNNUMBERED, "a", Status.ARGMAXABLE)]
    with open_store(str(database)) as store:
        store.add_published("m", origin="", family="", task="", rows=rows, domain=am.Box(-1.0, 1.0))
    folder = tmp_path / "new" / "folder"
    ran = command("figure", "all", "--title", "T", "--format", "png", "-o", folder)
    assert ran.code == 0
    assert ran.err == "No figure of steps: m: its verdicts were published without the classes' numbers.\n"
    assert {path.name for path in folder.iterdir()} == {
        f"{name}.png"
        for name in (
            "braid", "braid-bias", "construction", "counts", "decision-regions", "decision-regions-bias",
            "hull-2d", "hull-3d", "plif", "random-heads", "reflections", "slices", "steps-Family",
            "steps-needed-Family",
        )
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["braid", "-o", "f.gif"], "not 'f.gif'"),
        (["braid", "--bins", "3", "-o", "f.svg"], "figure braid does not take --bins"),
        (["plif", "model.npz", "-o", "f.svg"], "figure plif does not take 'model.npz'"),
        (["all", "3", "-o", "figures"], "figure all does not take '3'"),
        (["hull", "--dims", "4", "-o", "f.svg"], "2 or 3 features, not 4"),
        (["hull", "--dims", "2,3", "-o", "f.svg"], "takes 1 number"),
        (["random-heads", "--dims", "2,x", "-o", "f.svg"], "expected numbers of features"),
        (["random-heads", "--dims", "0", "-o", "f.svg"], "expected numbers of features"),
        (["decision-regions", "a.npz", "b.npz", "-o", "f.svg"], "takes one MODEL, found 2"),
        (["decision-regions", "a.npz", "--bias", "-o", "f.svg"], "--bias chooses an example"),
        (["hull", "HEAD", "--seed", "1", "-o", "f.svg"], "draw a random head"),
        (["counts", "-o", "f.svg"], "there is no database"),
        (["steps", "7", "-o", "f.svg"], "there is no database"),
        (["steps", "7", "--runs", "list.txt", "-o", "f.svg"], "pass RUN or --runs, not both"),
        (["steps", "--runs", "missing.txt", "-o", "f.svg"], "can't read missing.txt"),
    ],
)
def test_bad_arguments_are_one_clear_line(
    arguments: list[str],
    why: str,
    model: Path,
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = command("figure", *(str(model) if word == "HEAD" else word for word in arguments))
    assert ran.code == 2
    assert is_one_clear_line(ran)
    assert why in ran.err


def test_a_run_that_is_not_there_is_named(database: Path, command: Command, tmp_path: Path) -> None:
    keep(database, lossy(), family="Family")
    ran = command("figure", "steps", "77", "-o", tmp_path / "f.svg")
    assert (ran.code, is_one_clear_line(ran)) == (2, True)
    assert "run 77 does not exist" in ran.err


def test_without_matplotlib_the_extra_is_named(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name, target in (("plif", "figure.png"), ("all", "folder")):
        ran = command("figure", name, "-o", tmp_path / target)
        assert ran.code == 2
        assert "pip install 'argmaxable[plot]'" in ran.err
