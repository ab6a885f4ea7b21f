"""A progress bar on stderr; nothing at all when stderr is not a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from argmaxable.core.progress import Progress, ProgressCallback, ignore_progress


@contextmanager
def progress_bar() -> Iterator[ProgressCallback]:
    """A callback that shows what is done, how fast, and the time left."""
    if not sys.stderr.isatty():
        yield ignore_progress
        return
    # Late: only those who watch wait for it.
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[told]}"))
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None, told="")
        caption = _Caption()

        def show(progress: Progress) -> None:
            told = caption.of(progress)
            bar.update(
                task, description=progress.phase, total=progress.total, completed=progress.done, told=told
            )

        yield show


class _Caption:
    """What stands beside the bar; speeds are those since the first call."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._before: int | None = None  # known from an earlier run, perhaps

    def of(self, progress: Progress) -> str:
        parts = [progress.note or f"{progress.done:,} of {progress.total:,}"]
        if self._before is None:
            self._before = progress.done
        seconds = time.monotonic() - self._started
        if progress.done > self._before and seconds >= 1:
            speed = (progress.done - self._before) / seconds
            parts.append(f"{speed:,.0f} a second" if speed >= 10 else f"{speed:.1f} a second")
        if progress.seconds_left is not None and progress.seconds_left >= 1:
            parts.append(f"about {_duration(progress.seconds_left)} left")
        return ", ".join(parts)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
