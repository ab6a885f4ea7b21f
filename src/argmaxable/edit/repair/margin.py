"""The margin of a class, to any accuracy: a point that reaches it and weights that bound it.

Verifying needs only a sign; a repair needs the value, t*(c; b) = sup over X of the smallest gap, with both
kinds of evidence. The lazy interior point is the one that proves verdicts, run on until they meet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.check.checker import Checker
from argmaxable.compute.coordinates import Coordinates, coordinates_of
from argmaxable.compute.prepared import PreparedHead
from argmaxable.compute.threads import threads_for
from argmaxable.core.errors import DomainError
from argmaxable.prove.feature_sets import BallSet
from argmaxable.prove.interior_point import InteriorPoint, Snapshot
from argmaxable.prove.lazy import without
from argmaxable.prove.margin_loop import MarginLoop, Next, Problem, domain_space

if TYPE_CHECKING:
    from collections.abc import Callable

    from argmaxable.core.arrays import Ids, Matrix, Vector
    from argmaxable.prove.feature_sets import FeatureSet
    from argmaxable.run.engines.engine import Job

_MAX_STEPS = 200
# Rows to begin with, in units of the features: of all classes those that stand in others' way most, for a
# class solved before those it ended with. As many as there are features join that are near it. With fewer
# rows the point runs away first; a sample of PP-OCRv5 takes a third more steps with four times the features.
_FIRST_ROWS, _KEPT_ROWS = 3, 8
# How well a margin below the target is known before the solve ends, in units of what is missing. At 0.1 cuts
# are sharper, and PP-OCRv4 takes as many rounds with a tenth more Newton steps.
_SHARPNESS = 0.3
# Weights below this share of the largest are the interior point's dust. More must not be dropped: in a wide
# domain each adds its share of a row, times the width, to the bound.
_DUST = 1e-11
# Steps between two looks at all rows. Rows that are missing are taken in while the point is still far from
# the boundary, where it can stay: looking at the optimum of the known rows only, and starting again with the
# missing ones, took a sample of PP-OCRv4 twice the steps. With them come those that are next, in units of
# the features.
_LOOK_AFTER, _NEXT = 3, 0.25
# In units of how far apart the bounds may be in the end: nearer than the first, Gram matrices are of float64,
# since errors of the weights, times the width of the domain, are all that keeps the bounds apart then. The
# next solve of the class, beside other raises, starts where they were still apart by the second.
_DOUBLE_FROM, _NEXT_FROM = 128.0, 10.0


@dataclass(frozen=True, eq=False)
class Estimate:
    """The margin of a class lies in [lower, upper]: the gap at x (coordinates), and what the weights
    prove, all in floats."""

    x: Vector
    lower: float
    classes: Ids
    weights: Vector
    upper: float
    start: Start | None = None  # for the next solve of the class


@dataclass(frozen=True, eq=False)
class Start:
    """Rows to begin with the next solve of a class, and where a point over the first of them was."""

    ids: Ids
    snapshot: Snapshot

    def without(self, class_id: int, leader: int) -> Start:
        """The same for a class like the leader: it is not among its own rivals, but the leader is."""
        weights = self.snapshot.weights
        stays = self.ids != class_id
        snapshot = replace(self.snapshot, weights=weights[stays[: len(weights)]])
        return Start(np.append(self.ids[stays], leader), snapshot)


@dataclass(frozen=True, eq=False)
class MarginQuestion:
    """Does a class reach a target, or what is its margin within a tolerance? If it `is_sharp`, the margin in
    any case. `likely` rivals are those to begin with, `near` is the last point found for the class (None:
    none yet), `start` where its last solve was when it was not yet sharp."""

    class_id: int
    target: float
    tolerance: float
    likely: Ids
    near: Vector | None
    is_sharp: bool = False
    start: Start | None = None


class MarginSolver:
    """Margins of classes of one head over one bounded domain, with biases raised and rows moved at will.

    Everything is in units of the coordinates. Nothing here is proven: the checker has the last word.
    """

    def __init__(self, checker: Checker) -> None:
        require_bounded(checker)
        self.checker = checker
        self.coordinates: Coordinates = coordinates_of(checker.prepared, checker.domain)
        coordinates = self.coordinates
        if not coordinates.size:
            raise DomainError(
                "all classes have the same weights: no input tells them apart, so none can win."
            )
        self.rows = coordinates.rows(np.arange(coordinates.head.classes))
        self.single_rows = self.rows.astype(np.float32)
        self.bounds = coordinates.domain_bounds()
        self.biases = coordinates.biases.copy()
        self._fixed = checker.domain.fixed_part(checker.head.features)
        self.score = 1e-9 * coordinates.lengths()
        self._known: dict[int, tuple[Ids, Vector, Start | None]] = {}

    @property
    def classes(self) -> int:
        return len(self.rows)

    @property
    def middle(self) -> Vector:
        """A point well inside the domain, in coordinates."""
        return domain_space(self.coordinates)[1]

    def scores(self, points: Matrix, ids: Ids | slice = slice(None)) -> Matrix:
        """Scores of classes, without raises, at points in coordinates (points × ids)."""
        return np.asarray(points @ self.rows[ids].T + self.biases[ids])

    def place_row(self, class_id: int, row: NDArray[Any]) -> None:
        """Give a class another row, of the head's features; what the domain fixes of x adds to its bias."""
        coordinates = self.coordinates
        exact = row.astype(np.float64)
        self.rows[class_id] = coordinates.rows_seen(exact[None] - coordinates.centre)[0] * coordinates.scale
        self.single_rows[class_id] = self.rows[class_id]
        moved = exact - coordinates.head.rows(np.array([class_id]))[0]
        self.biases[class_id] = coordinates.biases[class_id] + float(moved @ self._fixed) * coordinates.scale

    def to_domain(self, points: Matrix) -> Matrix:
        """Points z of the domain (n × all features) from coordinates."""
        coordinates = self.coordinates
        return coordinates.whole_points(points)

    def from_domain(self, points: Matrix) -> Matrix:
        """Coordinates of points z of the domain."""
        return np.ascontiguousarray(points[:, self.coordinates.used])

    def farthest_gap(self) -> float:
        """More than any two scores can differ at any point of the domain."""
        radius = self.coordinates.domain_radius
        if radius is not None:
            reach = radius * np.sqrt((self.rows * self.rows).sum(axis=1))
        else:
            reach = np.abs(self.rows) @ np.abs(self.bounds).max(axis=0)
        biases = self.biases
        return 2 * float(reach.max()) + float(biases.max() - biases.min())

    def solve(self, class_id: int, raises: Vector, *, target: float, tolerance: float) -> Estimate:
        """The margin with these raises: until the target is reached, or known within the tolerance. What is
        learned serves the next solves."""
        found = self.estimate(self.question(class_id, target, tolerance), raises)
        self.remember(class_id, found)
        return found

    def question(
        self, class_id: int, target: float, tolerance: float, *, is_sharp: bool = False
    ) -> MarginQuestion:
        """The question with what is known of the class."""
        count = _FIRST_ROWS * self.coordinates.size
        if class_id in self._known:
            likely, near, start = self._known[class_id]
            return MarginQuestion(class_id, target, tolerance, likely, near, is_sharp, start)
        popular = np.arange(self.classes)
        if count < self.classes:
            popular = np.argpartition(-self.score, count)[:count]
        return MarginQuestion(class_id, target, tolerance, popular, None, is_sharp)

    def liken(self, class_ids: Ids, leaders: Ids) -> None:
        """What is known of each leader serves the first solve of a class that is like it."""
        for class_id, leader in zip(class_ids.tolist(), leaders.tolist(), strict=True):
            if leader in self._known and class_id not in self._known:
                likely, near, start = self._known[leader]
                likely = np.append(without(likely, class_id), leader)
                self._known[class_id] = likely, near, start and start.without(class_id, leader)

    def estimate(self, question: MarginQuestion, raises: Vector) -> Estimate:
        """The answer to a question about a class with these raises; it depends on nothing else."""
        biases = self.biases + raises
        with threads_for(self.coordinates.size), np.errstate(all="ignore"):
            rows = self._first_rows(question, biases)
            attempt = _Solve(self, question, biases, rows, single_steps=_MAX_STEPS)
            found = attempt.run()
            if attempt.is_settled:
                return found
            # In float32 the complementarity may vanish while the weights are still off: once more without.
            return _Solve(self, question, biases, rows, single_steps=0).run()

    def _first_rows(self, question: MarginQuestion, biases: Vector) -> Ids:
        """The rows to begin with; those of a start stay first, in their order."""
        size, start = self.coordinates.size, question.start
        if len(question.likely) + size >= self.classes - 1:
            near = np.arange(self.classes)
        else:
            if start is not None:
                scores = self.single_rows @ start.snapshot.x.astype(np.float32) + biases
            elif question.near is not None:
                scores = self.rows @ question.near + biases
            else:
                scores = self.rows @ self.rows[question.class_id]
            near = np.argpartition(-scores, size)[:size]
        if start is not None:
            return np.concatenate([start.ids, without(np.setdiff1d(near, start.ids), question.class_id)])
        return without(np.union1d(near, question.likely), question.class_id)

    def remember(self, class_id: int, found: Estimate) -> None:
        """Who stood in the way of a class, for its next solve and for those of others."""
        if len(found.classes):
            heaviest = np.argsort(-found.weights)[: _KEPT_ROWS * self.coordinates.size]
            self._known[class_id] = found.classes[heaviest], found.x, found.start
            self.score[found.classes] += np.minimum(found.weights * len(found.weights), 3)


