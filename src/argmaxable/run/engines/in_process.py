"""No workers: the process that asks does all the work."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from argmaxable.run.engines.engine import Job, Report


class InProcess:
    """The engine for work that is done before others have started."""

    size = 0
    pending = 0

    def start(self, job: Job) -> None:
        pass

    def idle(self, *, left: int) -> list[int]:
        return []

    def submit(self, worker: int, classes: list[int]) -> None:
        raise AssertionError("there is no worker to submit to")

    def collect(self, *, wait: float) -> tuple[list[Report], list[int]]:
        return [], []

    def __enter__(self) -> InProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass
