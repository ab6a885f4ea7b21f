"""A page about taught classes: what held-out examples read as before and after, with pictures where there are
any."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import cached_property

from argmaxable.report.page.html import render


@dataclass(frozen=True)
class ShownReading:
    """A held-out input, what it should hold, how it read before and reads now; `picture` is a PNG file."""

    wanted: str
    source: str
    before: str
    after: str
    picture: bytes | None = None

    @cached_property
    def address(self) -> str | None:
        """The picture as an address that needs no other file."""
        if self.picture is None:
            return None
        return "data:image/png;base64," + base64.b64encode(self.picture).decode()


@dataclass(frozen=True)
class ReadingRow:
    """A taught label, how many of its held-out occurrences are read, and what was known of it before."""

    label: str
    was: str
    occurrences: int
    before: int
    after: int


@dataclass(frozen=True)
class TeachingPage:
    """All that the page says. `facts` are sentences by topic, `shown` a choice of inputs with taught labels,
    `changed` ordinary ones that read differently now."""

    model: str
    title: str
    facts: tuple[tuple[str, str], ...]
    readings: tuple[ReadingRow, ...]
    shown: tuple[ShownReading, ...]
    changed: tuple[ShownReading, ...]


def teaching_page(content: TeachingPage) -> str:
    """The page as one HTML file."""
    return render("teaching.html", "report.css", content=content)
