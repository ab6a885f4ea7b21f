"""The measured numbers of the pages are those of benchmarks/results."""

from __future__ import annotations

import json

import pytest

from scripts import cost_figures
from scripts.figure_text import ROOT, duration
from scripts.write_figures import FIGURES, PAGES, filled


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_the_numbers_of_the_benchmarks(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert filled(text) == text, "stale: run `make figures`"


def test_every_figure_stands_on_some_page() -> None:
    text = "".join((ROOT / page).read_text(encoding="utf-8") for page in PAGES)
    assert [name for name in FIGURES if text.count(f"<!-- figures: {name} -->") != 1] == []


def test_another_measurement_changes_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    result = cost_figures.result
    changed = json.loads(json.dumps(result("real_heads")).replace("18385", "18386"))
    monkeypatch.setattr(
        cost_figures, "result", lambda name: changed if name == "real_heads" else result(name)
    )
    page = filled("before\n<!-- figures: real-heads -->\nold\n<!-- end of figures -->\nafter")
    assert "18,386 × 120" in page
    assert "old" not in page
    assert page.startswith("before\n<!-- figures: real-heads -->\n| head |")
    assert page.endswith("|\n<!-- end of figures -->\nafter")


def test_durations_have_the_unit_that_people_would_choose() -> None:
    assert [duration(seconds) for seconds in (0.335, 61.2, 1376, 10_011, 530_491)] == [
        "0.335 s", "61.2 s", "23 min", "3 h", "6 days",
    ]  # fmt: skip
