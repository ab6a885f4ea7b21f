"""A database that argmaxable 0.1.0 wrote (tests/fixtures): opened, brought up to date, and read the same."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import argmaxable as am
from argmaxable.store import State, open_store

FIXTURES = Path(__file__).parents[1] / "fixtures"
RUNS: dict[str, dict[str, Any]] = json.loads((FIXTURES / "runs-0.1.0.json").read_text(encoding="utf-8"))

each_run = pytest.mark.parametrize("run_id", [int(run_id) for run_id in RUNS])


@pytest.fixture
def old(tmp_path: Path) -> str:
    return str(shutil.copy(FIXTURES / "runs-0.1.0.db", tmp_path / "runs.db"))


def test_all_runs_are_there(old: str) -> None:
    with open_store(old) as store:
        assert sorted(run.run_id for run in store.runs()) == sorted(map(int, RUNS))
        assert [run.state for run in store.runs()].count(State.INTERRUPTED) == 1


@each_run
def test_a_run_reads_as_it_did(old: str, run_id: int) -> None:
    expected = RUNS[str(run_id)]
    with open_store(old) as store:
        run, verdicts = store.run(run_id), list(store.verdicts(run_id))
    assert (run.facts.name, run.facts.sha256) == (expected["model"], expected["sha256"])
    assert (run.state.value, run.domain.as_record()) == (expected["state"], expected["domain"])
    assert [
        [v.class_id, v.label, v.status.value, v.lower.hex(), v.upper.hex(), v.method.value] for v in verdicts
    ] == expected["verdicts"]


@each_run
def test_the_evidence_of_a_run_proves_its_verdicts(old: str, run_id: int, tmp_path: Path) -> None:
    expected = RUNS[str(run_id)]
    with open_store(old) as store:
        am.write_bundle(store.read(run_id), tmp_path / "proofs")
    head = am.load_head(str(FIXTURES / "bundles-0.1.0" / expected["model"]))
    found = am.recheck(am.read_bundle(tmp_path / "proofs"), head)
    assert (found.proven, found.failures) == (len(expected["verdicts"]), ())
