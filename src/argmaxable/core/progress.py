"""What a run tells the outside while it works, and when it has to stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts so far, for a progress bar; `seconds_left` is None while nothing can be said."""

    phase: str
    classes: int
    argmaxable: int
    unargmaxable: int
    seconds_left: float | None


ProgressCallback = Callable[[Progress], None]


class Deadline:
    """A time limit in seconds from now on; none when it is None."""

    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds

    @property
    def has_passed(self) -> bool:
        return self._end is not None and time.monotonic() >= self._end
