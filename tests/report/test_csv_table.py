"""CSV that neither a spreadsheet nor a terminal takes for more than data."""

from __future__ import annotations

import csv
import io

import pytest
from drawn import ENCODABLE
from hypothesis import given
from hypothesis import strategies as st

from argmaxable.report.csv_table import CsvStyle, without_apostrophes, write_table

FORMULAS = ["=1+1", "+1", "-", "@SUM(A1)", "\t=1", "\r=1", " =cmd|' /C calc'!A0", "＝1", "\u3000=1"]


def written(label: str, style: CsvStyle) -> list[list[str]]:
    stream = io.StringIO(newline="")
    write_table(["class", "label", "lower"], [[3, label, -0.5]], stream, style)
    return list(csv.reader(io.StringIO(stream.getvalue(), newline="")))


@pytest.mark.parametrize("label", FORMULAS)
def test_a_formula_gets_an_apostrophe_and_the_row_says_so(label: str) -> None:
    assert written(label, CsvStyle(is_safe=True)) == [
        ["class", "label", "lower", "escaped"],
        ["3", f"'{label}", "-0.5", "label"],
    ]


@pytest.mark.parametrize("label", ["word", "'=1", "1=1", "", "a-b"])
def test_other_text_and_negative_numbers_stay_as_they_are(label: str) -> None:
    assert written(label, CsvStyle(is_safe=True))[1] == ["3", label, "-0.5", ""]


@pytest.mark.parametrize("label", FORMULAS)
def test_programs_get_the_text_itself(label: str) -> None:
    assert written(label, CsvStyle()) == [["class", "label", "lower"], ["3", label, "-0.5"]]


@pytest.mark.parametrize("label", ["\x1b[2J", "\u202egnp.exe", "\x07", "\u2066x", "\n4,fake,0.5", "\rx"])
def test_a_terminal_gets_no_control_and_no_bidi_characters(label: str) -> None:
    shown = written(label, CsvStyle(is_shown=True))[1][1]
    assert shown.isprintable()
    assert f"\\u{{{ord(label[0]):x}}}" in shown


@given(st.text(ENCODABLE), st.booleans())
def test_a_row_reads_back_as_it_was(label: str, is_safe: bool) -> None:
    headings, fields = written(label, CsvStyle(is_safe=is_safe))
    assert without_apostrophes(dict(zip(headings, fields, strict=True)))["label"] == label
