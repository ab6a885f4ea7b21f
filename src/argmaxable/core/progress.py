"""What long work tells the outside while it runs, and when it has to stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the work has come, for a progress bar: `done` of `total`, mostly classes.

    `seconds_left` is None while nothing can be said; `note` adds what has been found so far.
    """

    phase: str
    done: int
    total: int
    seconds_left: float | None = None
    note: str = ""


ProgressCallback = Callable[[Progress], None]


def ignore_progress(progress: Progress) -> None:
    """The callback of those who don't want to know."""


class Pace:
    """Estimates how long the rest takes from how long the part done took, from now on."""

    def __init__(self) -> None:
        self._started = time.perf_counter()

    def seconds_left(self, done: int, total: int) -> float | None:
        """None before a hundredth is done: the first of many classes says little about the others."""
        if not done or 100 * done < total:
            return None
        return (time.perf_counter() - self._started) * (total - done) / done


class TimeIsOver(Exception):
    """A deadline has passed in the middle of some work."""


class Deadline:
    """A time limit in seconds from now on; none when it is None."""

    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds

    @property
    def has_passed(self) -> bool:
        return self._end is not None and time.monotonic() >= self._end

    def require_time(self) -> None:
        """Raise TimeIsOver once it has passed."""
        if self.has_passed:
            raise TimeIsOver

    @property
    def seconds_left(self) -> float | None:
        """Above 0 even when it has passed; None without a limit."""
        return None if self._end is None else max(self._end - time.monotonic(), 1e-9)


NO_DEADLINE = Deadline(None)
