"""A stored question about sets of labels: a line about it, and a JSON object."""

from __future__ import annotations

from typing import Any

from argmaxable.report.stored_runs import local_time
from argmaxable.store import SetRunSummary, State


def set_headline(run: SetRunSummary) -> str:
    """Which question this is, how far it got, and when."""
    started = f"started {local_time(run.started)}"
    if run.state is State.FINISHED and run.finished is not None:
        return f"{run.name}: {started}, finished {local_time(run.finished)}."
    answered = run.feasible + run.infeasible + run.undecided
    share = f"{answered:,} of {run.wanted:,} sets have an answer so far"
    return f"{run.name}: {run.state.value}, {started}; {share}."


def as_record(run: SetRunSummary) -> dict[str, Any]:
    """The question as plain JSON values."""
    return {
        "run": run.name,
        "model": run.facts.name,
        "origin": run.origin,
        "sha256": run.facts.sha256,
        "labels": run.facts.classes,
        "features": run.facts.features,
        "domain": run.domain.as_record(),
        "kind": run.test.kind.value,
        "state": run.state.value,
        "wanted": run.wanted,
        "feasible": run.feasible,
        "infeasible": run.infeasible,
        "undecided": run.undecided,
        "seconds": run.seconds,
        "started": run.started.isoformat(),
        "finished": None if run.finished is None else run.finished.isoformat(),
    }
