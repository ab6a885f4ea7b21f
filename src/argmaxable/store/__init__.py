"""Runs in a database: models, runs, verdicts and their evidence, in SQLite or PostgreSQL.

What belongs here is whatever knows SQL, and what makes two runs the same; not what is shown of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from argmaxable.store.plan import Counts, Plan, PublishedVerdict, RunSummary, SetPlan, SetRunSummary, State
from argmaxable.store.queries import ClassEntry, Named, Page, SortKey, VerdictQuery

if TYPE_CHECKING:
    from argmaxable.store.store import Store

__all__ = [
    "ClassEntry",
    "Counts",
    "Named",
    "Page",
    "Plan",
    "PublishedVerdict",
    "RunSummary",
    "SetPlan",
    "SetRunSummary",
    "SortKey",
    "State",
    "Store",
    "VerdictQuery",
    "open_store",
]


def open_store(where: str | None = None, *, read_only: bool = False) -> Store:
    """Open the store at a path or SQLAlchemy URL (None: the default file), created or migrated as needed.

    A store opened for reading only is never created, migrated or written to. Raises StoreError when the
    database can't be opened.
    """
    from argmaxable.store.store import Store

    return Store(where, read_only=read_only)


def __getattr__(name: str) -> Any:
    # SQLAlchemy takes longer to import than all the rest: only who opens a store waits for it.
    if name == "Store":
        from argmaxable.store.store import Store

        return Store
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
