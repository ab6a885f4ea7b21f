"""What a run asks of those who share its work, wherever they are."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from argmaxable.core.domain import Domain
    from argmaxable.core.head import Head
    from argmaxable.prove.prover import Prover, Settled


@dataclass(frozen=True, eq=False)
class Job:
    """Everything a worker needs: the head, the domain, and what is known so far."""

    head: Head
    domain: Domain
    centre: NDArray[np.float64]
    ignored: NDArray[np.intp]
    tied: frozenset[int]
    score: NDArray[np.float64]
    seed: int
    memory: int | None

    def prover(self) -> Prover:
        # Late: whoever hands out a job need not be able to do it.
        from argmaxable.check.checker import Checker
        from argmaxable.compute.budget import Compute
        from argmaxable.compute.prepared import PreparedHead
        from argmaxable.prove.prover import Prover

        prepared = PreparedHead(self.head, centre=self.centre, compute=Compute(memory=self.memory))
        checker = Checker(prepared, self.domain)
        return Prover(checker, ignored=self.ignored, tied=self.tied, score=self.score, seed=self.seed)


@dataclass(frozen=True, eq=False)
class Report:
    """One settled class and the seconds it took."""

    settled: Settled
    seconds: float


def settle_each(prover: Prover, classes: list[int]) -> Iterator[Report]:
    """Settle classes, as many side by side as is best; the time of these is shared out evenly."""
    for first in range(0, len(classes), prover.together):
        some = classes[first : first + prover.together]
        start = time.perf_counter()
        found = prover.settle_together(some)
        seconds = (time.perf_counter() - start) / len(some)
        yield from (Report(settled, seconds) for settled in found)


class Workers(Protocol):
    """Workers that settle classes; a context manager that leaves nothing behind.

    The process that asks works too. It trusts no worker: what comes back is checked again, and
    classes that a dead worker had are handed back to be done by somebody else.
    """

    @property
    def size(self) -> int:
        """Workers besides the asking process; with none it does it all."""

    def start(self, job: Job) -> None:
        """Hand the job out; workers get ready while the caller goes on."""

    def idle(self, *, left: int) -> list[int]:
        """Workers that are about to run out of classes: at most so many are left to them."""

    def submit(self, worker: int, classes: list[int]) -> None:
        """Give a worker more classes."""

    @property
    def pending(self) -> int:
        """Classes given out and not yet reported."""

    def collect(self, *, wait: float) -> tuple[list[Report], list[int]]:
        """Reports that have come in, waiting for one at most so many seconds, and classes handed back."""

    def __enter__(self) -> Workers: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
