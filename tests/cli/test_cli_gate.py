"""verify and compare in a workflow: --baseline, --allow, --fail-on, --format; and the Action."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from keeping import CORNERS, LABELS
from running import Command, is_one_clear_line, without_progress

ROOT = Path(__file__).parent.parent.parent


def write(path: Path, change: dict[int, list[float]] | None = None) -> Path:
    """Four corners, their centre, and a twin of the first; some rows changed."""
    weight = CORNERS.copy()
    for class_id, row in (change or {}).items():
        weight[class_id] = row
    np.savez(path, W=weight, b=np.zeros(6), labels=np.array(LABELS))
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write(tmp_path / "model.npz")


@pytest.fixture
def worse(tmp_path: Path) -> Path:
    """é went inside."""
    return write(tmp_path / "worse.npz", {1: [0.125, 0.25]})


@pytest.fixture
def baseline(command: Command, model: Path, tmp_path: Path) -> Path:
    path = tmp_path / "baseline.json"
    ran = command("verify", model, "--no-db", "--json", "--fail-on", "none")
    assert ran.code == 0
    path.write_text(ran.out, encoding="utf-8")
    return path


# ---------------------------------------------------------------------- verify


def test_a_head_that_got_worse_fails_against_the_baseline(
    command: Command, worse: Path, baseline: Path
) -> None:
    ran = command("verify", worse, "--baseline", baseline)
    assert ran.code == 1
    assert "  1 class can never be predicted now: é\n" in ran.out
    said = "1 class can never be predicted for features within ±100, new since the baseline."
    assert f"FAIL (--fail-on new): {said}" in ran.out


def test_a_head_with_no_new_classes_passes(command: Command, model: Path, baseline: Path) -> None:
    ran = command("verify", model, "--baseline", baseline)
    assert ran.code == 0
    assert "PASS (--fail-on new): none of 3 is new." in ran.out


def test_json_has_the_ruling(command: Command, worse: Path, baseline: Path) -> None:
    gate = command("verify", worse, "--baseline", baseline, "--json").record["gate"]
    assert (gate["fail_on"], gate["exit_code"], gate["new"]) == ("new", 1, [{"class": 1, "label": "é"}])


def test_another_domain_of_the_baseline_is_said(command: Command, model: Path, baseline: Path) -> None:
    ran = command("verify", model, "--baseline", baseline, "--domain", "everywhere")
    assert "  The baseline is about another domain: box ±100." in ran.out


def test_a_run_is_a_baseline_and_not_of_itself(command: Command, model: Path, tmp_path: Path) -> None:
    """Twice: the first call stores the run that the second must not take for the baseline."""
    assert command("verify", model).code == 1
    write(model, {1: [0.125, 0.25]})
    codes = [command("verify", model, "--baseline", named).code for named in ["model.npz"] * 2 + ["1"]]
    assert codes == [1, 1, 1]


def test_what_is_allowed_does_not_fail(command: Command, model: Path, tmp_path: Path) -> None:
    listed = tmp_path / "allow.txt"
    listed.write_text("a\nmiddle\n5\nold\n", encoding="utf-8")
    ran = command("verify", model, "--allow", listed)
    assert ran.code == 0
    assert "Allowed by" in ran.out
    assert "Not needed in" in ran.out
    listed.write_text("a\nmiddle\n", encoding="utf-8")
    assert command("verify", model, "--allow", listed).code == 1


@pytest.mark.parametrize(("fail_on", "code"), [("undecided", 1), ("unargmaxable", 1), ("none", 0)])
def test_what_fails_can_be_chosen(command: Command, model: Path, fail_on: str, code: int) -> None:
    assert command("verify", model, "--fail-on", fail_on).code == code


def test_without_these_options_the_answer_says_nothing_of_passing(command: Command, model: Path) -> None:
    ran = command("verify", model)
    assert ran.code == 1
    assert "FAIL" not in ran.out
    assert "gate" not in command("verify", model, "--json").record


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--fail-on", "new"], "add --baseline"),
        (["--baseline", "nowhere.json"], "no such file"),
        (["--baseline", "unheard of"], "there is no database"),
        (["--baseline", "77"], "there is no database"),
        (["--allow", "nowhere.txt"], "can't read it"),
        (["--json", "--format", "junit"], "can't be used together"),
    ],
)
def test_a_wrong_wish_is_one_clear_line(command: Command, model: Path, options: list[str], said: str) -> None:
    ran = command("verify", model, *options)
    assert ran.code == 2
    assert is_one_clear_line(ran)
    assert said in ran.err


def test_formats_name_the_class_that_fails(command: Command, worse: Path, baseline: Path) -> None:
    asked = ("verify", worse, "--baseline", baseline, "--format")
    ran = command(*asked, "junit")
    (failure,) = ElementTree.fromstring(ran.out).iter("failure")
    assert (ran.code, failure.get("message")) == (
        1,
        "Class 1 é can never be predicted for features within ±100",
    )
    ran = command(*asked, "sarif")
    results = json.loads(ran.out)["runs"][0]["results"]
    assert [(each["level"], each["baselineState"]) for each in results] == [
        ("note", "unchanged"), ("error", "new"), ("note", "unchanged"), ("note", "unchanged")
    ]  # fmt: skip
    ran = command(*asked, "github")
    (error,) = re.findall("^::error.*", ran.out, re.MULTILINE)
    assert "title=Class 1 é can never be predicted for features within ±100::" in error


def test_the_answer_can_be_added_to_a_summary(command: Command, model: Path, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("earlier\n", encoding="utf-8")
    command("verify", model, "--format", "github", "--summary", summary)
    text = summary.read_text(encoding="utf-8")
    assert text.startswith("earlier\n### model.npz\n\n<pre>\n")
    assert "3 of 6 classes can never be predicted" in text


def test_the_doctor_speaks_these_formats_too(command: Command, model: Path) -> None:
    for form in ("junit", "sarif", "github"):
        ran = command("doctor", model, "--format", form)
        assert ran.code == 1
        assert "2 classes with the weights of another class" in ran.out
    assert command("doctor", model, "--format", "junit", "--json").code == 2


# ---------------------------------------------------------------------- compare


def test_compare_fails_on_new_unargmaxable_classes_if_asked(
    command: Command, model: Path, worse: Path
) -> None:
    command("verify", model)
    command("verify", worse)
    assert command("compare", "1", "2").code == 0
    assert command("compare", "1", "2", "--fail-on-new").code == 1
    assert command("compare", "2", "1", "--fail-on-new").code == 0


# ---------------------------------------------------------------------- the Action


class Repository:
    """A checkout with a model, and the Action's steps as GitHub runs them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.temp = folder / "checkout", folder / "temp"
        for each in (self.folder, self.temp, folder / "bin"):
            each.mkdir()
        self.action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
        self.summary = self.temp / "summary.md"
        program = folder / "bin" / "argmaxable"
        program.write_text(f"#!{sys.executable}\nfrom argmaxable.cli import main\nmain()\n", encoding="utf-8")
        program.chmod(0o755)
        self.path = f"{program.parent}:{Path(sys.executable).parent}:/usr/bin:/bin"

    def step(self, **inputs: str) -> subprocess.CompletedProcess[str]:
        """The step that runs argmaxable, with its variables filled in from the inputs."""
        (step,) = [each for each in self.action["runs"]["steps"] if each.get("name") == "argmaxable"]
        known = {
            f"inputs.{name}": str(each.get("default", "")) for name, each in self.action["inputs"].items()
        }
        known |= {f"inputs.{name}": value for name, value in inputs.items()} | {"runner.temp": str(self.temp)}
        variables = {name: _filled(text, known) for name, text in step["env"].items()}
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.folder, capture_output=True, text=True, check=False,
            env={
                **variables, "PATH": self.path, "HOME": str(self.temp),
                "PYTHONPATH": os.pathsep.join(sys.path),
                "GITHUB_STEP_SUMMARY": str(self.summary), "GITHUB_ACTIONS": "true", "CI": "true",
            },
        )  # fmt: skip


