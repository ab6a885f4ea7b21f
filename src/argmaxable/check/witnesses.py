"""Witnesses: scores at points, and the gaps they prove. Floats with a proven bound on their rounding come
first, integers where those can't tell. Half of the check; the other half is certificates (checker.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.compute.blocks import BLOCK_SCORES, blocks, point_blocks, row_blocks
from argmaxable.compute.compare import Best, best_at, best_at_own_rows
from argmaxable.compute.prepared import PreparedHead, seen_rows
from argmaxable.compute.rows import StreamedRows, row_slices
from argmaxable.core.arrays import Ids, Mask, Matrix, Matrix32, Vector
from argmaxable.core.domain import Domain
from argmaxable.core.verdict import Strength
from argmaxable.exact.dyadic import Dyadic, round_down
from argmaxable.exact.rounding import TINY, UNIT, gamma, length_bounds


@dataclass(frozen=True)
class _Precision:
    """A float format: relative error of an operation, what underflow can lose at most (flushed to
    zero or not), and the size below which no sum overflows."""

    unit: float
    tiny: float
    limit: float


_SINGLE = _Precision(2.0**-24, 2.0**-125, 2.0**126)
_DOUBLE = _Precision(UNIT, TINY, 2.0**1022)
# A gap is claimed three bounds on its rounding below what float32 found: whoever computes it again, in any
# order of summation, is at most two of them away and has one of his own to take off.
_CLAIMED_SLACKS = 3
# Powers of two that float32 has with room on both sides.
_LARGEST_EXPONENT = 100
# How many bounds on rounding a class must lead by to be ahead. Rows that training hardly touched are equal to
# a fraction of one: at this distance thousands of them need no second look.
_AHEAD_BY = 4
# Scores that are counted at a time: 16 MB, which caches like.
_COUNTED_SCORES = 1 << 22
# Entries of rows held at a time as Python's integers, which may be of any size.
_EXACT_ENTRIES = 1 << 12
# Roundings that a score meets besides its dot product (centring, conversion, bias, gap), with room.
_EXTRA_ROUNDINGS = 10


_STRENGTHS = list(Strength)
_FLOAT32, _FLOAT64, _EXACT = (
    _STRENGTHS.index(kind) for kind in (Strength.FLOAT32, Strength.FLOAT64, Strength.EXACT)
)


@dataclass(frozen=True, eq=False)
class Gaps:
    """What the points prove: `lower` ≤ t* for each, the best rival met, and by which arithmetic.

    `apart` is a lower bound on the gap to the rivals that are not identical with the class.
    """

    lower: Vector
    apart: Vector
    rival: Ids
    strength: NDArray[np.uint8]  # index into list(Strength)

    @staticmethod
    def unknown(count: int) -> Gaps:
        nothing = np.full(count, -math.inf)
        return Gaps(nothing, nothing.copy(), np.full(count, -1), np.full(count, _FLOAT32, np.uint8))

    def part(self, where: slice) -> Gaps:
        """A window on some of the points."""
        return Gaps(self.lower[where], self.apart[where], self.rival[where], self.strength[where])

    def replace(self, where: Ids, other: Gaps) -> None:
        self.lower[where], self.apart[where] = other.lower, other.apart
        self.rival[where], self.strength[where] = other.rival, other.strength

    def enter(self, best: Best, slack: Vector, claims: Vector | None) -> Ids:
        """Take what float32 found with a bound on its error; returns the points where it can't tell."""
        self.rival[:] = best.rival
        with np.errstate(invalid="ignore"):
            gap = best.own.astype(np.float64) - best.score
            sure = slack if claims is not None else _CLAIMED_SLACKS * slack
            self.lower[:] = self.apart[:] = gap - sure
            # Only what float32 can't tell apart goes on; a clear loss is a valid answer too.
            clear = np.abs(gap) > sure
            if claims is not None:
                clear &= (gap - sure >= claims) | (gap + sure < claims)
        return np.flatnonzero(~clear)

    def settle(self, tied: Mask) -> Mask:
        """Which points win: strictly, or for classes with identical ones, against all others."""
        return np.asarray((self.lower > 0) | (tied & (self.lower == 0) & (self.apart > 0)))


