"""verify(..., store=) and verify_model: the same run for the same question, from Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import argmaxable as am
from argmaxable.store import State, open_store

ONE = am.Engine(workers=1)
CORNERS = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1], [0, 0]])


def head() -> am.Head:
    return am.Head(CORNERS, labels=["a", "b", "c", "d", "middle"], name="corners")


def fail(progress: am.Progress) -> None:
    raise AssertionError("nothing should be computed")


def interrupt(progress: am.Progress) -> None:
    raise KeyboardInterrupt


def statuses(result: am.Result) -> list[am.Status]:
    return [verdict.status for verdict in result.verdicts]


def test_a_stored_run_is_found_again(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "runs.db")) as store:
        first = am.verify(head(), store=store, engine=ONE)
        again = am.verify(head(), store=store, engine=ONE, progress=fail)
        assert len(store.runs()) == 1
    assert statuses(first) == statuses(again) == statuses(am.verify(head(), engine=ONE))


def test_an_interrupted_run_is_resumed(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "runs.db")) as store:
        assert not am.verify(head(), store=store, engine=ONE, progress=interrupt).is_complete
        assert store.runs()[0].state is State.INTERRUPTED
        assert am.verify(head(), store=store, engine=ONE).is_complete
        (run,) = store.runs()
    assert (run.state, run.facts.name) == (State.FINISHED, "corners")


@pytest.mark.parametrize("other", [{"domain": am.Box(-1, 1)}, {"only": [4]}, {"seed": 1}], ids=str)
def test_another_question_is_another_run(tmp_path: Path, other: dict[str, object]) -> None:
    with open_store(str(tmp_path / "runs.db")) as store:
        am.verify(head(), store=store, engine=ONE)
        am.verify(head(), store=store, engine=ONE, **other)  # type: ignore[arg-type]
        assert len(store.runs()) == 2


@pytest.fixture
def model(tmp_path: Path) -> Path:
    np.savez(tmp_path / "corners.npz", W=CORNERS, labels=np.array(head().labels))
    return tmp_path / "corners.npz"


def test_a_model_is_verified_by_its_name(model: Path) -> None:
    found = am.verify_model(model, "box:1", engine=ONE)
    assert [verdict.label for verdict in found.result.unargmaxable] == ["middle"]
    assert found.result.domain == am.Box(-1.0, 1.0)
    assert (found.run_id, found.was_known, found.finding.classes) == (None, False, 5)


def test_a_domain_may_be_one(model: Path) -> None:
    assert am.verify_model(model, am.Ball(2.0), engine=ONE).result.domain == am.Ball(2.0)


def test_a_reference_names_the_head(model: Path) -> None:
    found = am.verify_model(am.ModelRef(model, name="four corners"), engine=ONE)
    assert found.result.head.name == "four corners"


@pytest.mark.parametrize("only", [[4], am.Selection(tokens=("middle",))], ids=["numbers", "labels"])
def test_classes_are_chosen_by_number_or_label(model: Path, only: list[int] | am.Selection) -> None:
    result = am.verify_model(model, only=only, engine=ONE).result
    assert [verdict.class_id for verdict in result.verdicts] == [4]


def test_a_model_and_its_head_are_the_same_run(model: Path, tmp_path: Path) -> None:
    with open_store(str(tmp_path / "runs.db")) as store:
        first = am.verify_model(model, store=store, engine=ONE)
        again = am.verify_model(model, store=store, engine=ONE)
        am.verify(am.load_head(model), store=store, engine=ONE, progress=fail)
    assert (first.was_known, again.was_known, first.run_id) == (False, True, again.run_id)


def test_a_result_about_another_question_gives_no_ranks() -> None:
    result = am.verify(head(), am.Box(-1, 1), engine=ONE)
    with pytest.raises(am.InputError, match="another head"):
        am.best_ranks(am.Head(CORNERS + 1), am.Box(-1, 1), result=result)
    with pytest.raises(am.InputError, match="domain"):
        am.best_ranks(head(), am.Box(-2, 2), result=result)
