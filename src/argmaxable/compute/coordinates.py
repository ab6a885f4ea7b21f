"""The head as search and proof see it: rows and biases in the coordinates of the domain's z.

Coordinates drop features that can't matter (equal in all rows, or fixed by the domain) and says what kind of
set is left: a box, a ball, or the mixtures of given corners. Without an effective bias and with 0 in the
domain the good points of a class form a *cone*: their scale is free, so the set is replaced by a unit box.
Everything here is approximate; the checker alone is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from argmaxable.compute.blocks import row_blocks
from argmaxable.compute.prepared import seen_rows
from argmaxable.compute.rows import Rows, StreamedRows, hold_if_it_fits, lengths

if TYPE_CHECKING:
    from argmaxable.compute.backend import Backend
    from argmaxable.compute.prepared import PreparedHead
    from argmaxable.core.arrays import Ids, Mask, Matrix, Matrix32, Vector
    from argmaxable.core.domain import Domain
    from argmaxable.core.head import Head

# Half-width of the box that stands in for an unbounded domain, in units of the largest score
# offset over the typical row; retried larger when a class stays undecided.
_FIRST_REACH = 1e4
# Norms from here to its inverse leave float32 room for squares and products.
_SMALL = 2.0**-40
# Rows compared at a time when looking for features that never vary.
_BLOCK_ROWS = 1024
# Keeps a scaled point inside a curved domain in spite of rounding.
_INSIDE = 1 - 1e-12


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Rows (classes × used features) and biases in coordinates of z, and the set z ranges over.

    Rows and biases of extreme size are multiplied by `scale`, a power of two, which moves no argmax.

    `usable` classes count as rivals, `ignored` ones do not: another class stands for them.
    """

    head: Head
    domain: Domain
    centre: Vector
    rows32: Rows
    backend: Backend
    biases: Vector
    biases32: NDArray[np.float32]
    usable: Ids
    ignored: Ids
    used: Ids
    lo: Vector
    hi: Vector
    radius: float | None
    corners: Matrix | None
    is_cone: bool
    scale: float

    @property
    def size(self) -> int:
        """Number of used features."""
        return len(self.used)

    @cached_property
    def opens_up(self) -> Mask:
        """Features without an upper bound of their own, in a cone or an unbounded domain."""
        if self.is_cone:
            return self.hi > 0
        return np.isinf(self.domain_bounds()[1]) & (self.radius is None)

    @cached_property
    def opens_down(self) -> Mask:
        """Features without a lower bound of their own."""
        if self.is_cone:
            return self.lo < 0
        return np.isinf(self.domain_bounds()[0]) & (self.radius is None)

    @cached_property
    def is_bounded(self) -> bool:
        """Whether the search set is the domain itself, so that its dual bounds are the domain's."""
        return not (self.opens_up.any() or self.opens_down.any())

    def domain_bounds(self) -> tuple[Vector, Vector]:
        """The box that bounds the used features; infinite where the domain has none."""
        if self.corners is not None:
            return self.lo, self.hi
        lo, hi = self.domain.bounds(self.head.features)
        return lo[self.used], hi[self.used]

    @property
    def domain_radius(self) -> float | None:
        """The radius of the ball that z ranges over, None where there is none."""
        radius = self.domain.ball_radius(self.head.features)
        return radius if math.isfinite(radius) else None

    def rows(self, ids: Ids) -> Matrix:
        """The chosen rows in float64 (n × used features), centred."""
        rows = self.rows_seen(self.head.rows(ids) - self.centre)
        return rows if self.scale == 1.0 else rows * self.scale

    def lengths(self) -> Vector:
        """Norms of all rows, roughly."""
        return lengths(self.rows32)

    def rows_seen(self, rows: Matrix) -> Matrix:
        """Rows of the head (n × features) in coordinates of z (n × used features)."""
        with np.errstate(over="ignore", invalid="ignore"):
            seen = self.domain.rows_seen(rows)
        return seen if self.size == seen.shape[1] else np.asarray(seen[:, self.used])

    @np.errstate(all="ignore")
    def to_point(self, x: Matrix) -> Matrix:
        """Points z of the domain (n × all features) from coordinates."""
        z = self.whole_points(self.scale_inside(x) if self.is_cone else x)
        lo, hi = self.domain.bounds(self.head.features)
        z = np.clip(z, lo, hi)
        if self.domain_radius is None:
            return z
        limit = self.domain_radius * _INSIDE
        length = np.sqrt((z * z).sum(axis=1, keepdims=True))
        return np.asarray(z * np.where(length > limit, limit / np.maximum(length, 1e-300), 1.0))

    def whole_points(self, x: Matrix) -> Matrix:
        """Coordinates with the features that were dropped, each as near to 0 as the domain allows."""
        lo, hi = self.domain.bounds(self.head.features)
        z = np.tile(np.clip(0.0, lo, hi), (len(x), 1))
        z[:, self.used] = x
        return z

    def corner_points(self, numbers: Ids) -> Matrix:
        """The points z that are corners of a hull: all weight on one."""
        assert self.corners is not None
        points = np.zeros((len(numbers), len(self.corners)))
        points[np.arange(len(numbers)), numbers] = 1.0
        return points

    def some_point(self) -> Matrix:
        """Any point z of the domain (1 × its size)."""
        if self.corners is not None:
            return self.corner_points(np.zeros(1, np.intp))
        return self.to_point(np.zeros((1, self.size)))

    def scale_inside(self, x: Matrix) -> Matrix:
        """Directions scaled by powers of two to reach far into the domain."""
        if not self.size:
            return x
        lo, hi = self.domain_bounds()
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if self.domain_radius is not None:
                room = self.domain_radius / np.sqrt((x * x).sum(axis=1))
            else:
                # How much of its bound each entry takes up; 0 of a bound 0 is nothing, and NaN here.
                room = 1 / np.fmax.reduce(np.fmax(x * (1 / hi), x * (1 / lo)), axis=1)
        return np.ldexp(x, power_below(room)[:, None])