class Scores:
    """Scores of one head at points of one domain. Classes in `without` are nobody's rivals."""

    def __init__(self, prepared: PreparedHead, domain: Domain, without: Ids | None = None) -> None:
        self.prepared, self.domain = prepared, domain
        self.head, self.centre, self.backend = prepared.head, prepared.centre, prepared.backend
        self.biases, self.norms = prepared.biases, prepared.norms
        self.offsets = prepared.biases32 if prepared.has_bias else None
        self.without = np.empty(0, np.intp) if without is None else without
        if len(self.without):  # in float32 they score −∞; in float64 their gaps are left out
            self.offsets = prepared.biases32.copy()
            self.offsets[self.without] = -math.inf

    def gaps(self, classes: Ids, points: Matrix, *, claims: Vector | None = None) -> Gaps:
        """The proven gap of each class at its point (n × features); −∞ outside the domain.

        Arithmetic gets more exact where a sign, or a claimed lower bound, can't be told otherwise.
        """
        found = Gaps.unknown(len(classes))
        is_streamed = isinstance(self.prepared.rows32, StreamedRows)
        portions = (point_blocks if is_streamed else row_blocks)(len(classes), self.head.features)
        self.backend.do(
            [
                partial(
                    self._gaps_by_float32, classes[block], points[block],
                    None if claims is None else claims[block], found.part(block),
                )
                for block in portions
            ]
        )  # fmt: skip
        outside = ~self.domain.contains(points)
        found.lower[outside] = found.apart[outside] = -math.inf
        return found

    def own_gaps(
        self, classes: Ids, exponents: Ids, *, claims: Vector | None = None
    ) -> Iterator[tuple[slice, Gaps]]:
        """The gaps of classes, in ascending order, at z = 2^exponent · gain ∘ (row − centre): a slice at a
        time, by half of the products that `gaps` takes, which is asked where float32 can't tell.

        Only for points z that belong to the domain as they are, and to one with x = gain ∘ z. Then a score is
        w_i · x = 2^exponent (gain ∘ w_i) · (gain ∘ w_c): a product of rows as z sees them.
        """
        scale = np.ldexp(np.float32(1), np.clip(exponents, -_LARGEST_EXPONENT, _LARGEST_EXPONENT))
        rows32 = seen_rows(self.prepared, self.domain).rows32
        for block, best in best_at_own_rows(self.backend, rows32, self.offsets, scale, classes):
            ids, powers = classes[block], exponents[block]
            claimed = None if claims is None else claims[block]
            found = Gaps.unknown(len(ids))
            unclear = found.enter(best, self._own_slack(ids, powers), claimed)
            if len(unclear):
                with np.errstate(over="ignore", under="ignore"):
                    rows = self.head.rows(ids[unclear]) - self.centre
                    points = self.domain.own_points(rows, powers[unclear])
                again = None if claimed is None else claimed[unclear]
                found.replace(unclear, self.gaps(ids[unclear], points, claims=again))
            yield block, found

    def _gaps_by_float32(self, classes: Ids, points: Matrix, claims: Vector | None, found: Gaps) -> None:
        if self.head.classes == 1:
            found.lower[:] = found.apart[:] = math.inf
            return
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            x, misplaced = self.domain.place(points)
            best = best_at(self.backend, self.prepared.rows32, self.offsets, x.astype(np.float32), classes)
            error = self._score_error(x, misplaced, _SINGLE)
            slack = error(self.norms[classes], np.abs(self.biases[classes]))
            slack += error(self.norms.max(), np.abs(self.biases).max())
        if not self.backend.keeps_bounds:
            slack[:] = math.inf
        unclear = found.enter(best, slack, claims)
        some_claims = np.full(len(classes), -math.inf) if claims is None else claims
        for some in np.array_split(unclear, max(1, len(unclear) * self.head.classes // BLOCK_SCORES)):
            if len(some):
                placed = (x[some], misplaced[some])
                self._gaps_by_float64(classes[some], points[some], placed, some_claims[some], found, some)

    def _gaps_by_float64(
        self,
        classes: Ids,
        points: Matrix,
        placed: tuple[Matrix, Matrix],
        claims: Vector,
        found: Gaps,
        where: Ids,
    ) -> None:
        x, misplaced = placed
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            scores = self._float64_scores(x)
            error = self._score_error(x, misplaced, _DOUBLE)
            for k, class_id in enumerate(classes):
                slack = error(self.norms, np.abs(self.biases), k)
                low = scores[k, class_id] - scores[k] - (slack[class_id] + slack)
                high = scores[k, class_id] - scores[k] + (slack[class_id] + slack)
                low[class_id] = high[class_id] = math.inf
                low[self.without] = high[self.without] = math.inf
                unclear = _unclear_rivals(low, high, claims[k])
                low[unclear], twins = self._exact_gaps(int(class_id), points[k], unclear)
                found.strength[where[k]] = _EXACT if len(unclear) else _FLOAT64
                found.rival[where[k]] = low.argmin()
                found.lower[where[k]] = low.min()
                low[unclear[twins]] = math.inf
                found.apart[where[k]] = low.min()

    def all_scores(self, points: Matrix) -> tuple[Matrix32, Callable[[int], Vector]]:
        """Scores of all classes at points (n × features) in float32, and for each point bounds on the errors
        of its scores."""
        rows = self.prepared.rows32
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            x, misplaced = self.domain.place(points)
            scores = np.empty((len(points), self.head.classes), np.float32)
            for block in row_slices(rows):
                scores[:, block] = x.astype(np.float32) @ rows[block].T
            if self.prepared.has_bias:
                scores += self.prepared.biases32
            error = self._score_error(x, misplaced, _SINGLE)
        return scores, lambda k: np.asarray(error(self.norms, np.abs(self.biases), k))

    def scores64(self, point: Vector) -> tuple[Vector, Vector]:
        """The same for one point in float64."""
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            x, misplaced = self.domain.place(point[None])
            scores = self._float64_scores(x)[0]
            error = self._score_error(x, misplaced, _DOUBLE)
            return scores, np.asarray(error(self.norms, np.abs(self.biases), 0))

    def ahead(self, classes: Ids, points: Matrix) -> Ids:
        """How many classes score higher than each class at its point (n × features), by more than a few
        bounds on rounding in float32: of classes that are the same up to rounding, none is ahead.

        Float64 decides near that limit, so the numbers don't depend on the order of summation.
        """
        counts = np.empty(len(classes), np.intp)
        for block in blocks(len(classes), self.head.classes, _COUNTED_SCORES):
            counts[block] = self._ahead(classes[block], points[block])
        return counts

    @np.errstate(over="ignore", under="ignore", invalid="ignore")
    def _ahead(self, classes: Ids, points: Matrix) -> Ids:
        scores, _ = self.all_scores(points)
        x, misplaced = self.domain.place(points)
        error = self._score_error(x, misplaced, _SINGLE)
        slack = error(self.norms[classes], np.abs(self.biases[classes]))
        slack += error(self.norms.max(), np.abs(self.biases).max())
        own = scores[np.arange(len(classes)), classes]
        # Two scores are off by `slack` together, so float32 is clear about leads that far from the limit.
        low = np.nextafter((own + (_AHEAD_BY - 1) * slack).astype(np.float32), np.float32(-np.inf))
        high = np.nextafter((own + (_AHEAD_BY + 1) * slack).astype(np.float32), np.float32(np.inf))
        counts: Ids = np.count_nonzero(scores > high[:, None], axis=1)
        unclear = np.flatnonzero(np.count_nonzero(scores > low[:, None], axis=1) > counts)
        lines, rivals = np.nonzero(
            (scores[unclear] > low[unclear, None]) & (scores[unclear] <= high[unclear, None])
        )
        lines = unclear[lines]
        for some in row_blocks(len(lines), self.head.features):
            leads = self._leads(classes[lines[some]], rivals[some], x[lines[some]])
            is_ahead = leads > _AHEAD_BY * slack[lines[some]]
            counts += np.bincount(lines[some][is_ahead], minlength=len(counts))
        return counts

    def _leads(self, classes: Ids, rivals: Ids, x: Matrix) -> Vector:
        """By how much each rival scores higher than its class at its x, in float64."""
        rows = self.head.rows(rivals) - self.head.rows(classes)
        return np.asarray(np.einsum("ij,ij->i", x, rows) + (self.biases[rivals] - self.biases[classes]))

    def _float64_scores(self, x: Matrix) -> Matrix:
        scores = np.empty((len(x), self.head.classes))
        for block in row_blocks(self.head.classes, self.head.features):
            scores[:, block] = x @ (self.head.rows(block) - self.centre).T + self.biases[block]
        return scores

    def _own_slack(self, classes: Ids, exponents: Ids) -> Vector:
        """Bound on the error of a gap at 2^exponent · row, formed by products of rows and scaled after.

        The power of two is exact; only what underflow takes in the products grows with it. A gain rounds each
        row once more, and z once, in float64: 2^-29 of a rounding of float32, within the room for others.
        """
        if not self.backend.keeps_bounds:
            return np.full(len(classes), math.inf)
        norms = seen_rows(self.prepared, self.domain).norms
        features, largest = self.head.features, float(norms.max())
        offset = float(np.abs(self.biases).max())
        relative = gamma(features + _EXTRA_ROUNDINGS, _SINGLE.unit)
        own = norms[classes]
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            underflow = 2 * features * _SINGLE.tiny * (1 + own)
            products = relative * own * (own + largest) + underflow * (2 + own + largest)
            scaled = np.ldexp(own, exponents)
            slack = np.ldexp(products, exponents) + relative * (np.abs(self.biases[classes]) + offset)
            slack += 4 * _SINGLE.tiny
            sizes = np.maximum(np.maximum(own, scaled), 1.0) * largest + largest + offset
            in_range = (sizes < _SINGLE.limit) & (np.abs(exponents) <= _LARGEST_EXPONENT)
        return np.where(in_range, slack, math.inf)

    def _score_error(self, x: Matrix, misplaced: Matrix, floats: _Precision) -> Any:
        """Bound on the error of scores, as a function of row norms and biases (Cauchy-Schwarz).

        Each score is a dot product of rounded rows with a rounded point, any order of summation.
        Where a partial sum could overflow the bound is infinite.
        """
        features = self.head.features
        relative = gamma(features + _EXTRA_ROUNDINGS, floats.unit)
        length = length_bounds(x)
        astray = length_bounds(misplaced)
        underflow = 2 * features * floats.tiny * (1 + np.abs(x).max(axis=1))
        largest = max(float(self.norms.max()), float(np.abs(self.biases).max()))
        in_range = (largest * np.maximum(length, 1.0) + largest < floats.limit) & (length < floats.limit)

        def error(norms: Any, biases: Any, k: int | slice = slice(None)) -> Any:
            size = norms * length[k] + biases
            bound = relative * size + norms * astray[k] + underflow[k] * (1 + norms)
            return np.where(in_range[k], bound, math.inf)

        return error

    def exact_gap(self, class_id: int, z: Dyadic) -> float:
        """The proven gap of a class at one point, by integers alone; −∞ outside the domain."""
        if not self.domain.contains_exactly(z):
            return -math.inf
        rivals = np.delete(np.arange(self.head.classes), class_id)
        return float(self._exact_gaps(class_id, z, rivals)[0].min()) if len(rivals) else math.inf

    def _exact_gaps(self, class_id: int, point: Vector | Dyadic, rivals: Ids) -> tuple[Vector, Mask]:
        """The gaps to these rivals, rounded down from their exact values, and which are identical."""
        x, denominator = self.domain.place_exactly(point)
        biases = self.head.biases(np.append(rivals, class_id))
        rows, own = self.head.rows(rivals), self.head.rows(np.array([class_id]))[0]
        twins = (rows == own).all(axis=1) & (biases[:-1] == biases[-1])
        out = np.zeros(len(rivals))  # twins tie, without arithmetic: heads may have thousands
        exact_own, offsets = Dyadic.of(own), [Fraction(bias) for bias in biases.tolist()]
        others = np.flatnonzero(~twins)
        for block in blocks(len(others), self.head.features, _EXACT_ENTRIES):
            scores = (exact_own - Dyadic.of(rows[others[block]])) @ x
            unit = Fraction(2) ** scores.exponent / denominator
            for k, score in zip(others[block].tolist(), scores.integers.tolist(), strict=True):
                out[k] = round_down(score * unit + offsets[-1] - offsets[k])
        return out, twins


def _unclear_rivals(low: Vector, high: Vector, claim: float) -> Ids:
    """Rivals whose gap in [low, high] leaves open whether the smallest is above 0, or the claim."""
    if not low.min() > 0 and not (high < 0).any():
        return np.flatnonzero(~(low > max(0.0, claim)))
    if not low.min() >= claim and not (high < claim).any():
        return np.flatnonzero(~(low >= claim))
    return np.empty(0, np.intp)
