"""Kept runs: a database of models, runs, verdicts and their evidence, in SQLite or PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from argmaxable.store.plan import Counts, Plan, PublishedVerdict, RunSummary, State
from argmaxable.store.queries import Choice, Entry, Named, Order, Page

if TYPE_CHECKING:
    from argmaxable.store.store import Store

__all__ = [
    "Choice",
    "Counts",
    "Entry",
    "Named",
    "Order",
    "Page",
    "Plan",
    "PublishedVerdict",
    "RunSummary",
    "State",
    "Store",
    "open_store",
]


def open_store(where: str | None = None, *, read_only: bool = False) -> Store:
    """Open the store at a path or SQLAlchemy URL (None: the default file), made or brought up to date.

    Of one for reading only nothing is made, brought up to date or written. Raises StoreError when there is
    no database to be had there.
    """
    from argmaxable.store.store import Store

    return Store(where, read_only=read_only)


def __getattr__(name: str) -> Any:
    # SQLAlchemy takes longer to import than all the rest: only who opens a store waits for it.
    if name == "Store":
        from argmaxable.store.store import Store

        return Store
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
