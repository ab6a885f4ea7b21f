"""Work for a pool: squares, by processes that can be told to die."""

from __future__ import annotations

import os
from collections.abc import Callable

from argmaxable.run.engines.engine import Job

MAKER = "squares:squaring"


def squaring(job: Job, parent: int) -> Callable[[int], int]:
    """Squares plus the classes of the job's head; a worker dies of a negative number."""

    def answer(item: int) -> int:
        if item < 0 and os.getpid() != parent:
            os._exit(1)
        return item * item + job.head.classes

    return answer
