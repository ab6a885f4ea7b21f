"""The result of a run: all verdicts with their domain, and what it took to reach them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from argmaxable.domain import Domain
from argmaxable.head import Head
from argmaxable.verdict import Status, Verdict


@dataclass(frozen=True, slots=True)
class Cost:
    """What the run took: wall seconds by phase, and the per-class solves."""

    seconds: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)
    solves: int = 0
    mean_steps: float = 0.0
    mean_rows: float = 0.0


@dataclass(frozen=True, eq=False)
class Result:
    """Verdicts of the wanted classes of a head over a domain.

    `centre` rebuilds own-direction witnesses. `is_complete` is False after an interruption or a
    time limit: what was proven before stands, the rest is undecided.
    """

    head: Head
    domain: Domain
    centre: NDArray[np.float64]
    verdicts: tuple[Verdict, ...]
    cost: Cost
    is_complete: bool = True

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
