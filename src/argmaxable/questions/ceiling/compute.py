"""ceilings(head, domain): a proven interval around the largest probability that each class can have.

First one point for every class, all in one product: where it makes the class as good as certain the upper
end is 1 and nothing is left to do. The others are solved one by one (descent.py). Both ends are then
proven by check/probabilities.py and check/mixtures.py: a wrong step of the search can only widen them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from argmaxable.check.checker import Checker
from argmaxable.check.mixtures import mixture_bound
from argmaxable.check.probabilities import CeilingChecker
from argmaxable.compute.identical_rows import IdenticalRows
from argmaxable.compute.prepared import PreparedHead, prepared
from argmaxable.compute.threads import one_thread
from argmaxable.core.arrays import Ids
from argmaxable.core.ceiling import Ceiling, Ceilings, Mixture
from argmaxable.core.domain import Domain
from argmaxable.core.errors import InputError
from argmaxable.core.head import Head
from argmaxable.core.progress import Deadline, Pace, Progress, ProgressCallback, ignore_progress
from argmaxable.questions.argmax import DEFAULT_DOMAIN
from argmaxable.questions.ceiling.descent import Landing, Slope
from argmaxable.questions.ceiling.mixture import mixture_at, twin_mixture
from argmaxable.run.plan import ONE_PROCESS, make_plan

DEFAULT_TOLERANCE = 1e-6
# Shares of the tolerance: how near to 1 the first points must come, and where descents stop; the rest is for
# the rounding bounds.
_CERTAIN, _CLOSE = 0.5, 0.25
# Classes whose ends are proven together; an interruption loses at most these.
_BATCH = 32
# Classes whose first points are tried together.
_FIRST_BATCH = 1024


@dataclass(eq=False)
class _Work:
    """What is being computed, and what was found so far."""

    checker: Checker
    bounds: CeilingChecker
    slope: Slope
    twins: dict[int, Ids]
    tolerance: float
    deadline: Deadline
    progress: ProgressCallback
    pace: Pace = field(default_factory=Pace)
    found: dict[int, Ceiling] = field(default_factory=dict)


def ceilings(
    head: Head | PreparedHead,
    domain: Domain = DEFAULT_DOMAIN,
    *,
    only: Iterable[int] | None = None,
    temperature: float = 1.0,
    tolerance: float = DEFAULT_TOLERANCE,
    time_limit: float | None = None,
    progress: ProgressCallback = ignore_progress,
) -> Ceilings:
    """An interval around the largest probability that each class (or those in `only`) has at any input of the
    domain, when scores are divided by `temperature` before the softmax. Both ends are proven.

    Intervals are made narrower than `tolerance` where floats allow it; `open` lists those that are not.
    After `time_limit` seconds or Ctrl-C the classes not reached keep what is known of them, with
    `is_complete` False. Raises InputError for arguments that make no sense.
    """
    started = time.perf_counter()
    ready = prepared(head)
    head = ready.head
    domain.require_directions("a ceiling")
    wanted = make_plan(head, domain, only=only, engine=ONE_PROCESS, time_limit=time_limit).wanted
    _require(temperature, tolerance)
    checker = Checker(ready, domain)
    work = _Work(
        checker=checker,
        bounds=CeilingChecker(checker, temperature=temperature),
        slope=Slope(checker, temperature=temperature, tolerance=_CLOSE * tolerance),
        twins=_twins(ready.twins),
        tolerance=tolerance,
        deadline=Deadline(time_limit),
        progress=progress,
    )
    is_complete = _compute(work, wanted)
    for class_id in wanted.tolist():
        work.found.setdefault(class_id, Ceiling(class_id, head.label(class_id), 0.0, 1.0))
    return Ceilings(
        facts=ready.facts, domain=domain, temperature=temperature, tolerance=tolerance,
        classes=tuple(work.found[class_id] for class_id in wanted.tolist()),
        seconds=time.perf_counter() - started, is_complete=is_complete,
    )  # fmt: skip


def _require(temperature: float, tolerance: float) -> None:
    if not 0 < temperature < np.inf:
        raise InputError(f"the temperature must be above 0 and finite, found {temperature}.")
    if not 0 < tolerance < 1:
        raise InputError(f"the tolerance is a difference of probabilities above 0, found {tolerance}.")


def _compute(work: _Work, wanted: Ids) -> bool:
    """Fill in what can be found; False when it was cut short."""
    try:
        if work.checker.head.classes == 1:
            work.found[0] = Ceiling(0, work.checker.head.label(0), 1.0, 1.0)
            return True
        _tell(work, 0, len(wanted))
        for first in range(0, len(wanted), _FIRST_BATCH):
            _try_first_points(work, wanted[first : first + _FIRST_BATCH])
            _tell(work, _done(work), len(wanted))
            if work.deadline.has_passed:
                return False
        with one_thread():
            return _descend_all(work, wanted)
    except KeyboardInterrupt:
        return False


def _tell(work: _Work, done: int, total: int) -> None:
    work.progress(Progress("ceilings", done, total, work.pace.seconds_left(done, total)))


def _done(work: _Work) -> int:
    return sum(1 for ceiling in work.found.values() if ceiling.gap <= work.tolerance)


def _try_first_points(work: _Work, classes: Ids) -> None:
    points = _shortened(work.slope.first_points(classes))
    lower = work.bounds.reached(classes, points)
    for class_id, reached, point in zip(classes.tolist(), lower.tolist(), points, strict=True):
        label = work.checker.head.label(class_id)
        work.found[class_id] = Ceiling(class_id, label, reached, 1.0, point)


def _shortened(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points in float32 precision, which make smaller bundles, where that has them."""
    with np.errstate(over="ignore", under="ignore"):
        short = points.astype(np.float32).astype(np.float64)
    return np.where(np.isfinite(short).all(axis=1, keepdims=True), short, points)


