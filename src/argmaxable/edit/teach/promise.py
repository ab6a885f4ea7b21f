"""The promise: every taught class can be predicted, and every class that could before still can.

Nothing here is believed because it was fitted. The whole head is verified; where a class became unargmaxable,
the input that proved it argmaxable before joins the negatives of the rows that beat it there, and those are
fitted again. Rows for which that does not help are left as they were: then the old proof holds again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from argmaxable.check.checker import Checker
from argmaxable.core.arrays import Ids, Matrix, Vector
from argmaxable.core.domain import Domain
from argmaxable.core.errors import InputError
from argmaxable.core.head import Head
from argmaxable.core.labels import visible
from argmaxable.core.result import Result
from argmaxable.core.verdict import Status
from argmaxable.edit.teach.candidate import Candidate, assemble, split
from argmaxable.edit.teach.fit import Fitter, Protected, RowFit
from argmaxable.edit.teach.lesson import Lesson
from argmaxable.questions.argmax import verify
from argmaxable.run.plan import Engine

# One refit mostly does it; after these many the rows that are in the way stay as they were.
_MOST_REFITS = 4
# Examples of a class tried as its witness, best first.
_TRIED = 5
# Features that reach the head are computed in float32 through many layers. An example that has to be moved by
# more than this part of its size to lie in the domain is outside of it for another reason than rounding.
_ROUNDING = 1e-4


@dataclass(frozen=True)
class LeftOut:
    """A class that was asked for and not taught, and why."""

    label: str
    reason: str


@dataclass(frozen=True)
class ExampleWitness:
    """A training example at which a taught class provably wins: its row of features and by how many logits.

    `moved` is how far a feature had to be moved to lie in the domain, which is proven for exact arithmetic:
    0, or about the rounding of float32.
    """

    row: int
    margin: float
    moved: float


@dataclass(frozen=True, eq=False)
class Proven:
    """Rows that keep the promise, the head with them, its verdicts and witnesses by target, and what was left
    out."""

    fits: dict[int, RowFit]
    candidate: Candidate
    result: Result
    witnesses: dict[int, ExampleWitness]
    left_out: tuple[LeftOut, ...]
    refitted: int


@dataclass
class _State:
    """Fits so far, points that each target must leave to others, and what was given up."""

    fits: dict[int, RowFit]
    protected: dict[int, Protected] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    refitted: set[int] = field(default_factory=set)

    def leave_out(self, places: Sequence[int], lesson: Lesson, reason: str) -> None:
        for place in places:
            del self.fits[place]
            self.left_out.append(LeftOut(lesson.targets[place].label, reason))
        if not self.fits:
            raise InputError(
                f"nothing could be taught: {visible(self.left_out[0].label)}: {self.left_out[0].reason}."
            )


def prove(before: Result, fitter: Fitter, fits: dict[int, RowFit], *, at: int, engine: Engine) -> Proven:
    """Verify the head with the fitted rows, and refit or leave out rows until the promise is kept.

    Raises InputError where nothing can be taught, and at the deadline.
    """
    lesson, state, refits = fitter.lesson, _State(dict(fits)), 0
    while True:
        candidate = assemble(before.head, lesson.targets, state.fits, at)
        result = _verified(candidate.head, before.domain, fitter, engine)
        status = {verdict.class_id: verdict.status for verdict in result.verdicts}
        witnesses = example_witnesses(candidate, before.domain, lesson)
        unproven = [
            place
            for place, class_id in candidate.ids.items()
            if status[class_id] is not Status.ARGMAXABLE and place not in witnesses
        ]
        beaten = _beaten(before, candidate, status, lesson)
        if not unproven and not len(beaten):
            return Proven(
                state.fits, candidate, result, witnesses, tuple(state.left_out), len(state.refitted)
            )
        if unproven:
            state.leave_out(unproven, lesson, "its fitted row can't be proven to win anywhere")
            continue
        culprits = _culprits(before, lesson, state.fits, beaten)
        if refits < _MOST_REFITS:
            _protect(before, state, culprits)
            state.fits |= fitter.fit(sorted(culprits), protected=state.protected, phase="fit again")
            state.refitted |= culprits.keys()
            refits += 1
        else:
            names = ", ".join(visible(before.head.label(class_id)) for class_id in beaten[:3].tolist())
            state.leave_out(sorted(culprits), lesson, f"its row would make {names} unargmaxable")


def _verified(head: Head, domain: Domain, fitter: Fitter, engine: Engine) -> Result:
    left = fitter.deadline.seconds_left
    result = None
    if left is None or left > 0:
        result = verify(head, domain, engine=engine, time_limit=left, progress=fitter.progress)
    if result is None or not result.is_complete:
        raise InputError(
            "the time limit passed, or the work was interrupted, before the taught head was proven. Nothing "
            "was "
            "written. Pass a larger --time-limit."
        )
    return result


def _beaten(before: Result, candidate: Candidate, status: dict[int, Status], lesson: Lesson) -> Ids:
    """Classes, by their old numbers, that were argmaxable and are not proven so any more."""
    taught = {target.class_id for target in lesson.targets}
    old = [verdict.class_id for verdict in before.argmaxable if verdict.class_id not in taught]
    return np.array(
        [each for each in old if status[int(candidate.moved_ids[each])] is not Status.ARGMAXABLE], np.intp
    )


def old_points(before: Result, classes: Ids) -> tuple[Matrix, Vector]:
    """The features at which these classes were proven to win, and their scores there."""
    checker = Checker(before.head, before.domain, centre=before.centre)
    verdicts = {verdict.class_id: verdict for verdict in before.argmaxable}
    points = np.empty((len(classes), checker.point_size))
    for place, class_id in enumerate(classes.tolist()):
        witness = verdicts[class_id].witness
        if witness is None:
            raise InputError(f"class {class_id} is the head's only one: nothing can be taught beside it.")
        points[place] = checker.point(class_id, witness)
    features = before.domain.place(points)[0]
    scores = (features * before.head.rows(classes)).sum(axis=1) + before.head.biases(classes)
    return features, scores


def _culprits(before: Result, lesson: Lesson, fits: dict[int, RowFit], beaten: Ids) -> dict[int, Ids]:
    """The targets whose rows reach the score of a beaten class at its old point; the highest one if none
    does."""
    points, scores = old_points(before, beaten)
    places = sorted(fits)
    rows, biases = zip(*(split(fits[place].vector, lesson.has_bias) for place in places), strict=True)
    leads = points @ np.array(rows).T + np.array(biases) - scores[:, None]
    reach = leads >= np.minimum(0.0, leads.max(axis=1, keepdims=True))
    return {place: beaten[reach[:, column]] for column, place in enumerate(places) if reach[:, column].any()}


def _protect(before: Result, state: _State, culprits: dict[int, Ids]) -> None:
    for place, classes in culprits.items():
        points, scores = old_points(before, classes)
        known = state.protected.get(place)
        if known is not None:
            points, scores = np.concatenate([known.points, points]), np.concatenate([known.scores, scores])
        state.protected[place] = Protected(points, scores)


def example_witnesses(candidate: Candidate, domain: Domain, lesson: Lesson) -> dict[int, ExampleWitness]:
    """For each taught class the example at which it provably wins by most, where there is one."""
    head = candidate.head
    if not domain.has_features:  # a witness is a mixture of given vectors there
        return {}
    tried = {place: _best_examples(candidate, lesson, place) for place in candidate.ids}
    rows = np.concatenate(list(tried.values()))
    owners = np.repeat(list(tried), [len(each) for each in tried.values()])
    features = lesson.examples.features[rows].astype(np.float64)
    points = _points_near(domain, features)
    moved = np.abs(domain.place(points)[0] - features).max(axis=1)
    classes = np.array([candidate.ids[place] for place in owners.tolist()], np.intp)
    gaps = Checker(head, domain).gaps(classes, points).lower
    found: dict[int, ExampleWitness] = {}
    for owner, row, gap, far, size in zip(
        owners.tolist(),
        rows.tolist(),
        gaps.tolist(),
        moved.tolist(),
        np.abs(features).max(axis=1),
        strict=True,
    ):
        if gap > 0 and far <= _ROUNDING * size and (owner not in found or gap > found[owner].margin):
            found[owner] = ExampleWitness(row, gap, far)
    return found


def _best_examples(candidate: Candidate, lesson: Lesson, place: int) -> Ids:
    positives = lesson.positives[place]
    class_id = np.array([candidate.ids[place]])
    features = lesson.examples.features[positives].astype(np.float64)
    scores = features @ candidate.head.rows(class_id)[0] + candidate.head.biases(class_id)[0]
    leads = scores - lesson.rest.top[positives]
    return positives[np.argsort(-leads, kind="stable")[:_TRIED]]


def _points_near(domain: Domain, features: Matrix) -> Matrix:
    """Points z of the domain whose x is the features, or near them where rounding has put those outside."""
    if domain.is_identity:
        points = features
    else:
        count = features.shape[1]
        gains = domain.gains(count)
        shifted = features - domain.shifts(count)
        points = np.divide(shifted, gains, out=np.zeros_like(shifted), where=gains != 0)
    is_outside = ~domain.contains(points)
    return np.where(is_outside[:, None], domain.nearest(points), points)
