"""A client without a network, and pages in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from chromium import PATIENCE_MS, open_browser
from playwright.sync_api import Browser
from starlette.testclient import TestClient
from visits import Open, Visit

import argmaxable as am
from argmaxable.serve.app import make_app
from argmaxable.serve.views import Site
from argmaxable.store import open_store


@pytest.fixture
def client(database: Path) -> Iterator[Callable[..., TestClient]]:
    """Open the test's database, which must be there; heads are those whose files were named."""
    with ExitStack() as opened:

        def made(*heads: am.Head) -> TestClient:
            store = opened.enter_context(open_store(str(database), read_only=True))
            app = make_app(Site(store, {head.sha256(): head for head in heads}))
            return TestClient(app, base_url="http://127.0.0.1:8642")

        yield made


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser


@pytest.fixture
def visit(browser: Browser) -> Iterator[Open]:
    """Open an address and listen; options are those of a browser's context."""
    contexts = []

    def opened(address: str, **options: Any) -> Visit:
        contexts.append(browser.new_context(**options))
        contexts[-1].set_default_timeout(PATIENCE_MS)
        visit = Visit(contexts[-1].new_page())
        page = visit.page
        page.on("console", lambda message: visit.messages.append(message.text))
        page.on("pageerror", lambda error: visit.messages.append(str(error)))
        page.on("dialog", lambda dialog: (visit.messages.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: visit.requests.append(request.url))
        page.goto(address)
        return visit

    yield opened
    for context in contexts:
        context.close()
