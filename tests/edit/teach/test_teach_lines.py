"""Teaching a recogniser of lines: one row of a span, the blank, greedy reading."""

from __future__ import annotations

import numpy as np
import pytest

import argmaxable as am
from argmaxable.compute.readings import spelled, standings
from argmaxable.edit.teach.lesson import Target, prepare
from argmaxable.edit.teach.row import RIDGE, RowData, fit_row

# Class 0 is the blank and wins at 0; each letter wins along its own axis; "d" never does.
WEIGHT = np.array([[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]], np.float32)
HEAD = am.Head(WEIGHT, np.array([0.5, 0, 0, 0, -9], np.float32), ["<blank>", "a", "b", "c", "d"])
AXES = {"a": 0, "b": 1, "c": 2, "d": 3}


def lines(texts: list[str], seed: int) -> am.Examples:
    """Four rows for each character, its own step the third; lines of one to three letters in two fonts."""
    rng = np.random.default_rng(seed)
    rows: list[np.ndarray] = []
    ends, labels, spans = [0], [], []
    for text in texts:
        for letter in text.strip("."):
            block = 0.1 * rng.normal(size=(4, 4))
            block[2, AXES[letter]] += 4
            spans.append((len(rows), len(rows) + 4))
            labels.append(letter)
            rows += list(block)
        ends.append(len(rows))
    is_labelled = [bool(texts[k]) and not texts[k].endswith(".") for k in range(len(texts))]
    owner = np.searchsorted(ends, [span[0] for span in spans], side="right") - 1
    kept = [place for place in range(len(labels)) if is_labelled[owner[place]]]
    return am.Examples(
        np.array(rows, np.float32),
        np.array(ends),
        tuple("one" if k % 2 else "two" for k in range(len(texts))),
        tuple(labels[place] for place in kept),
        np.array(spans)[kept],
    )


TEXTS = ["abd", "dc", "cb", "a", "d", "db", "abc", "bca"] * 4 + ["ab.", "c.", "ba.", "cab."] * 10


@pytest.fixture(scope="module")
def done() -> am.Taught:
    return am.teach(
        HEAD,
        am.Box(-10.0, 10.0),
        lines(TEXTS, 1),
        [4],
        held_out=lines(TEXTS, 2),
        rules=am.TeachingRules(blank=0),
        engine=am.Engine(workers=1),
    )


def test_a_letter_in_lines_is_read_and_ordinary_lines_stay(done: am.Taught) -> None:
    assert done.held_out is not None
    assert (done.held_out.read_before.count, done.held_out.read_after) == (0, am.Rate(16, 16))
    assert done.held_out.changed == am.Rate(0, 40)
    assert done.held_out.taken.count == 0


def test_lines_read_as_text_before_and_after(done: am.Taught) -> None:
    assert done.held_out is not None
    assert (done.held_out.texts_before[0], done.held_out.texts_after[0]) == ("ab", "abd")


def test_the_row_at_which_the_blank_is_weakest_is_the_positive() -> None:
    lesson = prepare(HEAD, lines(["ad", "b"], 1), [Target("d", 4)], blank=0)
    assert lesson.spared[0].tolist() == [3, 4, 5, 6, 7]  # the next line is another input
    assert lesson.positives[0].tolist() == [4 + int(lesson.rest.lead[4:8].argmax())]


def test_without_a_blank_every_row_of_a_span_is_a_positive() -> None:
    lesson = prepare(HEAD, lines(["ad"], 1), [Target("d", 4)], blank=None)
    assert lesson.positives[0].tolist() == [4, 5, 6, 7]


def test_greedy_reading_drops_repeats_and_blanks_and_ends_with_the_line() -> None:
    winners, ends = np.array([1, 1, 0, 1, 2, 2, 0, 0]), np.array([0, 5, 5, 8])
    assert spelled(winners, ends, 0) == [(1, 1, 2), (), (2,)]
    assert spelled(winners, ends, None) == [(1, 1, 0, 1, 2), (), (2, 0, 0)]


def test_standings_are_those_of_float64() -> None:
    features = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    found = standings(HEAD, features, np.array([0, 2, 3]), blank=0)
    scores = (features @ WEIGHT.T.astype(float) + HEAD.biases())[:, [0, 2, 3]]
    assert found.winner.tolist() == [[0, 2, 3][each] for each in scores.argmax(axis=1)]
    assert found.total == pytest.approx(np.log(np.exp(scores).sum(axis=1)), abs=1e-5)
    assert found.lead == pytest.approx(scores[:, 1:].max(axis=1) - scores[:, 0], abs=1e-5)


@pytest.mark.parametrize("has_bias", [True, False])
def test_the_gradient_vanishes_at_the_fitted_row(has_bias: bool) -> None:
    rng = np.random.default_rng(0)
    data = RowData(
        rng.normal(size=(60, 5)),
        rng.normal(size=60),
        np.where(rng.random(60) < 0.3, 1.0, -1.0),
        rng.random(60) + 0.5,
    )
    found = fit_row(data, has_bias=has_bias)
    w, b = (found.vector[:-1], found.vector[-1]) if has_bias else (found.vector, 0.0)
    wrong = data.weights * data.signs / (1 + np.exp(data.signs * (data.features @ w + b - data.offsets)))
    assert RIDGE * w - data.features.T @ wrong == pytest.approx(np.zeros(5), abs=1e-3)
    if has_bias:
        assert wrong.sum() == pytest.approx(0, abs=1e-3)
