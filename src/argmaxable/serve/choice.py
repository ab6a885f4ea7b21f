"""Which classes of a run are asked for: what is behind the question mark of an address, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar
from urllib.parse import urlencode

from argmaxable.verdict import Method, Status

# Rows of a page; enough to look around, few enough for a phone.
PAGE = 50
# A search is a few words, and a page number has few digits: longer ones are nobody's.
_LONGEST_SEARCH, _MOST_DIGITS = 200, 9
_ALL = "all"

Kind = TypeVar("Kind", bound=StrEnum)


class Order(StrEnum):
    """What rows can be sorted by."""

    CLASS = "class"
    LABEL = "label"
    MARGIN = "margin"
    STEPS = "steps"


@dataclass(frozen=True)
class Choice:
    """Filters, order and page of a table; `page` counts from 0."""

    search: str = ""
    status: Status | None = None
    method: Method | None = None
    order: Order = Order.CLASS
    is_down: bool = False
    page: int = 0
    size: int = PAGE

    @property
    def first(self) -> int:
        return self.page * self.size

    def turned(self, page: int) -> str:
        """The address of another page of the same table."""
        return replace(self, page=page).address

    def sorted_by(self, order: Order) -> str:
        """The address of the table in another order, or the other way round."""
        return replace(self, order=order, is_down=order is self.order and not self.is_down, page=0).address

    @property
    def address(self) -> str:
        """What stands behind the question mark, without what is the default."""
        parts = {
            "search": self.search,
            "status": self.status or _ALL,
            "method": self.method,
            "sort": "" if self.order is Order.CLASS else self.order,
            "down": "1" if self.is_down else "",
            "page": str(self.page + 1) if self.page else "",
        }
        return urlencode({name: value for name, value in parts.items() if value})


def choice_from(query: Mapping[str, str], *, status: Status | None) -> Choice:
    """The choice that an address makes; what makes no sense in it is left out, and `status` is for those
    that say nothing about it."""
    number = query.get("page", "")
    is_number = number.isascii() and number.isdecimal() and len(number) <= _MOST_DIGITS
    return Choice(
        search=query.get("search", "")[:_LONGEST_SEARCH],
        status=_one_of(Status, query["status"]) if "status" in query else status,
        method=_one_of(Method, query.get("method", "")),
        order=_one_of(Order, query.get("sort", "")) or Order.CLASS,
        is_down=query.get("down") == "1",
        page=max(int(number) - 1, 0) if is_number else 0,
    )


def _one_of(kind: type[Kind], text: str) -> Kind | None:
    return kind(text) if text in {member.value for member in kind} else None
