"""Worker processes: started early, given a job later, and never left behind."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import argmaxable as am
from argmaxable.check.checker import Checker
from argmaxable.prove.prover import Prover
from argmaxable.questions import argmax
from argmaxable.run import phases
from argmaxable.run.engines.engine import Job
from argmaxable.run.engines.processes import Processes
from argmaxable.run.engines.worker import lay_out, pick_up
from argmaxable.run.plan import Settings, make_plan


def job_of(head: am.Head, domain: am.Domain) -> Job:
    none = np.array([], np.intp)
    prover = Prover(Checker(head, domain), ignored=none, tied=frozenset(), score=None, seed=3)
    return Job(
        head=head, domain=domain, centre=prover.checker.centre, ignored=np.array([4], np.intp),
        tied=frozenset({1, 2}), score=prover.solver.blockers.score, seed=3, memory=10**9,
    )  # fmt: skip


def random_head(classes: int = 12, features: int = 3) -> am.Head:
    rng = np.random.default_rng(0)
    return am.Head(rng.standard_normal((classes, features)), rng.standard_normal(classes))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """Every process that is started."""
    processes: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def start(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        processes.append(popen(*arguments, **options))
        return processes[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    return processes


def settings(*, algorithm: am.Algorithm = am.Algorithm.AUTO, workers: int = 2, **changes: Any) -> Settings:
    engine = am.Engine(workers=workers, **changes)
    return make_plan(random_head(), am.Box(-1.0, 1.0), method=algorithm, engine=engine).settings


@pytest.mark.parametrize("domain", [am.Box(-np.ones(3), np.full(3, np.inf)), am.Ball(2.0), am.Everywhere()])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_job_is_picked_up_as_it_was_laid_out(domain: am.Domain, dtype: str, tmp_path: Path) -> None:
    head = random_head()
    job = job_of(am.Head(head.weight.astype(dtype), head.bias), domain)
    lay_out(job, tmp_path)
    found = pick_up(tmp_path)
    assert found.head.sha256() == job.head.sha256()
    assert found.domain.as_record() == job.domain.as_record()
    assert (found.tied, found.seed, found.memory) == (job.tied, job.seed, job.memory)
    for name in ("centre", "ignored", "score"):
        assert np.array_equal(getattr(found, name), getattr(job, name))


@pytest.mark.parametrize("early", [True, False])
def test_processes_settle_what_they_are_given(early: bool, started: list[subprocess.Popen[bytes]]) -> None:
    head = random_head()
    with Processes(1) as engine:
        if early:
            engine.spawn()
        engine.start(job_of(head, am.Box(-1.0, 1.0)))
        engine.submit(0, [0, 1, 2])
        found = set()
        while engine.pending:
            reports, orphans = engine.collect(wait=60.0)
            assert not orphans
            found |= {report.settled.answer.class_id for report in reports}
    assert found == {0, 1, 2}
    assert [process.poll() is not None for process in started] == [True]


def test_processes_without_a_job_end_with_the_block(started: list[subprocess.Popen[bytes]]) -> None:
    with Processes(2) as engine:
        engine.spawn()
        engine.close()  # as often as anybody likes
    assert [process.poll() is not None for process in started] == [True, True]


def test_an_interruption_while_processes_start_leaves_none(
    started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    start = subprocess.Popen

    def interrupted(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        if started:
            raise KeyboardInterrupt
        return start(*arguments, **options)

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Processes(3).spawn()
    assert [process.poll() is not None for process in started] == [True]


def test_a_worker_whose_parent_is_gone_ends_by_itself(started: list[subprocess.Popen[bytes]]) -> None:
    with Processes(1) as engine:
        engine.spawn()
        (worker,) = started
        assert worker.stdin is not None
        worker.stdin.close()
        assert worker.wait() == 0


def test_a_small_head_starts_no_process(started: list[subprocess.Popen[bytes]]) -> None:
    am.verify(random_head(300, 8), engine=am.Engine(workers=4))
    assert started == []


@pytest.mark.parametrize(
    ("changes", "early"),
    [
        ({}, 1),
        ({"workers": 1}, 0),
        ({"algorithm": am.Algorithm.OWN_DIRECTION}, 0),
        ({"algorithm": am.Algorithm.CHEBYSHEV}, 0),
        ({"ray": "local"}, 0),
    ],
)
def test_processes_start_early_where_they_may_be_needed(
    changes: dict[str, Any], early: int, started: list[subprocess.Popen[bytes]]
) -> None:
    with phases.early_processes(settings(**changes), 100_000, 512):
        assert len(started) == early


def test_processes_started_too_soon_are_ended_before_the_work(
    started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(phases, "_LEFT_OPEN", 1e9)
    am.verify(random_head(), engine=am.Engine(workers=2))
    assert [process.poll() is not None for process in started] == [True]


def test_an_error_while_a_head_is_prepared_ends_the_processes(
    started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise MemoryError

    monkeypatch.setattr(phases, "_LEFT_OPEN", 1e9)
    monkeypatch.setattr(argmax, "Checker", fail)
    with pytest.raises(MemoryError):
        am.verify(random_head(), engine=am.Engine(workers=2))
    assert [process.poll() is not None for process in started] == [True]
