"""Bounds on the rounding of floats (Higham, Accuracy and Stability of Numerical Algorithms, chapter 3)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

UNIT = 2.0**-53  # relative rounding error of one float64 operation
TINY = 2.0**-1021  # more than any underflow can take off, flushed or not
# Squares below TINY underflow: added to norms so that they stay upper bounds.
_TINY_LENGTH = math.sqrt(TINY)


def gamma(operations: int, unit: float = UNIT) -> float:
    """γ_n = nε/(1 − nε): relative error of n rounded operations, in any order."""
    return operations * unit / (1 - operations * unit)


def length_bounds(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Upper bounds on the norms of rows.

    A sum of n rounded squares is off by γ_n, its root by half of that and one rounding, the last product and
    sum by two more: γ_{n+8} covers them. Underflow takes at most TINY off each square.
    """
    with np.errstate(over="ignore"):
        squares = (vectors * vectors).sum(axis=1)
    return np.asarray(np.sqrt(squares) * (1 + gamma(vectors.shape[1] + 8)) + vectors.shape[1] * _TINY_LENGTH)
