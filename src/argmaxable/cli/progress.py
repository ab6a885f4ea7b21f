"""A progress bar on stderr; nothing at all when stderr is no terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from argmaxable.core.progress import Progress, ProgressCallback


@contextmanager
def progress_bar() -> Iterator[ProgressCallback]:
    """A callback that shows counts so far, classes settled a second, and the time left."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    # Late: without a terminal nothing is drawn, and Rich takes a while to load.
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[counts]}"))
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None, counts="")
        started, before = time.monotonic(), None

        def show(progress: Progress) -> None:
            nonlocal before
            decided = progress.argmaxable + progress.unargmaxable
            before = decided if before is None else before  # known from an earlier run, perhaps
            counts = f"{progress.argmaxable:,} argmaxable, {progress.unargmaxable:,} never"
            seconds = time.monotonic() - started
            if decided > before and seconds >= 1:
                speed = (decided - before) / seconds
                counts += f", {speed:,.0f} classes/s" if speed >= 10 else f", {speed:.1f} classes/s"
            if progress.seconds_left is not None and progress.seconds_left >= 1:
                counts += f", about {_duration(progress.seconds_left)} left"
            bar.update(
                task, description=progress.phase, total=progress.classes, completed=decided, counts=counts
            )

        yield show


@contextmanager
def count_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A callback that shows how many of how many are done, and the time left."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeRemainingColumn()
    )  # fmt: skip
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
