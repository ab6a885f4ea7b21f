"""Rows are untrusted: what was never written there, but is there now, must end in a clear error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from argmaxable.core.errors import DomainError, StoreError


@contextmanager
def legible(run_id: int) -> Iterator[None]:
    """Turn what goes wrong while a row is understood into a StoreError about its run."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, DomainError) as error:
        raise StoreError(
            f"run {run_id} can't be read ({error}): the database is damaged or was changed by something "
            "else. Verify the model again with --overwrite."
        ) from error