def _filled(text: str, known: dict[str, str]) -> str:
    return re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda found: known[found[1]], text)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def baseline_in(repository: Repository, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the main branch has: a model with unargmaxable classes, and the baseline that lists them."""
    monkeypatch.chdir(repository.folder)
    write(repository.folder / "model.npz")
    ran = command("verify", "model.npz", "--no-db", "--json", "--fail-on", "none")
    (repository.folder / "baseline.json").write_text(ran.out, encoding="utf-8")


VERIFY: dict[str, Any] = {
    "command": "verify",
    "model": "model.npz\n",
    "arguments": "--baseline baseline.json",
}


def test_a_pull_request_that_loses_a_class_fails_with_an_annotation_that_names_it(
    repository: Repository, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    baseline_in(repository, command, monkeypatch)
    write(repository.folder / "model.npz", {1: [0.125, 0.25]})
    done = repository.step(**VERIFY)
    assert (done.returncode, without_progress(done.stderr)) == (1, "")
    (error,) = re.findall("^::error.*", done.stdout, re.MULTILINE)
    assert error.startswith(
        "::error file=model.npz,title=Class 1 é can never be predicted for features within ±100::"
        "model.npz: Proven"
    )
    assert "1 class can never be predicted now: é" in repository.summary.read_text(encoding="utf-8")
    assert "<html" in (repository.temp / "argmaxable-report" / "1.html").read_text(encoding="utf-8")


def test_a_pull_request_that_loses_none_is_green_although_old_ones_are_unargmaxable(
    repository: Repository, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    baseline_in(repository, command, monkeypatch)
    write(repository.folder / "model.npz", {2: [-1.25, 1.0]})
    done = repository.step(**VERIFY)
    assert (done.returncode, without_progress(done.stderr)) == (0, "")
    assert not re.findall("^::(error|warning)", done.stdout, re.MULTILINE)
    assert "3 of 6 classes can never be predicted" in done.stdout


def test_of_several_models_the_worst_decides_and_each_has_its_report(
    repository: Repository, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    baseline_in(repository, command, monkeypatch)
    write(repository.folder / "other one.npz", {1: [0.125, 0.25]})
    done = repository.step(**VERIFY | {"model": "other one.npz\n\nmodel.npz\n"})
    assert done.returncode == 1
    assert len(list((repository.temp / "argmaxable-report").iterdir())) == 2


def test_a_command_that_is_neither_verify_nor_doctor_is_refused(repository: Repository) -> None:
    done = repository.step(command="rm", model="model.npz")
    assert done.returncode == 2
    assert "command must be verify or doctor" in done.stdout


def test_a_name_cannot_run_anything(repository: Repository) -> None:
    for command in ("verify", "doctor"):
        done = repository.step(command=command, model="$(touch hacked)`touch hacked`;touch hacked\n")
        assert done.returncode == 2
    assert not (repository.folder / "hacked").exists()


def test_a_label_that_is_a_workflow_command_is_only_text(repository: Repository) -> None:
    labels = ["::error::fake", "b", "c", "d", "::set-env name=PATH::x", "::error::fake"]
    np.savez(repository.folder / "model.npz", W=CORNERS, b=np.zeros(6), labels=np.array(labels))
    for command in ("verify", "doctor"):
        lines = repository.step(command=command, model="model.npz").stdout.splitlines()
        token = lines[0].removeprefix("::stop-commands::")
        after = lines[lines.index(f"::{token}::") + 1 :]
        assert after
        assert all(re.match("::(error|warning|notice) (file=model.npz,)?title=", line) for line in after)
