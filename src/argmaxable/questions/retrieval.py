"""What the stored numbers of a search index mean for its search: rows of equal length for cosines, a
rounded bias for Euclidean distances.

With exactly equal lengths every item with a direction of its own is first at its own vector: w_c·w_c >
w_c·w_i. Stored lengths differ by rounding. The item c still wins there against i unless the cosine of their
angle is at least ‖w_c‖/‖w_i‖ ≥ smallest/largest, so only items closer than that angle are in doubt.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from argmaxable.compute.blocks import row_blocks
from argmaxable.core.head import Head
from argmaxable.core.result import Result
from argmaxable.exact.rounding import gamma, length_bounds

# Lengths that differ by more were not meant to be equal; bfloat16 rounds by 2^-9.
_EQUAL = 2.0**-8
# Below, squares may underflow.
_SMALLEST = 1e-100


@dataclass(frozen=True)
class EqualLengths:
    """Rows whose lengths are all between `smallest` and `largest`, proven bounds, which nearly agree."""

    smallest: float
    largest: float

    @property
    def spread(self) -> float:
        """By what share the lengths differ at most."""
        return self.largest / self.smallest - 1

    @property
    def doubtful_degrees(self) -> float:
        """Only an item with another one closer than this angle may fail to be first at its own vector."""
        return math.degrees(math.acos(self.smallest / self.largest))


def equal_lengths(head: Head) -> EqualLengths | None:
    """The range of the rows' lengths where they are equal up to rounding and there is no bias; else None."""
    if head.has_bias:
        return None
    smallest, largest = math.inf, 0.0
    for block in row_blocks(head.classes, head.features):
        above = length_bounds(head.rows(block))
        largest = max(largest, float(above.max()))
        # An upper bound is off by twice its own share at most, unless squares underflow.
        smallest = min(smallest, float(above.min()) * (1 - 2 * gamma(head.features + 8)))
        if not _SMALLEST <= largest * (1 - _EQUAL) <= smallest:
            return None
    return EqualLengths(smallest, largest)


def within_rounding(result: Result, error: float) -> tuple[int, ...]:
    """The classes whose verdict may differ for exact biases, when each stored one is off by at most `error`:
    a margin moves by at most twice that."""
    lowers = np.array([verdict.lower for verdict in result.verdicts])
    uppers = np.array([verdict.upper for verdict in result.verdicts])
    doubtful = ~((lowers > 2 * error) | (uppers < -2 * error))
    return tuple(result.verdicts[k].class_id for k in np.flatnonzero(doubtful))
