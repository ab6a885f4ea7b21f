"""Sets of labels in the database: as they were written, resumed, found again, deleted; on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import update

import argmaxable as am
from argmaxable.compute.prepared import prepared
from argmaxable.core.label_sets import Feasibility, SetTest
from argmaxable.proofs.bundle import read_all
from argmaxable.proofs.sets import write_sets
from argmaxable.store import State, Store, open_store
from argmaxable.store.schema import SET_EVIDENCE, SETS
from argmaxable.workflow.stored_run import Origin
from argmaxable.workflow.stored_sets import SetQuestion, StoredSets, ask_stored

HERE = am.Engine(workers=1)
LABELS = 6  # 15 pairs: some feasible, some not


@pytest.fixture
def store(place: str) -> Iterator[Store]:
    with open_store(place) as store:
        yield store


def head() -> am.Head:
    rng = np.random.default_rng(0)
    labels = tuple(f"label {k}\x00" for k in range(LABELS))  # neither database takes a NUL
    return am.Head(rng.standard_normal((LABELS, 3)).astype(np.float32), labels=labels, name="tags")


def question(domain: am.Domain, **changes: object) -> SetQuestion:
    pairs = {(first, second): 1 + first for second in range(LABELS) for first in range(second)}
    values: dict[str, object] = {"test": SetTest(), "sets": pairs}
    return SetQuestion(prepared(head()), domain, **{**values, **changes})


def asked(its: SetQuestion, store: Store, **options: object) -> StoredSets:
    return ask_stored(its, store, origin=Origin("tags.npz"), engine=HERE, **options)


def plain(found: am.LabelSets) -> list[object]:
    return [
        (
            claim.members, claim.labels, claim.status, claim.lower, claim.upper, claim.method, claim.count,
            claim.reason, None if claim.point is None else claim.point.tolist(),
            None if claim.certificate is None else
            (claim.certificate.classes.tolist(), claim.certificate.weights.tolist(), claim.certificate.whole),
        )
        for claim in found.claims
    ]  # fmt: skip


@pytest.mark.parametrize("domain", [am.Box(-1.0, 1.0), am.Everywhere()], ids=str)
def test_sets_come_back_with_evidence_that_still_proves_them(
    store: Store, domain: am.Domain, tmp_path: Path
) -> None:
    done = asked(question(domain), store)
    assert done.run_id is not None
    back = store.sets.read(done.run_id)
    assert plain(back) == plain(done.found)
    assert back.is_complete
    assert {claim.status for claim in back.claims} == {Feasibility.FEASIBLE, Feasibility.INFEASIBLE}
    # Over all of feature space certificates have exact weights of many digits.
    assert isinstance(domain, am.Box) or any(c.certificate.whole for c in back.claims if c.certificate)
    write_sets(back, tmp_path / "proofs")
    (bundle,) = read_all(tmp_path / "proofs")
    assert not am.recheck(bundle, head()).failures
    assert store.check().is_sound


def test_a_question_is_answered_once(store: Store) -> None:
    first = asked(question(am.Box(-1.0, 1.0)), store)
    again = asked(question(am.Box(-1.0, 1.0)), store)
    assert (again.run_id, again.was_known) == (first.run_id, True)
    assert plain(again.found) == plain(first.found)
    anew = asked(question(am.Box(-1.0, 1.0)), store, overwrite=True)
    assert not anew.was_known
    others = [
        question(am.Box(-2.0, 2.0)),
        question(am.Box(-1.0, 1.0), test=SetTest("top")),
        question(am.Box(-1.0, 1.0), test=SetTest("exactly", 0.5)),
        question(am.Box(-1.0, 1.0), sets={(0, 1): 2}),
    ]
    assert not any(asked(each, store).was_known for each in others)
    assert len(store.sets.runs()) == 5


def test_what_was_not_reached_is_asked_about_again(store: Store) -> None:
    its = question(am.Box(-1.0, 1.0))
    stopped = asked(its, store, time_limit=0.0)
    assert not stopped.found.is_complete
    assert len(stopped.found.claims) == len(its.sets)
    (summary,) = store.sets.runs()
    assert summary.state is State.INTERRUPTED
    done = asked(its, store)
    assert done.run_id == stopped.run_id
    assert done.found.is_complete
    assert [claim.members for claim in done.found.claims] == list(its.sets)
    assert store.sets.run(summary.run_id).state is State.FINISHED


def test_sets_and_runs_share_a_model_and_go_one_by_one(store: Store) -> None:
    done = asked(question(am.Box(-1.0, 1.0)), store)
    am.verify(head(), am.Box(-1.0, 1.0), store=store, engine=HERE)
    (run,) = store.runs()
    assert store.delete([run.run_id]) == 1
    assert store.sets.run(done.run_id or 0).facts.name == "tags"  # its model is still there
    assert store.sets.delete([done.run_id or 0]) == 1
    assert store.sets.runs() == []
    with pytest.raises(am.NotFoundError, match=r"sets:1 does not exist.*argmaxable runs"):
        store.sets.run(1)


@pytest.mark.parametrize(
    ("table", "changes", "said"),
    [
        (SETS, {"members": "[1, true, -3]"}, "whole numbers"),
        (SETS, {"members": "{"}, "can't be read"),
        (SETS, {"labels": "[]"}, "more labels than members"),
        (SETS, {"status": "perhaps"}, "can't be read"),
        (SETS, {"status": "undecided"}, "and holds"),
        (SET_EVIDENCE, {"data": b""}, "damaged"),
    ],
)
def test_damage_is_found(store: Store, table: object, changes: dict[str, object], said: str) -> None:
    asked(question(am.Box(-1.0, 1.0)), store)
    with store._database.writing() as connection:
        connection.execute(update(table).values(**changes))
    found = store.check()
    assert not found.is_sound
    assert any(said in problem for problem in found.problems), found.problems


def test_whole_weights_of_verdicts_are_stored_too(store: Store, tmp_path: Path) -> None:
    its, points = head(), np.random.default_rng(1).standard_normal((8, 3))
    points[:, 2] = points[:, 0]  # a flat hull with 0 inside: margins of exactly 0
    am.verify(its, am.Hull(points), store=store, engine=HERE)
    record = store.read(store.runs()[0].run_id)
    assert any(verdict.certificate.whole for verdict in record.verdicts if verdict.certificate)
    am.write_bundle(record, tmp_path / "proofs")
    assert not am.recheck(am.read_bundle(tmp_path / "proofs"), its).failures
