"""What is known about the least raises: cuts, which bound every sufficient raise from below, and points, at
which a raise suffices. Both come from solves of classes beside raises of the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.compute.blocks import blocks
from argmaxable.core.progress import Deadline, Progress, ProgressCallback
from argmaxable.core.verdict import Certificate
from argmaxable.edit.repair.cuts import Cut
from argmaxable.edit.repair.margin import MarginQuestion
from argmaxable.edit.repair.needs import Needs, needs_at

if TYPE_CHECKING:
    from argmaxable.core.arrays import Ids, Matrix, Vector
    from argmaxable.edit.repair.margin import Estimate, MarginSolver

# Answers questions about classes beside raises of some (ids, raises), in any order, as (number, estimate).
Answers = Callable[[list[MarginQuestion], "Ids", "Vector"], Iterable[tuple[int, "Estimate"]]]


@dataclass(frozen=True, eq=False)
class Wanted:
    """Classes, the margin each is to have, and a point (coordinates) from which to start."""

    ids: Ids
    targets: Vector
    points: Matrix


@dataclass(eq=False)
class Evidence:
    """Both bounds on the least raises of the active classes, and the evidence for them."""

    solver: MarginSolver
    wanted: Wanted
    standing: Wanted
    limit: float
    deadline: Deadline
    answers: Answers
    progress: ProgressCallback
    ids: Ids = field(init=False)
    targets: Vector = field(init=False)
    points: Matrix = field(init=False)  # at which `upper` suffices
    latest: Matrix = field(init=False)  # found last
    lower: Vector = field(init=False)
    upper: Vector | None = None
    cuts: list[Cut] = field(default_factory=list)
    newest: dict[int, Cut] = field(default_factory=dict)  # the last cut of each class
    rounds: int = 0

    def __post_init__(self) -> None:
        self.ids, self.targets, self.points = self.wanted.ids, self.wanted.targets, self.wanted.points.copy()
        self.latest = self.points
        self.lower = np.zeros(len(self.ids))
        self.cuts = self._pair_cuts()

    def everywhere(self, raises: Vector) -> Vector:
        """Raises of the active classes as raises of all."""
        spread = np.zeros(self.solver.classes)
        spread[self.ids] = raises
        return spread

    def estimates(self, questions: list[MarginQuestion], raises: Vector) -> Iterator[tuple[int, Estimate]]:
        """Answers beside these raises in order, until the time is over: what is learned from them then does
        not depend on who was faster."""
        found: dict[int, Estimate] = {}
        for number, estimate in self.answers(questions, self.ids, raises):
            found[number] = estimate
            self._tell(len(found), len(questions))
            if self.deadline.has_passed:
                break
        for number in sorted(found):
            self.solver.remember(questions[number].class_id, found[number])
            yield number, found[number]

    def _tell(self, done: int, total: int) -> None:
        scale = self.solver.coordinates.scale
        known = f"at least {self.lower.max() / scale:.4g}"
        if self.upper is not None:
            known += f", at most {self.upper.max() / scale:.4g}"
        note = f"{done:,} of {total:,} classes, largest raise {known}"
        stage = f"round {self.rounds}" if self.rounds else "first guess"
        self.progress(Progress(f"raising biases, {stage}", done, total, note=note))

    def _pair_cuts(self) -> list[Cut]:
        """What each class needs beside the one with the nearest row: for equal rows, all there is to know."""
        if len(self.ids) < 2:
            return []
        rows = self.solver.rows[self.ids]
        squares = (rows * rows).sum(axis=1)
        rivals = np.empty(len(self.ids), np.intp)
        for block in blocks(len(rows), len(rows)):
            apart = squares - 2 * (rows[block] @ rows.T)
            apart[np.arange(len(apart)), np.arange(block.start, block.stop)] = np.inf
            rivals[block] = self.ids[apart.argmin(axis=1)]
        bounds = self.solver.checker.rival_bounds(self.ids, rivals) * self.solver.coordinates.scale
        return [
            Cut(int(class_id), float(target - bound), np.array([rival]), np.ones(1))
            for class_id, target, bound, rival in zip(self.ids, self.targets, bounds, rivals, strict=True)
        ]

    def cut(self, place: int, estimate: Estimate) -> Cut:
        """What the weights prove of every sufficient raise; the checker's bound makes it a theorem."""
        class_id = int(self.ids[place])
        certificate = Certificate(estimate.classes, estimate.weights)
        bound = float(self.solver.checker.bounds(np.array([class_id]), certificate)[0])
        constant = float(self.targets[place]) - bound * self.solver.coordinates.scale
        return Cut(class_id, constant, estimate.classes, estimate.weights)

    def needs(self, points: Matrix) -> Needs:
        return needs_at(self.solver, self.ids, self.targets, points)

    def better_points(self, test: Vector) -> Matrix:
        """For each class that of its two points which costs less beside the test raises."""
        is_better = self.needs(self.latest).beside(test) < self.needs(self.points).beside(test)
        return np.where(is_better[:, None], self.latest, self.points)

    def find_sufficient(self, points: Matrix, tolerance: float) -> None:
        """The least raise that suffices at the points; standing classes that would lose become active."""
        while len(points) == len(self.ids):
            upper = self.needs(points).least(self.limit)
            if upper is None:
                self.points = points if self.upper is None else self.points
                return
            if self.upper is not None and upper.max() >= self.upper.max():
                return
            losing = self._losing(upper, tolerance)
            if not len(losing):
                self.upper, self.points = upper, points
                return
            self._activate(losing)
            points = np.concatenate([points, self.standing.points[losing]])

    def _losing(self, raises: Vector, tolerance: float) -> Ids:
        """Which standing classes (by place) have no point any more at which they have their target."""
        standing = self.standing
        rest = np.flatnonzero(~np.isin(standing.ids, self.ids))
        if not len(rest):
            return rest
        own = np.einsum("ij,ij->i", standing.points[rest], self.solver.rows[standing.ids[rest]])
        own += self.solver.biases[standing.ids[rest]]
        rivals = np.empty(len(rest))
        for block in blocks(len(rest), len(self.ids)):
            rivals[block] = (self.solver.scores(standing.points[rest[block]], self.ids) + raises).max(axis=1)
        doubtful = rest[own - rivals < standing.targets[rest]]
        asked = zip(standing.ids[doubtful].tolist(), standing.targets[doubtful].tolist(), strict=True)
        questions = [self.solver.question(*each, tolerance / 4) for each in asked]
        losing = np.ones(len(doubtful), bool)
        for number, found in self.estimates(questions, raises):
            standing.points[doubtful[number]] = found.x
            losing[number] = found.lower < questions[number].target
        return np.asarray(doubtful[losing])

    def _activate(self, places: Ids) -> None:
        self.ids = np.concatenate([self.ids, self.standing.ids[places]])
        self.targets = np.concatenate([self.targets, self.standing.targets[places]])
        self.points = np.concatenate([self.points, self.standing.points[places]])
        self.latest = np.concatenate([self.latest, self.standing.points[places]])
        self.lower = np.concatenate([self.lower, np.zeros(len(places))])
        self.upper = None if self.upper is None else np.concatenate([self.upper, np.zeros(len(places))])
