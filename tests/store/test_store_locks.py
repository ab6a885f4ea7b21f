"""One process works on a run at a time, and a killed one leaves it whole; on both databases."""

from __future__ import annotations

import itertools
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import psycopg
import pytest
from stored_runs import CENTRE, CLASSES, COST, as_plain, plan, verdicts
from working import BATCH, CROWD, batch, heard, long_plan, started

import argmaxable as am
from argmaxable.core.head import Facts
from argmaxable.core.signals import uninterrupted
from argmaxable.store import State, Store, database, open_store
from argmaxable.store.identity import run_key, tidied
from argmaxable.store.postgresql import _lock_number


def killed(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def wait_until_free(place: str) -> None:
    """Wait until a server has seen that its client has gone; the operating system sees it at once."""
    if place.startswith("postgresql"):
        with psycopg.connect(place) as connection:
            connection.execute("SELECT pg_advisory_lock(%s)", [_lock_number(run_key(tidied(plan())))])


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """For runs that are held until the test is over: waiting for them is in vain."""
    monkeypatch.setattr(database, "_PATIENCE_SECONDS", 0.0)


def refuses(store: Store) -> bool:
    """Whether the run is being worked on by somebody else."""
    with pytest.raises(am.StoreError, match="is being worked on by another process"):
        store.begin(plan(), centre=CENTRE)
    return True


@pytest.mark.usefixtures("impatient")
def test_another_process_can_not_work_on_the_same_run(place: str) -> None:
    other = started(place, "hold")
    try:
        assert heard(other) == "begun 1"
        with open_store(place) as store:
            with pytest.raises(am.StoreError) as error:
                store.begin(plan(), centre=CENTRE)
            assert "run 1 is being worked on by another process" in str(error.value)
            assert "argmaxable show 1" in str(error.value)
            assert store.run(1).state is State.RUNNING
            with store.begin(plan(seed=1), centre=CENTRE) as mine:
                mine.record(verdicts(), COST)
                mine.finish(COST)
    finally:
        other.communicate("")
    with open_store(place) as store:
        assert store.run(1).state is State.INTERRUPTED


def test_two_stores_of_one_process_exclude_each_other_too(place: str) -> None:
    with open_store(place) as one, open_store(place) as other, one.begin(plan(), centre=CENTRE):
        assert refuses(other)


def test_a_run_can_be_read_while_it_is_written(place: str) -> None:
    with open_store(place) as writer, open_store(place) as reader:
        with writer.begin(plan(), centre=CENTRE) as run:
            run.record(verdicts()[:30], COST)
            reading = reader.verdicts(run.run_id)
            assert as_plain(next(reading)) == as_plain(verdicts()[0])
            run.record(verdicts()[30:], COST)
            assert reader.run(run.run_id).counts.open == 0
            assert len(list(reading)) in (29, CLASSES - 1)  # a page may have been read before or after
            run.finish(COST)
        assert len(list(reader.verdicts(run.run_id))) == CLASSES


def test_a_killed_process_leaves_its_run_interrupted_and_lets_go_at_once(place: str) -> None:
    other = started(place, "hold")
    assert heard(other) == "begun 1"
    killed(other)
    wait_until_free(place)
    with open_store(place) as store:
        assert store.run(1).state is State.INTERRUPTED
        assert [run.run_id for run in store.runs(state=State.INTERRUPTED)] == [1]
        with store.begin(plan(), centre=CENTRE) as run:
            assert run.run_id == 1
            run.record(verdicts(), COST)
            run.finish(COST)


def test_nothing_committed_is_lost_when_a_process_is_killed_at_any_moment(place: str) -> None:
    moments = random.Random(0)
    done = 0
    for _ in range(2):  # a new run, and one that is resumed
        other = started(place, "record")
        while int(heard(other)) < done + 3 + moments.randrange(20):
            pass
        other.kill()
        said = other.communicate()[0].split()
        told = int(said[-1]) if said else done + 3  # at least
        with open_store(place) as store, store.begin(long_plan(), centre=CENTRE) as run:
            done, rest = divmod(len(run.known), BATCH)
            assert rest == 0, "a batch is there as a whole or not at all"
            assert done >= told, "what was said to be committed is there"
            assert sorted(run.known) == list(range(done * BATCH))
            expected = [verdict for number in range(done) for verdict in batch(number)]
            assert [as_plain(v) for v in store.verdicts(1)] == [as_plain(v) for v in expected]
            counts = store.run(1).counts
            statuses = Counter(verdict.status for verdict in expected)
            assert counts.argmaxable == statuses[am.Status.ARGMAXABLE]
            assert counts.unargmaxable == statuses[am.Status.UNARGMAXABLE]
            assert counts.undecided == statuses[am.Status.UNDECIDED]


def test_of_many_processes_that_begin_the_same_run_at_once_one_gets_it(new_place: str) -> None:
    crowd = started(new_place, "crowd", "same")
    assert crowd.stdout is not None
    lines = [heard(crowd) for _ in range(CROWD)]
    crowd.communicate("")
    assert Counter(line.split()[0] for line in lines) == {"begun": 1, "refused": CROWD - 1}
    assert all("is being worked on by another process" in line for line in lines if "refused" in line)
    with open_store(new_place) as store:
        (summary,) = store.runs()
        assert summary.state is State.FINISHED


def test_many_processes_can_write_their_own_runs_into_a_new_store(new_place: str) -> None:
    lines = started(new_place, "crowd", "different").communicate("")[0].splitlines()
    assert Counter(line.split()[0] for line in lines) == {"begun": CROWD}
    with open_store(new_place) as store:
        runs = store.runs()
        assert [run.state for run in runs] == [State.FINISHED] * CROWD
        assert sorted(run.seed for run in runs) == list(range(CROWD))
        assert {run.counts.open for run in runs} == {0}
        assert len({run.facts for run in runs}) == 1


@pytest.mark.usefixtures("impatient")
def test_two_names_of_one_file_are_one_store(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "runs.db")
    one, other = open_store(str(tmp_path / "runs.db")), open_store(str(tmp_path / "link.db"))
    with one, other, one.begin(plan(), centre=CENTRE):
        assert refuses(other)


def test_no_lock_stays_beside_a_file_that_is_done_with(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "runs.db")) as store, store.begin(plan(), centre=CENTRE):
        assert len(list(tmp_path.glob("*.lock"))) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["runs.db"]


