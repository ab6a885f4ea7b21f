"""Tables in Markdown: alignment, and rows that must fit."""

from __future__ import annotations

import pytest

from experiments.harness.markdown import markdown_table


def test_text_is_aligned_left_and_numbers_right() -> None:
    written = markdown_table(["a", "b", "c"], [("x", "y", 1)], text_columns=2)
    assert written == "| a | b | c |\n| --- | --- | ---: |\n| x | y | 1 |"


def test_without_rows_there_is_no_table() -> None:
    assert markdown_table(["a"], []) == ""


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="2 entries for 1 columns"):
        markdown_table(["a"], [(1, 2)])
