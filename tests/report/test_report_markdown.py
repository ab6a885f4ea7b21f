"""A report as Markdown for a model card."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from keeping import lossy
from markdown_it import MarkdownIt
from subjects import HOSTILE, can, never, read, small, subject

import argmaxable as am
from argmaxable.report.page.content import content_of
from argmaxable.report.page.markdown import markdown
from argmaxable.report.page.subject import subject_of_bundle
from argmaxable.store import PublishedVerdict, open_store


def as_html(text: str) -> str:
    return MarkdownIt("gfm-like", {"linkify": False}).render(text)


def test_the_answer_comes_first() -> None:
    lines = markdown(content_of(subject(can(0, "的"), never(1, "刈")))).splitlines()
    assert lines[0] == "# model.onnx: what it can never predict"
    assert lines[2] == "**1 of 2 classes can never be predicted for features within ±100.**"


def test_an_unargmaxable_character_has_its_code_point_and_its_blockers() -> None:
    mixture = am.Certificate(np.array([0, 2, 3, 4]), np.array([1.0, 3.0, 0.5, 0.5]))
    lost = never(1, "刈", mixture)
    text = markdown(content_of(subject(can(0, "的"), lost, can(2, "一"), can(3, "是"), can(4, "不"))))
    assert "| 1 | 刈 | U+5208 CJK UNIFIED IDEOGRAPH-5208 | -0.25 |" in text
    assert "| 一 60.0%, 的 20.0%, 是 10.0% and 1 more |" in text


def test_the_farthest_off_come_first_with_how_many_are_ahead() -> None:
    near, far = replace(never(1, "刈"), ahead=3), replace(never(2, "忖"), ahead=1200)
    text = markdown(content_of(subject(can(0, "的"), near, far)))
    assert "Farthest off first: by how many characters score higher in a character's own direction." in text
    assert "| class | character | code point | ahead | margin at most | blocked by |" in text
    assert text.index("| 2 | 忖 |") < text.index("| 1 | 刈 |")


def test_ties_are_told(database: Path) -> None:
    text = markdown(content_of(small(database)))
    assert "2 of them are in a group of identical rows" in text
    assert "| 0 | a | – | 0 | tied with 😀 |" in text


def test_a_long_list_is_cut_short_and_says_so() -> None:
    text = markdown(content_of(subject(*(never(k, f"lost {k}") for k in range(1, 601)))))
    assert "| 30 | lost 30 |" in text
    assert "| 31 | lost 31 |" not in text
    assert "And: lost 31" in text
    assert "… and 170 more" in text


def test_hostile_labels_stay_text(database: Path) -> None:
    text = markdown(content_of(small(database, labels=HOSTILE, name=HOSTILE[0])))
    shown = as_html(text)
    assert "<img" not in shown
    assert "<script" not in shown
    assert "<a " not in shown
    assert "&lt;img src=x onerror=alert(1)&gt;" in shown


def test_the_proofs_can_be_checked_again(database: Path) -> None:
    text = markdown(content_of(small(database)))
    assert "$ argmaxable export 1 --format bundle -o proofs\n$ argmaxable check proofs lossy.npz\n" in text


def test_published_verdicts_are_not_called_proven(database: Path) -> None:
    with open_store(str(database)) as store:
        rows = [PublishedVerdict(2**62, "a", am.Status.UNARGMAXABLE)]
        run = store.add_published(
            "theirs", origin="", family="", task="", rows=rows, domain=am.Box(-1.0, 1.0)
        )
    text = markdown(content_of(read(database, run)))
    assert "published elsewhere and not checked here" in text
    assert "re-check" not in text


def test_the_claims_of_a_bundle_are_not_called_checked(tmp_path: Path) -> None:
    am.write_bundle(am.verify(lossy(), engine=am.Engine(workers=1)), tmp_path)
    text = markdown(content_of(subject_of_bundle(tmp_path)))
    assert "claims of a proof bundle, which were not checked again" in text
