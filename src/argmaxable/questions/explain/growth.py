"""How much a row has to grow, away from the mean row, until its class becomes argmaxable.

Without a bias and with 0 in the domain a class is unargmaxable when its row lies in the hull of the others
(as far as the domain's directions can tell), and its margin is 0 however deep it lies there. Its depth is
the factor f at which mean + f · (row − mean) leaves: a number between a factor proven too small and one
proven enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from argmaxable.check.checker import Checker
from argmaxable.compute.identical_rows import find_identical_rows
from argmaxable.core.head import Head
from argmaxable.questions.best_rank.reduced import settle_without

# Factors beyond this are not looked for: the row has next to no direction of its own.
_LARGEST = 2.0**20
# Bisections after the doubling: the bounds end up less than 1 % apart.
_BISECTIONS = 7
# Heads with more weights are too dear to copy for each factor.
_MOST_WEIGHTS = 50_000_000


@dataclass(frozen=True, slots=True)
class Growth:
    """At factor `lower` the class is still unargmaxable, at `upper` argmaxable (infinite: none was found)."""

    lower: float
    upper: float


def growth_needed(checker: Checker, class_id: int, *, seed: int = 0) -> Growth | None:
    """Bounds on the factor, each by a verdict on the head with the longer row; None for very large heads.

    For a class that is unargmaxable as it is (factor 1) in a head without bias over a domain with 0 in it.
    """
    if checker.head.weight.size > _MOST_WEIGHTS:
        return None
    lower, upper = 1.0, np.inf
    factor = 2.0
    for _ in range(_BISECTIONS):
        while upper == np.inf and lower < _LARGEST:
            wins = _wins_with(checker, class_id, factor, seed)
            if wins is None:
                return Growth(lower, upper)
            lower, upper = (lower, factor) if wins else (factor, upper)
            factor *= 2
        if upper == np.inf:
            break
        middle = (lower + upper) / 2
        wins = _wins_with(checker, class_id, middle, seed)
        if wins is None:
            break
        lower, upper = (lower, middle) if wins else (middle, upper)
    return Growth(lower, float(upper))


def _wins_with(checker: Checker, class_id: int, factor: float, seed: int) -> bool | None:
    """Whether the class with its longer row is argmaxable; None when that stays undecided."""
    weight = np.array(checker.head.rows(slice(None)))
    weight[class_id] = checker.centre + factor * (weight[class_id] - checker.centre)
    head = Head(weight)
    longer = Checker(head, checker.domain)
    found = settle_without(longer, find_identical_rows(head), class_id, np.empty(0, np.intp), seed=seed)
    if found.certificate is None and found.point is None:
        return None
    return found.point is not None
