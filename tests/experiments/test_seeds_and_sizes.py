"""Teachers, students and plain models of one seed, and how hard their tokens are to settle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from experiments.harness.cells import Cell, Scale
from experiments.harness.corpus import corpus
from experiments.models.small_lstm import REACHABLE, head_of, small_model, speak, without_bias
from experiments.models.training import Trained, contexts
from experiments.seeds_and_sizes import _left, cells, figures, measure, table

TEXT = corpus(None, vocabulary=30)
SETTINGS = {"seed": 1, "patience": 20, "vocabulary": 30, "epochs": 1, "teacher": 4, "students": [3]}


@pytest.fixture(scope="module")
def trained() -> Trained:
    return small_model(TEXT, features=4, epochs=1, seed=0)


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return measure(SETTINGS, None)


def test_a_model_speaks_so_many_tokens_of_its_vocabulary(trained: Trained) -> None:
    spoken = speak(trained.model, TEXT, length=1000, seed=0)
    assert spoken.shape == (1000,)
    assert spoken.dtype == np.int64
    assert spoken.min() >= 0
    assert spoken.max() < 30


def test_what_a_model_speaks_has_the_frequencies_it_learned(trained: Trained) -> None:
    spoken = speak(trained.model, TEXT, length=4000, seed=0)
    shares = np.bincount(spoken, minlength=30) / spoken.size
    assert np.corrcoef(shares, TEXT.counts / TEXT.counts.sum())[0, 1] > 0.9


def test_the_same_seed_speaks_the_same(trained: Trained) -> None:
    first, second, third = (speak(trained.model, TEXT, length=500, seed=seed) for seed in (3, 3, 4))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, third)


def test_what_the_head_sees_lies_in_the_reachable_box(trained: Trained) -> None:
    seen = contexts(trained.model, TEXT.valid, limit=2000).numpy()
    assert (REACHABLE.lo <= seen).all()
    assert (seen <= REACHABLE.hi).all()


def test_the_head_has_the_words_and_loses_only_its_bias(trained: Trained) -> None:
    head = head_of(trained, TEXT)
    bare = without_bias(head)
    assert head.labels == bare.labels == TEXT.words
    assert head.bias is not None
    assert bare.bias is None
    assert np.array_equal(head.weight, bare.weight)


def test_each_seed_has_a_teacher_and_two_models_of_each_students_size(found: dict[str, Any]) -> None:
    assert [(each["role"], each["features"]) for each in found["models"]] == [
        ("teacher", 4),
        ("student", 3),
        ("on the text", 3),
    ]
    assert all(sum(each["outcomes"]) == 30 for each in found["models"])


def test_students_are_not_the_models_that_the_text_trains(found: dict[str, Any]) -> None:
    _, student, plain = found["models"]
    assert student["test"] != plain["test"]


def test_the_same_cell_gives_the_same_numbers(found: dict[str, Any]) -> None:
    assert measure(SETTINGS, None) == found


def test_all_that_reflection_did_not_find_is_left_to_the_solver() -> None:
    assert _left({"outcomes": [5, 4, 3, 2, 1]}) == 6


def test_the_table_lists_the_seeds_beside_the_papers(found: dict[str, Any]) -> None:
    written = table([Cell(SETTINGS, found, 1.0), Cell(SETTINGS, found, 1.0)])
    assert "8, 3, 366" in written
    assert "| 2 seeds, student | 3 |" in written
    assert "mean steps (reflections)" in written


def test_the_figure_tells_what_the_solver_found_from_what_is_unargmaxable(
    found: dict[str, Any],
) -> None:
    figure = figures([Cell(SETTINGS, found, 1.0)])["seeds_and_sizes"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "found by the solver",
        "unargmaxable",
    ]


def test_the_committed_seeds_differ_in_the_seed_alone() -> None:
    assert len({str({**cell, "seed": 0}) for cell in cells(Scale.COMMITTED)}) == 1