def power_below(room: Vector) -> Ids:
    """Exponents k with 2^k safely below each positive number; 0 where it is infinite or NaN."""
    usable = np.isfinite(room) & (room > 0)
    exponent = np.frexp(np.where(usable, room, 1.0) * _INSIDE)[1] - 1
    return np.where(usable, exponent, 0).astype(np.intp)


@np.errstate(all="ignore")  # extreme heads overflow here and there; the checker has the last word
def coordinates_of(
    prepared: PreparedHead, domain: Domain, *, ignored: Ids | None = None, reach: float = 1.0
) -> Coordinates:
    """The coordinates of a head over a domain.

    Ignored classes are no rivals (their float32 bias is −∞, so that no product makes them win);
    `reach` widens the stand-in for an unbounded domain.
    """
    head = prepared.head
    scale = _scale(prepared)
    with np.errstate(over="ignore", under="ignore"):
        biases = _biases(prepared, domain) * scale
    used = _used_features(head, domain)
    ignored = np.empty(0, np.intp) if ignored is None else ignored
    usable = np.setdiff1d(np.arange(head.classes), ignored)
    is_cone = bool((biases[usable] == biases[usable[:1]]).all()) and domain.has_origin
    rows32 = _rows32(prepared, domain, used, scale)
    corners = domain.corners_seen()
    if corners is not None:
        lo, hi, radius = corners.min(axis=0), corners.max(axis=0), None
    else:
        lo, hi, radius = _search_set(domain, head.features, rows32, biases, is_cone, reach)
        lo, hi = lo[used], hi[used]
    biases32 = biases.astype(np.float32)
    biases32[ignored] = -np.inf
    return Coordinates(
        head, domain, prepared.centre, rows32, prepared.backend, biases, biases32,
        usable, ignored, used, lo, hi, radius, corners, is_cone,
        scale,
    )  # fmt: skip


def _biases(prepared: PreparedHead, domain: Domain) -> Vector:
    """b_i + w_i · (the part of x that the domain fixes), shifted to mean zero."""
    head = prepared.head
    fixed = domain.fixed_part(head.features)
    biases = prepared.biases.copy() if head.has_bias else np.zeros(head.classes)
    with np.errstate(over="ignore", invalid="ignore"):
        if fixed.any():
            for block in row_blocks(head.classes, head.features):
                biases[block] += (head.rows(block) - prepared.centre) @ fixed
        middle = (biases.max() / 2 + biases.min() / 2) if (biases != biases[0]).any() else biases[0]
        return np.asarray(biases - middle)


def _used_features(head: Head, domain: Domain) -> Ids:
    """The entries of z that can make a difference."""
    free = domain.free_features(head.features)
    if domain.removes_mean or not domain.has_features:
        return np.flatnonzero(free)
    varies = np.zeros(head.features, bool)
    for first in range(0, head.classes, _BLOCK_ROWS):
        varies |= (head.weight[first : first + _BLOCK_ROWS] != head.weight[:1]).any(axis=0)
        if varies.all():
            break
    return np.flatnonzero(varies & free)


def _rows32(prepared: PreparedHead, domain: Domain, used: Ids, scale: float) -> Rows:
    head = prepared.head
    if scale == 1.0 and domain.has_features and len(used) == head.features:
        # The checker's own copy will do: large heads are not stored twice.
        return seen_rows(prepared, domain).rows32

    def convert(ids: Ids | slice) -> Matrix32:
        rows = head.rows(ids) - prepared.centre
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return np.asarray((domain.rows_seen(rows)[:, used] * scale).astype(np.float32))

    streamed = StreamedRows((head.classes, len(used)), convert)
    return prepared.backend.settle_in(hold_if_it_fits(streamed, prepared.compute.bytes_for_rows()))


def _scale(prepared: PreparedHead) -> float:
    """1 for ordinary heads; otherwise the power of two that brings the largest weight near 1."""
    largest = float(prepared.norms.max())
    if _SMALL <= largest <= 1 / _SMALL:
        return 1.0
    head = prepared.head
    largest = 0.0
    for first in range(0, head.classes, _BLOCK_ROWS):
        rows = head.rows(slice(first, first + _BLOCK_ROWS)) - prepared.centre
        largest = max(largest, float(np.abs(rows).max()))
    return math.ldexp(1.0, -max(-1000, min(1000, math.frexp(largest)[1]))) if largest > 0 else 1.0


def _search_set(
    domain: Domain, features: int, rows32: Rows, biases: Vector, is_cone: bool, reach: float
) -> tuple[Vector, Vector, float | None]:
    """A finite box, or a ball's radius, for the interior point to work in."""
    lo, hi = domain.bounds(features)
    if is_cone:
        return np.where(lo < 0, -1.0, 0.0), np.where(hi > 0, 1.0, 0.0), None
    radius = domain.ball_radius(features)
    if math.isfinite(radius):
        return lo, hi, radius
    far = _FIRST_REACH * reach * max(1.0, _typical_offset(rows32, biases))
    return (
        np.where(np.isinf(lo), np.minimum(hi, 0) - far, lo),
        np.where(np.isinf(hi), np.maximum(lo, 0) + far, hi),
        None,
    )


def _typical_offset(rows32: Rows, biases: Vector) -> float:
    norm = float(np.median(lengths(rows32)))
    return float(np.abs(biases).max()) / norm if norm > 0 else 1.0
