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

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.core.progress import Deadline, ProgressCallback, ignore_progress
from argmaxable.edit.repair.alike import Crowd, Following, Group, are_large, crowds_of, rest_of
from argmaxable.edit.repair.cuts import least_solution
from argmaxable.edit.repair.evidence import Answers, Evidence, Wanted
from argmaxable.edit.repair.level import first_raises
from argmaxable.edit.repair.margin import MarginQuestion
from argmaxable.edit.repair.needs import needs_at

if TYPE_CHECKING:
    from argmaxable.core.arrays import Ids, Matrix, Vector
    from argmaxable.edit.repair.margin import Estimate, MarginSolver

# The largest raise is found to within this share of itself.
ACCURACY = 0.02
# The same for large crowds, beside what is expected of them. The first round with all classes looks the
# second share of that beyond what should suffice, as some need more than was expected; the third tells how
# well that has to be known.
_ROUGH, _BEYOND, _KNOWN = 0.15, 0.5, 0.2
# Classes times squared features from which a round over a large crowd is costly: PP-OCRv5's (6e7) takes more
# than a minute. Then the first raise that suffices ends the search: for PP-OCRv5 that was 0.0245
# and 0.0260 in two runs, two more rounds found none below 0.0245, and the sample made 0.018 expected.
_COSTLY = 1e7
# A costly crowd is solved once, this many times as high as a few of its classes need. At 1.0 times the height
# 2 of 50 classes of PP-OCRv5 lack their margin, at 1.5 none, and the largest raise is a sixth more.
_HIGHER = 1.5
_MOST_ROUNDS = 60
# Until a raise is known that suffices: room beyond the targets, in units of the largest while most classes
# lack theirs, then as a share of the accuracy in units of the largest raise; divided by when a round has
# gained nothing, and the least.
_FIRST_ROOM, _LATER_ROOM, _NARROWING, _LEAST_ROOM = 0.25, 1 / 4, 4.0, 1e-4
# Raised classes stand in each other's way, of which cuts at small raises tell too little. So while most lack
# their target and the least raise known rises, this multiple of it is looked at.
_AHEAD = 1.1
# Margins are concave in the raises: cuts made at a raise that suffices are off by the square of how far that
# is too large. So the least raise is nearer to what suffices than to what is known to be needed, and the next
# round looks this far from the latter to the former; half as far each time the latter has risen by less than
# the second share of what is left, down to the third share of the accuracy.
_BETWEEN, _RISEN, _NEAREST = 0.45, 0.1, 0.5
# Where no more than the first share of the classes lack their targets and no raise is known that suffices,
# they are raised by the second number times what they lack, for at most the third number of rounds.
_SOME, _MORE, _MOST_GUESSES = 0.25, 2.0, 4
# Margins are known within the first share of the targets in the first round; then so well that the bounds on
# raises come nearer by all but the second share of what is left, as errors add up along the cuts.
_FIRST_SHARP, _SHARP = 0.1, 1 / 32
# What points of large crowds have to spare, in units of the target.
_SPARE = 0.25
# A round that gains less than this share of its room, or of what is left, has gained nothing; then margins
# are looked at more sharply, down to the second number.
_WORTH, _LEAST_SHARPNESS = 0.05, 1 / 64
# Most classes lack their target when at least this share of those solved does.
_MOST = 0.6


