"""Child processes with a pipe each way: how they are started, spoken to and ended.

Plain child processes rather than multiprocessing: they need no `if __name__` guard in the user's script,
inherit no threads, and take their thread count from their own environment. Messages are pickles between
processes of one user; nothing a user supplies is ever unpickled.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import IO, Any, Generic, TypeVar

ONE_THREAD = {
    name: "1"
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
}

Work = TypeVar("Work")


@dataclass(eq=False)
class Child(Generic[Work]):
    """A process, what it has been sent and not answered yet, and the thread that hears it."""

    process: subprocess.Popen[bytes]
    pending: list[Work] = field(default_factory=list)
    listener: threading.Thread | None = None

    def send(self, message: object) -> None:
        """Send a message; one to a dead process is dropped, for its listener reports the death."""
        assert self.process.stdin is not None
        try:
            pickle.dump(message, self.process.stdin, pickle.HIGHEST_PROTOCOL)
            self.process.stdin.flush()
        except (BrokenPipeError, OSError):
            return

    def end(self) -> None:
        """Wait for a process that is dead or about to be, and close its pipes."""
        self.process.wait()
        if self.listener is not None:
            self.listener.join()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what was left to send has no reader any more
                    pipe.close()


def start_child(module: str, hear: Callable[[Any], None]) -> Child[Any]:
    """A process that runs `main` of a module. `hear` gets its messages, on a thread, and None at its end."""
    # The child finds the package where this process did, however sys.path came about.
    # Ctrl-C is this process's to handle; a child must not hear it while it imports either.
    code = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    code += f"import sys; sys.path[:] = {sys.path!r}; from {module} import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **ONE_THREAD},
    )
    child = Child[Any](process)
    child.listener = threading.Thread(target=_listen, args=(process, hear), daemon=True)
    child.listener.start()
    return child


def _listen(process: subprocess.Popen[bytes], hear: Callable[[Any], None]) -> None:
    assert process.stdout is not None
    try:
        while True:
            hear(pickle.load(process.stdout))
    except (EOFError, OSError, ValueError, pickle.UnpicklingError):
        hear(None)


def end_all(children: Collection[Child[Any]]) -> None:
    """End processes, whatever they do."""
    for child in children:
        child.process.kill()
    for child in children:
        child.end()


def pipes_of_this_child() -> tuple[IO[bytes], IO[bytes]]:
    """In a child: where its messages come from and where its own go. Whatever else it prints is on stderr."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    sink = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing else may write into the pipe
    return sys.stdin.buffer, sink
