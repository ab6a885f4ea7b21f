"""Bounds on e^v that rest on nothing but IEEE additions and multiplications: no library's word is taken
for the accuracy of its exponential.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# ln 2 in two parts: the first has 32 significant bits, so that its products with the whole numbers below
# 2^20 are exact; the second is the rest to 53 bits.
_LN2_HIGH = math.ldexp(2977044471, -32)
_LN2_LOW = 1.9082149292705877e-10
# Sums of e^v are always compared with 1: what is below −60 adds less than 1e-26 to them and needs no digits.
# Above 680 a sum of e^v could overflow.
_SMALL, _LARGE = -60.0, 680.0
_TERMS = 14
_INVERSE_FACTORIALS = tuple(1 / math.factorial(k) for k in range(_TERMS))
# Relative error. With |r| ≤ 0.35: the series' rest is below r^14/14! < 2^-57; Horner's 26 operations lose at
# most 26 · 2^-53 of terms whose sizes sum to less than 1.5, hence less than 2^-47 of e^r ≥ 0.7, the
# coefficients' own rounding included; r itself is off by less than 2^-52. 2^-45 covers all of it twice.
_ERROR = 2.0**-45


def exp_bounds(v: Array) -> tuple[Array, Array]:
    """Lower and upper bounds on e^v, within a factor 1 ± 2^-45 for −60 ≤ v ≤ 680; (0, e^-60) below, an
    infinite upper bound above, and (0, ∞) for NaN."""
    low, high = np.zeros(v.shape), np.full(v.shape, math.exp(_SMALL) * (1 + _ERROR))
    high[~(v < _LARGE)] = np.inf
    near = (v >= _SMALL) & (v <= _LARGE)  # few, as a rule
    value = _exp(v[near])
    low[near], high[near] = value * (1 - _ERROR), value * (1 + _ERROR)
    low[v > _LARGE] = math.exp(_LARGE) * (1 - _ERROR)
    return low, high


def _exp(v: Array) -> Array:
    power = np.rint(v * (1 / math.log(2)))
    r = v - power * _LN2_HIGH  # exact: the product is, and so is the difference of nearly equal numbers
    r -= power * _LN2_LOW
    value = np.full_like(r, _INVERSE_FACTORIALS[-1])
    for coefficient in reversed(_INVERSE_FACTORIALS[:-1]):
        value *= r
        value += coefficient
    return np.asarray(np.ldexp(value, power.astype(np.int32)))
