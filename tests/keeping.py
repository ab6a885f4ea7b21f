"""Small heads and the runs that verify them, kept in a database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import argmaxable as am
from argmaxable.compute.prepared import centre_of
from argmaxable.core.head import Facts
from argmaxable.questions.argmax import run_plan
from argmaxable.questions.standing import with_standing
from argmaxable.run.plan import ONE_PROCESS, make_plan
from argmaxable.store import Plan, open_store

BOX = am.Box(-100.0, 100.0)
# Four corners, their centre, which is lost, and a twin of the first corner: two ties.
CORNERS = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1], [0, 0], [1, 1]])
LABELS = ("a", "é", "c", "d", "middle", "😀")


def lossy(*, name: str = "lossy.npz", labels: tuple[str, ...] | None = LABELS) -> am.Head:
    return am.Head(CORNERS, np.zeros(6), labels, name=name)


def plan_of(head: am.Head, domain: am.Domain = BOX, *, seed: int = 0, **more: Any) -> Plan:
    return Plan(Facts.of(head), head.labels, domain, am.Algorithm.AUTO, 30, seed, **more)


# Databases whose only run is one that was verified before, by what was asked.
_KEPT: dict[tuple[object, ...], tuple[int, bytes]] = {}


def keep(db: Path, head: am.Head, domain: am.Domain = BOX, **more: Any) -> int:
    """Verify the head into the database, with more to the plan; returns the run's number. The first run of
    a database is verified once and then copied."""
    if db.exists():
        return _verify_into(db, head, domain, **more)
    asked = (head.sha256(), head.name, head.labels, repr(domain), *sorted(more.items()))
    if asked not in _KEPT:
        run_id = _verify_into(db, head, domain, **more)
        _KEPT[asked] = run_id, db.read_bytes()
    run_id, content = _KEPT[asked]
    db.write_bytes(content)
    return run_id


def _verify_into(db: Path, head: am.Head, domain: am.Domain, **more: Any) -> int:
    plan = plan_of(head, domain, **more)
    with open_store(str(db)) as store, store.begin(plan, centre=centre_of(head)) as run:
        its = make_plan(head, domain, only=plan.only, seed=plan.seed, engine=ONE_PROCESS)
        result = with_standing(run_plan(its, journal=run), its.prepared)
        run.place(result.unargmaxable)
        run.finish(result.cost)
        return run.run_id


def keep_some(db: Path, head: am.Head, classes: tuple[int, ...]) -> int:
    """A run over all classes that was stopped after these; returns its number."""
    with open_store(str(db)) as store, store.begin(plan_of(head), centre=centre_of(head)) as run:
        result = am.verify(head, BOX, only=classes, engine=am.Engine(workers=1))
        run.record(result.verdicts, result.cost)
        return run.run_id