class _Solve:
    """The rule of a repair: stop at the target, or where the margin is known well enough."""

    def __init__(
        self, solver: MarginSolver, question: MarginQuestion, biases: Vector, rows: Ids, *, single_steps: int
    ) -> None:
        self.solver, self.biases, class_id = solver, biases, question.class_id
        self.class_id, self.tolerance = class_id, question.tolerance
        self.target, self.is_sharp = question.target, question.is_sharp
        problem = Problem(
            class_id=class_id, size=solver.coordinates.size, rows=lambda ids: solver.rows[ids],
            limits=lambda ids, _: biases[class_id] - biases[ids],
            space=self._space, most_steps=_MAX_STEPS,
            single_steps=single_steps, is_in_place=True,
            snapshot=question.start.snapshot if question.start and single_steps else None,
        )  # fmt: skip
        self.loop = MarginLoop(problem, rows)
        self._next: tuple[Ids, Snapshot] | None = None
        self._looked_after, self._is_final = 0, False  # whether what is looked at may be the answer
        self.best = -math.inf, solver.middle
        count = len(self.loop.ids)
        self.upper, self.cut = math.inf, (self.loop.ids, np.full(count, 1 / max(count, 1)))

    def _space(self, before: InteriorPoint | Snapshot | None) -> tuple[FeatureSet, Vector]:
        """The domain and where x starts in it: in the middle, or where it was before."""
        space, middle = domain_space(self.solver.coordinates)
        if before is None:
            return space, middle
        x = before.x
        return BallSet(space.radius, x) if isinstance(space, BallSet) else space, x

    def _note(self, x: Vector) -> Vector:
        """Gaps of the class to all others at a point, infinite to itself; the best point stays."""
        scores = self.solver.rows @ x + self.biases
        gaps = scores[self.class_id] - scores
        gaps[self.class_id] = np.inf
        if gaps.min() > self.best[0]:
            self.best = float(gaps.min()), x
        return np.asarray(gaps)

    def run(self) -> Estimate:
        if len(self.loop.ids):
            self.loop.run(self)
            if not (self._is_final and self._looked_after == self.loop.steps):
                self._is_final = True
                self.look(self.loop)
        if not self.is_settled:  # then the middle may be better than all that was found
            self._note(self.solver.middle)
        classes, weights = self.cut
        used = weights > _DUST * weights.max() if len(weights) else np.zeros(0, bool)
        classes, weights = classes[used], weights[used] / weights[used].sum()
        return Estimate(self.best[1], self.best[0], classes, weights, self.upper, self._next_start())

    def _next_start(self) -> Start | None:
        """Where the next solve of the class may start: with the rows that weigh most, and the latest."""
        if self._next is None:
            return None
        ids, snapshot = self._next
        most = _KEPT_ROWS * self.solver.coordinates.size
        if len(ids) > most:
            heaviest = np.argpartition(-snapshot.weights, most)[:most]
            ids, snapshot = ids[heaviest], replace(snapshot, weights=snapshot.weights[heaviest])
        return Start(np.concatenate([ids, self.loop.ids[len(self._next[0]) :]]), snapshot)

    @property
    def is_settled(self) -> bool:
        """Whether the target is reached, or the margin known well enough."""
        is_reached = self.best[0] >= self.target and not self.is_sharp
        return is_reached or self.upper - self.best[0] <= self._enough()

    def judge(self, loop: MarginLoop) -> Next:
        point = loop.point
        dual = point.dual()
        if dual.upper < self.upper:
            self.upper, self.cut = dual.upper, (loop.ids, dual.weights)
        among = float(point.slack.min()) + point.t
        if self._next is None or self.upper - among > _NEXT_FROM * self._enough():
            self._next = loop.ids, point.snapshot()
        is_reached = among >= self.target and not self.is_sharp
        self._is_final = is_reached or self.upper - among <= self._enough() / 2
        if dual.upper - among < _DOUBLE_FROM * self._enough():
            loop.use_double()
        is_due = loop.steps - self._looked_after >= _LOOK_AFTER
        return Next.LOOK if self._is_final or is_due else Next.STEP

    def _enough(self) -> float:
        """A cut that is deep need not be sharp."""
        return (
            self.tolerance if self.is_sharp else max(self.tolerance, _SHARPNESS * (self.target - self.upper))
        )

    def look(self, loop: MarginLoop) -> Ids | None:
        """Note the point if it is the best so far; the rows it did not know that beat it worst."""
        self._looked_after = loop.steps
        x = np.clip(loop.point.x, *self.solver.bounds)
        if self._is_final:
            gaps = self._note(x)
            if self.is_settled:
                return None
        else:
            gaps = self._rough_gaps(x)
        among = gaps[loop.ids].min()
        gaps[loop.ids] = np.inf
        missing = int(np.count_nonzero(gaps < among))
        size = self.solver.coordinates.size
        unknown = len(gaps) - 1 - len(loop.ids)
        count = min(max(int(_NEXT * size), missing), size, unknown) if missing else 0
        return np.argpartition(gaps, count)[:count]

    def _rough_gaps(self, x: Vector) -> Vector:
        """Gaps to all others by float32, which finds rows as well and is read in half the time."""
        scores = self.solver.single_rows @ x.astype(np.float32) + self.biases
        gaps = scores[self.class_id] - scores
        gaps[self.class_id] = np.inf
        return np.asarray(gaps)


def answering(job: Job, extra: None) -> Callable[[tuple[MarginQuestion, Ids, Vector]], Estimate]:
    """What a worker process does: estimates for questions beside raises of some classes."""
    solver = MarginSolver(Checker(PreparedHead(job.head, centre=job.centre), job.domain))

    def answer(item: tuple[MarginQuestion, Ids, Vector]) -> Estimate:
        question, raised, raises = item
        spread = np.zeros(solver.classes)
        spread[raised] = raises
        return solver.estimate(question, spread)

    return answer


def require_bounded(checker: Checker) -> None:
    """Raise DomainError for a domain over which margins have no scale."""
    domain = checker.domain
    domain.require_directions("repair")
    if not domain.is_bounded:
        raise DomainError(
            f"a repair needs a bounded domain, found {domain}: over an unbounded one margins and changes of "
            "logits have no scale. Pass the part that matters, e.g. --domain box:100 or box:0:100."
        )
