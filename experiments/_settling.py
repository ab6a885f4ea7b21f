"""How hard each class of a head is to settle, in the two steps of Grivas et al. 2022: reflections for as
long as patience lasts, then an exact answer for the classes that are left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import argmaxable as am
from argmaxable.domain import Domain
from argmaxable.verify import DEFAULT_DOMAIN

# A class wins at x = w_c, after some reflections, or where only a solver looked; or it is proven not to win.
OUTCOMES = ("first try", "reflected", "solved", "unargmaxable", "undecided")
REFLECTED, SOLVED, LOST = (OUTCOMES.index(name) for name in ("reflected", "solved", "unargmaxable"))
_BY_SOLVER = {
    am.Status.ARGMAXABLE: SOLVED,
    am.Status.UNARGMAXABLE: LOST,
    am.Status.UNDECIDED: OUTCOMES.index("undecided"),
}


@dataclass(frozen=True, eq=False)
class Settled:
    """For every class its outcome (a place in OUTCOMES), the reflections it took (patience + 1 where they did
    not do) and its margin; `tied` counts those that are unargmaxable only because of identical rows.

    The margin is a proven bound: the class's gap where reflection or the solver found it to win, or an upper
    bound of at most 0.
    """

    outcome: NDArray[np.int64]
    steps: NDArray[np.int64]
    margin: NDArray[np.float64]
    tied: int

    @property
    def mean_tries(self) -> float | None:
        """Points tried for a class that reflection finds, on average; None where it finds none."""
        found = self.steps[self.outcome <= REFLECTED]
        return round(float(found.mean()) + 1, 3) if found.size else None


def settle(head: am.Head, *, patience: int, domain: Domain = DEFAULT_DOMAIN) -> Settled:
    """Settle every class of the head, in this process."""
    first = am.verify(head, domain, method=am.Algorithm.REFLECTION, patience=patience, workers=1)
    left = [verdict.class_id for verdict in first.undecided]
    second = _solve(head, domain, left) if left else ()
    reflected = {verdict.class_id: verdict.steps for verdict in first.argmaxable}
    verdicts = {verdict.class_id: verdict for verdict in (*first.verdicts, *second)}.values()
    return Settled(
        outcome=np.array([_outcome(each, reflected.get(each.class_id)) for each in verdicts], np.int64),
        steps=np.array([reflected.get(each.class_id, patience + 1) for each in verdicts], np.int64),
        margin=np.array([_margin(each) for each in verdicts], np.float64),
        tied=sum(each.is_tied for each in verdicts),
    )


def tally(outcome: NDArray[np.int64]) -> list[int]:
    """How many classes had each of OUTCOMES."""
    return [int((outcome == kind).sum()) for kind in range(len(OUTCOMES))]


def _solve(head: am.Head, domain: Domain, classes: list[int]) -> tuple[am.Verdict, ...]:
    # An interior point from the start: what else comes before it stops by the clock, and bounds would differ.
    return am.verify(head, domain, only=classes, method=am.Algorithm.INTERIOR_POINT, workers=1).verdicts


def _outcome(verdict: am.Verdict, reflections: int | None) -> int:
    if reflections is None:
        return _BY_SOLVER[verdict.status]
    return REFLECTED if reflections else 0


def _margin(verdict: am.Verdict) -> float:
    return verdict.upper if verdict.status is am.Status.UNARGMAXABLE else verdict.lower
