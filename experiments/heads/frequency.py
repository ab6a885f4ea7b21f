"""Whether rare classes are the hard ones: steps, margins and outcomes of classes by their frequency."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import argmaxable as am
from experiments.heads.settling import UNARGMAXABLE, Settled, margins, tally
from experiments.heads.vocabulary import Ranked

TENTHS = 10


def against_frequency(order: Ranked, settled: Settled) -> dict[str, Any]:
    """The rank correlation of steps with frequency, and outcomes and mean steps by tenths of the classes from
    frequent to rare. Classes never counted have no order: they are no part of the correlation and follow as
    one group more."""
    counted, unseen = order.counted(), order.classes[order.frequency == 0]
    groups = [*np.array_split(counted.classes, TENTHS), *([unseen] if len(unseen) else [])]
    # Unargmaxable classes are harder than those that only a solver finds.
    hardness = settled.steps + (settled.outcome == UNARGMAXABLE)
    return {
        "counted": len(counted.classes),
        "unseen": len(unseen),
        "steps": _correlation(counted.frequency, hardness[counted.classes]),
        "tenths": [tally(settled.outcome[group]) for group in groups],
        "mean_steps": [settled.mean_steps(group) for group in groups],
    }


def margin_correlation(head: am.Head, order: Ranked, sample: int) -> dict[str, Any]:
    """The rank correlation of margin and frequency over counted classes at equal distances in the order of
    frequency, with its 95 % interval."""
    counted = order.counted()
    places = np.unique(np.linspace(0, len(counted.classes) - 1, sample).round().astype(int))
    found = margins(head, counted.classes[places])
    known = np.isfinite(found)
    correlation = _correlation(counted.frequency[places][known], found[known])
    return {
        "classes": int(known.sum()),
        "correlation": correlation,
        "interval": _interval(correlation, int(known.sum())),
    }


def _correlation(first: NDArray[Any], second: NDArray[Any]) -> float:
    """Spearman's rank correlation, ties sharing their mean rank."""
    from scipy.stats import spearmanr

    return round(float(spearmanr(first, second).statistic), 3)


def _interval(correlation: float, count: int) -> tuple[float, float]:
    """The 95 % interval of a rank correlation of so many pairs (Bonett & Wright 2000)."""
    centre = np.arctanh(np.clip(correlation, -0.999, 0.999))
    half = 1.96 * np.sqrt((1 + correlation**2 / 2) / (count - 3))
    return round(float(np.tanh(centre - half)), 3), round(float(np.tanh(centre + half)), 3)
