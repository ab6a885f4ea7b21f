"""Intervals of means over seeds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def half_interval(values: Sequence[float]) -> float:
    """Half the length of the 95 % interval of the mean (Student's t)."""
    from scipy.stats import t

    return float(t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))
