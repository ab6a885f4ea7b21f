"""How hard each class of a head is to settle, in the two steps of Grivas et al. 2022: reflections for as
long as patience lasts, then an exact answer for the classes that are left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import argmaxable as am
from argmaxable.core.domain import Domain
from argmaxable.edit.repair.margin import MarginSolver
from argmaxable.questions.argmax import DEFAULT_DOMAIN, verify

# A class wins at x = w_c, after some reflections, or where only a solver looked; or it is proven not to win.
OUTCOMES = ("first try", "reflected", "solved", "unargmaxable", "undecided")
REFLECTED, SOLVED, UNARGMAXABLE = (OUTCOMES.index(name) for name in ("reflected", "solved", "unargmaxable"))
_BY_SOLVER = {
    am.Status.ARGMAXABLE: SOLVED,
    am.Status.UNARGMAXABLE: UNARGMAXABLE,
    am.Status.UNDECIDED: OUTCOMES.index("undecided"),
}
# Bounds on a margin count as met this close: enough for its rank among those of other classes.
_CLOSE, _CLOSE_LOGITS = 0.05, 0.5
# Solves at most for a margin; each brings the bounds ten times closer.
_SOLVES = 5


@dataclass(frozen=True, eq=False)
class Settled:
    """For every class its outcome (a place in OUTCOMES) and its steps, counted as in the paper: reflections,
    none for a class that wins at x = w_c, patience + 1 where they did not do. `tied` counts the classes that
    are unargmaxable only because of identical rows.
    """

    outcome: NDArray[np.int64]
    steps: NDArray[np.int64]
    tied: int

    def mean_steps(self, classes: NDArray[np.int64] | slice = slice(None)) -> float | None:
        """Steps for a class that they find, on average over some classes; None where they find none."""
        found = self.steps[classes][self.outcome[classes] <= REFLECTED]
        return round(float(found.mean()), 3) if found.size else None


def settle(head: am.Head, *, patience: int, domain: Domain = DEFAULT_DOMAIN) -> Settled:
    """Settle every class of the head, in this process."""
    first = verify(
        head, domain, method=am.Algorithm.REFLECTION, patience=patience, engine=am.Engine(workers=1)
    )
    left = [verdict.class_id for verdict in first.verdicts if _is_open(verdict)]
    second = _solve(head, domain, left) if left else ()
    reflected = {verdict.class_id: verdict.steps for verdict in first.argmaxable}
    verdicts = {verdict.class_id: verdict for verdict in (*first.verdicts, *second)}.values()
    return Settled(
        outcome=np.array([_outcome(each, reflected.get(each.class_id)) for each in verdicts], np.int64),
        steps=np.array([reflected.get(each.class_id, patience + 1) for each in verdicts], np.int64),
        tied=sum(each.is_tied for each in verdicts),
    )


def _is_open(verdict: am.Verdict) -> bool:
    """Undecided, or with the row of another class while reflections did not tell whether it only ties."""
    if verdict.status is am.Status.UNARGMAXABLE:
        return bool(verdict.tie_group) and not verdict.is_tied
    return verdict.status is am.Status.UNDECIDED


def tally(outcome: NDArray[np.int64]) -> list[int]:
    """How many classes had each of OUTCOMES."""
    return [int((outcome == kind).sum()) for kind in range(len(OUTCOMES))]


def _solve(head: am.Head, domain: Domain, classes: list[int]) -> tuple[am.Verdict, ...]:
    # An interior point from the start: what else comes before it stops by the clock, and bounds would differ.
    return am.verify(
        head, domain, only=classes, method=am.Algorithm.INTERIOR_POINT, engine=am.Engine(workers=1)
    ).verdicts


def _outcome(verdict: am.Verdict, reflections: int | None) -> int:
    if reflections is None:
        return _BY_SOLVER[verdict.status]
    return REFLECTED if reflections else 0


# ---------------------------------------------------------------------- margins


def margins(
    head: am.Head, classes: NDArray[np.int64], domain: Domain = DEFAULT_DOMAIN
) -> NDArray[np.float64]:
    """The margins t* of some classes in whole logits; not a number where no bounds meet.

    In floats and unproven: good for ranks. Whole, since the margins of unargmaxable classes often differ by
    rounding alone: their best is the same point near 0, against the same rival.
    """
    solver = MarginSolver(am.Checker(head, domain))
    return np.round([_margin(solver, class_id) for class_id in classes.tolist()])


def _margin(solver: MarginSolver, class_id: int) -> float:
    no_raises, tolerance = np.zeros(solver.classes), _CLOSE_LOGITS * solver.coordinates.scale
    lower, upper, target = -math.inf, math.inf, 0.0
    for _ in range(_SOLVES):
        # It stops within a tenth of the target's distance: the last upper bound is a better target each time.
        found = solver.solve(class_id, no_raises, target=target, tolerance=tolerance)
        lower, upper = max(lower, found.lower), min(upper, found.upper)
        if upper - lower <= max(tolerance, _CLOSE * abs(upper)):
            return (lower + upper) / 2 / solver.coordinates.scale
        target = upper
    return math.nan
