"""Which sets of labels a multi-label head can switch on: how many, and which for rows on a circle.

A set is a sign pattern of the scores. For N labels in general position and d features without a bias
Σ_{i<d} 2·C(N−1, i) of the 2^N patterns are feasible (Cover 1965); a bias counts as one more feature. For
rows on the trigonometric curve (1, cos θ, sin θ, …, cos kθ, sin kθ) a pattern is feasible exactly when it
changes sign at most 2k times around the circle, since a trigonometric polynomial of degree k has at most 2k
zeros there. So 2k + 1 features make every set of at most k labels feasible (Grivas, Vergari & Lopez 2024).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import InputError


def count_sign_patterns(labels: int, dims: int, *, bias: bool = False) -> int:
    """How many sets of labels are feasible for rows in general position, exactly; raises InputError below
    1."""
    if labels < 1 or dims < 1:
        raise InputError(f"labels and features are counted from 1, found {labels} and {dims}.")
    return sum(2 * math.comb(labels - 1, i) for i in range(min(dims + bias, labels)))


def sign_changes(pattern: Sequence[int] | Sequence[bool]) -> int:
    """How often the signs of a pattern (true or above 0: on) change around the circle."""
    on = [value > 0 for value in pattern]
    return sum(a != b for a, b in zip(on, [*on[1:], *on[:1]], strict=True))


def is_alternation_feasible(pattern: Sequence[int] | Sequence[bool], active: int) -> bool:
    """Whether rows on the trigonometric curve with 2·active + 1 features can switch on exactly this set."""
    if active < 0:
        raise InputError(f"a number of active labels can't be {active}.")
    return sign_changes(pattern) <= 2 * active


def trigonometric_rows(labels: int, active: int) -> NDArray[np.float64]:
    """Rows (labels × (2·active + 1)) at equal distances on the trigonometric curve, in float64."""
    if labels < 1 or active < 0:
        raise InputError(f"at least 1 label and 0 active ones are needed, found {labels} and {active}.")
    angles = np.outer(2 * np.pi * np.arange(labels) / labels, np.arange(1, active + 1))
    rows = np.ones((labels, 2 * active + 1))
    rows[:, 1::2], rows[:, 2::2] = np.cos(angles), np.sin(angles)
    return rows
