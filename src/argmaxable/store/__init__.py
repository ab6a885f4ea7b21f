"""Kept runs: a database of models, runs, verdicts and their evidence, in SQLite or PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from argmaxable.store.plan import Counts, Plan, PublishedVerdict, RunSummary, State

if TYPE_CHECKING:
    from argmaxable.store.store import Store

__all__ = ["Counts", "Plan", "PublishedVerdict", "RunSummary", "State", "Store", "open_store"]


def open_store(where: str | None = None) -> Store:
    """Open the store at a path or SQLAlchemy URL (None: the default file), made or brought up to date.

    Raises StoreError when there is no database to be had there.
    """
    from argmaxable.store.store import Store

    return Store(where)


def __getattr__(name: str) -> Any:
    # SQLAlchemy takes longer to import than all the rest: only who opens a store waits for it.
    if name == "Store":
        from argmaxable.store.store import Store

        return Store
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
