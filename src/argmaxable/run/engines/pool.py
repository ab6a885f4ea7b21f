"""Worker processes that answer other questions than verdicts: each builds an answering function once, from a
job and whatever else it needs, and calls it for every item it is sent.

The asking process answers items too, and those of workers that died. Messages are pickles over pipes between
processes of one user; nothing a user supplies is ever unpickled. Whoever asks checks what comes back.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from argmaxable.run.engines.processes import ONE_THREAD
from argmaxable.run.engines.worker import lay_out, pick_up

if TYPE_CHECKING:
    from types import TracebackType

    from argmaxable.run.engines.engine import Job

# Items a worker has at a time: one in work, one to go on with.
_IN_HAND = 2
# Seconds between two looks at the queue while only others have work.
_WAIT = 0.05


@dataclass(eq=False)
class _Child:
    process: subprocess.Popen[bytes]
    pending: list[tuple[int, Any]] = field(default_factory=list)
    listener: threading.Thread | None = None


Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Pool(Generic[Item, Answer]):
    """Processes that answer items about one head; a context manager that leaves nothing behind.

    `maker` names a function as "module:function"; called with the job and the extra, it returns the function
    from an item to its answer. All of them must be picklable.
    """

    def __init__(self, processes: int, job: Job, maker: str, extra: Any) -> None:
        self._count, self._job, self._task = processes, job, (maker, extra)
        self._workers: dict[int, _Child] = {}
        self._answers: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._round = 0

    def __enter__(self) -> Pool[Item, Answer]:
        if self._count < 1:
            return self
        self._folder = tempfile.TemporaryDirectory(prefix="argmaxable-")
        # As in processes.py: children find the package where this process did, and never hear Ctrl-C.
        code = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
        code += (
            f"import sys; sys.path[:] = {sys.path!r}; from argmaxable.run.engines.pool import main; main()"
        )
        try:
            for number in range(self._count):
                self._workers[number] = self._spawn(number, code)
            lay_out(self._job, Path(self._folder.name))
            for worker in self._workers.values():
                _send(worker, (self._folder.name, *self._task))
        except BaseException:
            self.close()
            raise
        return self

    def _spawn(self, number: int, code: str) -> _Child:
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **ONE_THREAD},
        )
        worker = _Child(process)
        worker.listener = threading.Thread(target=self._listen, args=(number, worker), daemon=True)
        worker.listener.start()
        return worker

    def _listen(self, number: int, worker: _Child) -> None:
        assert worker.process.stdout is not None
        try:
            while True:
                self._answers.put((number, pickle.load(worker.process.stdout)))
        except (EOFError, OSError, ValueError, pickle.UnpicklingError):
            self._answers.put((number, None))

    def answers(self, items: Sequence[Item], own: Callable[[Item], Answer]) -> Iterator[tuple[int, Answer]]:
        """The number and the answer of each item as they come in; this process uses `own`.

        Whoever stops early may ask again: late answers are dropped.
        """
        self._round += 1
        todo = deque(enumerate(items))
        for worker in self._workers.values():
            worker.pending.clear()
        while todo or any(worker.pending for worker in self._workers.values()):
            for worker in self._workers.values():
                while todo and len(worker.pending) < _IN_HAND:
                    worker.pending.append(todo.pop())
                    _send(worker, (self._round, *worker.pending[-1]))
            is_idle = not todo
            if todo:
                number, item = todo.popleft()
                yield number, own(item)
            yield from self._collected(todo, wait=_WAIT if is_idle else 0.0)

    def _collected(self, todo: deque[tuple[int, Item]], *, wait: float) -> Iterator[tuple[int, Answer]]:
        """Answers that have come in; items of workers that died go back."""
        while True:
            try:
                place, reply = self._answers.get(timeout=wait) if wait else self._answers.get_nowait()
            except queue.Empty:
                return
            wait = 0.0
            worker = self._workers[place]
            if reply is None:
                todo.extend(worker.pending)
                _end(self._workers.pop(place))
            elif reply[0] == self._round:
                worker.pending = [one for one in worker.pending if one[0] != reply[1]]
                yield reply[1], reply[2]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the processes, whatever they do, and remove their files."""
        for worker in self._workers.values():
            worker.process.kill()
        for worker in self._workers.values():
            _end(worker)
        self._workers.clear()
        if self._folder is not None:
            self._folder.cleanup()


def _send(worker: _Child, message: object) -> None:
    assert worker.process.stdin is not None
    try:
        pickle.dump(message, worker.process.stdin, pickle.HIGHEST_PROTOCOL)
        worker.process.stdin.flush()
    except (BrokenPipeError, OSError):
        return  # the listener reports the death and hands the items back


def _end(worker: _Child) -> None:
    """Wait for a process that is dead or about to be, and close its pipes."""
    worker.process.wait()
    if worker.listener is not None:
        worker.listener.join()
    for pipe in (worker.process.stdin, worker.process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):  # what was left to send has no reader any more
                pipe.close()


def main() -> None:
    """The worker: read what to do, then items until the pipe closes; write an answer for each."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    source = sys.stdin.buffer
    sink = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing else may write into the pipe
    try:
        folder, maker, extra = pickle.load(source)
        module, _, name = maker.partition(":")
        answer = getattr(import_module(module), name)(pick_up(Path(folder)), extra)
        while True:
            round_, number, item = pickle.load(source)
            pickle.dump((round_, number, answer(item)), sink, pickle.HIGHEST_PROTOCOL)
            sink.flush()
    except (EOFError, BrokenPipeError):
        return
