"""Settles classes by the margin loop, one alone or some side by side, and learns from each who blocks whom.

Side by side their looks at all rows are one product: memory limits the speed of a look, so eight take
hardly longer than one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.compute.blocks import row_blocks
from argmaxable.compute.rows import scores_at
from argmaxable.compute.threads import threads_for
from argmaxable.prove.attempt import Answer, Attempt

if TYPE_CHECKING:
    from argmaxable.check.checker import Checker
    from argmaxable.compute.coordinates import Coordinates
    from argmaxable.core.arrays import Ids, Vector

# What the last proof counts for in the average of proofs' weights, and how much must be known of it.
_NEWS, _KNOWN = 0.1, 0.01


@dataclass(eq=False)
class Blockers:
    """How often each class stood in others' way: the rows a solve should know from the start."""

    score: Vector = field(repr=False)
    # A moving average of the weights of proofs.
    weights: Vector = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.weights = np.zeros(len(self.score))

    @staticmethod
    def of(coordinates: Coordinates) -> Blockers:
        # Far rows first until experience says otherwise; far below any real count.
        score = 1e-9 * coordinates.lengths()
        score[coordinates.ignored] = -np.inf
        return Blockers(score)

    def saw(self, winners: Ids, credit: float) -> None:
        np.add.at(self.score, winners, credit)

    def proved(self, rows: Ids, weights: Vector) -> None:
        self.score *= 0.98
        self.score[rows] += np.minimum(weights * len(weights), 3)
        self.weights *= 1 - _NEWS
        self.weights[rows] += _NEWS / weights.sum() * weights

    def likely_weights(self, rows: Ids) -> Vector:
        """Weights of sum 1 to start a solve over these rows from: half what proofs had, half even."""
        known = self.weights[rows]
        total = float(known.sum())
        even = 1 / len(rows)
        return np.asarray(known / (2 * total) + even / 2) if total > _KNOWN else np.full(len(rows), even)


def without(ids: Ids, class_id: int) -> Ids:
    return np.asarray(ids[ids != class_id])


@dataclass(eq=False)
class LazySolver:
    """Solves classes of one coordinates, learning from each who blocks whom."""

    coordinates: Coordinates
    checker: Checker
    blockers: Blockers
    tied: frozenset[int] = frozenset()
    _near: dict[int, Ids] = field(default_factory=dict, repr=False)

    @cached_property
    def best_at_corners(self) -> Vector:
        """The highest score at each corner of a hull, in units of the coordinates."""
        corners = self.coordinates.corners
        assert corners is not None
        best = np.full(len(corners), -np.inf)
        for block in row_blocks(len(self.coordinates.usable), len(corners)):
            ids = self.coordinates.usable[block]
            scores = self.coordinates.rows(ids) @ corners.T + self.coordinates.biases[ids, None]
            best = np.maximum(best, scores.max(axis=0))
        return best

    def first_rows(self, class_id: int) -> Ids:
        """About 4k rows: 3k known blockers and the k that score best in the class's own direction."""
        usable = self.coordinates.usable
        popular = self._popular
        if popular + self.coordinates.size >= len(usable) - 1:
            return without(usable, class_id)
        if class_id not in self._near:
            self.foresee([class_id])
        known = np.argpartition(-self.blockers.score, popular)[:popular]
        return without(np.union1d(known, self._near.pop(class_id)), class_id)

    @property
    def _popular(self) -> int:
        """How many known blockers a solve starts with."""
        return (3 if self.coordinates.size < 256 else 1) * self.coordinates.size

    def foresee(self, classes: list[int]) -> None:
        """Find the rows that score best in the own directions of classes that will be solved soon: for some
        classes together it takes a fraction of the time that it takes for one after the other."""
        coordinates = self.coordinates
        size, unknown = coordinates.size, [class_id for class_id in classes if class_id not in self._near]
        if self._popular + size >= len(coordinates.usable) - 1 or not unknown:
            return
        scores = scores_at(coordinates.rows32, coordinates.rows32[np.array(unknown)].T).T
        scores[:, coordinates.ignored] = -np.inf
        best = np.argpartition(-scores, size, axis=1)[:, :size]
        self._near.update(zip(unknown, best, strict=True))

    def solve(self, class_id: int, *, extra: Ids | None = None) -> Answer:
        """Witness or certificate for a class, checked; or the reason why neither was found.

        `extra` rows join the first ones: a second attempt should not repeat the first.
        """
        rows = self.first_rows(class_id)
        rows = rows if extra is None else np.union1d(rows, extra)
        return self._attempt([Attempt(self, class_id, rows)])[0]

    def solve_together(self, classes: list[int]) -> list[Answer]:
        """The same for some classes side by side."""
        self.foresee(classes)
        return self._attempt([Attempt(self, class_id, self.first_rows(class_id)) for class_id in classes])

    # Extreme heads overflow here and there; what comes of it is checked like everything else.
    @np.errstate(all="ignore")
    def _attempt(self, attempts: list[Attempt]) -> list[Answer]:
        self._finish(attempts)
        return [self._answer(attempt) for attempt in attempts]

    def _answer(self, attempt: Attempt) -> Answer:
        answer = attempt.answer()
        if not answer.reason or self.coordinates.is_cone:
            return answer
        # With enormous biases other proofs' weights lead astray.
        fresh = Attempt(self, attempt.class_id, attempt.first, is_fresh=True)
        self._finish([fresh])
        again = fresh.answer()
        return replace(again, steps=answer.steps + again.steps)

    def _finish(self, attempts: list[Attempt]) -> None:
        """Step with each until a look is due, look for all of these, and so on."""
        with threads_for(self.coordinates.size):
            due = [attempt for attempt in attempts if attempt.advance()]
            while due:
                self._look(due)
                due = [attempt for attempt in due if attempt.advance()]

    def _look(self, attempts: list[Attempt]) -> None:
        """One product of all rows with the points of these attempts."""
        coordinates = self.coordinates
        points = np.array([attempt.loop.point.x for attempt in attempts], np.float32)
        scores = np.ascontiguousarray(scores_at(coordinates.rows32, points.T).T)
        if not coordinates.is_cone:
            scores += coordinates.biases32
        hopeful = [attempt for attempt, some in zip(attempts, scores, strict=True) if attempt.compare(some)]
        if hopeful:
            ids = np.array([attempt.class_id for attempt in hopeful])
            gaps = self.checker.gaps(ids, np.array([attempt.rounded_point() for attempt in hopeful]))
            for place, attempt in enumerate(hopeful):
                attempt.try_point(gaps.part(slice(place, place + 1)))
        for attempt in attempts:
            attempt.look()