@contextmanager
def interrupted_after(calls: int) -> Iterator[None]:
    """Ctrl-C at the n-th call of a function in the block, unless that is over before."""
    left = itertools.count(calls, -1)

    def count(frame: FrameType, event: str, argument: object) -> None:
        if next(left) == 0:
            sys.setprofile(None)
            signal.raise_signal(signal.SIGINT)

    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(None)


def test_ctrl_c_at_any_moment_leaves_a_batch_whole_and_the_run_usable(place: str) -> None:
    rounds, size = 12, 600
    its = plan(facts=Facts("large", "aa" * 32, rounds * size, 3, False, "float32"), labels=None)
    every, moments, interrupted = verdicts(rounds * size), random.Random(0), 0
    # A shell that runs the tests in its background has them ignore Ctrl-C.
    ignored = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with open_store(place) as store, store.begin(its, centre=CENTRE) as run:
            for first in range(0, rounds * size, size):
                some = every[first : first + size]
                try:
                    with interrupted_after(moments.randrange(2000)):
                        run.record(some, COST)
                except KeyboardInterrupt:
                    interrupted += 1
                assert store.run(1).counts.open % size == 0
                run.record(some, COST)
            run.finish(COST)
            assert [as_plain(v) for v in store.verdicts(1)] == [as_plain(v) for v in every]
    finally:
        signal.signal(signal.SIGINT, ignored)
    assert interrupted == rounds


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_made_to_interrupt_waits_for_the_commit(tmp_path: Path, name: str) -> None:
    number = getattr(signal, name)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    interrupted: list[str] = []
    earlier = signal.signal(number, interrupt)
    try:
        with open_store(str(tmp_path / "runs.db")) as store, store.begin(plan(), centre=CENTRE) as run:
            try:
                with uninterrupted():
                    signal.raise_signal(number)
                    run.record(verdicts(), COST)
            except KeyboardInterrupt:
                interrupted.append(name)
            assert interrupted == [name]
            assert store.run(1).counts.open == 0
            assert signal.getsignal(number) is interrupt
    finally:
        signal.signal(number, earlier)
