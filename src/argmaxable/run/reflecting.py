"""The reflection phase of a run: steps of the search are checked and entered while they pay."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.compute.blocks import blocks
from argmaxable.core.verdict import Method
from argmaxable.run.settled_classes import points_as_witnesses
from argmaxable.search.own_direction import USUAL_FEATURE, own_exponents
from argmaxable.search.reflection import reflect, reflect_among_winners

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from argmaxable.compute.coordinates import Coordinates
    from argmaxable.core.arrays import Ids, Mask, Matrix, Matrix32, Vector
    from argmaxable.run.session import Session
    from argmaxable.search.reflection import Step

# Coordinates of points reflected at a time: 64 MB of float32, and a few copies.
_REFLECTED_ENTRIES = 1 << 24


def reflect_while_it_pays(session: Session, price: float) -> None:
    """Reflect all open classes from their own directions, until one found takes more seconds than its
    price."""
    if not session.checker.domain.has_features:
        return
    for ids in _portions(session):
        start = session.checker.rebuild(ids, own_exponents(session.checker, ids))[:, session.coordinates.used]
        search = reflect_among_winners(
            session.coordinates, ids, _single(start), session.rivals[ids], partial(_look, session),
            within=_near_bounds(session.coordinates),
        )  # fmt: skip
        _follow(session, enumerate(search, 1), _Payoff(price).is_over)


def reflect_alone(session: Session) -> None:
    """Braid Reflect as the paper has it: from x = w_c, for as long as patience lasts."""
    for ids in _portions(session):
        start = session.coordinates.rows_seen(session.checker.head.rows(ids))
        _follow(session, enumerate(_checked(session, reflect(session.coordinates, ids, _single(start)))))


def _look(session: Session, classes: Ids, x: Matrix32) -> tuple[Mask, Ids]:
    """Check points and enter them: which settle their class, and who beats the others."""
    points = session.coordinates.to_point(x.astype(np.float64))
    gaps = session.checker.gaps(classes, points)
    witnesses = points_as_witnesses(points)
    settled = session.settled_classes.enter_gaps(classes, gaps, witnesses, Method.REFLECTION)
    return settled, gaps.rival


def _single(points: Matrix) -> Matrix32:
    with np.errstate(over="ignore"):
        return points.astype(np.float32)


class _Payoff:
    """Whether a search still finds classes for less than their price, by its last steps."""

    def __init__(self, price: float) -> None:
        self._price, self._found, self._seconds = price, 0.0, 0.0

    def is_over(self, number: int, found: int, seconds: float) -> bool:
        self._found, self._seconds = self._found / 2 + found, self._seconds / 2 + seconds
        return number > 2 and self._found * self._price < self._seconds


def _near_bounds(coordinates: Coordinates) -> tuple[Vector, Vector] | None:
    """The domain's bounds, if points of the usual size would leave them; behind a ReLU, say."""
    lo, hi = coordinates.domain_bounds()
    is_near = coordinates.domain_radius is None and bool((np.minimum(-lo, hi) < USUAL_FEATURE).any())
    return (lo, hi) if is_near else None


def _checked(session: Session, steps: Iterator[Step]) -> Iterator[Step]:
    """The same steps, after their points have been checked and entered."""
    for step in steps:
        settled, _ = _look(session, step.classes, step.points)
        yield replace(step, classes=step.classes[settled], points=step.points[settled])


def _portions(session: Session) -> list[Ids]:
    """The open classes, so many at a time that their points are no burden."""
    ids = session.settled_classes.open_ids
    return [ids[block] for block in blocks(len(ids), session.checker.head.features, _REFLECTED_ENTRIES)]


def _follow(
    session: Session,
    steps: Iterator[tuple[int, Step]],
    is_over: Callable[[int, int, float], bool] = lambda number, found, seconds: False,
) -> None:
    """Take steps for as long as patience lasts and they are worth it."""
    if not session.settings.patience or not session.coordinates.size:
        return
    began = time.thread_time()  # as the search would take if nothing else ran
    for number, step in steps:
        session.settled_classes.enter_steps(step.classes, number)
        session.prover.solver.blockers.saw(step.winners, 1e-3)
        session.report("reflection")
        seconds, began = time.thread_time() - began, time.thread_time()
        if number >= session.settings.patience or is_over(number, len(step.classes), seconds):
            return