class Ending(Enum):
    """Why a search ended."""

    CLOSE = auto()  # the bounds meet
    HOPELESS = auto()  # no raise below the limit suffices, proven
    TIME = auto()  # the deadline passed
    ROUNDS = auto()  # nothing more was found


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
class _Search(Evidence):
    """Where to solve next, until both bounds meet."""

    crowds: list[Crowd] = field(default_factory=list)
    guess: Vector | None = None  # where the first rounds look
    likely: Vector | None = None  # what suffices, as far as a sample tells; `upper` if all were solved
    room: float = field(init=False)
    is_sampling: bool = field(init=False)
    factor: float = 1.0  # of the least raise by all that is known, for the next round
    share: float = _BETWEEN  # of the way from what is needed to what suffices, for the next round
    sharpness: float = 1.0  # of what margins have to be known within
    expected: Vector = field(init=False)  # raises of all classes, by what is known and expected
    unmet: int = 0
    guesses: int = 0  # one after the other
    lacking: Vector = field(init=False)  # what the classes just solved lack of their targets

    def __post_init__(self) -> None:
        super().__post_init__()
        self.room = _FIRST_ROOM * float(self.targets.max())
        self.is_sampling = bool(self.crowds)
        self.expected = np.zeros(self.solver.classes)
        self.lacking = np.zeros(len(self.ids))

    def guess_level(self, groups: Iterable[Group]) -> None:
        """Begin with all classes at one level, if those of the largest group are alike."""
        largest = max(groups, key=lambda group: len(group.members), default=None)
        if largest is None:
            return
        more = _HIGHER if self._is_costly else 1.0
        level = first_raises(self.solver, self.ids, self.targets, largest, self._margins, more=more)
        if level is None:
            return
        others = np.setdiff1d(self.ids, np.concatenate([level.members, level.far, [level.stem]]))
        crowds = [crowd for crowd in self.crowds if not np.isin(crowd.rest, others).any()]
        self.crowds = [
            crowd if np.isin(crowd.rest, level.far).any() else crowd.at_level(level.scores)
            for crowd in crowds + crowds_of([others])
        ]
        self.is_sampling = bool(self.crowds) and not self._is_costly
        following = Following.of(self.ids, self.crowds if self.is_sampling else [])
        self.guess = following.spread(level.raises[self.ids[following.places]])
        self.solver.liken(*level.alike(self.ids[following.places]))

    def _margins(self, ids: Ids, raises: Vector) -> list[Estimate] | None:
        tolerance = _FIRST_SHARP * float(self.targets.max())
        questions = [self.solver.question(each, 0.0, tolerance, is_sharp=True) for each in ids.tolist()]
        found = dict(self.estimates(questions, raises[self.ids]))
        return [found[number] for number in range(len(ids))] if len(found) == len(ids) else None

    @property
    def gap(self) -> float:
        """How much more the raise that suffices is than the least known or, of crowds, to be expected."""
        if self.likely is None:
            return np.inf
        is_expected = self.is_sampling or are_large(self.crowds)
        known = max(self.lower.max(), self.expected.max()) if is_expected else self.lower.max()
        return float(self.likely.max() - known)

    @property
    def is_close(self) -> bool:
        """Whether the bounds meet. Where a round is costly, any raise that suffices will do."""
        if self._is_costly and not self.is_sampling:
            return self.upper is not None
        return self.likely is not None and self.gap <= self.accuracy * float(self.likely.max())

    @property
    def _is_costly(self) -> bool:
        """Whether one round over all of a large crowd takes long."""
        return are_large(self.crowds) and len(self.ids) * self.solver.coordinates.size**2 > _COSTLY

    @property
    def accuracy(self) -> float:
        return _ROUGH if are_large(self.crowds) else ACCURACY

    def test(self) -> Vector:
        """Where to solve next: between what is needed and what suffices. Where nothing is known to suffice:
        the least raise that leaves each class, by all that is known, some room beyond its target. What is
        then found to be missing was not known; if nothing is, the raise suffices."""
        if self.guess is not None:
            return self.guess
        if self.likely is not None:
            needed = np.maximum(self.lower, self.expected[self.ids])
            if not self.is_sampling and self.upper is None:  # the first round with all classes
                return (1 + _BEYOND * self.accuracy) * self.likely
            return np.maximum(needed + self.share * (self.likely - needed), self.lower)
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
        room, gap, before, known = self.room, self.gap, self.expected, self.likely
        unmet = self._solve_at(test)
        lower = self._least(0.0)
        if lower is None:
            return Ending.HOPELESS
        self.lower = np.maximum(self.lower, lower[self.ids])
        expected = self._least(0.0, is_expected=True) if self.crowds else lower
        self.expected = before if expected is None else expected
        if self.is_sampling:
            self.likely = self._likely_by_sample()
        else:
            self.crowds = self.crowds if are_large(self.crowds) else []  # each has a cut of its own now
            for points in (self.latest, self.better_points(test)):  # the second is dropped if classes join
                self.find_sufficient(points, room / 2)
            self.likely = self.upper
        if self.deadline.has_passed:
            return Ending.TIME
        has_gained = self.gap < (1 - _WORTH) * gap or (self.expected - before).max() > _WORTH * room
        is_rising = before.max() < (1 - ACCURACY) * self.expected.max()
        is_stuck = not has_gained and min(room / self.least_room, self.sharpness / _LEAST_SHARPNESS) <= 1
        self._look_closer(unmet, has_gained=has_gained, is_rising=is_rising)
        self._look_nearer(float(self.expected.max() - before.max()), has_fallen=self.likely is not known)
        self._guess_again(test)
        if self.is_sampling:
            self._end_sampling(is_stuck=is_stuck)
            return None
        return Ending.CLOSE if self.is_close else Ending.ROUNDS if is_stuck else None

    def _guess_again(self, test: Vector) -> None:
        """Where no raise is known that suffices, but few classes lack their targets: raise them some more."""
        following = Following.of(self.ids, self.crowds if self.is_sampling else [])
        has_joined = len(self.ids) > len(test)  # then others than these stand in the way
        is_some = 0 < self.unmet <= _SOME * len(following.places)
        if self.likely is None and is_some and self.guesses < _MOST_GUESSES and not has_joined:
            more = test + _MORE * self.lacking
            self.guess, self.guesses = following.spread(more[following.places]), self.guesses + 1
        else:
            self.guess, self.guesses = None, 0

    def _end_sampling(self, *, is_stuck: bool) -> None:
        """Solve all classes from the next round on, if the samples have told what to expect."""
        is_known = self.gap <= max(_KNOWN * self.accuracy, ACCURACY / 2) * float(self.expected.max())
        if is_known or is_stuck:
            self.is_sampling = False
            for crowd in self.crowds:
                self.solver.liken(crowd.rest, crowd.leaders)

    def _likely_by_sample(self) -> Vector | None:
        """What suffices at the points of the sample, if the rest follows its leaders."""
        following = Following.of(self.ids, self.crowds)
        needs = needs_at(self.solver, self.ids, self.targets, self.latest, following.places)
        found = needs.of_leaders(following.leaders, following.more).least(self.limit)
        raises = None if found is None else following.spread(found)
        is_less = raises is not None and (self.likely is None or raises.max() < self.likely.max())
        return raises if is_less else self.likely

    def _look_closer(self, unmet: float, *, has_gained: bool, is_rising: bool) -> None:
        """How far ahead, with how much room and how sharply the next round looks."""
        self.factor = _AHEAD if is_rising and unmet >= _MOST and self.factor >= 1 else 1.0
        if not has_gained:
            self.room /= _NARROWING
            self.sharpness /= _NARROWING
        if unmet < _MOST:
            self.room = min(self.room, _LATER_ROOM * ACCURACY * float(self.expected.max()))

    def _look_nearer(self, risen: float, *, has_fallen: bool) -> None:
        """How far from what is needed the next round looks, when that has risen by so much in the last."""
        if self.likely is None or not has_fallen:
            self.share = _BETWEEN
        elif risen < _RISEN * self.gap:
            nearest = _NEAREST * self.accuracy * float(self.likely.max()) / self.gap
            self.share = min(max(self.share / 2, nearest), _BETWEEN)

    def _tolerance(self, test: Vector) -> float:
        """How well margins should be known beside this raise."""
        if self.guess is not None:
            return _FIRST_SHARP * float(self.targets.max())
        if self.rounds == 1:
            return self.room / 2
        largest = self.accuracy * float(test.max())
        wide = largest if self.likely is None else max(self.gap, largest)
        sharp = self.sharpness * _SHARP * wide / self._amplification()
        return min(sharp, self.room / 2) if self.likely is None else sharp

    def _amplification(self) -> float:
        """By how much the largest raise grows if every cut asks for one more."""
        room = self.least_room
        ample = self._least(room, is_expected=True)
        return 1.0 if ample is None else max(1.0, float(ample.max() - self.expected.max()) / room)

    def _solve_at(self, test: Vector) -> float:
        """Points and cuts for the classes of which too little is known beside this raise, as far as the
        time allows; returns the share of them that lacks its target."""
        tolerance, is_sharp = self._tolerance(test), self.rounds > 1 or self.guess is not None
        places, is_rest = self._unknown(test, tolerance), np.isin(self.ids, rest_of(self.crowds))
        is_enough = is_rest & are_large(self.crowds)  # a point that does
        questions = [
            self._question(place, tolerance, is_sharp=is_sharp, is_enough=bool(is_enough[place]))
            for place in places.tolist()
        ]
        self.latest, self.unmet, self.lacking = self.latest.copy(), len(places), np.zeros(len(self.ids))
        for number, found in self.estimates(questions, test):
            place = places[number]
            self.latest[place] = found.x
            is_met = found.lower >= self.targets[place]
            self.unmet -= is_met
            self.lacking[place] = max(float(self.targets[place]) - found.lower, 0.0)
            if not (is_met and is_enough[place]):
                cut = self.cut(place, found)
                self.cuts.append(cut)
                self.newest[cut.class_id] = cut
        return self.unmet / max(len(places), 1)

    def _question(self, place: int, tolerance: float, *, is_sharp: bool, is_enough: bool) -> MarginQuestion:
        class_id, target = int(self.ids[place]), float(self.targets[place])
        if is_enough:  # with some to spare, so that it still does when neighbours turn out to need more
            return self.solver.question(class_id, (1 + _SPARE) * target, _FIRST_SHARP * target)
        return self.solver.question(class_id, target + tolerance, tolerance, is_sharp=is_sharp)

    def _unknown(self, test: Vector, tolerance: float) -> Ids:
        """The places of classes whose latest points do not do beside this raise, or whose latest cuts leave
        open by more than the tolerance what they need; of large crowds the former alone."""
        is_rest = np.isin(self.ids, rest_of(self.crowds))
        places = np.flatnonzero(~is_rest) if self.is_sampling else np.arange(len(self.ids))
        needed = needs_at(self.solver, self.ids, self.targets, self.latest, places).beside(test)
        spread, proven = self.everywhere(test), np.full(len(places), -np.inf)
        for number, class_id in enumerate(self.ids[places].tolist()):
            if class_id in self.newest:
                proven[number] = self.newest[class_id].value(spread)
        is_open = needed - proven > tolerance
        if are_large(self.crowds):
            is_open &= ~is_rest[places]
        return np.asarray(places[is_open | (needed > test[places])])


def least_raises(
    solver: MarginSolver,
    wanted: Wanted,
    standing: Wanted,
    *,
    limit: float,
    deadline: Deadline,
    extra: float = 0.0,
    alike: Iterable[Group] = (),
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

    groups = list(alike)
    crowds = crowds_of([group.members for group in groups])
    search = _Search(solver, wanted, standing, limit, deadline, answers or alone, progress, crowds=crowds)
    search.guess_level(groups)
    ending = None
    while ending is None and search.rounds < _MOST_ROUNDS:
        ending = search.round()
    ending = ending or Ending.ROUNDS
    upper = None if ending is Ending.HOPELESS else search.upper
    least = least_solution(search.cuts, solver.classes, limit, room=-extra)
    lower = search.lower if least is None or extra == 0.0 else least[search.ids]
    return Raises(search.ids, lower, upper, search.points, search.rounds, ending, search.unmet)
