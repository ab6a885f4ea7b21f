"""Runs that are stopped and resumed: nothing is missing, nothing doubled, the same answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from running import Command

import argmaxable as am
from argmaxable.core.select import Selection
from argmaxable.models.model_ref import ModelRef
from argmaxable.proofs.bundle import read_bundle, write_bundle
from argmaxable.store import State, open_store
from argmaxable.store.store import Store
from argmaxable.workflow.verify_model import ModelVerdicts, Request, answer

CLASSES = 120
INTERRUPTED = 100  # so many classes are decided by then, and some of them had to be solved for


def mixed_head() -> am.Head:
    """Classes that win at once, that have to be solved for, that are lost, tied or beaten by a twin."""
    generator = np.random.default_rng(7)
    weight = generator.normal(size=(CLASSES, 12)).astype(np.float32)
    weight[40:80] *= 0.3
    weight[80:88] = weight[:80].reshape(8, 10, 12).mean(axis=1)
    weight[100:105] = weight[:5]
    bias = np.zeros(CLASSES, np.float32)
    bias[40:80], bias[103:105] = -2, -1
    return am.Head(weight, bias)


@pytest.fixture
def request_(tmp_path: Path) -> Request:
    head = mixed_head()
    np.savez(tmp_path / "mixed.npz", W=head.weight, b=head.bias)
    return Request(ModelRef(str(tmp_path / "mixed.npz")))


@pytest.fixture(scope="module")
def uninterrupted() -> am.Result:
    result = am.verify(mixed_head(), engine=am.Engine(workers=1))
    assert all([result.argmaxable, result.unargmaxable, result.tied, not result.undecided])
    return result


def interrupted_after(decided: int, request: Request, store: Store) -> ModelVerdicts:
    """A run of one process, interrupted as by Ctrl-C when so many classes are decided."""

    def stop(progress: am.Progress) -> None:
        if progress.done >= decided:
            raise KeyboardInterrupt

    return answer(request, store=store, engine=am.Engine(workers=1), progress=stop)


def as_facts(verdict: am.Verdict) -> tuple[object, ...]:
    return verdict.class_id, verdict.status, verdict.tie_group


def test_an_interrupted_run_is_resumed(
    place: str, request_: Request, uninterrupted: am.Result, tmp_path: Path
) -> None:
    with open_store(place) as store:
        first = interrupted_after(INTERRUPTED, request_, store)
        assert not first.result.is_complete
        assert first.run_id is not None
        kept = store.run(first.run_id)
        assert kept.state is State.INTERRUPTED
        assert INTERRUPTED <= kept.counts.wanted - kept.counts.open < CLASSES
        second = answer(request_, store=store, engine=am.Engine(workers=1))
        assert (second.run_id, second.was_known, second.result.is_complete) == (first.run_id, False, True)
        assert store.run(first.run_id).state is State.FINISHED
    assert [*map(as_facts, second.result.verdicts)] == [*map(as_facts, uninterrupted.verdicts)]
    solved = {verdict.class_id for verdict in first.result.verdicts if verdict.steps and verdict.rows}
    assert second.result.cost.solves >= len(solved) > 0
    write_bundle(second.result, tmp_path / "proofs")
    again = am.recheck(read_bundle(tmp_path / "proofs"), mixed_head())
    assert again.proven == CLASSES


def test_what_was_decided_before_is_not_decided_again(place: str, request_: Request) -> None:
    with open_store(place) as store:
        first = interrupted_after(INTERRUPTED, request_, store)
        seen: list[int] = []
        answer(
            request_, store=store, engine=am.Engine(workers=1),
            progress=lambda progress: seen.append(progress.done),
        )  # fmt: skip
    assert seen[0] >= len(first.result.argmaxable) > CLASSES // 2


def test_a_finished_run_is_found_again(place: str, request_: Request, uninterrupted: am.Result) -> None:
    with open_store(place) as store:
        first = answer(request_, store=store, engine=am.Engine(workers=1))
        second = answer(request_, store=store, engine=am.Engine(workers=1), progress=fail)
    assert (first.was_known, second.was_known, second.run_id) == (False, True, first.run_id)
    assert [*map(as_facts, second.result.verdicts)] == [*map(as_facts, uninterrupted.verdicts)]


def fail(progress: am.Progress) -> None:
    raise AssertionError("nothing should be computed")


@pytest.mark.parametrize(
    "changes",
    [
        {"domain": "box:1"},
        {"classes": Selection((3, 4))},
        {"seed": 1},
        {"patience": 3},
        {"method": am.Algorithm.REFLECTION, "patience": 30},  # as the first has it
    ],
    ids=str,
)
def test_another_question_is_another_run(
    request_: Request, tmp_path: Path, changes: dict[str, object]
) -> None:
    with open_store(str(tmp_path / "runs.db")) as store:
        first = answer(request_, store=store, engine=am.Engine(workers=1))
        second = answer(replace(request_, **changes), store=store, engine=am.Engine(workers=1))  # type: ignore[arg-type]
        third = answer(replace(request_, **changes), store=store, engine=am.Engine(workers=1))  # type: ignore[arg-type]
    assert not second.was_known
    assert second.run_id != first.run_id
    assert (third.was_known, third.run_id) == (True, second.run_id)
    assert len(third.result.verdicts) == len(second.result.verdicts)


def test_overwriting_verifies_anew(place: str, request_: Request) -> None:
    with open_store(place) as store:
        answer(request_, store=store, engine=am.Engine(workers=1))
        assert not answer(request_, store=store, engine=am.Engine(workers=1), overwrite=True).was_known
        assert len(store.runs()) == 1


def test_bad_input_begins_no_run(place: str, request_: Request) -> None:
    with open_store(place) as store:
        for wrong in (replace(request_, classes=Selection((CLASSES,))), replace(request_, patience=-1)):
            with pytest.raises(am.InputError):
                answer(wrong, store=store)
        assert store.runs() == []


def test_the_command_stores_and_finds_runs(command: Command, request_: Request, database: Path) -> None:
    first = command("verify", request_.ref.model, "--workers", "1")
    assert "Stored as run 1 (argmaxable show 1)." in first.out
    second = command("verify", request_.ref.model, "--workers", "1")
    assert "Already stored as run 1; --overwrite verifies it again." in second.out
    assert first.code == second.code == 1
    assert "Stored as run" in command("verify", request_.ref.model, "--workers", "1", "--overwrite").out
    assert database.exists()


def test_without_a_database_nothing_is_stored(command: Command, request_: Request, database: Path) -> None:
    assert "run" not in command("verify", request_.ref.model, "--workers", "1", "--no-db").out.split("\n")[-2]
    assert not database.exists()


def test_a_time_limit_leaves_a_run_to_resume(command: Command, request_: Request) -> None:
    stopped = command("verify", request_.ref.model, "--workers", "1", "--time-limit", "1e-9")
    assert stopped.code == 3
    assert "the same command resumes it" in stopped.out
    assert "Stored as run 1" in command("verify", request_.ref.model, "--workers", "1").out
