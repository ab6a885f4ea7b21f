"""What a run is to do, and what a stored run says about itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from argmaxable.core.domain import Domain
from argmaxable.core.domain_source import DomainSource
from argmaxable.core.head import Facts
from argmaxable.core.label_sets import Members, SetTest
from argmaxable.core.result import Cost
from argmaxable.core.verdict import Algorithm, Status


@dataclass(frozen=True)
class Plan:
    """What a run is to do. Two plans for the same head, labels, domain, classes and settings are the
    same run, whatever else they say.

    `origin` says where the model came from: a file's name, a hub id, a package; never a path, which
    would tell about the machine. `task` and `family` group models in tables. `only` lists the classes
    to verify, None for all. `domain_source` says where the domain comes from.
    """

    facts: Facts
    labels: tuple[str, ...] | None
    domain: Domain
    algorithm: Algorithm
    patience: int
    seed: int
    only: tuple[int, ...] | None = None
    origin: str = ""
    task: str = ""
    family: str = ""
    domain_source: DomainSource | None = None


class State(StrEnum):
    """How far a run got."""

    RUNNING = "running"
    INTERRUPTED = "interrupted"  # stopped, killed or out of time: the same command resumes it
    FINISHED = "finished"
    IMPORTED = "imported"  # somebody else's published verdicts, without evidence


@dataclass(frozen=True)
class Counts:
    """Classes of a run by status; `tied` are part of the unargmaxable, `solved` needed a solve."""

    wanted: int
    argmaxable: int
    unargmaxable: int
    tied: int
    undecided: int
    solved: int

    @property
    def open(self) -> int:
        """Classes without any verdict yet."""
        return self.wanted - self.argmaxable - self.unargmaxable - self.undecided


@dataclass(frozen=True)
class RunSummary:
    """A stored run in a line: everything but its verdicts."""

    run_id: int
    facts: Facts
    origin: str
    task: str
    family: str
    domain: Domain
    algorithm: Algorithm
    patience: int
    seed: int
    state: State
    counts: Counts
    cost: Cost
    started: datetime
    finished: datetime | None
    versions: dict[str, str] = field(default_factory=dict)
    domain_source: DomainSource | None = None


@dataclass(frozen=True)
class SetPlan:
    """A question about sets of labels: the head, the domain, what it means that a set comes out, and the
    sets with their numbers of examples. Two plans for the same of these are the same run, in any order."""

    facts: Facts
    labels: tuple[str, ...] | None
    domain: Domain
    test: SetTest
    sets: Mapping[Members, int]
    origin: str = ""
    domain_source: DomainSource | None = None


@dataclass(frozen=True)
class SetRunSummary:
    """A stored question about sets of labels in a line: everything but the sets."""

    run_id: int
    facts: Facts
    origin: str
    domain: Domain
    test: SetTest
    state: State
    wanted: int
    feasible: int
    infeasible: int
    undecided: int
    seconds: float
    started: datetime
    finished: datetime | None
    domain_source: DomainSource | None = None

    @property
    def name(self) -> str:
        """How commands call it, unlike the number of a run."""
        return f"sets:{self.run_id}"


@dataclass(frozen=True)
class PublishedVerdict:
    """What somebody else published about a class: no evidence, so nothing that is proven here."""

    class_id: int
    label: str
    status: Status
    steps: int = 0
    seconds: float = 0.0
    needed_solve: bool = False
