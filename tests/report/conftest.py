"""A real browser for the tests of pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import PATIENCE_MS, open_browser
from opened_pages import Heard, Opener
from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """For the tests of one file: as long as it is open, no other event loop can run in this thread."""
    with open_browser() as browser:
        yield browser


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Opener]:
    """Open a page from disk and listen to it; options are those of a browser's context."""
    contexts = []

    def opened(text: str, **options: Any) -> tuple[Page, Heard]:
        path = tmp_path / f"report{len(contexts)}.html"
        path.write_text(text, encoding="utf-8")
        contexts.append(browser.new_context(**options))
        contexts[-1].set_default_timeout(PATIENCE_MS)
        page, heard = contexts[-1].new_page(), Heard()
        page.on("console", lambda message: heard.messages.append(message.text))
        page.on("pageerror", lambda error: heard.messages.append(str(error)))
        page.on("dialog", lambda dialog: (heard.messages.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: heard.requests.append(request.url))
        page.goto(path.as_uri())
        return page, heard

    yield opened
    for context in contexts:
        context.close()
