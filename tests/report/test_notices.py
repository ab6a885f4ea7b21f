"""Notices as JUnit, SARIF and workflow lines: well-formed whatever a label holds."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from argmaxable.core.labels import visible
from argmaxable.report.notices.github import step_summary, workflow_lines
from argmaxable.report.notices.junit import junit
from argmaxable.report.notices.notice import Level, ModelNotices, Notice, shown_file
from argmaxable.report.notices.sarif import sarif

AWKWARD = ["::error::x", "##[error]x", "a,b:c%0A", "</pre><b>", "]]>", "&amp;", "\x00\x1b\ud800\uffff\n", '"']


def notice(level: Level, label: str = "x", *, is_new: bool | None = None) -> Notice:
    title = f"{visible(label)} can never be predicted"
    return Notice("unargmaxable-class", label, level, title, "Proven.", is_new, "in the baseline b.json")


def model(*notices: Notice, file: str | None = "models/a b.onnx") -> ModelNotices:
    return ModelNotices("a b.onnx", file, notices, "3 of 4 classes can be predicted", 1.5)


MIXED = model(
    notice(Level.ERROR, "e", is_new=True),
    notice(Level.WARNING, "w", is_new=True),
    notice(Level.NOTE, "n", is_new=True),
    notice(Level.ACCEPTED, "k", is_new=False),
)
RULES = {"unargmaxable-class": "A class that no input can make the argmax."}


# ---------------------------------------------------------------------- junit


def test_junit_counts_what_it_lists() -> None:
    (suite,) = ElementTree.fromstring(junit([MIXED]))
    assert (suite.tag, suite.get("name"), suite.get("time")) == ("testsuite", "a b.onnx", "1.500")
    cases = suite.findall("testcase")
    assert suite.get("tests") == str(len(cases)) == "5"
    assert suite.get("failures") == str(len(suite.findall("testcase/failure"))) == "1"
    assert suite.get("skipped") == str(len(suite.findall("testcase/skipped"))) == "1"
    assert all(case.get("name") and case.get("classname") for case in cases)


def test_junit_names_the_class_in_the_failure() -> None:
    (failure,) = ElementTree.fromstring(junit([MIXED])).iter("failure")
    assert (failure.get("message"), failure.text) == ("e can never be predicted", "Proven.")


@pytest.mark.parametrize("label", AWKWARD)
def test_junit_is_well_formed_whatever_a_label_holds(label: str) -> None:
    (failure,) = ElementTree.fromstring(junit([model(notice(Level.ERROR, label))])).iter("failure")
    assert failure.get("message") == f"{visible(label)} can never be predicted"


# ---------------------------------------------------------------------- sarif


def run_of(*notices: Notice, file: str | None = "models/a b.onnx") -> dict[str, Any]:
    log = json.loads(sarif([model(*notices, file=file)], RULES))
    assert (log["version"], len(log["runs"])) == ("2.1.0", 1)
    run = log["runs"][0]
    assert isinstance(run, dict)
    return run


def test_sarif_has_what_the_schema_and_code_scanning_require() -> None:
    run = run_of(*MIXED.notices)
    driver = run["tool"]["driver"]
    assert driver["name"] == "argmaxable"
    assert [rule["id"] for rule in driver["rules"]] == list(RULES)
    for result in run["results"]:
        assert result["message"]["text"]
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        (location,) = result["locations"]
        place = location["physicalLocation"]
        assert place["artifactLocation"]["uri"] == "models/a%20b.onnx"
        assert place["region"]["startLine"] == 1
    assert [result["level"] for result in run["results"]] == ["error", "warning", "note", "note"]


def test_sarif_says_what_is_new_and_what_is_accepted() -> None:
    results = run_of(*MIXED.notices)["results"]
    assert [result["baselineState"] for result in results] == ["new", "new", "new", "unchanged"]
    assert [result.get("suppressions") for result in results[:3]] == [None] * 3
    (suppression,) = results[3]["suppressions"]
    assert suppression == {"kind": "external", "justification": "in the baseline b.json"}
    assert "baselineState" not in run_of(notice(Level.ERROR))["results"][0]


def test_sarif_tells_findings_apart_and_finds_them_again() -> None:
    def prints(*notices: Notice) -> list[str]:
        return [result["partialFingerprints"]["argmaxable/v1"] for result in run_of(*notices)["results"]]

    assert len(set(prints(*(notice(Level.ERROR, label) for label in AWKWARD)))) == len(AWKWARD)
    assert prints(notice(Level.ERROR)) == prints(notice(Level.ACCEPTED))


def test_sarif_names_a_model_that_is_not_a_file_here() -> None:
    (result,) = run_of(notice(Level.ERROR), file=None)["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%20b.onnx"


# ---------------------------------------------------------------------- github


def commands(*notices: Notice) -> list[str]:
    return workflow_lines([], [model(*notices)])[2:]


def test_a_workflow_line_names_file_and_class() -> None:
    assert commands(notice(Level.ERROR, "e")) == [
        "::error file=models/a b.onnx,title=e can never be predicted::a b.onnx: Proven."
    ]


def test_a_file_name_can_not_turn_the_line_round() -> None:
    (line,) = workflow_lines([], [model(notice(Level.ERROR, "e"), file="a\u202eb.onnx")])[2:]
    assert "\u202e" not in line
    assert "file=a\\u{202e}b.onnx" in line


def test_what_is_accepted_is_not_annotated() -> None:
    assert [line.split(" ")[0] for line in commands(*MIXED.notices)] == ["::error", "::warning", "::notice"]


@pytest.mark.parametrize("label", AWKWARD)
def test_a_label_stays_inside_its_annotation(label: str) -> None:
    (line,) = commands(notice(Level.ERROR, label))
    found = re.fullmatch(r"::error file=models/a b\.onnx,title=([^:,]*)::a b\.onnx: Proven\.", line)
    assert found is not None
    title = found[1].replace("%2C", ",").replace("%3A", ":").replace("%25", "%")
    assert title == f"{visible(label)} can never be predicted"


def test_commands_are_off_in_the_text_and_nobody_can_guess_how_to_turn_them_on() -> None:
    first, second = (workflow_lines(["::error::fake"], []) for _ in range(2))
    found = re.fullmatch(r"::stop-commands::([0-9a-f]{32})", first[0])
    assert found is not None
    assert first[1:] == ["::error::fake", f"::{found[1]}::"]
    assert first[0] != second[0]


def test_of_many_annotations_the_tenth_says_how_many_are_left() -> None:
    lines = commands(*(notice(Level.ERROR, str(place)) for place in range(30)))
    assert len(lines) == 10
    assert lines[9] == "::error title=argmaxable::… and 21 more: see the log and the summary."
    assert len(commands(*(notice(Level.ERROR, str(place)) for place in range(10)))) == 10


def test_nothing_in_a_summary_is_markup() -> None:
    text = step_summary("<img>", AWKWARD)
    assert text.count("<") == 2 + text.count("\\<")
    assert "</pre>" not in text.removesuffix("</pre>\n\n")


# ---------------------------------------------------------------------- files


def test_only_files_below_the_working_directory_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    for place in (tmp_path / "here" / "a.npz", tmp_path / "b.npz"):
        place.write_bytes(b"")
    monkeypatch.chdir(tmp_path / "here")
    assert shown_file("a.npz") == shown_file(str(tmp_path / "here" / "a.npz")) == "a.npz"
    assert shown_file(str(tmp_path / "b.npz")) is shown_file("org/name") is None
