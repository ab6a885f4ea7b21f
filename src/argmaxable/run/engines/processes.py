"""Worker processes on this machine over one memory-mapped head, one BLAS thread each.

Plain child processes with pipes rather than multiprocessing: they need no `if __name__` guard in
the user's script, inherit no threads, and take their thread count from their own environment.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from argmaxable.core.errors import InputError
from argmaxable.core.scratch import remove_left_behind, scratch_folder
from argmaxable.run.engines.worker import lay_out

if TYPE_CHECKING:
    from types import TracebackType

    from argmaxable.run.engines.engine import Job, Report

ONE_THREAD = {
    name: "1"
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
}


@dataclass(eq=False)
class _Worker:
    process: subprocess.Popen[bytes]
    pending: list[int] = field(default_factory=list)
    listener: threading.Thread | None = None


class Processes:
    """Worker processes that settle classes; a context manager that leaves nothing behind."""

    def __init__(self, workers: int) -> None:
        self._count = workers
        self._workers: dict[int, _Worker] = {}
        self._reports: queue.SimpleQueue[tuple[int, Report | None]] = queue.SimpleQueue()
        self._files = contextlib.ExitStack()

    @property
    def size(self) -> int:
        return self._count

    def spawn(self) -> None:
        """Start the processes; they load what they need and wait for a job."""
        # The child finds the package where this process did, however sys.path came about.
        # Ctrl-C is this process's to handle; a child must not hear it while it imports either.
        code = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
        code += (
            f"import sys; sys.path[:] = {sys.path!r}; from argmaxable.run.engines.worker import main; main()"
        )
        try:
            for number in range(self._count):
                process = subprocess.Popen(
                    [sys.executable, "-c", code],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env={**os.environ, **ONE_THREAD},
                )
                worker = self._workers[number] = _Worker(process)
                listener = threading.Thread(target=self._listen, args=(number, worker), daemon=True)
                listener.start()
                worker.listener = listener
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
            self._send(worker, str(folder))

    def _listen(self, number: int, worker: _Worker) -> None:
        assert worker.process.stdout is not None
        try:
            while True:
                self._reports.put((number, pickle.load(worker.process.stdout)))
        except (EOFError, OSError, ValueError, pickle.UnpicklingError):
            self._reports.put((number, None))

    def _send(self, worker: _Worker, message: object) -> None:
        assert worker.process.stdin is not None
        try:
            pickle.dump(message, worker.process.stdin, pickle.HIGHEST_PROTOCOL)
            worker.process.stdin.flush()
        except (BrokenPipeError, OSError):
            return  # the listener reports the death and hands the classes back

    def idle(self) -> list[int]:
        """Workers with at most one class to go: time to send more."""
        return [number for number, worker in self._workers.items() if len(worker.pending) <= 1]

    def submit(self, worker: int, classes: list[int]) -> None:
        self._workers[worker].pending.extend(classes)
        self._send(self._workers[worker], classes)

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
                _end(dead)

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the processes, whatever they do, and remove their files; and those of runs that were killed."""
        for worker in self._workers.values():
            worker.process.kill()
        for worker in self._workers.values():
            _end(worker)
        self._workers.clear()
        self._files.close()
        remove_left_behind()


def _end(worker: _Worker) -> None:
    """Wait for a process that is dead or about to be, and close its pipes."""
    worker.process.wait()
    if worker.listener is not None:
        worker.listener.join()
    for pipe in (worker.process.stdin, worker.process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):  # what was left to send has no reader any more
                pipe.close()
