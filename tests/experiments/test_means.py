"""Cells compute on the device they are given, and an interrupted training ends with the same numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from fake_device import FakeDevice

from experiments.harness.cells import Scale
from experiments.harness.corpus import Corpus, corpus
from experiments.harness.means import Means, means, using
from experiments.language.plan import cells, recipe
from experiments.language.tables import HEADS
from experiments.models import small_lstm
from experiments.models import training as training_module
from experiments.models.awd_lstm import AWDLSTM, Shape
from experiments.models.training import Epoch, Schedule, train
from experiments.synthetic import learning
from experiments.synthetic.learning import Problem, judge, learn

SCHEDULE = Schedule(epochs=4, batch=10, stretch=20, rate=5.0, slope_rate=5.0, patience=1, average_after=2)


@pytest.fixture(scope="module")
def text() -> Corpus:
    whole = corpus(None, vocabulary=60)
    return replace(whole, train=whole.train[:2_000], valid=whole.valid[:500], test=whole.test[:500])


@pytest.fixture(scope="module")
def shape(text: Corpus) -> Shape:
    return Shape("lms-plif", len(text.words), features=4, hidden=6, layers=2, bins=20)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Means]:
    """Checkpoints after every epoch."""
    chosen = Means("cpu", tmp_path / "cell", every=0.0)
    with using(chosen):
        yield chosen


class InterruptedError(Exception):
    """What stops a training in these tests."""


# ---------------------------------------------------------------------- checkpoints


@pytest.mark.parametrize("epochs", [1, 3])
def test_an_interrupted_training_ends_with_the_same_numbers(
    text: Corpus, shape: Shape, kept: Means, monkeypatch: pytest.MonkeyPatch, epochs: int
) -> None:
    with using(Means("cpu")):
        whole = train(shape, SCHEDULE, text)
    made = 0
    original = training_module._Training._pass

    def stopped(self: training_module._Training) -> float:
        nonlocal made
        if made == epochs:
            raise InterruptedError
        made += 1
        return original(self)

    monkeypatch.setattr(training_module._Training, "_pass", stopped)
    with pytest.raises(InterruptedError):
        train(shape, SCHEDULE, text)
    made = -10
    resumed = train(shape, SCHEDULE, text)
    assert made == -10 + SCHEDULE.epochs - epochs
    assert [each.validation for each in resumed.epochs] == [each.validation for each in whole.epochs]
    assert resumed.test == whole.test


def test_an_interrupted_synthetic_cell_ends_with_the_same_numbers(
    kept: Means, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = Problem(0.1, 20, 40, seed=0)
    with using(Means("cpu")):
        whole = judge(problem, learn(problem, "lms", features=3, visits=4))
    made, original = 0, learning._step

    def stopped(*arguments: object) -> None:
        nonlocal made
        if made == 2 * problem.count + 7:
            raise InterruptedError
        made += 1
        original(*arguments)  # type: ignore[arg-type]  # passes on whatever it is given

    monkeypatch.setattr(learning, "_step", stopped)
    with pytest.raises(InterruptedError):
        learn(problem, "lms", features=3, visits=4)
    made = -1000
    assert judge(problem, learn(problem, "lms", features=3, visits=4)) == whole
    assert made == -1000 + 2 * problem.count


def test_a_finished_cell_forgets_its_checkpoints(text: Corpus, shape: Shape, kept: Means) -> None:
    train(shape, replace(SCHEDULE, epochs=1), text)
    assert kept.checkpoints is not None
    assert len(list(kept.checkpoints.parent.iterdir())) == 1
    kept.forget()
    assert list(kept.checkpoints.parent.iterdir()) == []


def test_without_a_harness_nothing_is_kept() -> None:
    assert means().checkpoints is None


# ---------------------------------------------------------------------- when training ends


@pytest.mark.parametrize(("validations", "is_over"), [([9, 8, 7, 7.5], False), ([9, 8, 7, 7.5, 7.5], True)])
def test_training_ends_when_averages_bring_nothing_better(
    text: Corpus, shape: Shape, validations: list[float], is_over: bool
) -> None:
    training = training_module._prepare(shape, replace(SCHEDULE, epochs=30, stop_after=2), text)
    training.epochs = [Epoch(1.0, 9.0, value, place > 1) for place, value in enumerate(validations)]
    assert training._is_over() is is_over


# ---------------------------------------------------------------------- devices


def test_tensors_on_two_devices_do_not_mix() -> None:
    weight = torch.ones(3)
    with FakeDevice([weight]), pytest.raises(RuntimeError, match="two devices"):
        weight + torch.ones(3)
    with FakeDevice([weight]), pytest.raises(TypeError, match="numpy"):
        (2 * weight).numpy()


def test_a_model_speaks_on_its_own_device(text: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    model = AWDLSTM(Shape("linear", len(text.words), features=4, hidden=6, layers=1))
    expected = small_lstm.speak(model, text, length=400, seed=1)
    asked: list[object] = []
    generator = torch.Generator

    def made(*device: object) -> torch.Generator:
        asked.extend(device)
        return generator()

    monkeypatch.setattr(torch, "Generator", made)
    with FakeDevice(model.parameters()):
        spoken = small_lstm.speak(model, text, length=400, seed=1)
    assert asked == [model.embedding.weight.device]
    assert np.array_equal(spoken, expected)


def test_the_device_that_was_chosen_is_the_model_s(text: Corpus, shape: Shape) -> None:
    with using(Means("meta")):
        training = training_module._prepare(shape, SCHEDULE, text)
    assert training.model.embedding.weight.device.type == "meta"
    assert training.streams.device.type == "meta"


# ---------------------------------------------------------------------- the published sizes


@pytest.mark.parametrize("head", HEADS)
def test_the_first_step_of_the_published_training_runs(head: str, text: Corpus) -> None:
    """On few words and one short stretch: layers, heads, rates and dropout are the published ones."""
    published = {**cells(Scale.PAPER)[0], "head": head}
    shape, schedule = recipe(published, len(text.words))
    few = replace(text, train=text.train[:120], valid=text.valid[:20], test=text.test[:20])
    with using(Means("cpu", steps=1)):
        trained = train(shape, schedule, few)
    assert (shape.features, shape.hidden, shape.layers) == (400, 1150, 3)
    assert len(trained.epochs) == 1
    assert np.isfinite(trained.test)
