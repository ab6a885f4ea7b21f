"""What long runs are expected to cost: the page says what the committed file says."""

from __future__ import annotations

import json

import pytest

from experiments.harness.cells import Scale
from experiments.harness.places import PAGE
from experiments.page.costs import PATH, section, synthetic_hours, table, with_costs
from experiments.synthetic_bottleneck import SIZES, Column

RECORD = json.loads(PATH.read_text(encoding="utf-8"))


def test_the_page_shows_the_committed_costs() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_costs(page, RECORD) == page
    assert section(RECORD) in page


def test_every_head_of_both_sizes_has_its_cost() -> None:
    lines = table(RECORD["language_models"]).splitlines()
    assert sum(line.startswith("| small |") for line in lines) == 6
    # One more PLIF, and two mixtures with 3 and with 15 components.
    assert sum(line.startswith("| large |") for line in lines) == 9


def test_the_synthetic_grid_counts_every_number_of_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    few = [Column(classes, 10, (2,), visits=5000, seeds=1, alphas=(0.1,)) for classes in (4, 6)]
    monkeypatch.setitem(SIZES, Scale.LONG, tuple(few))
    hours = synthetic_hours()
    assert list(hours) == [4, 6]
    assert all(value > 0 for value in hours.values())
