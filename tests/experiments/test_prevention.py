"""Prevention: heads that lose nothing, heads that do, and what rounding does to the first."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.harness.cells import Cell, Scale
from experiments.prevention import (
    EQUAL_NORMS,
    EXPERIMENT,
    FORMATS,
    NOTHING,
    NOTHING_BIAS,
    VORONOI,
    measure,
    prevented,
    table,
)


def settings(
    prevention: str, *, stored: str = "float32", features: int = 4, seeds: int = 2
) -> dict[str, object]:
    return {"prevention": prevention, "stored": stored, "features": features, "classes": 80, "seeds": seeds}


@pytest.mark.parametrize("stored", FORMATS)
def test_a_head_is_stored_in_the_format_asked_for(stored: str) -> None:
    head = prevented(settings(VORONOI, stored=stored), seed=0)
    assert head.bias is not None
    assert (head.weight.dtype, head.bias.dtype) == (np.dtype(stored), np.dtype(stored))


def test_equal_norms_are_equal_up_to_rounding_and_have_no_bias() -> None:
    head = prevented(settings(EQUAL_NORMS), seed=0)
    assert head.bias is None
    np.testing.assert_allclose(np.linalg.norm(head.rows(slice(None)), axis=1), 1, rtol=1e-6)


@pytest.mark.parametrize("prevention", [EQUAL_NORMS, VORONOI])
def test_prevention_leaves_no_class_unargmaxable(prevention: str) -> None:
    assert measure(settings(prevention), None) == {"unargmaxable": [0, 0], "undecided": 0}


@pytest.mark.parametrize("prevention", [NOTHING, NOTHING_BIAS])
def test_heads_as_drawn_lose_classes(prevention: str) -> None:
    assert min(measure(settings(prevention), None)["unargmaxable"]) > 0


def test_equal_norms_of_two_features_don_t_survive_half_precision() -> None:
    unargmaxable = measure(settings(EQUAL_NORMS, stored="float16", features=2), None)["unargmaxable"]
    assert min(unargmaxable) > 0


def test_the_same_cell_gives_the_same_numbers_again() -> None:
    assert measure(settings(NOTHING), None) == measure(settings(NOTHING), None)


def test_the_committed_run_has_a_hundred_heads_of_the_papers_size() -> None:
    sizes = {
        (cell["prevention"], cell["stored"]): (cell["classes"], cell["features"], cell["seeds"])
        for cell in EXPERIMENT.cells(Scale.COMMITTED)
        if cell["features"] == 10 and cell["prevention"] in (EQUAL_NORMS, VORONOI)
    }
    assert sizes == {(kind, stored): (500, 10, 100) for kind in (EQUAL_NORMS, VORONOI) for stored in FORMATS}


def test_the_table_counts_affected_heads_and_shows_the_most_unargmaxable_classes() -> None:
    row = table([Cell(settings(EQUAL_NORMS, seeds=4), {"unargmaxable": [0, 3, 0, 1], "undecided": 0}, 1.0)])
    assert row.splitlines()[2].endswith("| 4 |  | 2 | 1 (3) |")


def test_the_table_tells_of_undecided_classes() -> None:
    found = {"unargmaxable": [0], "undecided": 2}
    assert "2 undecided" in table([Cell(settings(EQUAL_NORMS, seeds=1), found, 1.0)])
