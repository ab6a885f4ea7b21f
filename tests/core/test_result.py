"""A result as people meet it: one line of text, arrays, a data frame, a table in a notebook."""

from __future__ import annotations

import re
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import argmaxable as am
from argmaxable.core.head import Facts
from argmaxable.proofs.verdicts import VERDICTS

BOX = am.Box(-100.0, 100.0)


def verdict(class_id: int, status: am.Status, label: str = "word") -> am.Verdict:
    lower, upper = {"argmaxable": (0.5, np.inf), "unargmaxable": (-np.inf, -0.25)}.get(status, (-1.0, 1.0))
    certificate = am.Certificate(np.arange(3000), np.full(3000, 1 / 3000), 2000)
    return am.Verdict(
        class_id, label, status, lower, upper, am.Method.INTERIOR_POINT, am.Strength.FLOAT64,
        am.Point(np.zeros(500)), certificate, tie_group=tuple(range(500)),
    )  # fmt: skip


def result_of(*verdicts: am.Verdict, is_complete: bool = True) -> am.Result:
    head = am.Head(np.zeros((5000, 500), np.float32), np.zeros(5000), ["word"] * 5000)
    return am.Result(
        head=head, facts=Facts.of(head), domain=BOX, centre=np.zeros(500), verdicts=verdicts,
        cost=am.Cost(seconds=2.14), is_complete=is_complete,
    )  # fmt: skip


MIXED = result_of(
    *(verdict(k, am.Status.ARGMAXABLE) for k in range(1200)),
    verdict(1300, am.Status.UNARGMAXABLE),
    verdict(1400, am.Status.UNDECIDED),
)


# ---------------------------------------------------------------------- one line


def test_a_result_says_what_was_found() -> None:
    expected = "1,202 classes over box ±100: 1,200 argmaxable, 1 unargmaxable, 1 undecided, 2.1 s"
    assert repr(MIXED) == f"Result({expected})"


def test_an_interrupted_result_says_so() -> None:
    assert repr(result_of(is_complete=False)).endswith("2.1 s, incomplete)")


@pytest.mark.parametrize(
    ("head", "text"),
    [
        (am.Head(np.zeros((3, 2), np.float32), np.zeros(3), "abc"), "Head(3 × 2, float32, bias, labels)"),
        (am.Head(np.zeros((3, 2), np.float16)), "Head(3 × 2, float16)"),
    ],
)
def test_a_head_shows_its_size_and_not_its_weights(head: am.Head, text: str) -> None:
    assert repr(head) == text


def test_a_verdict_shows_its_bounds_and_method() -> None:
    text = "Verdict(7 word: unargmaxable, margin from -inf to -0.25, interior point, float64)"
    assert repr(verdict(7, am.Status.UNARGMAXABLE)) == text


def test_a_label_in_a_verdict_can_not_steer_a_terminal() -> None:
    assert "\x1b" not in repr(verdict(7, am.Status.UNARGMAXABLE, "\x1b[31m\n"))


LARGE: dict[str, Any] = {
    "result": MIXED,
    "head": MIXED.head,
    "verdict": MIXED.verdicts[0],
    "certificate": MIXED.verdicts[0].certificate,
    "point": MIXED.verdicts[0].witness,
    "ceiling": am.Ceiling(3, "word", 0.1, 0.2, np.zeros(500)),
    "best rank": am.BestRank(
        3, "word", 1, 2, 1, am.RankProof((MIXED.verdicts[0].certificate,) * 90), None, np.zeros(500)  # type: ignore[arg-type]
    ),
    "pruned": am.Pruned(MIXED.head, MIXED.head, np.arange(5000), MIXED),
    "bundle": am.Bundle(VERDICTS, {}, BOX, None, np.zeros(500), ()),
}  # fmt: skip


@pytest.mark.parametrize("name", LARGE)
def test_what_holds_large_arrays_fits_on_a_line(name: str) -> None:
    text = repr(LARGE[name])
    assert "\n" not in text
    assert len(text) < 250


# ---------------------------------------------------------------------- arrays and frames


def test_arrays_have_an_entry_for_each_verified_class() -> None:
    assert MIXED.class_ids.tolist() == [verdict.class_id for verdict in MIXED.verdicts]
    assert MIXED.class_ids[MIXED.status == "unargmaxable"].tolist() == [1300]
    assert MIXED.class_ids[MIXED.status == am.Status.UNDECIDED].tolist() == [1400]
    assert (MIXED.lower.dtype, MIXED.upper.dtype) == (np.float64, np.float64)
    assert (MIXED.lower[0], MIXED.upper[1200]) == (0.5, -0.25)


def test_arrays_of_no_verdicts_are_empty() -> None:
    empty = result_of()
    assert [len(array) for array in (empty.class_ids, empty.status, empty.lower, empty.upper)] == [0] * 4


def test_arrays_are_made_once_and_can_not_be_changed() -> None:
    assert MIXED.status is MIXED.status
    for array in (MIXED.class_ids, MIXED.status, MIXED.lower, MIXED.upper):
        assert not array.flags.writeable


def test_a_frame_without_pandas_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(am.InputError, match="pip install pandas"):
        MIXED.to_frame()


def test_a_frame_has_a_row_for_each_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    # pandas itself is tried where it is installed; what it is given is the same.
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=dict))  # type: ignore[arg-type]
    frame: Any = MIXED.to_frame()
    assert {len(column) for column in frame.values()} == {1202}
    last = {name: column[-1] for name, column in frame.items()}
    assert last == {
        "class_id": 1400, "label": "word", "status": "undecided", "lower": -1.0, "upper": 1.0,
        "ahead": None, "method": "interior point", "strength": "float64", "is_tied": False,
    }  # fmt: skip


def test_a_real_frame_has_typed_columns() -> None:
    pytest.importorskip("pandas")
    frame = MIXED.to_frame()
    assert len(frame) == 1202
    assert frame["lower"].dtype == np.float64
    assert frame.loc[frame["status"] == "unargmaxable", "class_id"].tolist() == [1300]


# ---------------------------------------------------------------------- notebooks


def test_a_notebook_shows_the_summary_and_the_first_unargmaxable_classes() -> None:
    html = result_of(*(verdict(k, am.Status.UNARGMAXABLE, f"w{k}") for k in range(25)))._repr_html_()
    assert "25 classes over box ±100: 0 argmaxable, 25 unargmaxable" in html
    assert re.findall(r"<td>(w\d+)</td>", html) == [f"w{k}" for k in range(10)]
    assert "and 15 more" in html


def test_a_notebook_shows_no_table_where_every_class_can_be_predicted() -> None:
    assert "<table>" not in result_of(verdict(0, am.Status.ARGMAXABLE))._repr_html_()


@pytest.mark.parametrize("label", ["<script>alert(1)</script>", "&amp;<b>", "\u202e\x1b[2J", '"><img src=x>'])
def test_labels_are_text_in_a_notebook(label: str) -> None:
    html = result_of(verdict(0, am.Status.UNARGMAXABLE, label))._repr_html_()
    assert set(re.findall(r"</?(\w+)", html)) == {"p", "table", "thead", "tbody", "tr", "th", "td"}
    assert not {"\u202e", "\x1b"} & set(html)
