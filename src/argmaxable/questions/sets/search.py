"""Cheap searches for points at which sets come out, many sets at a time: along the mean direction of each
set, at the corners of a hull, and by reflection over the condition violated most. None says "infeasible".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.compute.blocks import blocks
from argmaxable.compute.rows import row_slices
from argmaxable.core.label_sets import Members, SetKind, SetMethod, is_inside
from argmaxable.questions.sets.answer import SetAnswer

if TYPE_CHECKING:
    from argmaxable.core.arrays import Ids, Mask, Matrix, Matrix32, Vector32
    from argmaxable.questions.sets.geometry import Space

# Scores held at a time.
_BLOCK_SCORES = 1 << 22
# Where on a ray the top k are tried, as shares of its length in a bounded domain, else of the typical offset.
_SHARES = tuple(2.0**-power for power in range(8))
# The stand-in for an unbounded domain is this far from 0; points of ordinary size lie well inside.
_USUAL_SHARE = 2.0**-10
# Steps of reflection. One costs a product with all rows, a solve at least as much as several hundred.
_REFLECTIONS = 30


class SetSearch:
    """Searches for the sets of one question."""

    def __init__(self, space: Space) -> None:
        self.space = space
        coordinates = space.coordinates
        self._rows = np.empty(coordinates.rows32.shape, np.float32)
        for block in row_slices(coordinates.rows32):
            self._rows[block] = coordinates.rows32[block]
        offsets = np.append(space.offsets, 0.0) if space.has_cut else space.offsets
        self._offsets = (
            np.zeros_like(offsets, np.float32) if coordinates.is_cone else offsets.astype(np.float32)
        )
        if space.has_cut:  # scores over the cut
            self._rows -= self._rows[-1].copy()
        self._rows, self._offsets = self._rows[: space.labels], self._offsets[: space.labels]

    @np.errstate(all="ignore")  # extreme heads overflow; whatever is found is checked
    def run(self, sets: Sequence[Members]) -> tuple[list[SetAnswer], Matrix32]:
        """An answer for each set, unsettled where nothing was found, and the best points met for those
        (n × coordinates)."""
        answers = [SetAnswer()] * len(sets)
        points = np.zeros((len(sets), self.space.coordinates.size), np.float32)
        for block in blocks(len(sets), self.space.labels, _BLOCK_SCORES):
            ids = np.arange(block.start, block.stop)
            inside = np.stack([is_inside(sets[k], self.space.labels) for k in ids.tolist()])
            points[ids] = self._first_points(inside)
            open_ = self._settle(sets, ids, points, answers, SetMethod.MEAN_DIRECTION)
            if self.space.coordinates.corners is None and len(open_):
                self._reflect(sets, open_, inside[open_ - block.start], points, answers)
        return answers, points

    def _settle(
        self, sets: Sequence[Members], ids: Ids, points: Matrix32, answers: list[SetAnswer], method: SetMethod
    ) -> Ids:
        """Check the points of these sets; returns those that are still open."""
        coordinates, checker = self.space.coordinates, self.space.checker
        if coordinates.corners is not None:
            z = self._corner_points(points[ids].astype(np.float64))
        else:
            z = coordinates.to_point(points[ids].astype(np.float64))
        short = z.astype(np.float32).astype(np.float64)
        z = np.where((checker.domain.contains(short))[:, None], short, z)
        lower = checker.margins([sets[k] for k in ids.tolist()], z)
        for k, number in enumerate(ids.tolist()):
            if lower[k] > 0:
                answers[number] = SetAnswer(z[k], float(lower[k]), method=method)
        return ids[~(lower > 0)]

    # ------------------------------------------------------------------ first points

    def _first_points(self, inside: Mask) -> Matrix32:
        coordinates = self.space.coordinates
        if coordinates.corners is not None:
            return self._best_corners(inside)
        counts = inside.sum(axis=1, keepdims=True)
        # Away from the labels outside, towards those inside.
        mean = self._rows.mean(axis=0)
        directions = (inside @ self._rows) / np.maximum(counts, 1) - mean
        lo, hi = coordinates.lo.astype(np.float32), coordinates.hi.astype(np.float32)
        directions = np.where((directions > 0) & (hi <= 0) | (directions < 0) & (lo >= 0), 0.0, directions)
        longest = self._room(directions)
        slopes = directions @ self._rows.T
        lengths = self._lengths(inside, slopes, longest)
        return np.asarray(directions * lengths[:, None], np.float32)

    def _room(self, directions: Matrix32) -> Vector32:
        """How far one may go along each direction."""
        coordinates = self.space.coordinates
        if coordinates.radius is not None:
            room = coordinates.radius / np.sqrt((directions * directions).sum(axis=1))
        else:
            ends = np.where(directions > 0, coordinates.hi, coordinates.lo)
            room = np.where(directions != 0, ends / directions, np.inf).min(axis=1)
        return np.where(np.isfinite(room), room, 1.0).astype(np.float32)

    def _lengths(self, inside: Mask, slopes: Matrix32, longest: Vector32) -> Vector32:
        """Where on its ray each set has the largest margin, of a few places that suit its kind."""
        if self.space.coordinates.is_cone:
            return longest
        usual = 1.0 if self.space.checker.domain.is_bounded else _USUAL_SHARE
        places = [longest * np.float32(share * usual) for share in _SHARES]
        if self.space.has_cut:
            places.append(np.minimum(self._middle(inside, slopes), longest))
        margins = np.stack([self._margins(inside, slopes * place[:, None]) for place in places])
        return np.asarray(np.stack(places)[margins.argmax(axis=0), np.arange(len(longest))])

    def _middle(self, inside: Mask, slopes: Matrix32) -> Vector32:
        """The middle of the stretch of each ray on which all conditions hold, where there is one."""
        signs = np.where(inside, np.float32(1), np.float32(-1))
        if self.space.checker.test.kind is SetKind.AT_LEAST:
            signs = np.where(inside, signs, np.float32(0))
        slope, offset = slopes * signs, self._offsets * signs
        zero = -offset / slope
        first = np.maximum(np.where(slope > 0, zero, -np.inf).max(axis=1), 0.0)
        last = np.where(slope < 0, zero, np.inf).min(axis=1)
        middle = np.where(np.isfinite(last), (first + last) / 2, 2 * first + 1)
        return np.asarray(np.nan_to_num(middle), np.float32)

    def _margins(self, inside: Mask, products: Matrix32) -> Vector32:
        """The smallest gap of each set, from products with all rows."""
        scores = products + self._offsets
        within = np.where(inside, scores, np.inf).min(axis=1)
        if self.space.checker.test.kind is SetKind.AT_LEAST:
            return np.asarray(within)
        outer = np.where(inside, -np.inf, scores).max(axis=1)
        return np.asarray(np.minimum(within, -outer) if self.space.has_cut else within - outer)

    def _best_corners(self, inside: Mask) -> Matrix32:
        corners = self.space.coordinates.corners
        assert corners is not None
        products = corners.astype(np.float32) @ self._rows.T
        best = [self._margins(np.broadcast_to(one, products.shape), products).argmax() for one in inside]
        return np.asarray(corners[best], np.float32)

    def _corner_points(self, points: Matrix) -> Matrix:
        """Weights of the corners nearest to these points, which are corners."""
        corners = self.space.coordinates.corners
        assert corners is not None
        numbers = [int(np.abs(corners - point).sum(axis=1).argmin()) for point in points]
        return self.space.coordinates.corner_points(np.array(numbers, np.intp))

    # ------------------------------------------------------------------ reflection

    def _reflect(
        self, sets: Sequence[Members], open_: Ids, inside: Mask, points: Matrix32, answers: list[SetAnswer]
    ) -> None:
        """While a condition fails, reflect the point across its hyperplane; remember the best point met."""
        coordinates = self.space.coordinates
        x, best = points[open_].copy(), np.full(len(open_), -np.inf, np.float32)
        for _ in range(_REFLECTIONS):
            products = x @ self._rows.T
            margins = self._margins(inside, products)
            better = margins > best
            best[better], points[open_[better]] = margins[better], x[better]
            won = margins > 0
            if won.any():
                left = self._settle(sets, open_[won], points, answers, SetMethod.REFLECTION)
                still = ~won | np.isin(open_, left)
                open_, inside, x, best = open_[still], inside[still], x[still], best[still]
                products = products[still]
            if not len(open_):
                return
            x = self._inside(coordinates, self._mirrored(x, inside, products))

    def _mirrored(self, x: Matrix32, inside: Mask, products: Matrix32) -> Matrix32:
        scores = products + self._offsets
        lines = np.arange(len(x))
        low = np.where(inside, scores, np.inf)
        high = np.where(inside, -np.inf, scores)
        first, last = low.argmin(axis=1), high.argmax(axis=1)
        lowest, highest = low[lines, first], high[lines, last]
        if not self.space.has_cut:
            normal, gap = self._rows[first] - self._rows[last], lowest - highest
        else:
            is_low = lowest < -highest
            if self.space.checker.test.kind is SetKind.AT_LEAST:
                is_low[:] = True
            normal = np.where(is_low[:, None], self._rows[first], -self._rows[last])
            gap = np.where(is_low, lowest, -highest)
        length = np.maximum((normal * normal).sum(axis=1), np.float32(1e-30))
        return np.asarray(x - (2 * np.minimum(gap, 0) / length)[:, None] * normal, np.float32)

    def _inside(self, coordinates: object, x: Matrix32) -> Matrix32:
        space = self.space.coordinates
        if space.is_cone:
            return np.clip(x, np.where(space.lo < 0, -np.inf, 0), np.where(space.hi > 0, np.inf, 0)).astype(
                np.float32
            )
        if space.radius is None:
            return np.clip(x, space.lo, space.hi).astype(np.float32)
        length = np.sqrt((x * x).sum(axis=1, keepdims=True))
        return np.asarray(x * np.minimum(1.0, space.radius / np.maximum(length, 1e-30)), np.float32)
