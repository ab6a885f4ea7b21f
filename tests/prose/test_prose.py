"""Every number in a sentence of these pages is what the committed JSON says."""

from __future__ import annotations

import pytest

from prose.items_and_sets import ITEMS_AND_SETS
from prose.large_models import LARGE_MODELS
from prose.learned import LEARNED
from prose.long_runs import LONG_RUNS
from prose.models import MODELS
from prose.numbers import Claims, agrees, faults, paragraphs
from prose.other_pages import METHOD, OCR, QUANTISATION
from prose.paper import PAPER
from prose.random_heads import RANDOM_HEADS
from prose.sources import ROOT, quoted

PAGES: dict[str, Claims] = {
    "docs/results.md": {**RANDOM_HEADS, **MODELS, **LEARNED, **LONG_RUNS, **LARGE_MODELS, **ITEMS_AND_SETS},
    "docs/paper.md": PAPER,
    "docs/method.md": METHOD,
    "docs/stories/ocr.md": OCR,
    "docs/stories/quantisation.md": QUANTISATION,
}


@pytest.mark.parametrize("page", PAGES)
def test_every_number_in_a_sentence_is_what_was_measured(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert faults(text, PAGES[page]) == []


PAGE = """# A page of 2026
<!-- numbers: one -->
Of 1,000 words 27.5 % are unargmaxable with d = 8 (Table 3), nine in WikiText-2.

| 5 | 6 |
|---|---|

<!-- begin toy -->
7 of 9
<!-- end toy -->

```text
8
```
"""


def test_a_page_whose_numbers_are_the_values_has_no_fault() -> None:
    assert faults(PAGE, {"one": lambda: [1000, 27.46, 9]}) == []


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ([1000, 27.56, 9], "line 3: '27.5' is written, 27.56 was found (among 1,000, 27.5, nine)"),
        ([1000, 27.5, 8], "line 3: 'nine' is written, 8 was found (among 1,000, 27.5, nine)"),
        ([1000, 27.5], "line 3: 3 numbers (1,000, 27.5, nine) for 2 values (1000, 27.5)"),
    ],
)
def test_a_number_that_is_not_its_value_is_a_fault(values: list[float], fault: str) -> None:
    assert faults(PAGE, {"one": lambda: values}) == [fault]


def test_a_number_without_a_mark_is_a_fault() -> None:
    page = PAGE + "\nBut 12 of them come back.\n"
    assert faults(page, {"one": lambda: [1000, 27.5, 9]}) == [
        "line 16: 12: no mark says where they come from"
    ]


def test_a_mark_without_values_and_values_without_a_mark_are_faults() -> None:
    assert faults(PAGE, {"two": list}) == [
        "line 3: nothing is called 'one'",
        "'two' is the mark of no paragraph",
    ]


@pytest.mark.parametrize(
    "sentence",
    [
        "Section 5.1 and Tables 2 and 3 of Ganea et al. 2019",
        "d = 30, α = 0.01, features in [−1, 1], a box of ±100, a 95 % interval",
        "WikiText-2, float32, PP-OCRv4, GB 2312, `--seed 13`, [a link](page-7.md)",
    ],
)
def test_references_formulas_and_names_are_not_measurements(sentence: str) -> None:
    (paragraph,) = paragraphs(sentence)
    assert paragraph.numbers == []


@pytest.mark.parametrize(
    ("written", "value", "does"),
    [
        ("−0.87", -0.8749, True),
        ("−0.87", -0.8751, False),
        ("+0.40", 0.4, True),
        ("1,000", 1000.4, True),
        ("1,000", 1001, False),
        ("2.9e-08", 2.94e-8, True),
        ("Eleven", 11, True),
        ("eleven", 11.2, False),
    ],
)
def test_a_number_agrees_with_a_value_that_rounds_to_it(written: str, value: float, does: bool) -> None:
    assert agrees(written, value) is does


def test_a_quoted_number_needs_its_source() -> None:
    with pytest.raises(ValueError, match="source"):
        quoted(58.37, source="")
