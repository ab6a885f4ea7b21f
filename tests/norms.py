"""The solid of a norm as a model's file proves it: with room for what float32 does to the vector's length."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from argmaxable import LayerNorm, RMSNorm

Norm = LayerNorm | RMSNorm


def rounded(kind: type[Norm], gain: ArrayLike, shift: ArrayLike = 0.0, *, features: int = 0) -> Norm:
    """The norm with its gain times 1 + (d + 16)·2⁻²⁵, and one unit more where d² is not above 2²⁴."""
    features = features or max(np.size(gain), np.size(shift))
    assert features <= 2**12
    factor = 1 + Fraction(features + 17, 2**25)
    exact = [Fraction(float(number)) * factor for number in np.asarray(gain, np.float64).reshape(-1)]
    assert np.asarray(gain).dtype != np.float32 or all(Fraction(float(each)) == each for each in exact)
    return kind(np.array([float(each) for each in exact]).reshape(np.shape(gain)), shift)
