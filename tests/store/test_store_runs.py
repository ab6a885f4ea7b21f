"""Runs are found again, go on where they were, are listed and deleted; on both databases."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import delete, select
from stored_runs import CENTRE, CLASSES, COST, as_plain, plan, verdict, verdicts

import argmaxable as am
from argmaxable.compute.prepared import centre_of
from argmaxable.core.head import Facts
from argmaxable.core.result import Cost
from argmaxable.questions.argmax import run_plan
from argmaxable.run.plan import ONE_PROCESS, make_plan
from argmaxable.store import Plan, PublishedVerdict, State, Store, open_store
from argmaxable.store.schema import EVIDENCE, METADATA, MODELS, RUNS, VERDICTS


@pytest.fixture
def store(place: str) -> Iterator[Store]:
    with open_store(place) as store:
        yield store


def finished(store: Store, plan: Plan) -> int:
    with store.begin(plan, centre=CENTRE) as run:
        run.record(verdicts(), COST)
        run.finish(COST)
    return run.run_id


def rows_in(store: Store) -> dict[str, int]:
    """Rows of every table that holds what runs found."""
    with store._database.reading() as connection:
        return {
            table.name: len(connection.execute(select(table)).all())
            for table in (MODELS, RUNS, VERDICTS, EVIDENCE)
        }


# ---------------------------------------------------------------------- found again


def test_a_new_plan_begins_with_nothing(store: Store) -> None:
    with store.begin(plan(), centre=CENTRE) as run:
        assert not run.is_finished
        assert run.known == {}
        assert run.spent == Cost()
        assert run.centre.tobytes() == CENTRE.tobytes()


def test_a_finished_plan_is_found_again_with_everything(store: Store) -> None:
    run_id = finished(store, plan())
    with store.begin(plan(), centre=CENTRE) as run:
        assert run.run_id == run_id
        assert run.is_finished
        assert run.spent == COST
        assert [as_plain(run.known[k]) for k in range(CLASSES)] == [as_plain(given) for given in verdicts()]
    assert store.run(run_id).state is State.FINISHED


def test_a_finished_run_can_be_had_by_several_at_once(store: Store) -> None:
    run_id = finished(store, plan())
    with store.begin(plan(), centre=CENTRE) as one, store.begin(plan(), centre=CENTRE) as other:
        assert one.run_id == other.run_id == run_id


def test_nothing_can_be_added_to_a_finished_run(store: Store) -> None:
    finished(store, plan())
    with store.begin(plan(), centre=CENTRE) as run, pytest.raises(am.StoreError, match="is finished"):
        run.record(verdicts(), COST)


def test_an_interrupted_run_goes_on_where_it_was(store: Store) -> None:
    half = Cost(seconds=0.5, solves=1)
    with store.begin(plan(), centre=CENTRE) as first:
        first.record(verdicts()[:25], half)
    assert store.run(first.run_id).state is State.INTERRUPTED
    assert not store.read(first.run_id).is_complete
    with store.begin(plan(), centre=CENTRE) as second:
        assert second.run_id == first.run_id
        assert set(second.known) == set(range(25))
        assert second.spent == half
        second.record(verdicts()[25:], COST)
        second.finish(COST)
    assert [as_plain(v) for v in store.verdicts(first.run_id)] == [as_plain(v) for v in verdicts()]
    assert len(store.runs()) == 1


def test_the_centre_of_the_first_part_is_stored(store: Store) -> None:
    with store.begin(plan(), centre=CENTRE) as first:
        pass
    with store.begin(plan(), centre=CENTRE + 1e-7) as second:
        assert second.run_id == first.run_id
        assert second.centre.tobytes() == CENTRE.tobytes()


def test_an_exception_leaves_the_run_interrupted(store: Store) -> None:
    run = store.begin(plan(), centre=CENTRE)
    with pytest.raises(ZeroDivisionError), run:
        run.record(verdicts()[: 1 // 0], COST)
    summary = store.run(run.run_id)
    assert summary.state is State.INTERRUPTED
    assert summary.counts.open == CLASSES


def test_recording_again_adds_nothing_and_changes_nothing(store: Store) -> None:
    with store.begin(plan(), centre=CENTRE) as run:
        run.record(verdicts(), COST)
        before, rows = store.run(run.run_id).counts, rows_in(store)
        other = [verdict(k, am.Status.UNDECIDED, reason="something else") for k in range(CLASSES)]
        run.record(other, COST)
        run.record(verdicts()[10:20], COST)
        assert store.run(run.run_id).counts == before
    assert rows_in(store) == rows
    assert [as_plain(v) for v in store.verdicts(run.run_id)] == [as_plain(v) for v in verdicts()]


def test_a_verdict_given_twice_in_a_batch_counts_once(store: Store) -> None:
    with store.begin(plan(), centre=CENTRE) as run:
        run.record([*verdicts(), *verdicts()], COST)
        assert store.run(run.run_id).counts.open == 0
        run.finish(COST)


def test_overwriting_forgets_the_earlier_run(store: Store) -> None:
    earlier = finished(store, plan(family="opus"))
    with store.begin(plan(), centre=CENTRE, overwrite=True) as run:
        assert not run.is_finished
        assert run.known == {}
        assert run.spent == Cost()
    assert [summary.run_id for summary in store.runs()] == [run.run_id]
    assert run.run_id > earlier
    assert rows_in(store) == {"models": 1, "runs": 1, "verdicts": 0, "evidence": 1}
    assert store.run(run.run_id).family == "opus"


@pytest.mark.parametrize(
    "changes",
    [
        {"labels": None},
        {"labels": tuple(f"other {k}" for k in range(CLASSES))},
        {"domain": am.Box(-99.0, 100.0)},
        {"domain": am.Everywhere()},
        {"algorithm": am.Algorithm.REFLECTION},
        {"patience": 31},
        {"seed": 1},
        {"only": (1, 2)},
        {"facts": replace(plan().facts, sha256="ab" * 32)},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_another_question_is_another_run(store: Store, changes: dict[str, object]) -> None:
    assert finished(store, plan()) != finished_or_begun(store, plan(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"origin": "hub/id"},
        {"task": "translation", "family": "opus"},
        {"facts": replace(plan().facts, name="copy.onnx")},
        {"only": tuple(range(CLASSES))},
        {"domain": am.Box(-100, 100.0)},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_the_same_question_in_other_words_is_the_same_run(store: Store, changes: dict[str, object]) -> None:
    assert finished(store, plan()) == finished_or_begun(store, plan(**changes))


def finished_or_begun(store: Store, plan: Plan) -> int:
    with store.begin(plan, centre=CENTRE) as run:
        return run.run_id


def test_classes_may_be_listed_in_any_order(store: Store) -> None:
    one = finished_or_begun(store, plan(only=(3, 1, 2)))
    assert finished_or_begun(store, plan(only=(1, 2, 2, 3))) == one
    assert store.run(one).counts.wanted == 3


def test_labels_that_differ_only_in_where_they_are_cut_are_different(store: Store) -> None:
    facts = replace(plan().facts, classes=2)
    one = finished_or_begun(store, plan(facts=facts, labels=("ab", "c")))
    assert finished_or_begun(store, plan(facts=facts, labels=("a", "bc"))) != one
    assert finished_or_begun(store, plan(facts=facts, labels=("a\ud800", "bc"))) != one


def test_a_character_and_the_halves_of_its_surrogate_pair_are_different_labels(store: Store) -> None:
    facts = replace(plan().facts, classes=1)
    one = finished_or_begun(store, plan(facts=facts, labels=("\U0001f600",)))
    assert finished_or_begun(store, plan(facts=facts, labels=("\ud83d\ude00",))) != one


def test_a_run_found_again_keeps_its_name_and_learns_its_task(store: Store) -> None:
    run_id = finished(store, plan(origin="hub/id", family="opus"))
    finished_or_begun(store, plan(facts=replace(plan().facts, name="renamed.onnx"), task="translation"))
    summary = store.run(run_id)
    assert summary.facts.name == "model.onnx"
    assert (summary.origin, summary.task, summary.family) == ("hub/id", "translation", "opus")


def test_each_run_of_a_head_is_called_what_it_was_begun_as(store: Store) -> None:
    first = finished(store, plan())
    renamed = replace(plan().facts, name="renamed.onnx")
    second = finished_or_begun(store, plan(facts=renamed, domain=am.Everywhere()))
    assert [store.run(run_id).facts.name for run_id in (first, second)] == ["model.onnx", "renamed.onnx"]


def test_a_run_can_not_be_finished_before_every_class_has_a_verdict(store: Store) -> None:
    with store.begin(plan(), centre=CENTRE) as run:
        run.record(verdicts()[1:], COST)
        with pytest.raises(am.StoreError, match="1 classes have no verdict"):
            run.finish(COST)
        run.record(verdicts()[:1], COST)
        run.finish(COST)


def test_a_closed_run_takes_nothing(store: Store) -> None:
    with store.begin(plan(), centre=CENTRE) as run:
        pass
    with pytest.raises(am.StoreError, match="was closed"):
        run.record(verdicts(), COST)
    run.close()


def test_what_verify_records_is_what_it_returns(store: Store) -> None:
    generator = np.random.default_rng(4)
    rows = generator.standard_normal((40, 4)).astype(np.float32)
    rows[7], rows[30] = rows[3], rows[:7].mean(axis=0)
    head = am.Head(rows, labels=[f"l{k}" for k in range(40)])
    its = Plan(Facts.of(head), head.labels, am.Box(-1.0, 1.0), am.Algorithm.AUTO, 30, 0)
    with store.begin(its, centre=centre_of(head)) as run:
        result = run_plan(make_plan(head, am.Box(-1.0, 1.0), engine=ONE_PROCESS), journal=run)
        run.finish(result.cost)
    record = store.read(run.run_id)
    assert [as_plain(v) for v in record.verdicts] == [as_plain(v) for v in result.verdicts]
    counts = store.run(run.run_id).counts
    assert (counts.argmaxable, counts.unargmaxable) == (len(result.argmaxable), len(result.unargmaxable))
    assert (counts.tied, counts.undecided, counts.open) == (len(result.tied), 0, 0)
    with store.begin(its, centre=centre_of(head)) as again:
        part = make_plan(head, am.Box(-1.0, 1.0), engine=ONE_PROCESS)
        resumed = run_plan(part, journal=_without_writing(again.known))
    assert [as_plain(v) for v in resumed.verdicts] == [as_plain(v) for v in result.verdicts]


class _without_writing:
    """A journal that knows but does not write."""

    centre = None
    spent = Cost()

    def __init__(self, known: object) -> None:
        self.known = known

    def record(self, verdicts: object, cost: Cost) -> None:
        assert not verdicts


# ---------------------------------------------------------------------- summaries


def test_a_summary_counts_as_the_verdicts_do(store: Store) -> None:
    counts = store.run(finished(store, plan())).counts
    assert counts.wanted == CLASSES
    assert counts.argmaxable == sum(v.status is am.Status.ARGMAXABLE for v in verdicts())
    assert counts.unargmaxable == sum(v.status is am.Status.UNARGMAXABLE for v in verdicts())
    assert counts.undecided == sum(v.status is am.Status.UNDECIDED for v in verdicts())
    assert counts.tied == sum(v.is_tied for v in verdicts()) == 10
    assert counts.solved == sum(v.rows > 0 for v in verdicts()) == 20
    assert counts.open == 0


def test_a_summary_says_what_the_plan_said(store: Store) -> None:
    before = datetime.now(UTC)
    run_id = finished(store, plan(origin="hub/id", task="translation", family="opus", seed=3, patience=9))
    summary = store.run(run_id)
    assert summary.facts == plan().facts
    assert (summary.origin, summary.task, summary.family) == ("hub/id", "translation", "opus")
    assert (summary.algorithm, summary.patience, summary.seed) == (am.Algorithm.AUTO, 9, 3)
    assert summary.domain == plan().domain
    assert summary.cost == COST
    assert summary.versions["argmaxable"] == am.__version__
    assert summary.finished is not None
    assert before <= summary.started <= summary.finished <= datetime.now(UTC)
    assert summary.started.utcoffset() == timedelta(0)


def test_a_run_that_is_worked_on_says_so(store: Store) -> None:
    with store.begin(plan(), centre=CENTRE) as run:
        assert store.run(run.run_id).state is State.RUNNING
        assert store.run(run.run_id).finished is None
        assert [summary.run_id for summary in store.runs(state=State.RUNNING)] == [run.run_id]
        assert store.runs(state=State.INTERRUPTED) == []
    assert store.runs(state=State.RUNNING) == []
    assert [summary.run_id for summary in store.runs(state=State.INTERRUPTED)] == [run.run_id]


def test_runs_are_listed_newest_first_and_can_be_chosen(store: Store) -> None:
    numbers = []
    for k, (name, family) in enumerate([("alpha", "one"), ("beta", "one"), ("alphabet", "two")]):
        facts = replace(plan().facts, name=name, sha256=f"{k:064}")
        numbers.append(finished(store, plan(facts=facts, family=family, task=f"task {family}")))
    first, second, third = numbers
    assert [run.run_id for run in store.runs()] == [third, second, first]
    assert [run.run_id for run in store.runs(limit=2)] == [third, second]
    assert [run.run_id for run in store.runs(name="ALPHA")] == [third, first]
    assert [run.run_id for run in store.runs(family="one")] == [second, first]
    assert [run.run_id for run in store.runs(task="task two")] == [third]
    assert [run.run_id for run in store.runs(state=State.FINISHED, limit=1)] == [third]
    assert store.runs(name="gamma") == []


def test_a_run_that_is_not_there_is_an_error_that_says_where_to_look(store: Store) -> None:
    for ask in (store.run, store.read, lambda number: list(store.verdicts(number))):
        for number in (17, 0, -1, 10**30):
            with pytest.raises(am.StoreError, match=f"run {number} does not exist. `argmaxable runs`"):
                ask(number)


# ---------------------------------------------------------------------- deleting


def test_deleting_leaves_nothing_of_a_run(store: Store) -> None:
    gone, stays = finished(store, plan()), finished(store, plan(seed=1))
    assert store.delete([gone, gone]) == 1
    assert [run.run_id for run in store.runs()] == [stays]
    assert len(list(store.verdicts(stays))) == CLASSES
    assert rows_in(store)["models"] == 1
    assert store.delete([stays]) == 1
    assert rows_in(store) == {"models": 0, "runs": 0, "verdicts": 0, "evidence": 0}


def test_many_runs_can_be_deleted_at_once(store: Store) -> None:
    numbers = [finished_or_begun(store, plan(seed=seed)) for seed in range(40)]
    assert store.delete(numbers) == 40
    assert store.runs() == []


def test_when_one_run_is_missing_none_is_deleted(store: Store) -> None:
    run_id = finished(store, plan())
    with pytest.raises(am.StoreError, match="run 99 does not exist"):
        store.delete([run_id, 99])
    assert [run.run_id for run in store.runs()] == [run_id]


def test_a_run_that_is_worked_on_can_not_be_deleted(store: Store) -> None:
    with store.begin(plan(), centre=CENTRE) as run:
        with pytest.raises(am.StoreError, match=f"run {run.run_id} is being worked on"):
            store.delete([run.run_id])
        run.record(verdicts(), COST)
        run.finish(COST)


def test_a_run_that_was_deleted_by_hand_can_not_be_finished(store: Store) -> None:
    with store.begin(plan(), centre=CENTRE) as run:
        with store._database.writing() as connection:
            connection.execute(delete(RUNS))
        with pytest.raises(am.StoreError, match="was deleted while it was worked on"):
            run.finish(COST)


def test_numbers_of_deleted_runs_do_not_come_back(store: Store) -> None:
    first = finished(store, plan())
    store.delete([first])
    assert finished(store, plan()) == first + 1


# ---------------------------------------------------------------------- published verdicts


def published(count: int = 5) -> list[PublishedVerdict]:
    return [
        PublishedVerdict(
            k, f"label {k}\x00", list(am.Status)[k % 3], steps=k, seconds=0.5, needed_solve=k == 1
        )
        for k in range(count)
    ]


def add(store: Store, rows: list[PublishedVerdict], **changes: str) -> int:
    said = {"name": "opus-mt-en-ru", "origin": "paper", "family": "opus", "task": "translation"} | changes
    return store.add_published(**said, rows=iter(rows), domain=am.Box(-100.0, 100.0), features=512, bias=True)


def test_published_verdicts_are_kept_without_evidence(store: Store) -> None:
    run_id = add(store, published())
    summary = store.run(run_id)
    assert summary.state is State.IMPORTED
    assert (summary.facts.name, summary.facts.classes, summary.facts.features) == ("opus-mt-en-ru", 5, 512)
    assert (summary.counts.argmaxable, summary.counts.unargmaxable, summary.counts.undecided) == (2, 2, 1)
    assert (summary.counts.solved, summary.counts.open) == (1, 0)
    record = store.read(run_id)
    assert record.is_complete
    assert [(v.label, v.status, v.steps, v.seconds) for v in record.verdicts] == [
        (row.label, row.status, row.steps, row.seconds) for row in published()
    ]
    assert all(v.witness is None and v.certificate is None and v.strength is None for v in record.verdicts)


def test_the_same_published_verdicts_are_found_again(store: Store) -> None:
    run_id = add(store, published())
    assert add(store, published()) == run_id
    assert add(store, published(6)) != run_id
    assert add(store, published(), name="another") != run_id


# ---------------------------------------------------------------------- what must not be stored


def test_no_path_no_host_and_no_password_is_in_any_table(
    store: Store, place: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    facts = replace(plan().facts, name=str(tmp_path / "model.onnx"))
    finished(store, plan(facts=facts, origin=str(tmp_path / "folder" / "model.onnx")))
    add(store, published(), origin=r"C:\Users\somebody\table.csv")
    with store._database.reading() as connection:
        cells = [
            str(cell)
            for table in METADATA.sorted_tables
            for row in connection.execute(select(table))
            for cell in row
            if isinstance(cell, str)
        ]
    assert "model.onnx" in cells
    assert "table.csv" in cells
    text = "\n".join(cells)
    assert str(tmp_path) not in text
    assert "somebody" not in text
    assert not [cell for cell in cells if socket.gethostname() in cell]
    if place.startswith("postgresql"):
        assert request.getfixturevalue("postgres").password not in text
        assert "127.0.0.1" not in text


def test_the_store_names_itself_without_the_password(store: Store, place: str) -> None:
    if place.startswith("postgresql"):
        assert store.where.startswith("postgresql://tester@127.0.0.1:")
        assert store.where.endswith("/postgres")
    else:
        assert store.where == place
