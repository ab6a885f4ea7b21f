"""Worker processes that answer other questions than verdicts: each builds an answering function once, from a
job and whatever else it needs, and calls it for every item it is sent.

The asking process answers items too, and those of workers that died. Whoever asks checks what comes back.
"""

from __future__ import annotations

import contextlib
import pickle
import queue
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from argmaxable.core.scratch import scratch_folder
from argmaxable.run.engines.children import Child, end_all, pipes_of_this_child, start_child
from argmaxable.run.engines.worker import lay_out, pick_up

if TYPE_CHECKING:
    from types import TracebackType

    from argmaxable.run.engines.engine import Job

# Items a worker has at a time: one in work, one to go on with.
_IN_HAND = 2
# Seconds between two looks at the queue while only others have work.
_WAIT = 0.05


Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Pool(Generic[Item, Answer]):
    """Processes that answer items about one head; a context manager that leaves nothing behind.

    `maker` names a function as "module:function"; called with the job and the extra, it returns the function
    from an item to its answer. All of them must be picklable.
    """

    def __init__(self, processes: int, job: Job, maker: str, extra: Any) -> None:
        self._count, self._job, self._task = processes, job, (maker, extra)
        self._workers: dict[int, Child[tuple[int, Item]]] = {}
        self._answers: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self._files = contextlib.ExitStack()
        self._round = 0

    def __enter__(self) -> Pool[Item, Answer]:
        if self._count < 1:
            return self
        try:
            for number in range(self._count):
                self._workers[number] = start_child(__name__, partial(self._hear, number))
            folder = self._files.enter_context(scratch_folder())
            lay_out(self._job, folder)
            for worker in self._workers.values():
                worker.send((str(folder), *self._task))
        except BaseException:
            self.close()
            raise
        return self

    def _hear(self, number: int, reply: Any) -> None:
        self._answers.put((number, reply))

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
                    worker.send((self._round, *worker.pending[-1]))
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
                self._workers.pop(place).end()
            elif reply[0] == self._round:
                worker.pending = [one for one in worker.pending if one[0] != reply[1]]
                yield reply[1], reply[2]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the processes, whatever they do, and remove their files."""
        end_all(self._workers.values())
        self._workers.clear()
        self._files.close()


def main() -> None:
    """The worker: read what to do, then items until the pipe closes; write an answer for each."""
    source, sink = pipes_of_this_child()
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
