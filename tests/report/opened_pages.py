"""What tests of pages pass around."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from playwright.sync_api import Page


@dataclass
class Heard:
    """What a page said and asked for while it was open."""

    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


Opener = Callable[..., tuple[Page, Heard]]
