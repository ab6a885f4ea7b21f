"""Queries about a stored run: which verdicts a page should have, and what is shown of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from argmaxable.core.verdict import Method, Status, Verdict

# Rows of a page; enough to look around, few enough for a phone.
_SIZE = 50


class SortKey(StrEnum):
    """What rows can be sorted by."""

    CLASS = "class"
    LABEL = "label"
    MARGIN = "margin"
    AHEAD = "ahead"
    STEPS = "steps"


@dataclass(frozen=True)
class VerdictQuery:
    """Filters, order and page of a table; `page` counts from 0.

    The search finds labels with the text in them, the class of that number, the character of that code
    point (U+4E00).
    """

    search: str = ""
    status: Status | None = None
    method: Method | None = None
    order: SortKey = SortKey.CLASS
    is_down: bool = False
    page: int = 0
    size: int = _SIZE

    @property
    def is_descending(self) -> bool:
        """Which way the values go: those farthest off come first unless turned round."""
        return self.is_down != (self.order is SortKey.AHEAD)

    @property
    def first(self) -> int:
        return self.page * self.size


@dataclass(frozen=True, eq=False)
class Page:
    """Some verdicts out of the `total` that fit, with certificates but without witnesses."""

    verdicts: tuple[Verdict, ...]
    total: int


@dataclass(frozen=True)
class Named:
    """What a reference to a class shows of it."""

    class_id: int
    label: str
    status: Status


@dataclass(frozen=True, eq=False)
class ClassEntry:
    """A verdict with all its evidence and its place in the run.

    `before` and `after` are the classes next to it, `peer_before` and `peer_after` those of the same status.
    `fellows` are some of the other classes that the very same mixture beats, `fellow_count` says how many
    there are.
    """

    verdict: Verdict
    before: int | None
    after: int | None
    peer_before: int | None
    peer_after: int | None
    fellows: tuple[Named, ...]
    fellow_count: int
