"""Whether unargmaxable classes matter: targets in files, the accuracy they cost, and who wins instead."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from keeping import BOX, CORNERS, LABELS, lossy
from running import Command, is_one_clear_line
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

import argmaxable as am
from argmaxable.core.verdict import Status
from argmaxable.models.labels.tokenizer import read_tokenizer
from argmaxable.questions.impact.occurrence import impact
from argmaxable.questions.impact.targets import DataFormat, Targets, read_targets
from argmaxable.questions.impact.wins import wins
from argmaxable.questions.impact.wording import describe_impact

# One letter a class: m is the middle and never predicted, a and t tie.
LETTERS = ("a", "é", "c", "d", "m", "t")


def verified(head: am.Head) -> am.Result:
    return am.verify(head, BOX, engine=am.Engine(workers=1))


RESULT = verified(lossy(labels=LETTERS))
HEAD = RESULT.head


def targets(tmp_path: Path, text: str, *, name: str = "data.txt", form: DataFormat | None = None) -> Targets:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_targets(path, HEAD, form=form)


# ---------------------------------------------------------------------- reading


def test_a_text_is_counted_by_characters(tmp_path: Path) -> None:
    found = targets(tmp_path, "mad\r\ndam!\n")
    assert found.form is DataFormat.TEXT
    assert (found.counts, found.missing) == ({4: 2, 0: 2, 3: 2}, {"!": 1})


def test_lines_that_are_all_labels_are_a_target_each(tmp_path: Path) -> None:
    found = targets(tmp_path, "m\na\nm\n")
    assert (found.form, found.counts, found.order) == (DataFormat.LABELS, {4: 2, 0: 1}, (4, 0, 4))


def test_lines_that_all_end_in_a_count_weigh_their_text(tmp_path: Path) -> None:
    found = targets(tmp_path, "mad 10 n\nda,m\t3\nm;2.5\n")
    assert found.form is DataFormat.COUNTS
    assert (found.counts, found.missing) == ({4: 15.5, 0: 13, 3: 13}, {",": 3})


def test_a_digit_in_a_text_makes_no_count(tmp_path: Path) -> None:
    assert targets(tmp_path, "mad 10\nmad\n").form is DataFormat.TEXT
    assert targets(tmp_path, "mad 10\n").form is DataFormat.TEXT


def test_how_a_file_is_read_can_be_said(tmp_path: Path) -> None:
    assert targets(tmp_path, "mad 10\nmam 4\n", form=DataFormat.TEXT).total == 11
    assert targets(tmp_path, "mad\nm\n", form=DataFormat.LABELS).missing == {"mad": 1}


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        ("4", {4: 1}),
        ('"m"', {4: 1}),
        ('"mm"', {4: 2}),
        ('[4, "a", 77]', {4: 1, 0: 1}),
        ('{"target": 4, "other": 1}', {4: 1}),
        ('{"labels": ["m", "d"]}', {4: 1, 3: 1}),
        ('{"text": "mad"}', {4: 1, 0: 1, 3: 1}),
    ],
)
def test_json_lines_have_numbers_labels_and_texts(
    tmp_path: Path, line: str, counts: dict[int, float]
) -> None:
    found = targets(tmp_path, f"{line}\n", name="data.jsonl")
    assert (found.form, found.counts) == (DataFormat.JSONL, counts)


@pytest.mark.parametrize("line", ["{", '{"x": 1}', "{}", "true", "1.5", "[[1]]", "null"])
def test_a_line_without_a_target_is_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(am.InputError, match=r"data\.jsonl, line 2: "):
        targets(tmp_path, f"4\n{line}\n", name="data.jsonl")


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(am.InputError, match="there is nothing in it"):
        targets(tmp_path, "\n\n")


def test_a_text_for_labels_that_are_words_needs_a_tokenizer(tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.write_text("middle of it\n", encoding="utf-8")
    words = am.Head(CORNERS, np.zeros(6), ("alpha", "beta", "gamma", "delta", "middle", "twin"), name="h")
    with pytest.raises(am.InputError, match=r"Pass --tokenizer tokenizer\.json"):
        read_targets(path, words)
    file = tmp_path / "tokenizer.json"
    vocabulary = {label: number for number, label in enumerate(words.labels or ())}
    tokenizer = Tokenizer(WordLevel({**vocabulary, "[UNK]": 6}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(file))
    found = read_targets(path, words, cutter=read_tokenizer(file, words.classes))
    assert (found.counts, found.absent) == ({4: 1}, 2)


def test_a_file_that_is_no_tokenizer_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(am.InputError, match=r"not a tokenizer\.json"):
        read_tokenizer(path, 6)


# ---------------------------------------------------------------------- occurrence


def test_the_accuracy_is_bounded_by_what_cannot_be_right(tmp_path: Path) -> None:
    found = impact(RESULT, targets(tmp_path, "mmadcc?cc\n"))
    assert [(each.verdict.label, each.count) for each in found.never] == [("m", 2)]
    assert found.best_accuracy == pytest.approx(6 / 9)


def test_classes_that_only_tie_are_not_counted_as_wrong(tmp_path: Path) -> None:
    found = impact(RESULT, targets(tmp_path, "atatd\n"))
    assert [(each.verdict.label, each.count) for each in found.tied] == [("a", 2), ("t", 2)]
    assert (found.never, found.best_accuracy) == ((), 1.0)


def test_a_label_that_another_class_has_too_can_be_right(tmp_path: Path) -> None:
    result = verified(lossy(labels=("a", "é", "m", "d", "m", "t")))
    path = tmp_path / "data.jsonl"
    path.write_text("4\n", encoding="utf-8")
    assert impact(result, read_targets(path, result.head)).best_accuracy == 1.0


def test_targets_without_a_verdict_are_counted_apart(tmp_path: Path) -> None:
    cut = replace(RESULT.verdicts[4], status=Status.UNDECIDED)
    result = replace(RESULT, verdicts=(*RESULT.verdicts[:4], cut))
    found = impact(result, targets(tmp_path, "mmtd\n"))
    assert (found.undecided, found.never, found.best_accuracy) == (3, (), 1.0)


def test_a_share_that_is_small_is_not_rounded_away(tmp_path: Path) -> None:
    lines = describe_impact(impact(RESULT, targets(tmp_path, "m 1\nd 999999\n")))
    assert "1 of 1,000,000 targets (0.0001 %) can't be right." in lines[2]
    assert lines[-1] == "Accuracy on this data is at most 99.9999 %."
    lines = describe_impact(impact(RESULT, targets(tmp_path, "m 1\nd 2999\n")))
    assert lines[-1] == "Accuracy on this data is at most 99.97 %."


# ---------------------------------------------------------------------- saved inputs


def naive(result: am.Result, features: np.ndarray) -> tuple[Counter[int], dict[int, Counter[int]]]:
    never = {verdict.class_id for verdict in result.unargmaxable}
    wins_of: Counter[int] = Counter()
    ahead: dict[int, Counter[int]] = {}
    for row in features:
        ranked = np.argsort(-(result.head.weight @ row), kind="stable")
        wins_of[int(ranked[0])] += 1
        if int(ranked[1]) in never:
            ahead.setdefault(int(ranked[1]), Counter())[int(ranked[0])] += 1
    return wins_of, ahead


def test_wins_and_what_is_ahead_are_those_of_the_naive_count() -> None:
    generator = np.random.default_rng(5)
    result = verified(am.Head(generator.normal(size=(60, 3)), name="h"))
    features = generator.normal(size=(500, 3))
    found = wins(result, features)
    counts, ahead = naive(result, features)
    assert (found.inputs, found.counts, found.outside) == (500, counts, 0)
    assert {each.verdict.class_id: each.ahead for each in found.substitutions} == ahead
    assert len(ahead) > 5
    for each in found.substitutions:
        gaps = (features @ result.head.weight.T).max(axis=1) - features @ result.head.weight[
            each.verdict.class_id
        ]
        assert (each.nearest, each.behind) == (gaps.argmin(), pytest.approx(gaps.min()))


def test_targets_in_the_order_of_the_inputs_tell_what_was_predicted_instead() -> None:
    features = np.array([[1.0, -2.0], [-1.0, 2.0], [1.0, -2.0]])
    (found,) = wins(RESULT, features, order=(4, 4, 1)).substitutions
    assert (found.verdict.label, found.instead) == ("m", {1: 1, 2: 1})


def test_an_input_outside_of_the_domain_is_noticed() -> None:
    head = am.Head([[1.0], [0.0]], [-5.0, 0.0], name="h")
    result = am.verify(head, am.Box(-1, 1), engine=am.Engine(workers=1))
    assert wins(result, np.array([[0.5], [9.0]])).outside == 1


def test_a_head_with_one_class_has_no_second() -> None:
    result = verified(am.Head([[1.0]], name="h"))
    assert wins(result, np.array([[1.0], [2.0]])).counts == {0: 2}


# ---------------------------------------------------------------------- the command


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.npz"
    np.savez(path, W=CORNERS, b=np.zeros(6), labels=np.array(LETTERS))
    return path


def test_verify_tells_whether_it_matters(command: Command, model: Path, tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("madcat\n", encoding="utf-8")
    np.save(tmp_path / "h.npy", np.array([[1.0, -2.0], [-0.125, 0.25]], np.float32))
    options = ("--data", tmp_path / "data.txt", "--features", tmp_path / "h.npy")
    ran = command("verify", model, *options)
    assert "read as a text: 6 targets." in ran.out
    assert "1 of the 1 class that can never be predicted occurs there: 1 of 6 targets (16.67 %)" in ran.out
    assert "Accuracy on this data is at most 83.34 %." in ran.out
    assert "At 2 saved inputs 2 classes win, most often:\n  é (1)  c (1)\n" in ran.out
    record = command("verify", model, *options, "--json").record
    assert record["data"]["never_classes"] == [{"class": 4, "label": "m", "count": 1}]
    assert [each["label"] for each in record["features"]["wins"]] == ["é", "c"]


def test_targets_and_inputs_of_one_length_belong_together(
    command: Command, model: Path, tmp_path: Path
) -> None:
    (tmp_path / "data.jsonl").write_text('{"target": "m"}\n{"target": "c"}\n', encoding="utf-8")
    np.save(tmp_path / "h.npy", np.array([[1.0, -2.0], [-1.0, 2.0]]))
    ran = command("verify", model, "--data", tmp_path / "data.jsonl", "--features", tmp_path / "h.npy")
    assert "  m: the target 1 times, behind é (1)" in ran.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--data", "nowhere.txt"], "no such file"),
        (["--features", "nowhere.npy"], "no such file"),
        (["--tokenizer", "t.json"], "needs --data FILE"),
        (["--data-format", "text"], "needs --data FILE"),
    ],
)
def test_a_wrong_wish_is_one_clear_line(command: Command, model: Path, options: list[str], said: str) -> None:
    ran = command("verify", model, *options)
    assert ran.code == 2
    assert is_one_clear_line(ran)
    assert said in ran.err


@pytest.mark.parametrize(
    ("matrix", "said"),
    [
        (np.zeros((2, 3)), "2 inputs with 3 features; the head has 2"),
        (np.zeros(2), "expected one matrix"),
        (np.full((1, 2), np.nan), "NaN or infinite"),
        (np.array([["a", "b"]]), "expected one matrix"),
        (np.zeros((0, 2)), "0 inputs"),
    ],
)
def test_features_that_do_not_fit_are_refused(
    command: Command, model: Path, tmp_path: Path, matrix: np.ndarray, said: str
) -> None:
    np.save(tmp_path / "h.npy", matrix)
    ran = command("verify", model, "--features", tmp_path / "h.npy")
    assert ran.code == 2
    assert said in ran.err


def test_labels_as_they_are_printed_are_labels(tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.write_text(json.dumps(LABELS[4])[1:-1] + "\n", encoding="utf-8")
    assert read_targets(path, lossy()).counts == {4: 1}
