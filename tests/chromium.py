"""The browser in which pages are tried, measured and photographed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, expect, sync_playwright

# Other work on the machine must not fail a test: what is waited for, comes. This ends a test that hangs.
PATIENCE_MS = 600_000
expect.set_options(timeout=PATIENCE_MS)
# The first has no windows of its own to keep: a page takes a quarter of the time.
_PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser")
# No sandbox, since tests may run as root; the others keep the browser itself from talking to anyone.
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Debian's own; as long as it is open, no other event loop can run in this thread."""
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if program is None:
        raise FileNotFoundError("no chromium on the PATH: apt-get install chromium-headless-shell")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=_FLAGS)
        try:
            yield browser
        finally:
            browser.close()
