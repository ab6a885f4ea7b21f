"""The cells of the comparison are fair, repeatable and can be shown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from experiments.harness.cells import Cell, Scale
from experiments.harness.statistics import half_interval
from experiments.language.plan import cells, recipe, search
from experiments.language.tables import HEADS, SLOW_PLIF, differences, search_table
from experiments.language_models import (
    EXPERIMENT,
    _reached,
    measure,
    plif_of,
    rank_of,
    unargmaxable,
)
from experiments.models.awd_lstm import AWDLSTM, Shape, parameters
from experiments.models.awd_lstm import HEADS as BUILT

SMOKE = cells(Scale.SMOKE)
TINY: dict[str, Any] = {
    **SMOKE[0],
    "vocabulary": 30,
    "contexts": 40,
    "schedule": {**SMOKE[0]["schedule"], "epochs": 1},
}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("text")
    draws = np.random.default_rng(0).geometric(0.1, (3, 2_000))
    for name, numbers in zip(("train", "valid", "test"), draws, strict=True):
        (folder / f"{name}.txt").write_text(" ".join(f"w{number}" for number in numbers))
    return folder


@pytest.fixture(scope="module")
def measured(text: Path) -> list[Cell]:
    wanted = [{**TINY, "head": head} for head in HEADS]
    return [Cell(settings, measure(settings, text), 1.0) for settings in wanted]


def without_times(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if "second" not in name}


def test_every_head_that_can_be_built_is_compared() -> None:
    assert tuple(HEADS) == BUILT


def test_committed_cells_are_each_head_with_three_seeds() -> None:
    found = cells(Scale.COMMITTED)
    assert len(found) == len({json.dumps(each) for each in found}) == 3 * len(HEADS)


def test_slow_slopes_are_those_of_a_plif_with_the_published_rate() -> None:
    slow, usual = (
        [recipe(cell, 10_000) for cell in search() if (cell["part"], cell["head"]) == ("large", head)]
        for head in (SLOW_PLIF, "lms-plif")
    )
    assert [shape for shape, _ in slow] == [shape for shape, _ in usual]
    assert {schedule.slope_rate for _, schedule in slow} == {0.02}
    assert [replace(each, slope_rate=each.rate) for _, each in slow] == [each for _, each in usual]


@pytest.mark.parametrize("head", HEADS)
def test_committed_models_have_parameters_within_two_percent_of_each_other(head: str) -> None:
    settings = {**cells(Scale.COMMITTED)[0], "head": head}
    words = settings["vocabulary"]
    ours, linear = (parameters(recipe({**settings, "head": each}, words)[0]) for each in (head, "linear"))
    assert abs(ours - linear) < 0.02 * linear


@pytest.mark.parametrize(("words", "millions"), [(10_000, 24.2), (33_278, 33.5)])
def test_the_published_models_have_the_published_parameters(words: int, millions: float) -> None:
    shape, _ = recipe(cells(Scale.PAPER)[0], words)
    assert parameters(shape) / 1e6 == pytest.approx(millions, abs=0.1)


def test_the_published_recipe_follows_the_text() -> None:
    paper = cells(Scale.PAPER)[0]
    assert [recipe(paper, words)[1].batch for words in (10_000, 33_278)] == [20, 80]


def test_the_same_cell_gives_the_same_numbers_again(measured: list[Cell], text: Path) -> None:
    cell = measured[-1]
    assert without_times(measure(cell.settings, text)) == without_times(dict(cell.found))


def test_every_epoch_has_a_training_and_a_validation_perplexity(measured: list[Cell]) -> None:
    epochs = TINY["schedule"]["epochs"]
    for cell in measured:
        assert len(cell.found["training_by_epoch"]) == len(cell.found["by_epoch"]) == epochs
        assert cell.found["training_by_epoch"] != cell.found["by_epoch"]
        assert min(cell.found["training_by_epoch"]) >= 1


def test_tables_have_a_row_for_each_head(measured: list[Cell]) -> None:
    text = EXPERIMENT.table(measured)
    assert all(f"| {name} |" in text for name in HEADS.values())


def test_where_heads_have_unequal_numbers_of_seeds_the_table_counts_them(measured: list[Cell]) -> None:
    linear = next(cell for cell in measured if cell.settings["head"] == "linear")
    again = replace(linear, settings={**linear.settings, "seed": 1})
    assert "| head | parameters |" in EXPERIMENT.table([linear, again])
    text = EXPERIMENT.table([*measured, again])
    assert "| head | seeds | parameters |" in text
    assert "| linear | 2 |" in text
    assert "| MoS | 1 |" in text


def test_a_rate_is_chosen_when_a_head_has_tried_all() -> None:
    def tried(head: str, rate: float, validation: float) -> Cell:
        settings = {"part": "small", "head": head, "seed": 0, "schedule": {"rate": rate, "epochs": 8}}
        return Cell(settings, {"validation": validation}, 1.0, "")

    search = [tried("linear", 5, 120.0), tried("linear", 10, 110.0), tried("sigsoftmax", 5, 115.0)]
    rows = search_table(search, []).splitlines()
    assert "| linear | 120.00 | **110.00** |  |  |  |" in rows
    assert "| SigSoftmax | 115.00 |  |  |  |  |" in rows


def test_figures_are_drawn_from_what_json_keeps(measured: list[Cell]) -> None:
    kept = [replace(cell, found=json.loads(json.dumps(cell.found))) for cell in measured]
    assert set(EXPERIMENT.figures(kept)) == {"language_models", "language_models_plif"}


def test_nothing_is_said_of_mixtures_with_a_plif(measured: list[Cell]) -> None:
    verdicts = {cell.settings["head"]: cell.found["unargmaxable"] for cell in measured}
    assert {head for head, found in verdicts.items() if found is None} == {"mos-plif"}


def test_no_mixture_ever_says_a_word_that_its_components_can_not() -> None:
    torch.manual_seed(0)
    words = [f"w{number}" for number in range(40)]
    model = AWDLSTM(Shape("mos", vocabulary=40, features=3, hidden=5, layers=2, mixtures=3))
    torch.nn.init.normal_(model.embedding.weight, std=3.0)
    found = unargmaxable(model, words)
    assert found is not None
    never = {words.index(word) for word in found["reachable"]["words"]}
    with torch.no_grad():
        said = model.head.log_prob(10 * torch.randn(20_000, 3)).argmax(dim=1).unique().tolist()
    assert len(never) > 10 < len(said)
    assert never.isdisjoint(said)


def test_words_unargmaxable_everywhere_are_so_within_the_box_too(measured: list[Cell]) -> None:
    found = measured[0].found["unargmaxable"]
    assert set(found["everywhere"]["words"]) <= set(found["reachable"]["words"])


def test_a_linear_head_has_the_rank_of_its_features_and_a_mixture_more() -> None:
    torch.manual_seed(0)
    shape = Shape("linear", vocabulary=40, features=3, hidden=5, layers=2, mixtures=3)
    ranks = []
    for head in ("linear", "mos"):
        model = AWDLSTM(replace(shape, head=head))
        torch.nn.init.normal_(model.embedding.weight)
        torch.nn.init.normal_(model.head.bias)
        ranks.append(rank_of(model, 3 * torch.randn(50, 3))["double"])
    assert ranks[0] == 3 + 2  # and the bias, and log Z
    assert ranks[1] > ranks[0]


def test_an_untrained_plif_has_slopes_of_one() -> None:
    model = AWDLSTM(Shape("lms-plif", vocabulary=10, features=3, hidden=5, layers=2, bins=40))
    found = plif_of(model, torch.randn(6, 3))
    assert (found["slopes"]["mean"], found["slopes"]["deviation"]) == (1.0, 0.0)
    assert found["values"] == pytest.approx(found["z"], abs=1e-3)


@pytest.mark.parametrize(
    ("low", "high", "expected"), [(-0.5, 0.5, [1, 2]), (-9, -8, [0]), (-9, 9, [0, 1, 2, 3]), (0.2, 0.3, [2])]
)
def test_bins_are_reached_between_the_logits_and_the_ends_go_on(
    low: float, high: float, expected: list[int]
) -> None:
    assert _reached(torch.tensor([-2.0, -1.0, 0.0, 1.0, 2.0]), low, high).tolist() == expected


def test_the_interval_is_students() -> None:
    # t = 4.303 with two degrees of freedom, deviation 1.
    assert half_interval([1.0, 2.0, 3.0]) == pytest.approx(4.3027 / 3**0.5, rel=1e-4)


def test_differences_are_paired_by_seed() -> None:
    assert differences([3.0, 5.0], [1.0, 4.0]) == [2.0, 1.0]
