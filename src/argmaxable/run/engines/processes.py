"""Worker processes on this machine over one memory-mapped head, one BLAS thread each.

They start before there is a job, and load what they need meanwhile.
"""

from __future__ import annotations

import contextlib
import queue
from functools import partial
from typing import TYPE_CHECKING

from argmaxable.core.errors import InputError
from argmaxable.core.scratch import remove_left_behind, scratch_folder
from argmaxable.run.engines.children import Child, end_all, start_child
from argmaxable.run.engines.worker import lay_out

if TYPE_CHECKING:
    from types import TracebackType

    from argmaxable.run.engines.engine import Job, Report


class Processes:
    """Worker processes that settle classes; a context manager that leaves nothing behind."""

    def __init__(self, workers: int) -> None:
        self._count = workers
        self._workers: dict[int, Child[int]] = {}
        self._reports: queue.SimpleQueue[tuple[int, Report | None]] = queue.SimpleQueue()
        self._files = contextlib.ExitStack()

    @property
    def size(self) -> int:
        return self._count

    def spawn(self) -> None:
        """Start the processes; they load what they need and wait for a job."""
        try:
            for number in range(self._count):
                self._workers[number] = start_child(
                    "argmaxable.run.engines.worker", partial(self._hear, number)
                )
        except BaseException:
            self.close()
            raise

    def start(self, job: Job) -> None:
        """Hand the job to the processes, started now if they have not been; this process goes on."""
        folder = self._files.enter_context(scratch_folder())
        try:
            lay_out(job, folder)
        except OSError as error:
            raise InputError(
                f"the workers' copy of the head can't be written to {folder.parent} ({error.strerror}). Free "
                "some space, name another folder in TMPDIR, or pass --workers 1."
            ) from error
        if not self._workers:
            self.spawn()
        for worker in self._workers.values():
            worker.send(str(folder))

    def _hear(self, number: int, report: Report | None) -> None:
        self._reports.put((number, report))

    def idle(self, *, left: int) -> list[int]:
        """Workers with at most so many classes to go: time to send more."""
        return [number for number, worker in self._workers.items() if len(worker.pending) <= left]

    def submit(self, worker: int, classes: list[int]) -> None:
        self._workers[worker].pending.extend(classes)
        self._workers[worker].send(classes)

    @property
    def pending(self) -> int:
        return sum(len(worker.pending) for worker in self._workers.values())

    def collect(self, *, wait: float) -> tuple[list[Report], list[int]]:
        """Reports that have come in, and classes that died with their worker."""
        reports: list[Report] = []
        orphans: list[int] = []
        timeout = wait
        while True:
            try:
                number, report = self._reports.get(timeout=timeout) if timeout else self._reports.get_nowait()
            except queue.Empty:
                return reports, orphans
            timeout = 0.0
            if report is not None:
                self._workers[number].pending.remove(report.settled.answer.class_id)
                reports.append(report)
            elif number in self._workers:
                dead = self._workers.pop(number)
                orphans.extend(dead.pending)
                dead.end()

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        remove_left_behind()

    def close(self) -> None:
        """End the processes, whatever they do, and remove their files."""
        end_all(self._workers.values())
        self._workers.clear()
        self._files.close()
