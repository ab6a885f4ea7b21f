"""Rulings: which classes make a run fail, against a baseline and an allow-list."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from keeping import BOX, CORNERS, LABELS, keep, lossy

import argmaxable as am
from argmaxable.cli.stored_runs import find_run
from argmaxable.core.verdict import Status
from argmaxable.proofs.bundle import write_bundle
from argmaxable.report.rows import as_rows, write_csv, write_jsonl
from argmaxable.report.text import as_record
from argmaxable.store import open_store
from argmaxable.workflow.gate.allowed import Allowed, AllowList
from argmaxable.workflow.gate.baseline import Baseline, BaselineChoice, find_baseline
from argmaxable.workflow.gate.ruling import FailOn, Ruling, rule


def verified(head: am.Head) -> am.Result:
    return am.verify(head, BOX, engine=am.Engine(workers=1))


def moved(*, name: str = "lossy.npz", labels: Sequence[str] | None = LABELS) -> am.Head:
    """The lossy head after a bad change: é went inside, the middle went out."""
    weight = CORNERS.copy()
    weight[1], weight[4] = [0.125, 0.25], [3.0, 0.0]
    return am.Head(weight, np.zeros(6), labels, name=name)


def stopped(result: am.Result) -> am.Result:
    """The result as if time had run out before the second class."""
    second = replace(result.verdicts[1], status=Status.UNDECIDED, lower=-1.0, upper=1.0)
    return replace(result, verdicts=(result.verdicts[0], second, *result.verdicts[2:]), is_complete=False)


def baseline_of(result: am.Result) -> Baseline:
    return Baseline("before", str(result.domain), result.verdicts)


def failing(ruling: Ruling) -> list[str]:
    return [verdict.label for verdict in ruling.failing]


OLD, NEW = verified(lossy()), verified(moved())


def test_a_baseline_makes_only_new_unargmaxable_classes_fail() -> None:
    ruling = rule(NEW, FailOn.NEW, baseline=baseline_of(OLD))
    assert (failing(ruling), ruling.exit_code) == (["é"], 1)
    assert [verdict.label for verdict in ruling.known] == ["a", "😀"]
    assert ruling.change is not None
    assert [verdict.label for verdict in ruling.change.recovered] == ["middle"]


def test_an_unchanged_head_passes_although_classes_are_unargmaxable() -> None:
    ruling = rule(OLD, FailOn.NEW, baseline=baseline_of(OLD))
    assert (failing(ruling), ruling.exit_code) == ([], 0)


def test_a_class_that_the_baseline_does_not_have_is_new() -> None:
    head = am.Head(np.vstack([CORNERS, [[0.0, 0.25]]]), np.zeros(7), (*LABELS, "added"), name="h")
    assert failing(rule(verified(head), FailOn.NEW, baseline=baseline_of(OLD))) == ["added"]


def test_a_class_that_was_undecided_in_the_baseline_is_new() -> None:
    ruling = rule(NEW, FailOn.NEW, baseline=baseline_of(stopped(NEW)))
    assert failing(ruling) == ["é"]


def test_a_class_that_changed_its_number_is_not_new() -> None:
    order = [5, 4, 3, 2, 1, 0]
    turned = am.Head(CORNERS[order], np.zeros(6), tuple(LABELS[place] for place in order), name="h")
    assert failing(rule(verified(turned), FailOn.NEW, baseline=baseline_of(OLD))) == []


@pytest.mark.parametrize(
    ("fail_on", "code", "when_stopped"),
    [(FailOn.UNDECIDED, 1, 3), (FailOn.UNARGMAXABLE, 1, 1), (FailOn.NEW, 0, 3), (FailOn.NONE, 0, 0)],
)
def test_what_fails_is_chosen(fail_on: FailOn, code: int, when_stopped: int) -> None:
    assert rule(OLD, fail_on, baseline=baseline_of(OLD)).exit_code == code
    assert rule(stopped(OLD), fail_on, baseline=baseline_of(OLD)).exit_code == when_stopped


def test_undecided_classes_of_a_whole_run_fail_only_where_that_is_wanted() -> None:
    result = replace(stopped(verified(am.Head(CORNERS[:4], name="h"))), is_complete=True)
    codes = [rule(result, each, baseline=baseline_of(OLD)).exit_code for each in FailOn]
    assert codes == [3, 0, 0, 0]


# ---------------------------------------------------------------------- allow-lists


def allowed(tmp_path: Path, text: str, result: am.Result) -> Allowed:
    path = tmp_path / "allow.txt"
    path.write_text(text, encoding="utf-8")
    return AllowList.read(path).of(result)


def test_labels_and_numbers_may_be_allowed(tmp_path: Path) -> None:
    found = allowed(tmp_path, "# ties of the tokenizer\na\r\n\n4\n😀\n", OLD)
    assert (found.classes, found.unused) == ({0, 4, 5}, ())
    assert rule(OLD, FailOn.UNDECIDED, allowed=found).exit_code == 0


def test_a_number_that_is_a_label_is_taken_for_the_label(tmp_path: Path) -> None:
    result = verified(am.Head(CORNERS, np.zeros(6), ("5", "1", "2", "3", "4", "x"), name="h"))
    assert allowed(tmp_path, "5\n", result).classes == {0}


def test_entries_that_no_failing_class_needs_are_told(tmp_path: Path) -> None:
    found = allowed(tmp_path, "gone\nc\n77\n99999999999\nmiddle\n", OLD)
    assert (found.classes, found.unused) == ({4}, ("gone", "c", "77", "99999999999"))


def test_a_label_may_be_written_as_it_is_printed(tmp_path: Path) -> None:
    labels = ("\u200b", "1", "2", "3", " a ", "x")
    result = verified(am.Head(CORNERS, np.zeros(6), labels, name="h"))
    assert allowed(tmp_path, "\\u{200b}\n' a '\n", result).classes == {0, 4}


def test_allowed_classes_may_be_undecided_too(tmp_path: Path) -> None:
    result = replace(stopped(OLD), is_complete=True)
    found = allowed(tmp_path, "é\na\nmiddle\n😀\n", result)
    assert rule(result, FailOn.UNDECIDED, allowed=found).exit_code == 0


# ---------------------------------------------------------------------- where baselines come from


def choice(named: str | Path, db: Path) -> BaselineChoice:
    return find_baseline(str(named), opened=partial(open_store, str(db)), find_run=find_run)


def write_baseline(kind: str, folder: Path, result: am.Result) -> Path:
    path = folder / ("proofs" if kind == "bundle" else f"baseline.{kind}")
    if kind == "bundle":
        write_bundle(result, path)
    elif kind == "json":
        path.write_text(json.dumps(as_record(result)), encoding="utf-8")
    else:
        with path.open("w", encoding="utf-8", newline="") as stream:
            rows = as_rows(result.facts.name, result.verdicts)
            (write_csv if kind == "csv" else write_jsonl)(rows, stream)
    return path


@pytest.mark.parametrize("kind", ["json", "jsonl", "csv", "bundle"])
@pytest.mark.parametrize("labels", [LABELS, None, ("x", "x", "x", "x", "x", "y")])
def test_every_kind_of_file_gives_the_same_ruling(
    tmp_path: Path, kind: str, labels: tuple[str, ...] | None
) -> None:
    before, after = verified(lossy(labels=labels)), verified(moved(labels=labels))
    read = choice(write_baseline(kind, tmp_path, before), tmp_path / "runs.db")
    assert failing(rule(before, FailOn.NEW, baseline=read(before.facts))) == []
    ruling = rule(after, FailOn.NEW, baseline=read(after.facts))
    assert [verdict.class_id for verdict in ruling.failing] == [1]


def test_a_stored_run_is_a_baseline_by_number_and_by_name(tmp_path: Path) -> None:
    db = tmp_path / "runs.db"
    keep(db, lossy())
    for named in ("1", "lossy.npz"):
        assert failing(rule(NEW, FailOn.NEW, baseline=choice(named, db)(NEW.facts))) == ["é"]


def test_by_name_a_run_is_not_judged_against_itself(tmp_path: Path) -> None:
    """The second call of one command must not pass because the first one stored its run."""
    db = tmp_path / "runs.db"
    keep(db, lossy())
    keep(db, moved())
    assert choice("lossy.npz", db)(NEW.facts).name == "run 1"
    assert choice("2", db)(NEW.facts).name == "run 2"


def test_of_a_table_with_several_models_the_one_of_the_same_name_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "baseline.jsonl"
    with path.open("w", encoding="utf-8") as stream:
        for result in (verified(moved(name="other")), OLD):
            write_jsonl(as_rows(result.facts.name, result.verdicts), stream)
    read = choice(path, tmp_path / "runs.db")
    assert failing(rule(NEW, FailOn.NEW, baseline=read(NEW.facts))) == ["é"]
    with pytest.raises(am.InputError, match="none of them is third"):
        read(verified(moved(name="third")).facts)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("b.json", "{}", "is not what `argmaxable verify --json` prints"),
        ("b.json", "[1]", "is not what `argmaxable verify --json` prints"),
        ("b.json", '{"unargmaxable_classes": [3], "undecided_classes": [], "domain": ""}', "verify --json"),
        ("b.jsonl", "", "is empty"),
        ("b.jsonl", '{"class": 1}', "is not what `argmaxable export` writes"),
        ("b.csv", "a,b\n1,2\n", "expected the headings"),
    ],
)
def test_a_file_that_is_no_baseline_says_what_one_is(tmp_path: Path, name: str, text: str, said: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(am.InputError, match=said):
        choice(path, tmp_path / "runs.db")


def test_a_missing_file_says_how_to_write_one(tmp_path: Path) -> None:
    with pytest.raises(am.InputError, match=r"verify MODEL --json --fail-on none > baseline\.json"):
        choice(tmp_path / "baseline.json", tmp_path / "runs.db")
