"""One set of labels as a linear problem: a row a_i and an offset β_i for each label that asks for something,
all a_i·x + β_i to be positive. For the top k, x has one more coordinate: the cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from argmaxable.compute.coordinates import Coordinates, coordinates_of
from argmaxable.compute.rows import scores_at
from argmaxable.core.label_sets import Members, SetKind, is_inside

if TYPE_CHECKING:
    from argmaxable.check.sets import SetChecker
    from argmaxable.core.arrays import Ids, Mask, Matrix, Vector, Vector32

Real = TypeVar("Real", np.float32, np.float64)
# The id whose row is zero, which the margin loop takes off all others.
ORIGIN = -1
# Weights that are also held in float64: 128 MB.
_MOST_DOUBLE = 1 << 24


@dataclass(frozen=True, eq=False)
class Space:
    """The head of a question in coordinates of its domain, and the checker that has the last word."""

    checker: SetChecker
    coordinates: Coordinates

    @staticmethod
    def of(checker: SetChecker, *, reach: float = 1.0) -> Space:
        """`reach` widens the stand-in for an unbounded domain."""
        return Space(checker, coordinates_of(checker.prepared, checker.domain, reach=reach))

    @property
    def labels(self) -> int:
        return self.checker.head.classes

    @property
    def has_cut(self) -> bool:
        """Whether the last row of the coordinates is the cut; else the cut is one more coordinate."""
        return self.checker.has_cut

    @cached_property
    def pivot(self) -> Vector:
        """What scores are compared with: the row of the cut, or zero where the cut is a coordinate."""
        if self.has_cut:
            return np.asarray(self.coordinates.rows(np.array([self.labels]))[0])
        return np.zeros(self.coordinates.size)

    @cached_property
    def offsets(self) -> Vector:
        """b_i − θ_i and what the domain fixes; or b_i, where only differences count."""
        biases = self.coordinates.biases
        return np.asarray(biases[:-1] - biases[-1]) if self.has_cut else biases

    @cached_property
    def rows64(self) -> Matrix | None:
        """All rows in float64, for sets that float32 can't tell apart; None where they would take much
        memory."""
        if self.coordinates.head.weight.size > _MOST_DOUBLE:
            return None
        return self.coordinates.rows(np.arange(self.coordinates.head.classes))

    @property
    def width(self) -> int:
        """How many coordinates x has."""
        return self.coordinates.size + (not self.has_cut)


@dataclass(frozen=True, eq=False)
class SignedRows:
    """The conditions of one set."""

    space: Space
    members: Members

    @cached_property
    def inside(self) -> Mask:
        return is_inside(self.members, self.space.labels)

    @cached_property
    def signs(self) -> Vector:
        return np.where(self.inside, 1.0, -1.0)

    @cached_property
    def asked(self) -> Ids:
        """The labels with a condition."""
        if self.space.checker.test.kind is SetKind.AT_LEAST:
            return np.array(self.members, np.intp)
        return np.arange(self.space.labels)

    # ------------------------------------------------------------------ as the margin loop has them: −a_i

    @property
    def size(self) -> int:
        return self.space.width

    @property
    def used(self) -> Ids:
        """The feature of each coordinate; −1 for the cut."""
        used = self.space.coordinates.used
        return used if self.space.has_cut else np.append(used, -1)

    def rows(self, ids: Ids) -> Matrix:
        """−a_i for these labels, zeros for ORIGIN (n × width)."""
        space = self.space
        known = np.maximum(ids, 0)
        rows = -self.signs[known, None] * (space.coordinates.rows(known) - space.pivot)
        if not space.has_cut:
            rows = np.hstack([rows, self.signs[known, None]])
        rows[ids == ORIGIN] = 0.0
        return np.asarray(rows)

    def limits(self, ids: Ids) -> Vector:
        """β_i for these labels."""
        return np.asarray(self.signs[ids] * self.space.offsets[ids])

    def gaps(self, x: Vector) -> Vector32:
        """Signed scores of all labels at x in float32, less the cut that suits them best; ∞ where nothing is
        asked. Without an offset in a cone, where x has no scale."""
        space, coordinates = self.space, self.space.coordinates
        point = x[: coordinates.size].astype(np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = scores_at(coordinates.rows32, point)
            if not coordinates.is_cone:
                scores = scores + coordinates.biases32
            gaps = self._signed(scores)
        if len(self.asked) < space.labels:
            gaps[~self.inside] = np.inf
        return gaps

    def precise_gaps(self, x: Vector) -> Vector | Vector32:
        """The same in float64, where the rows fit."""
        space, coordinates, rows = self.space, self.space.coordinates, self.space.rows64
        if rows is None:
            return self.gaps(x)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = rows @ x[: coordinates.size] + (0.0 if coordinates.is_cone else coordinates.biases)
            gaps = self._signed(scores)
        if len(self.asked) < space.labels:
            gaps[~self.inside] = np.inf
        return gaps

    def _signed(self, scores: NDArray[Real]) -> NDArray[Real]:
        if self.space.has_cut:
            own, cut = scores[:-1], scores[-1]
        else:
            own = scores
            cut = (own[self.inside].min() + own[~self.inside].max()) / 2
        return np.asarray((own - cut) * self.signs.astype(own.dtype))
