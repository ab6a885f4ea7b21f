"""Observed queries as a domain: their mixtures, the box around them, or the ball around 0 that holds them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from argmaxable.core.balls import Ball
from argmaxable.core.boxes import Box
from argmaxable.core.errors import DomainError, InputError
from argmaxable.core.hull import Hull
from argmaxable.core.matrices import finite_matrix, read_arrays
from argmaxable.exact.rounding import length_bounds

if TYPE_CHECKING:
    from argmaxable.core.domain import Domain

# Arrays of an .npz that hold queries, in the order in which they are looked for.
_NAMES = ("queries", "user_factors", "user_embeddings")


class QuerySet(StrEnum):
    """Which vectors beside the queries themselves count as possible."""

    HULL = "hull"
    BOX = "box"
    BALL = "ball"


def domain_of_queries(queries: ArrayLike, kind: QuerySet | str = QuerySet.HULL) -> Hull | Box | Ball:
    """The smallest hull, box, or ball around 0 (its radius rounded up) that holds the queries (n ×
    features)."""
    points = finite_matrix(queries, "a set of queries", "query")
    if QuerySet(kind) is QuerySet.HULL:
        return Hull(points)
    if QuerySet(kind) is QuerySet.BOX:
        return Box(points.min(axis=0), points.max(axis=0))
    if not points.any():
        raise InputError(
            "every query is the zero vector, so the ball has no radius. Use --queries-as hull or box."
        )
    return Ball(float(length_bounds(points).max()))


@dataclass(frozen=True)
class Queries:
    """Saved queries, to be made a domain once it is known how many features the items have."""

    path: str
    kind: QuerySet = QuerySet.HULL

    def domain(self, features: int) -> Domain:
        """The domain; raises DomainError for a file that can't be read, or queries of another width."""
        queries = finite_matrix(_read(self.path), "a set of queries", "query")
        if queries.shape[1] != features:
            raise DomainError(
                f"{self.path}: {len(queries):,} queries with {queries.shape[1]:,} features, but the "
                "items have "
                f"{features:,}. Pass the queries that these items are compared with."
            )
        return domain_of_queries(queries, self.kind)


def _read(path: str) -> ArrayLike:
    """The matrix in an .npy file, or in an .npz by the names that implicit and LightFM give to users."""
    found = read_arrays(path, "an .npy or .npz file of numbers")
    if isinstance(found, np.ndarray):
        return found
    with found as arrays:
        name = next((name for name in _NAMES if name in arrays.files), None)
        if name is None:
            raise DomainError(
                f"{path} has no array called {', '.join(_NAMES)}; found {', '.join(arrays.files) or 'none'}."
            )
        try:
            return np.asarray(arrays[name])
        except (ValueError, OSError, EOFError) as error:
            raise DomainError(f"{path}: {name} can't be read: {error}") from error
