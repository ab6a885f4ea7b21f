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

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.compute.blocks import blocks
from argmaxable.core.progress import Deadline, Progress, ProgressCallback, ignore_progress
from argmaxable.core.verdict import Certificate
from argmaxable.edit.repair.alike import Crowd, are_large, crowds_of, rest_of
from argmaxable.edit.repair.cuts import Cut, least_at_points, least_solution
from argmaxable.edit.repair.margin import MarginQuestion

if TYPE_CHECKING:
    from argmaxable.core.arrays import Ids, Mask, Matrix, Vector
    from argmaxable.edit.repair.margin import Estimate, MarginSolver

# The largest raise is found to within this share of itself.
ACCURACY = 0.02
_MOST_ROUNDS = 60
# Room beyond the targets: in units of the largest while most classes lack theirs, then as a share of the
# accuracy in units of the largest raise; divided by when a round has gained nothing, and the least.
_FIRST_ROOM, _LATER_ROOM, _NARROWING, _LEAST_ROOM = 0.25, 1 / 4, 4.0, 1e-4
# Raised classes stand in each other's way, of which cuts at small raises tell too little. So while most lack
# their target and the least raise known rises, the first multiple of it is looked at. What samples make
# expect is too much, as a rule; of that the second is looked at first.
_AHEAD, _BEHIND = 1.1, 1.0
# After the first round margins are known within this share of the accuracy, in units of the largest raise,
# whether they reach the target or not: each solve moves both bounds.
_SHARP = 1 / 16
# Classes pass their room on to each other. Where the raise found is too large, the next room aims at this
# share of the accuracy.
_CAREFUL = 0.6
# A round that gains less than this share of its room has gained nothing.
_WORTH = 0.05
# Most classes have their target when at most the first share of those solved lacks it, and lack it when at
# least the second does.
_FEW, _MOST = 0.1, 0.6

# Answers questions about classes beside raises of some (ids, raises), in any order, as (number, estimate).
Answers = Callable[[list[MarginQuestion], "Ids", "Vector"], Iterable[tuple[int, "Estimate"]]]


class Ending(Enum):
    """Why a search ended."""

    CLOSE = auto()  # the bounds meet
    HOPELESS = auto()  # no raise below the limit suffices, proven
    TIME = auto()  # the deadline passed
    ROUNDS = auto()  # nothing more was found


@dataclass(frozen=True, eq=False)
class Wanted:
    """Classes, the margin each is to have, and a point (coordinates) from which to start."""

    ids: Ids
    targets: Vector
    points: Matrix


@dataclass(frozen=True, eq=False)
class Raises:
    """Raises that suffice, entry by entry for `ids`, and the least possible ones as far as proven.

    At `points` (coordinates) each class has its target. `upper` is None where none were found; `ending` says
    why the search ended, `unmet` how many classes had no point for their target in its last round.
    """

    ids: Ids
    lower: Vector
    upper: Vector | None
    points: Matrix
    rounds: int
    ending: Ending
    unmet: int


