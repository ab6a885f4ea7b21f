"""Damaged rows end in a clear error: a database is untrusted input, whoever wrote it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from argmaxable.core.errors import DomainError, StoreError


@contextmanager
def damage_reported(run_id: int) -> Iterator[None]:
    """Turn what goes wrong while rows of a run are decoded into a StoreError about that run."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, DomainError) as error:
        raise StoreError(
            f"run {run_id} can't be read ({error}): the database is damaged or was changed by something "
            "else. Verify the model again with --overwrite."
        ) from error
