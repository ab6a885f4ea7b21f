"""Whoever waits for an experiment sees how far it is, in a terminal and in a pipe."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.harness import progress
from experiments.harness.corpus import corpus
from experiments.harness.means import Means, using
from experiments.harness.progress import Shown, Waiting, write
from experiments.models.awd_lstm import Shape
from experiments.models.training import Schedule, train
from experiments.synthetic.learning import Problem, learn


@pytest.fixture
def cells(tmp_path: Path) -> list[Waiting]:
    return [Waiting(name, 1.0, tmp_path / name) for name in ("first", "second")]


def test_in_a_pipe_every_finished_cell_has_a_line(
    cells: list[Waiting], capsys: pytest.CaptureFixture[str]
) -> None:
    with Shown("toy", cells, total=5, finished=3) as shown:
        shown.look()
        for cell in cells:
            shown.finish(cell)
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("toy: 4 of 5 cells, ")
    assert first.endswith(" left: first is finished")
    assert second == "toy: 5 of 5 cells, 0 s left: second is finished"


def test_in_a_pipe_running_cells_have_a_line_now_and_then(
    cells: list[Waiting], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(cells[1].path, 12, 100)
    with Shown("toy", cells, total=2, finished=0) as shown:
        shown.look()
        monkeypatch.setattr(progress, "_LINES_EVERY", 0.0)
        shown.look()
    assert capsys.readouterr().err.splitlines() == ["toy: second is at 12 of at most 100"]


def test_in_a_terminal_each_running_cell_has_a_bar(
    cells: list[Waiting], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    with Shown("toy", cells, total=2, finished=0) as shown:
        write(cells[0].path, 12, 100)
        shown.look()
        shown.bars.refresh()
        drawn = capsys.readouterr().err
        shown.finish(cells[0])
    assert "first" in drawn
    assert "12/100" in drawn
    assert "second" not in drawn
    *_, last = capsys.readouterr().err.split("toy")
    assert "1/2" in last
    assert "first" not in last


def test_a_half_written_note_is_left_for_the_next_look(
    cells: list[Waiting], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_LINES_EVERY", 0.0)
    cells[0].path.write_text("12")
    with Shown("toy", cells, total=2, finished=0) as shown:
        shown.look()
    assert capsys.readouterr().err == ""


def test_training_says_how_many_epochs_are_done() -> None:
    told: list[tuple[int, int]] = []
    text = corpus(None, vocabulary=40)
    with using(Means("cpu", reached=lambda *far: told.append(far))):
        train(
            Shape("linear", len(text.words), features=3, hidden=4, layers=1),
            Schedule(epochs=2, batch=40, stretch=200, rate=1.0),
            text,
        )
    assert told == [(1, 2), (2, 2)]


def test_learning_says_how_many_visits_are_made() -> None:
    told: list[tuple[int, int]] = []
    with using(Means("cpu", reached=lambda *far: told.append(far))):
        learn(Problem(0.1, 5, 10, seed=0), "linear", features=2, visits=3)
    assert told == [(1, 3), (2, 3), (3, 3)]