@dataclass(eq=False)
class _Search:
    """Both bounds on the least raises of the active classes, and the evidence for them."""

    solver: MarginSolver
    wanted: Wanted
    standing: Wanted
    limit: float
    deadline: Deadline
    answers: Answers
    progress: ProgressCallback
    crowds: list[Crowd]
    ids: Ids = field(init=False)
    targets: Vector = field(init=False)
    points: Matrix = field(init=False)  # at which `upper` suffices
    latest: Matrix = field(init=False)  # found last
    lower: Vector = field(init=False)
    upper: Vector | None = None
    cuts: list[Cut] = field(default_factory=list)
    room: float = field(init=False)
    is_known: Mask = field(init=False)  # whether a sharp cut is known
    is_sampling: bool = field(init=False)
    factor: float = 1.0  # of the least raise by all that is known, for the next round
    expected: Vector = field(init=False)  # raises of all classes, by what is known and expected
    rounds: int = 0
    unmet: int = 0
    used_room: float = 0.0

    def __post_init__(self) -> None:
        self.ids, self.targets, self.points = self.wanted.ids, self.wanted.targets, self.wanted.points.copy()
        self.latest = self.points
        self.lower = np.zeros(len(self.ids))
        self.room = _FIRST_ROOM * float(self.targets.max())
        self.cuts = self._pair_cuts()
        self.is_known = np.zeros(len(self.ids), bool)
        self.is_sampling = bool(self.crowds)
        self.expected = np.zeros(self.solver.classes)

    @property
    def gap(self) -> float:
        """How much more the raise that suffices is than the least known or, of crowds, to be expected."""
        if self.upper is None:
            return np.inf
        known = max(self.lower.max(), self.expected.max()) if are_large(self.crowds) else self.lower.max()
        return float(self.upper.max() - known)

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
        ample = self._least(self.room, is_expected=True)
        while ample is None and self.room > self.least_room:
            self.room /= 4
            ample = self._least(self.room, is_expected=True)
        if ample is None:
            return self.lower
        return np.maximum(np.minimum(self.factor * ample[self.ids], self.limit), self.lower)

    @property
    def least_room(self) -> float:
        return _LEAST_ROOM * float(self.targets.max())

    def _least(self, room: float, *, is_expected: bool = False) -> Vector | None:
        """The least raise by all cuts, or also by what is expected of crowds."""
        cuts = self.cuts
        if is_expected:
            cuts = cuts + [cut for crowd in self.crowds for cut in crowd.expectations(room)]
        start = self.everywhere(self.lower)
        return least_solution(cuts, self.solver.classes, self.limit, room=room, start=start)

    def round(self) -> Ending | None:
        """Solve the active classes that need it and move both bounds. Returns an ending when done."""
        self.rounds += 1
        test = self.test()
        room, known, before = self.room, self.upper, self.expected
        self.used_room = room
        unmet = self._solve_at(test)
        lower = self._least(0.0)
        if lower is None:
            return Ending.HOPELESS
        self.lower = np.maximum(self.lower, lower[self.ids])
        expected = self._least(0.0, is_expected=True) if self.crowds else lower
        self.expected = before if expected is None else expected
        if self.is_sampling:
            self._end_sampling(unmet)
        else:
            self.crowds = self.crowds if are_large(self.crowds) else []  # each has a cut of its own now
            for points in (self.latest, self._better_points(test)):  # the second is dropped if classes join
                self._find_sufficient(points, room / 2)
        if self.deadline.has_passed:
            return Ending.TIME
        has_gained = self.upper is not known or (self.expected - before).max() > _WORTH * room
        is_rising = before.max() < (1 - ACCURACY) * self.expected.max()
        self._look_closer(unmet, has_gained=has_gained, is_rising=is_rising)
        is_stuck = not has_gained and room <= self.least_room
        return Ending.CLOSE if self.is_close else Ending.ROUNDS if is_stuck else None

    def _end_sampling(self, unmet: float) -> None:
        """Solve all classes from the next round on, if the samples have told what to expect."""
        if unmet <= _FEW:
            self.is_sampling = False
            for crowd in self.crowds:
                self.solver.liken(crowd.rest, crowd.leaders)

    def _look_closer(self, unmet: float, *, has_gained: bool, is_rising: bool) -> None:
        """How far ahead and with how much room the next round looks."""
        if is_rising and unmet >= _MOST and self.factor >= 1:
            self.factor = _AHEAD
        else:
            self.factor = _BEHIND if unmet <= _FEW and self.crowds else 1.0
        if not has_gained:
            self.room /= _NARROWING
        if unmet < _MOST:
            self.room = min(self.room, _LATER_ROOM * ACCURACY * float(self.expected.max()))
        if self.upper is not None and not self.is_close:
            share = ACCURACY * float(self.upper.max()) / self.gap
            self.room = min(self.room, max(_CAREFUL * share, 1 / _NARROWING**2) * self.used_room)

    def _solve_at(self, test: Vector) -> float:
        """Points and cuts for the classes whose latest point does not do beside this raise, as far as the
        time allows; returns the share of them that lacks its target."""
        is_sharp = self.rounds > 1
        places = np.flatnonzero((self._costs(self.latest, test) > test) | (is_sharp & ~self.is_known))
        is_rest, is_crowded = np.isin(self.ids, rest_of(self.crowds)), are_large(self.crowds)
        if self.is_sampling:
            places = places[~is_rest[places]]
        # By all that is known each class has room beyond its target. Half of it is aimed at, so that small
        # changes of others' raises leave the point good.
        aims = self.targets[places] + self.room / 2
        tolerance = self.room / 2
        sharp = min(tolerance, _SHARP * ACCURACY * float(test.max())) if is_sharp else None
        questions = [
            self.solver.question(int(self.ids[place]), aim, tolerance)
            if sharp is None or (is_rest[place] and is_crowded)
            else self.solver.question(int(self.ids[place]), aim, sharp, is_sharp=True)
            for place, aim in zip(places.tolist(), aims.tolist(), strict=True)
        ]
        self.latest, self.unmet = self.latest.copy(), len(places)
        for number, found in self._estimates(questions, test):
            place = places[number]
            self.latest[place], self.is_known[place] = found.x, is_sharp
            is_met = found.lower >= self.targets[place]
            self.unmet -= is_met
            if not is_met or questions[number].is_sharp or sharp is None:
                self.cuts.append(self._cut(place, found))
        return self.unmet / max(len(places), 1)

    def _estimates(self, questions: list[MarginQuestion], raises: Vector) -> Iterator[tuple[int, Estimate]]:
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
        self.progress(Progress(f"raising biases, round {self.rounds}", done, total, note=note))

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

    def _cut(self, place: int, estimate: Estimate) -> Cut:
        """What the weights prove of every sufficient raise; the checker's bound makes it a theorem."""
        class_id = int(self.ids[place])
        certificate = Certificate(estimate.classes, estimate.weights)
        bound = float(self.solver.checker.bounds(np.array([class_id]), certificate)[0])
        constant = float(self.targets[place]) - bound * self.solver.coordinates.scale
        return Cut(class_id, constant, estimate.classes, estimate.weights)

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

    def _better_points(self, test: Vector) -> Matrix:
        """For each class that of its two points which costs less beside the others' test raises."""
        is_better = self._costs(self.latest, test) < self._costs(self.points, test)
        return np.where(is_better[:, None], self.latest, self.points)

    def _costs(self, points: Matrix, raises: Vector) -> Vector:
        """What raise each active class needs at its point, beside these of the others."""
        alone, among = self._needs(points)
        return np.asarray(np.maximum(alone, (among + raises).max(axis=1)))

    def _find_sufficient(self, points: Matrix, tolerance: float) -> None:
        """The least raise that suffices at the points; standing classes that would lose become active."""
        while len(points) == len(self.ids):
            upper = least_at_points(*self._needs(points), self.limit)
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
        for number, found in self._estimates(questions, raises):
            standing.points[doubtful[number]] = found.x
            losing[number] = found.lower < questions[number].target
        return np.asarray(doubtful[losing])

    def _activate(self, places: Ids) -> None:
        self.ids = np.concatenate([self.ids, self.standing.ids[places]])
        self.targets = np.concatenate([self.targets, self.standing.targets[places]])
        self.points = np.concatenate([self.points, self.standing.points[places]])
        self.latest = np.concatenate([self.latest, self.standing.points[places]])
        self.lower = np.concatenate([self.lower, np.zeros(len(places))])
        self.is_known = np.concatenate([self.is_known, np.zeros(len(places), bool)])
        self.upper = None if self.upper is None else np.concatenate([self.upper, np.zeros(len(places))])


