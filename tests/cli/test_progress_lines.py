"""Progress where stderr is not a terminal: lines that say what is done, and nothing when it is done fast."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr

import pytest

from argmaxable.cli import progress
from argmaxable.core.progress import Progress


class Log(io.StringIO):
    """A stream that says when a line has come."""

    def __init__(self) -> None:
        super().__init__()
        self.has_line = threading.Event()

    def write(self, text: str) -> int:
        written = super().write(text)
        if "\n" in text:
            self.has_line.set()
        return written


@contextmanager
def logged() -> Iterator[Log]:
    """Inside the test: pytest puts its own stream back when a fixture is done."""
    with redirect_stderr(Log()) as log:
        yield log


def test_work_that_tells_nothing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_FIRST", 0.0)
    with logged() as log, progress.progress_bar("reading the model"):
        log.has_line.wait()
    assert log.getvalue() == "… reading the model (0 s)\n"


def test_lines_say_how_far_the_work_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_FIRST", 1e-3)
    monkeypatch.setattr(progress, "_NEXT", 1e-3)
    with logged() as log, progress.progress_bar() as show:
        show(Progress("solving", 3, 2000, seconds_left=95.0))
        log.has_line.wait()
        log.has_line.clear()
        log.has_line.wait()
    assert "… solving: 3 of 2,000, about 1 min 35 s left (0 s)\n" in log.getvalue()


def test_what_is_done_fast_needs_no_word() -> None:
    with logged() as log, progress.progress_bar() as show:
        show(Progress("solving", 3, 2000))
    assert not log.getvalue()


def test_an_error_ends_the_lines_too() -> None:
    with logged(), pytest.raises(ZeroDivisionError), progress.progress_bar():
        _ = 1 / 0
    assert "progress" not in {thread.name for thread in threading.enumerate()}


def test_the_speed_is_that_of_the_model_and_not_of_those_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 10.0, 100.0, 100.0, 110.0])
    monkeypatch.setattr(progress.time, "monotonic", times.__next__)
    caption = progress._Caption(Progress("solving", 0, 500))
    assert caption.of(Progress("solving", 500, 500)) == "500 of 500, 50 a second"
    assert caption.of(Progress("solving", 0, 900)) == "0 of 900"
    assert caption.of(Progress("solving", 900, 900)) == "900 of 900, 90 a second"