def _descend_all(work: _Work, wanted: Ids) -> bool:
    limit = 1 - _CERTAIN * work.tolerance
    left = np.array([c for c in wanted.tolist() if work.found[c].lower < limit], np.intp)
    settled = len(wanted) - len(left)
    for first in range(0, len(left), _BATCH):
        if work.deadline.has_passed:
            return False
        batch = left[first : first + _BATCH]
        _prove(work, batch, [work.slope.descend(class_id) for class_id in batch.tolist()])
        _tell(work, settled + first + len(batch), len(wanted))
    return True


def _prove(work: _Work, classes: Ids, landings: list[Landing]) -> None:
    """The proven ends of these classes' ceilings, kept where they are better than those known."""
    points = work.slope.place(np.array([landing.x for landing in landings]))
    lower = work.bounds.reached(classes, points)
    upper = work.bounds.allowed(classes, points)
    for k, class_id in enumerate(classes.tolist()):
        before = work.found[class_id]
        high, mixture = float(upper[k]), None
        for candidate in _mixtures(work, class_id, landings[k], high):
            bound = mixture_bound(work.checker, class_id, candidate, temperature=work.bounds.temperature)
            if bound < high:
                high, mixture = bound, candidate
        point = points[k]
        low = float(lower[k])
        if before.lower > low and (high == 1.0 or mixture is not None):
            low, point = before.lower, before.point  # nothing hangs on the tangent at the new point
        work.found[class_id] = Ceiling(class_id, before.label, low, high, point, mixture, landings[k].steps)


def _mixtures(work: _Work, class_id: int, landing: Landing, upper: float) -> Iterable[Mixture]:
    """Mixtures that may prove more than the tangent did."""
    if class_id in work.twins and upper > 1 / (len(work.twins[class_id]) + 1):
        yield twin_mixture(work.twins[class_id])
    if upper == 1.0 and landing.lower < 1 - work.tolerance and not work.checker.domain.is_bounded:
        mixture = mixture_at(work.checker, work.slope, class_id, landing)
        if mixture is not None:
            yield mixture


def _twins(identical: IdenticalRows) -> dict[int, Ids]:
    """The other classes with the same row and bias, for each class that has some."""
    others = {}
    for group in identical.ties.values():
        members = np.array(group)
        for member in group:
            others[member] = members[members != member]
    return others
