"""The least biases that give every class its margin, with a proof that no smaller ones would.

A constant added to all biases changes nothing, so a change Δ of the biases is a raise δ = Δ − min Δ ≥ 0. Each
class c with a target τ needs t*(c; b + δ) ≥ τ, and t* rises with δ_c one for one and falls with the others':
δ_c ≥ T_c(δ) = τ − t*(c; b + δ − δ_c e_c), T monotone. If two raises suffice, so does their smaller in each
entry; hence there is one least raise, the least in *every* entry, and the least largest |Δ| is half of its
largest entry.

Both sides are approached. Weights λ of a certificate give δ_c ≥ r + Σ λ_i δ_i for every sufficient δ: the
least solution of all of these known, by policy iteration, is a proven lower bound. A point x_c for each class
gives δ_c = max over i of τ − gap_i(x_c) + δ_i: the least solution of those, if there is one, suffices.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from argmaxable.compute.blocks import blocks
from argmaxable.core.verdict import Certificate

if TYPE_CHECKING:
    from argmaxable.core.arrays import Ids, Matrix, Vector
    from argmaxable.edit.repair.margin import Estimate, MarginSolver

# The largest raise is found to within this share of itself.
ACCURACY = 0.02
_MOST_ROUNDS = 60
# Room beyond the targets, in units of the largest: begun with, divided by when it sufficed, and the least.
_FIRST_ROOM, _NARROWING, _LEAST_ROOM = 1.0, 4.0, 1e-4
# Policies of so few classes change a handful of times; this only stops rounding from cycling.
_MOST_POLICIES = 200


@dataclass(frozen=True, eq=False)
class Wanted:
    """Classes, the margin each is to have, and a point (coordinates) from which to start."""

    ids: Ids
    targets: Vector
    points: Matrix


@dataclass(frozen=True, eq=False)
class Raises:
    """Raises that suffice, entry by entry for `ids`, and the least possible ones as far as proven.

    At `points` (coordinates) each class has its target. `upper` is None where none were found: with
    `is_hopeless` because none exist below the limit, otherwise because time or rounds ran out.
    """

    ids: Ids
    lower: Vector
    upper: Vector | None
    points: Matrix
    rounds: int
    is_hopeless: bool = False


@dataclass(frozen=True)
class _Cut:
    class_id: int
    constant: float
    classes: Ids
    weights: Vector


@dataclass(eq=False)
class _Search:
    """Both bounds on the least raises of the active classes, and the evidence for them."""

    solver: MarginSolver
    wanted: Wanted
    standing: Wanted
    limit: float
    ids: Ids = field(init=False)
    targets: Vector = field(init=False)
    points: Matrix = field(init=False)  # at which `upper` suffices
    latest: Matrix = field(init=False)  # found last
    lower: Vector = field(init=False)
    upper: Vector | None = None
    cuts: list[_Cut] = field(default_factory=list)
    room: float = field(init=False)

    def __post_init__(self) -> None:
        self.ids, self.targets, self.points = self.wanted.ids, self.wanted.targets, self.wanted.points.copy()
        self.latest = self.points
        self.lower = np.zeros(len(self.ids))
        self.room = _FIRST_ROOM * float(self.targets.max())
        self.cuts = self._pair_cuts()

    @property
    def gap(self) -> float:
        return np.inf if self.upper is None else float(self.upper.max() - self.lower.max())

    @property
    def is_close(self) -> bool:
        return self.upper is not None and self.gap <= ACCURACY * float(self.upper.max())

    def everywhere(self, raises: Vector) -> Vector:
        """Raises of the active classes as raises of all."""
        spread = np.zeros(self.solver.classes)
        spread[self.ids] = raises
        return spread

    def test(self) -> Vector:
        """Where to solve next: the least raise that leaves each class, by all that is known, some room beyond
        its target. What is then found to be missing was not known; if nothing is, the raise suffices."""
        ample = _least_solution(self.cuts, self.solver.classes, self.limit, self.room)
        while ample is None and self.room > _LEAST_ROOM * self.targets.max():
            self.room /= 4
            ample = _least_solution(self.cuts, self.solver.classes, self.limit, self.room)
        return self.lower if ample is None else np.maximum(ample[self.ids], self.lower)

    def round(self) -> bool:
        """Solve all active classes once and move both bounds; False when no raise below the limit will do."""
        test = self.test()
        spread = self.everywhere(test)
        tolerance = self.room / 2  # so that a class without its target has less than target and room
        fresh, cuts = self.latest.copy(), len(self.cuts)
        for place in np.flatnonzero(self._costs(self.latest, test) > test).tolist():
            class_id, target = int(self.ids[place]), float(self.targets[place])
            found = self.solver.solve(class_id, spread, target=target, tolerance=tolerance)
            fresh[place] = found.x
            if found.lower < target:
                self.cuts.append(self._cut(class_id, target, found))
        self.latest = fresh
        lower = _least_solution(self.cuts, self.solver.classes, self.limit)
        if lower is None:
            return False
        self.lower = np.maximum(self.lower, lower[self.ids])
        known = self.upper
        for points in (fresh, self._better_points(fresh, test)):  # the second is dropped if classes join
            self._find_sufficient(points, tolerance)
        if self.upper is not known or len(self.cuts) == cuts:
            self.room /= _NARROWING
        return True

    def _pair_cuts(self) -> list[_Cut]:
        """What each class needs beside the one with the nearest row: for equal rows, all there is to know."""
        if len(self.ids) < 2:
            return []
        rows = self.solver.rows[self.ids]
        rivals = np.empty(len(self.ids), np.intp)
        for place, row in enumerate(rows):
            apart = ((rows - row) ** 2).sum(axis=1)
            apart[place] = np.inf
            rivals[place] = self.ids[apart.argmin()]
        bounds = self.solver.checker.rival_bounds(self.ids, rivals) * self.solver.coordinates.scale
        return [
            _Cut(int(class_id), float(target - bound), np.array([rival]), np.ones(1))
            for class_id, target, bound, rival in zip(self.ids, self.targets, bounds, rivals, strict=True)
        ]

    def _cut(self, class_id: int, target: float, estimate: Estimate) -> _Cut:
        """What the weights prove of every sufficient raise; the checker's bound makes it a theorem."""
        certificate = Certificate(estimate.classes, estimate.weights)
        bound = float(self.solver.checker.bounds(np.array([class_id]), certificate)[0])
        constant = target - bound * self.solver.coordinates.scale
        return _Cut(class_id, constant, estimate.classes, estimate.weights)

    def _needs(self, points: Matrix) -> tuple[Vector, Matrix]:
        """What each active class needs at its point: against all unraised, and against each active one."""
        own = np.einsum("ij,ij->i", points, self.solver.rows[self.ids]) + self.solver.biases[self.ids]
        among = self.targets[:, None] - own[:, None] + self.solver.scores(points, self.ids)
        np.fill_diagonal(among, -np.inf)
        strongest = np.full(len(self.ids), -np.inf)
        for block in blocks(len(self.ids), self.solver.classes):
            scores = self.solver.scores(points[block])
            scores[:, self.ids] = -np.inf
            strongest[block] = scores.max(axis=1)
        return np.maximum(self.targets - own + strongest, 0.0), among

    def _better_points(self, fresh: Matrix, test: Vector) -> Matrix:
        """For each class that of its two points which costs less beside the others' test raises."""
        is_better = self._costs(fresh, test) < self._costs(self.points, test)
        return np.where(is_better[:, None], fresh, self.points)

    def _costs(self, points: Matrix, raises: Vector) -> Vector:
        """What raise each active class needs at its point, beside these of the others."""
        alone, among = self._needs(points)
        return np.asarray(np.maximum(alone, (among + raises).max(axis=1)))

    def _find_sufficient(self, points: Matrix, tolerance: float) -> None:
        """The least raise that suffices at the points; standing classes that would lose become active."""
        while len(points) == len(self.ids):
            upper = _least_at_points(*self._needs(points), self.limit)
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
        rivals = (self.solver.scores(standing.points[rest], self.ids) + raises).max(axis=1)
        doubtful = rest[own - rivals < standing.targets[rest]]
        spread = self.everywhere(raises)
        losing = []
        for place in doubtful.tolist():
            target = float(standing.targets[place])
            found = self.solver.solve(
                int(standing.ids[place]), spread, target=target, tolerance=tolerance / 4
            )
            standing.points[place] = found.x
            if found.lower < target:
                losing.append(place)
        return np.array(losing, np.intp)

    def _activate(self, places: Ids) -> None:
        self.ids = np.concatenate([self.ids, self.standing.ids[places]])
        self.targets = np.concatenate([self.targets, self.standing.targets[places]])
        self.points = np.concatenate([self.points, self.standing.points[places]])
        self.latest = np.concatenate([self.latest, self.standing.points[places]])
        self.lower = np.concatenate([self.lower, np.zeros(len(places))])
        self.upper = None if self.upper is None else np.concatenate([self.upper, np.zeros(len(places))])


