"""Progress on stderr: a bar on a terminal; elsewhere, such as in a log, a line every few seconds."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from argmaxable.core.progress import Progress, ProgressCallback

# Seconds until the first line, and from one to the next.
_FIRST, _NEXT = 2.0, 5.0


@contextmanager
def progress_bar(doing: str = "starting") -> Iterator[ProgressCallback]:
    """A callback that shows what is done, how fast, and the time left; before its first call, what is being
    done and for how long."""
    with _bar(doing) if sys.stderr.isatty() else _lines(doing) as show:
        yield show


@contextmanager
def _bar(doing: str) -> Iterator[ProgressCallback]:
    # Late: only those who watch wait for it.
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[told]}"))
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=None, told="")
        captions: list[_Caption] = []

        def show(progress: Progress) -> None:
            if not captions:
                captions.append(_Caption(progress))
            told = captions[0].of(progress)
            bar.update(
                task, description=progress.phase, total=progress.total, completed=progress.done, told=told
            )

        yield show


@contextmanager
def _lines(doing: str) -> Iterator[ProgressCallback]:
    """They are written by a thread of their own, so that silent work shows that it goes on, too."""
    latest: list[tuple[_Caption, Progress]] = []
    started, is_done = time.monotonic(), threading.Event()

    def write() -> None:
        pause = _FIRST
        while not is_done.wait(pause):
            told = doing
            for caption, progress in latest:
                told = f"{progress.phase}: {caption.of(progress)}"
            print(f"… {told} ({_duration(time.monotonic() - started)})", file=sys.stderr, flush=True)
            pause = _NEXT

    def note(progress: Progress) -> None:
        latest[:] = [(latest[0][0] if latest else _Caption(progress), progress)]

    writer = threading.Thread(target=write, name="progress", daemon=True)
    writer.start()
    try:
        yield note
    finally:
        is_done.set()
        writer.join()


class _Caption:
    """What stands beside the bar; speeds are those since the first progress of a model."""

    def __init__(self, first: Progress) -> None:
        self._begin(first)

    def _begin(self, first: Progress) -> None:
        self._started, self._latest = time.monotonic(), first
        self._before = first.done  # known from an earlier run, perhaps

    def of(self, progress: Progress) -> str:
        if progress.done < self._latest.done or progress.total != self._latest.total:
            self._begin(progress)  # the next model of several
        self._latest = progress
        parts = [progress.note or f"{progress.done:,} of {progress.total:,}"]
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
