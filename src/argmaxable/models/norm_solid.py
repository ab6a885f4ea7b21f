"""What a LayerNorm or RMSNorm of a model puts out, with room for the rounding of the norm itself.

In exact arithmetic a norm divides u by at least √mean(u²), so that ‖z‖ ≤ √d. A model does so in float32,
whose unit roundoff is 2⁻²⁴. Of a sum of d squares, in whatever order it is taken, each term is rounded at
most d times; the mean and ε round once each, the root halves the relative error of what it is taken of and
rounds once, the division at most twice. So ‖z‖ ≤ √d / (1 − (d + 8)·2⁻²⁵), which is at most
√d · (1 + (d + 16 + d²·2⁻²⁴)·2⁻²⁵). The gain is multiplied with the last factor: the solid then holds every
vector of that length. The mean that a LayerNorm takes off, gain and shift are taken as exact, as the head's
own operations are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from argmaxable.core.balls import LayerNorm, RMSNorm

_HALF_UNIT = 2.0**-25


def room_for_rounding(features: int) -> float:
    """How much longer float32 rounding can make the output of a norm over this many features (a factor)."""
    return 1 + (features + 16 + -(-features * features // 2**24)) * _HALF_UNIT


def norm_solid(
    kind: type[LayerNorm] | type[RMSNorm], gain: ArrayLike, shift: ArrayLike, features: int
) -> LayerNorm | RMSNorm:
    """The domain of a norm over this many features, as float32 computes it; raises DomainError.

    The product with a float32 gain is exact in float64: 24 bits and at most 26.
    """
    return kind(np.asarray(gain, np.float64) * room_for_rounding(features), shift)
