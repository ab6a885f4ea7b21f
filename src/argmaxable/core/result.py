"""The result of a run: all verdicts with their domain, and what it took to reach them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from argmaxable.core.arrays import Ids, Vector
from argmaxable.core.domain import Domain
from argmaxable.core.domain_source import DomainSource
from argmaxable.core.head import Facts, Head
from argmaxable.core.verdict import Status, Verdict

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, slots=True)
class Cost:
    """What the run took: wall seconds by phase, and the per-class solves."""

    seconds: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)
    solves: int = 0
    mean_steps: float = 0.0
    mean_rows: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        """The cost of both, for a run that was resumed."""
        solves = self.solves + other.solves
        mine, theirs = self.solves / max(solves, 1), other.solves / max(solves, 1)
        phases = {
            name: self.phases.get(name, 0.0) + other.phases.get(name, 0.0)
            for name in (*self.phases, *(name for name in other.phases if name not in self.phases))
        }
        return Cost(
            seconds=self.seconds + other.seconds,
            phases=phases,
            solves=solves,
            mean_steps=mine * self.mean_steps + theirs * other.mean_steps,
            mean_rows=mine * self.mean_rows + theirs * other.mean_rows,
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Record:
    """Verdicts of the wanted classes of a head over a domain: all of a result but the weights.

    `centre` rebuilds own-direction witnesses. `is_complete` is False after an interruption or a
    time limit: what was proven before stands, the rest is undecided. `domain_source` says where the domain
    comes from, if that is known. `class_ids`, `status`, `lower` and `upper` are the verdicts as arrays, one
    entry for each.
    """

    facts: Facts
    domain: Domain
    centre: NDArray[np.float64]
    verdicts: tuple[Verdict, ...]
    cost: Cost
    is_complete: bool = True
    domain_source: DomainSource | None = None

    @property
    def wanted(self) -> int:
        """How many classes were asked about; of a stored run that has not ended, those with a verdict."""
        return len(self.verdicts)

    @property
    def verified(self) -> int:
        """How many classes have a verdict."""
        return len(self.verdicts)

    def _having(self, status: Status) -> tuple[Verdict, ...]:
        return tuple(verdict for verdict in self.verdicts if verdict.status is status)

    @property
    def argmaxable(self) -> tuple[Verdict, ...]:
        return self._having(Status.ARGMAXABLE)

    @property
    def unargmaxable(self) -> tuple[Verdict, ...]:
        """Classes that are never the unique argmax, ties with identical classes included."""
        return self._having(Status.UNARGMAXABLE)

    @property
    def undecided(self) -> tuple[Verdict, ...]:
        return self._having(Status.UNDECIDED)

    @property
    def tied(self) -> tuple[Verdict, ...]:
        """The unargmaxable classes that nothing dominates but identical ones."""
        return tuple(verdict for verdict in self.unargmaxable if verdict.is_tied)

    @cached_property
    def class_ids(self) -> Ids:
        return _fixed([verdict.class_id for verdict in self.verdicts], np.intp)

    @cached_property
    def status(self) -> NDArray[np.str_]:
        """Each verdict's status as text: `result.status == "unargmaxable"` is a mask."""
        return _fixed([verdict.status.value for verdict in self.verdicts], np.str_)

    @cached_property
    def lower(self) -> Vector:
        """Proven lower bounds on the margins."""
        return _fixed([verdict.lower for verdict in self.verdicts], np.float64)

    @cached_property
    def upper(self) -> Vector:
        """Proven upper bounds on the margins."""
        return _fixed([verdict.upper for verdict in self.verdicts], np.float64)

    def to_frame(self) -> pandas.DataFrame:
        """The verdicts as a pandas data frame; raises InputError when pandas is not installed."""
        from argmaxable.core import notebook  # loads what only notebooks need

        return notebook.as_frame(self.verdicts)

    def _summary(self) -> str:
        counts = ", ".join(f"{len(self._having(status)):,} {status}" for status in Status)
        end = "" if self.is_complete else ", incomplete"
        classes = "class" if self.verified == 1 else "classes"
        return f"{self.verified:,} {classes} over {self.domain}: {counts}, {self.cost.seconds:.1f} s{end}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._summary()})"

    def _repr_html_(self) -> str:
        from argmaxable.core import notebook  # loads what only notebooks need

        return notebook.as_html(self._summary(), self.verdicts)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Result(Record):
    """A record together with the head it is about: what `verify` returns."""

    head: Head


def _fixed(values: ArrayLike, dtype: Any) -> NDArray[Any]:
    array = np.array(values, dtype)
    array.flags.writeable = False
    return array
