"""Which classes of a run are asked for: what is behind the question mark of an address, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import TypeVar
from urllib.parse import urlencode

from argmaxable.core.verdict import Method, Status
from argmaxable.store import SortKey, VerdictQuery

# A search is a few words, and a page number has few digits: longer ones are nobody's.
_LONGEST_SEARCH, _MOST_DIGITS = 200, 9
_ALL = "all"

Kind = TypeVar("Kind", bound=StrEnum)


def choice_from(query: Mapping[str, str], *, status: Status | None) -> VerdictQuery:
    """The choice that an address makes; what makes no sense in it is left out, and `status` is for those
    that say nothing about it. Classes that can never be predicted come farthest off first."""
    number = query.get("page", "")
    is_number = number.isascii() and number.isdecimal() and len(number) <= _MOST_DIGITS
    status = _one_of(Status, query["status"]) if "status" in query else status
    usual = SortKey.AHEAD if status is Status.UNARGMAXABLE else SortKey.CLASS
    return VerdictQuery(
        search=query.get("search", "")[:_LONGEST_SEARCH],
        status=status,
        method=_one_of(Method, query.get("method", "")),
        order=_one_of(SortKey, query.get("sort", "")) or usual,
        is_down=query.get("down") == "1",
        page=max(int(number) - 1, 0) if is_number else 0,
    )


def _one_of(kind: type[Kind], text: str) -> Kind | None:
    return kind(text) if text in {member.value for member in kind} else None


def address_of(choice: VerdictQuery) -> str:
    """What stands behind the question mark, without what is the default."""
    parts = {
        "search": choice.search,
        "status": choice.status or _ALL,
        "method": choice.method,
        "sort": choice.order,
        "down": "1" if choice.is_down else "",
        "page": str(choice.page + 1) if choice.page else "",
    }
    return urlencode({name: value for name, value in parts.items() if value})


def turned(choice: VerdictQuery, page: int) -> str:
    """The address of another page of the same table."""
    return address_of(replace(choice, page=page))


def sorted_by(choice: VerdictQuery, order: SortKey) -> str:
    """The address of the table in another order, or the other way round."""
    is_down = order is choice.order and not choice.is_down
    return address_of(replace(choice, order=order, is_down=is_down, page=0))