def least_raises(
    solver: MarginSolver,
    wanted: Wanted,
    standing: Wanted,
    *,
    limit: float,
    deadline: Deadline,
    extra: float = 0.0,
    alike: Iterable[Ids] = (),
    answers: Answers | None = None,
    progress: ProgressCallback = ignore_progress,
) -> Raises:
    """Raises for the wanted classes, and for standing ones that would lose their target, as small as can be.

    All in units of the coordinates. Raises above the limit count as none. What is proven to be needed is so
    for targets that are smaller by `extra`. Of wanted classes that are `alike` some are solved first.
    `answers` may share the work; by default the solver does it.
    """

    def alone(questions: list[MarginQuestion], ids: Ids, raises: Vector) -> Iterator[tuple[int, Estimate]]:
        spread = np.zeros(solver.classes)
        spread[ids] = raises
        for number, question in enumerate(questions):
            yield number, solver.estimate(question, spread)

    search = _Search(solver, wanted, standing, limit, deadline, answers or alone, progress, crowds_of(alike))
    ending = None
    while ending is None and search.rounds < _MOST_ROUNDS:
        ending = search.round()
    ending = ending or Ending.ROUNDS
    upper = None if ending is Ending.HOPELESS else search.upper
    least = least_solution(search.cuts, solver.classes, limit, room=-extra)
    lower = search.lower if least is None or extra == 0.0 else least[search.ids]
    return Raises(search.ids, lower, upper, search.points, search.rounds, ending, search.unmet)