def least_raises(
    solver: MarginSolver,
    wanted: Wanted,
    standing: Wanted,
    *,
    limit: float,
    seconds: float,
    extra: float = 0.0,
    progress: Callable[[float, float], None] = lambda lower, upper: None,
) -> Raises:
    """Raises for the wanted classes, and for standing ones that would lose their target, as small as can be.

    All in units of the coordinates. Raises above the limit count as none; the time given is heeded between
    rounds. What is proven to be needed is so for targets that are smaller by `extra`.
    """
    search = _Search(solver, wanted, standing, limit)
    started, is_hopeless, rounds = time.perf_counter(), False, 0
    while rounds < _MOST_ROUNDS and not search.is_close and not is_hopeless:
        is_hopeless = not search.round()
        rounds += 1
        progress(float(search.lower.max()), np.inf if search.upper is None else float(search.upper.max()))
        if time.perf_counter() - started > seconds:
            break
    upper = None if is_hopeless else search.upper
    least = _least_solution(search.cuts, solver.classes, limit, -extra)
    lower = search.lower if least is None or extra == 0.0 else least[search.ids]
    return Raises(search.ids, lower, upper, search.points, rounds, is_hopeless)


def _least_at_points(alone: Vector, among: Matrix, limit: float) -> Vector | None:
    """Least δ with δ ≥ alone and δ_c ≥ among_ci + δ_i: longest paths, found in as many rounds as classes."""
    raises = alone
    for _ in range(len(alone) + 1):
        more = np.maximum(alone, (among + raises).max(axis=1))
        if not more.max() <= limit:
            return None
        if (more <= raises).all():
            return raises
        raises = more
    return None


