"""The rows of several classes, each fitted to its examples against all other rows of features.

Every class starts with a random part of the negatives. Those where its row takes a noticeable probability
join, until none is new: the fit is then one against all negatives, at a fraction of the cost. The examples of
one taught class are negatives of the others, so rows learned together don't steal from each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np

from argmaxable.compute.blocks import blocks
from argmaxable.compute.threads import threads_for
from argmaxable.core.arrays import Ids, Matrix, Matrix32, Vector, Vector32
from argmaxable.core.errors import InputError
from argmaxable.core.progress import Deadline, Progress, ProgressCallback, ignore_progress
from argmaxable.edit.teach.lesson import Lesson
from argmaxable.edit.teach.row import RowData, fit_row

# Enough to place a row roughly; what matters joins later.
_FIRST_NEGATIVES = 3000
# A row that takes this probability somewhere may come to win nearby.
_NOTICEABLE = 0.001
_MOST_NEW = 1500
_MOST_ROUNDS = 6
# Of an old witness that a class needs: as much as all examples of a class together, and a lead of one logit.
_WITNESS_WEIGHT = 200.0
_WITNESS_LEAD = 1.0


@dataclass(frozen=True, eq=False)
class RowFit:
    """How a row was fitted: its examples and the negatives it met in the end, rounds, Newton steps, loss."""

    positives: int
    negatives: int
    rounds: int
    steps: int
    loss: float
    vector: Vector = field(repr=False)


@dataclass(frozen=True, eq=False)
class Protected:
    """Points (n × features) at which other classes win today with these scores, and should go on winning."""

    points: Matrix
    scores: Vector


@dataclass
class _Pupil:
    """A class while its row is being fitted."""

    place: int
    negatives: Ids
    fit: RowFit | None = None


@dataclass(frozen=True, eq=False)
class Fitter:
    """Fits rows of a lesson. `seed` draws the first negatives, `workers` threads share the fits."""

    lesson: Lesson
    seed: int = 0
    workers: int = 1
    deadline: Deadline = field(default_factory=lambda: Deadline(None))
    progress: ProgressCallback = ignore_progress

    def fit(
        self,
        places: Sequence[int],
        *,
        protected: Mapping[int, Protected] | None = None,
        spared: Mapping[int, Ids] | None = None,
        phase: str = "fit rows",
    ) -> dict[int, RowFit]:
        """The rows of the targets at these places of the lesson; raises InputError at the deadline.

        `protected` adds points that a target must not win, `spared` rows that are no negatives of it.
        """
        is_spared = {
            place: np.union1d(self.lesson.spared[place], (spared or {}).get(place, [])).astype(np.intp)
            for place in places
        }
        pupils = [_Pupil(place, self._first_negatives(place, is_spared[place])) for place in places]
        open_pupils = pupils
        for number in range(1, _MOST_ROUNDS + 1):
            self._fit_all(open_pupils, protected or {}, phase, len(pupils))
            open_pupils = self._with_new_negatives(open_pupils, is_spared) if number < _MOST_ROUNDS else []
            if not open_pupils:
                break
        return {pupil.place: pupil.fit for pupil in pupils if pupil.fit is not None}

    def _first_negatives(self, place: int, spared: Ids) -> Ids:
        allowed = np.ones(len(self.lesson.examples.features), bool)
        allowed[spared] = False
        pool = np.flatnonzero(allowed)
        rng = np.random.default_rng([self.seed, place])
        return rng.choice(pool, min(_FIRST_NEGATIVES, len(pool)), replace=False)

    def _fit_all(
        self, pupils: Sequence[_Pupil], protected: Mapping[int, Protected], phase: str, total: int
    ) -> None:
        def fit_one(pupil: _Pupil) -> None:
            self._require_time(phase)
            pupil.fit = self._fitted(pupil, protected.get(pupil.place))

        settled = total - len(pupils)
        features = self.lesson.examples.features.shape[1]
        with threads_for(features), ThreadPoolExecutor(max(1, self.workers)) as threads:
            try:
                for done, _ in enumerate(threads.map(fit_one, pupils), start=1):
                    self.progress(Progress(phase, settled + done, total))
            except BaseException:
                threads.shutdown(cancel_futures=True)
                raise

    def _require_time(self, phase: str) -> None:
        if self.deadline.has_passed:
            raise InputError(
                f"the time limit passed ({phase}). Pass a larger --time-limit, or fewer classes."
            )

    def _fitted(self, pupil: _Pupil, protected: Protected | None) -> RowFit:
        before = pupil.fit
        data = self._data(pupil, protected)
        found = fit_row(data, has_bias=self.lesson.has_bias, start=None if before is None else before.vector)
        return RowFit(
            positives=int((data.signs > 0).sum()),
            negatives=int((data.signs < 0).sum()),
            rounds=1 if before is None else before.rounds + 1,
            steps=found.steps + (0 if before is None else before.steps),
            loss=found.loss,
            vector=found.vector,
        )

    def _data(self, pupil: _Pupil, protected: Protected | None) -> RowData:
        lesson = self.lesson
        positives = lesson.positives[pupil.place]
        rows = np.concatenate([positives, pupil.negatives])
        data = RowData(
            lesson.examples.features[rows].astype(np.float64),
            lesson.rest.total[rows].astype(np.float64),
            np.repeat([1.0, -1.0], [len(positives), len(pupil.negatives)]),
            np.ones(len(rows)),
        )
        return data if protected is None else _with_protected(data, protected)

    def _with_new_negatives(self, pupils: Sequence[_Pupil], spared: Mapping[int, Ids]) -> list[_Pupil]:
        """The pupils whose rows take a noticeable probability somewhere new, those rows added."""
        found = self._noticeable(pupils)
        still_open = []
        for pupil, (rows, margins) in zip(pupils, found, strict=True):
            is_new = ~np.isin(rows, np.concatenate([pupil.negatives, spared[pupil.place]]))
            rows, margins = rows[is_new], margins[is_new]
            if len(rows):
                hardest = rows[np.argsort(-margins, kind="stable")[:_MOST_NEW]]
                pupil.negatives = np.concatenate([pupil.negatives, hardest])
                still_open.append(pupil)
        return still_open

    def _noticeable(self, pupils: Sequence[_Pupil]) -> list[tuple[Ids, Vector32]]:
        """For each pupil the rows where it takes a noticeable probability, and its logit of that."""
        features, total = self.lesson.examples.features, self.lesson.rest.total
        scores_of = _scorer(
            [pupil.fit.vector for pupil in pupils if pupil.fit is not None], self.lesson.has_bias
        )
        parts: list[tuple[Ids, Ids, Vector32]] = []
        for some in blocks(len(features), len(pupils)):
            margins = scores_of(features[some]) - total[some, None]
            rows, who = np.nonzero(margins > math.log(_NOTICEABLE / (1 - _NOTICEABLE)))
            parts.append((rows + some.start, who, margins[rows, who]))
        rows, who, margins = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.argsort(who, kind="stable")
        cuts = np.searchsorted(who[order], np.arange(1, len(pupils)))
        return list(zip(np.split(rows[order], cuts), np.split(margins[order], cuts), strict=True))


def _scorer(vectors: Sequence[Vector], has_bias: bool) -> Callable[[Matrix32], Matrix32]:
    stacked = np.array(vectors, np.float32)
    weight, bias = (stacked[:, :-1], stacked[:, -1]) if has_bias else (stacked, np.float32(0))
    return lambda features: features @ weight.T + bias


def _with_protected(data: RowData, protected: Protected) -> RowData:
    count = len(protected.points)
    return replace(
        data,
        features=np.concatenate([data.features, protected.points]),
        offsets=np.concatenate([data.offsets, protected.scores - _WITNESS_LEAD]),
        signs=np.concatenate([data.signs, np.full(count, -1.0)]),
        weights=np.concatenate([data.weights, np.full(count, _WITNESS_WEIGHT)]),
    )
