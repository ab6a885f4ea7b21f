"""How many rankings of C classes a head with d features can put out: regions of the braid arrangement.

The hyperplanes s_i = s_j cut feature space into regions, one for each feasible ranking. For a generic
head their number depends on C, d and the presence of a bias alone (Cover 1967; Good & Tideman 1977; Tables 2
and 3 of Grivas, Bogoychev & Lopez 2022). With unsigned Stirling numbers of the first kind [n, k]

    all regions        Σ_{k=0}^{d} [C, C−k]
    bounded regions    |Σ_{k=0}^{d} (−1)^k [C, C−k]|            (Zaslavsky 1975: the polynomial at 1)

with a bias. Without one the hyperplanes meet in a point and no region is bounded: as many are left as the
arrangement with a bias has unbounded ones. Everything is a Python integer, hence exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argmaxable.core.errors import InputError


@dataclass(frozen=True, slots=True)
class Regions:
    """Numbers of feasible rankings: those met in a bounded region of feature space, and the others."""

    bounded: int
    unbounded: int

    @property
    def total(self) -> int:
        """The number of feasible rankings."""
        return self.bounded + self.unbounded


def count_regions(classes: int, dims: int, *, bias: bool = False) -> Regions:
    """The regions of a generic head with so many classes and features (dims); raises InputError below 1."""
    _require_positive(classes, dims)
    unbounded, bounded = _counts(_last_stirling_row(classes, dims), classes)
    return Regions(bounded[-1] if bias else 0, unbounded[-1])


def regions_table(classes: int, dims: int, *, bias: bool = False) -> NDArray[Any]:
    """Numbers of feasible rankings (classes × dims, Python integers): entry [C − 1, d − 1] is for C and d.

    10 × 10 is Table 2 (no bias) or Table 3 (bias) of Grivas et al. 2022. Raises InputError below 1.
    """
    _require_positive(classes, dims)
    table = np.empty((classes, dims), dtype=object)
    row = _first_stirling_row(dims)
    for number in range(1, classes + 1):
        unbounded, bounded = _counts(row, number)
        table[number - 1] = unbounded + bounded if bias else unbounded
        row = _next_stirling_row(row, number)
    return table


def _require_positive(classes: int, dims: int) -> None:
    for what, number in (("classes", classes), ("dims", dims)):
        if number < 1:
            raise InputError(f"{what} must be at least 1, found {number}.")


def _last_stirling_row(classes: int, dims: int) -> NDArray[Any]:
    row = _first_stirling_row(dims)
    for number in range(1, classes):
        row = _next_stirling_row(row, number)
    return row


def _first_stirling_row(dims: int) -> NDArray[Any]:
    """[1, 1 − k] for k = 0 … dims."""
    return np.array([1] + [0] * dims, dtype=object)


def _next_stirling_row(row: NDArray[Any], classes: int) -> NDArray[Any]:
    """[C + 1, C + 1 − k] = [C, C − k] + C · [C, C − (k − 1)] for all k at once."""
    following = row.copy()
    following[1:] += classes * row[:-1]
    return following


def _counts(row: NDArray[Any], classes: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Unbounded and bounded regions with a bias for d = 1 … dims, from [C, C − k]."""
    signs = np.array([(-1) ** k for k in range(len(row))], dtype=object)
    total = np.add.accumulate(row)[1:]
    # One class leaves feature space whole: a single region, which the polynomial calls bounded.
    bounded = np.abs(np.add.accumulate(signs * row))[1:] * (classes > 1)
    return total - bounded, bounded