def _least_solution(cuts: list[_Cut], classes: int, limit: float, room: float = 0.0) -> Vector | None:
    """Least δ ≥ 0 with δ_c ≥ r + room + Σ λ_i δ_i for every cut, or None where there is none below the limit.

    Policy iteration: take the strongest cut of each class, solve that linear system, repeat. From below
    each solution is smaller than the least one of all cuts, so stopping early is sound.
    """
    if not cuts:
        return np.zeros(classes)
    ids = np.array([cut.class_id for cut in cuts])
    constants = np.array([cut.constant + room for cut in cuts])
    starts = np.cumsum([0, *(len(cut.classes) for cut in cuts)])
    matrix = csr_array(
        (
            np.concatenate([cut.weights for cut in cuts]),
            np.concatenate([cut.classes for cut in cuts]),
            starts,
        ),
        shape=(len(cuts), classes),
    )
    raises, policy = np.zeros(classes), np.empty(0, np.intp)
    for _ in range(_MOST_POLICIES):
        values = constants + matrix @ raises
        order = np.lexsort((values, ids))
        best = order[np.append(np.flatnonzero(np.diff(ids[order])), len(order) - 1)]
        best = best[values[best] > 0]
        if np.array_equal(best, policy):
            break
        policy = best
        chosen = ids[policy]
        among = matrix[policy][:, chosen].toarray()
        try:
            solution = np.linalg.solve(np.eye(len(chosen)) - among, constants[policy])
        except np.linalg.LinAlgError:
            return None
        # Where others' raises come back in full there is no solution: the linear one turns negative.
        if not (solution.min() >= 0 and solution.max() <= limit):
            return None
        raises = np.zeros(classes)
        raises[chosen] = solution
    return raises
