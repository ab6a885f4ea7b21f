"""A head made ready for a run: whatever depends on the head alone is computed once and shared by everyone who
asks about it.

Rows have a common vector (the centre) taken off, which changes no gap between scores and makes rounding
bounds tight for heads whose rows share a large mean. Any centre will do, so none has to be trusted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from argmaxable.compute.backend import backend_of
from argmaxable.compute.blocks import row_blocks
from argmaxable.compute.budget import Compute
from argmaxable.compute.identical_rows import IdenticalRows, find_identical_rows
from argmaxable.compute.rows import Rows, StreamedRows, fits, hold_if_it_fits
from argmaxable.core.arrays import Ids, Matrix, Matrix32, Vector, Vector32
from argmaxable.core.domain import Domain
from argmaxable.core.head import Facts, Head
from argmaxable.exact.rounding import length_bounds


@dataclass(frozen=True, eq=False)
class SeenRows:
    """Rows less the centre as a domain's z sees them, in float32, and upper bounds on their norms."""

    rows32: Rows
    norms: Vector


class PreparedHead:
    """A head with its centre, biases less their mean, rows in float32, bounds on the rows' norms, identical
    rows and fingerprint: each computed when first asked for, and once."""

    def __init__(self, head: Head, *, centre: Vector | None = None, compute: Compute | None = None) -> None:
        self.head = head
        self.compute = Compute() if compute is None else compute
        self.backend = backend_of(self.compute.device)
        self.has_bias = head.has_bias
        if centre is not None:
            self.centre = centre
        # As the domain that was asked about last sees the rows; see `seen_rows`.
        self.seen: tuple[Domain, SeenRows] | None = None

    @cached_property
    def centre(self) -> Vector:
        """What is taken off all rows; own-direction witnesses refer to it."""
        return centre_of(self.head)

    @cached_property
    def biases(self) -> Vector:
        """The biases less their mean, where that does not overflow."""
        biases = self.head.biases()
        with np.errstate(over="ignore", invalid="ignore"):
            centred = biases - biases.mean()
        return centred if np.isfinite(centred).all() else biases

    @cached_property
    def biases32(self) -> Vector32:
        with np.errstate(over="ignore"):
            return self.biases.astype(np.float32)

    @cached_property
    def rows32(self) -> Rows:
        """Rows less the centre in float32, in memory if they fit."""
        streamed = StreamedRows((self.head.classes, self.head.features), self._centred)
        return self.backend.settle_in(hold_if_it_fits(streamed, self.compute.bytes_for_rows()))

    @cached_property
    def norms(self) -> Vector:
        """Upper bounds on the norms of rows less the centre."""
        norms = np.empty(self.head.classes)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            for block in row_blocks(self.head.classes, self.head.features):
                norms[block] = length_bounds(self.head.rows(block) - self.centre)
        return norms

    def _centred(self, ids: Ids | slice) -> Matrix32:
        """Rows less the centre, rounded to float32: at once where both are float32 or narrower."""
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            if self.head.weight.dtype.itemsize <= 4 and (self.centre == self.centre.astype(np.float32)).all():
                rows = np.asarray(self.head.weight[ids], np.float32)
                return np.asarray(rows - self.centre.astype(np.float32))
            return np.asarray((self.head.rows(ids) - self.centre).astype(np.float32))

    @cached_property
    def facts(self) -> Facts:
        """Name, shape and fingerprint of the head."""
        return Facts.of(self.head)

    @cached_property
    def twins(self) -> IdenticalRows:
        """Classes with the same row."""
        return find_identical_rows(self.head)


def prepared(head: Head | PreparedHead, centre: Vector | None = None) -> PreparedHead:
    """The head made ready with this centre (None: any), unless it is."""
    if isinstance(head, PreparedHead):
        if centre is None or np.array_equal(head.centre, centre):
            return head
        return PreparedHead(head.head, centre=centre, compute=head.compute)
    return PreparedHead(head, centre=centre)


def seen_rows(head: PreparedHead, domain: Domain) -> SeenRows:
    """The rows as the z of a domain sees them, whose z has an entry for each feature; those of the domain
    asked about last are kept."""
    if domain.is_identity:
        return SeenRows(head.rows32, head.norms)
    if head.seen is None or head.seen[0] != domain:
        head.seen = (domain, _seen_by(head, domain))
    return head.seen[1]


def _seen_by(head: PreparedHead, domain: Domain) -> SeenRows:
    """The rows and their norms in one pass where the rows fit into memory."""
    shape = head.head.classes, head.head.features

    def seen(ids: Ids | slice) -> Matrix:
        return domain.rows_seen(head.head.rows(ids) - head.centre)

    @np.errstate(over="ignore", under="ignore", invalid="ignore")
    def convert(ids: Ids | slice) -> Matrix32:
        return seen(ids).astype(np.float32)

    norms = np.empty(head.head.classes)
    held = np.empty(shape, np.float32) if fits(shape, head.compute.bytes_for_rows()) else None
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for block in row_blocks(*shape):
            rows = seen(block)
            norms[block] = length_bounds(rows)
            if held is not None:
                held[block] = rows
    return SeenRows(head.backend.settle_in(StreamedRows(shape, convert) if held is None else held), norms)


def centre_of(head: Head) -> Vector:
    """The mean row, rounded to float32 so that it can be stored cheaply; zero where it overflows."""
    total = np.zeros(head.features)
    with np.errstate(over="ignore", invalid="ignore"):
        for block in row_blocks(head.classes, head.features):
            total += head.rows(block).sum(axis=0)
        mean = (total / head.classes).astype(np.float32).astype(np.float64)
    return np.where(np.isfinite(mean), mean, 0.0)
