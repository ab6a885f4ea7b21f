"""Interruptions that wait for a better moment."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Signals that a program may have made to interrupt it; Windows has no SIGHUP.
_INTERRUPTIONS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C, and signals that are handled like it, wait for the end of the block; a second one does not.

    For what would leave something behind if it were stopped halfway.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # not ours to change
        return
    handlers = {number: signal.getsignal(number) for number in _INTERRUPTIONS}
    handlers = {number: handler for number, handler in handlers.items() if callable(handler)}
    caught: list[int] = []

    def note(number: int, _: object) -> None:
        if caught:
            signal.signal(number, handlers[number])
            signal.raise_signal(number)
        caught.append(number)

    for number in handlers:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if caught:
            signal.raise_signal(caught[0])
