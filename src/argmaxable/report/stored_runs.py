"""A stored run: a line about it, a JSON object, and the findings that a summary is written from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from argmaxable.core.labels import visible
from argmaxable.store import RunSummary, State

if TYPE_CHECKING:
    from argmaxable.core.domain import Domain
    from argmaxable.core.domain_source import DomainSource
    from argmaxable.core.head import Facts
    from argmaxable.core.result import Cost
    from argmaxable.core.verdict import Verdict


@dataclass(frozen=True, eq=False)
class KeptFindings:
    """What report/text.py tells of a run, without the argmaxable classes: those are only counted."""

    run: RunSummary
    unargmaxable: tuple[Verdict, ...]
    undecided: tuple[Verdict, ...]

    @property
    def facts(self) -> Facts:
        return self.run.facts

    @property
    def domain(self) -> Domain:
        return self.run.domain

    @property
    def domain_source(self) -> DomainSource | None:
        return self.run.domain_source

    @property
    def wanted(self) -> int:
        return self.run.counts.wanted

    @property
    def cost(self) -> Cost:
        return self.run.cost

    @property
    def is_complete(self) -> bool:
        return not self.run.counts.open

    @property
    def verified(self) -> int:
        return self.run.counts.wanted - self.run.counts.open

    @property
    def tied(self) -> tuple[Verdict, ...]:
        return tuple(verdict for verdict in self.unargmaxable if verdict.is_tied)


def headline(run: RunSummary) -> str:
    """Which run this is, how far it got, and when."""
    origin = "" if run.origin == run.facts.name else run.origin
    about = [visible(text) for text in (origin, run.task, run.family) if text]
    where = f" ({', '.join(about)})" if about else ""
    return f"Run {run.run_id}{where}: {_progress(run)}"


def _progress(run: RunSummary) -> str:
    started = f"started {local_time(run.started)}"
    if run.state is State.IMPORTED:
        return f"published verdicts without evidence, imported {local_time(run.started)}."
    if run.state is State.FINISHED and run.finished is not None:
        return f"{started}, finished {local_time(run.finished)}."
    decided = run.counts.wanted - run.counts.open
    share = f"{decided:,} of {run.counts.wanted:,} classes have a verdict so far"
    return f"{run.state.value}, {started}; {share}."


def local_time(moment: datetime) -> str:
    """For people: the time of their own clock, to the minute."""
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"


def as_record(run: RunSummary) -> dict[str, Any]:
    """The run for machines: everything but its verdicts, and nothing about the machine it ran on."""
    facts, counts, cost = run.facts, run.counts, run.cost
    return {
        "run": run.run_id,
        "model": facts.name,
        "origin": run.origin,
        "task": run.task,
        "family": run.family,
        "sha256": facts.sha256,
        "classes": facts.classes,
        # Not known of every published model.
        "features": facts.features or None,
        "bias": facts.bias if facts.features else None,
        "dtype": facts.dtype,
        "domain": str(run.domain),
        "domain_record": run.domain.as_record(),
        "method": run.algorithm.value,
        "patience": run.patience,
        "seed": run.seed,
        "state": run.state.value,
        "wanted": counts.wanted,
        "argmaxable": counts.argmaxable,
        "unargmaxable": counts.unargmaxable,
        "tied": counts.tied,
        "undecided": counts.undecided,
        "open": counts.open,
        "solved": counts.solved,
        "seconds": round(cost.seconds, 3),
        "solves": cost.solves,
        "mean_steps": round(cost.mean_steps, 2),
        "mean_rows": round(cost.mean_rows, 1),
        "started": run.started.isoformat(),
        "finished": None if run.finished is None else run.finished.isoformat(),
        "versions": run.versions,
    }
